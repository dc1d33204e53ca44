// The weights of a model as the file of its package has them.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

struct Weight {
    std::vector<int64_t> extents;
    std::vector<float> values;  // row-major
};

// A safetensors file: a header of JSON that says each tensor's type, extents and bytes. std::runtime_error where it is none.
class Weights {
public:
    explicit Weights(const std::string &file);
    // Of type F32. std::runtime_error where the file has no such tensor.
    Weight tensor(const std::string &name) const;

private:
    struct Entry {
        std::vector<int64_t> extents;
        size_t begin = 0, bytes = 0;
    };
    std::string file_, content_;
    std::unordered_map<std::string, Entry> entries_;
};
