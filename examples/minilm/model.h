// Weights and words of all-MiniLM-L6-v2 as its package ships them.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

struct Matrix {
    int64_t rows = 0, columns = 0;  // a vector has one row
    std::vector<float> values;      // row-major

    float &at(int64_t r, int64_t c) { return values[r * columns + c]; }
    float at(int64_t r, int64_t c) const { return values[r * columns + c]; }
};

Matrix zeros(int64_t rows, int64_t columns);
Matrix transposed(const Matrix &m);

// A safetensors file: a JSON header that gives each tensor's type, shape and bytes. Throws std::runtime_error.
class Weights {
public:
    explicit Weights(const std::string &file);
    Matrix tensor(const std::string &name) const;

private:
    std::string bytes_;
    std::unordered_map<std::string, std::pair<std::pair<int64_t, int64_t>, std::pair<size_t, size_t>>> tensors_;
};

// WordPiece: the longest known piece first; pieces inside a word begin with "##".
class Vocabulary {
public:
    explicit Vocabulary(const std::string &file);
    std::vector<int64_t> encode(const std::string &text) const;  // with [CLS] and [SEP]

private:
    std::unordered_map<std::string, int64_t> ids_;
};
