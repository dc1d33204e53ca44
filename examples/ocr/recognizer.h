// PP-OCRv4's recognition network with its weights: from a line to its text.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera.h>

#include "picture.h"

// A safetensors file of f32: a JSON header that gives each tensor's type, shape and bytes. Throws std::runtime_error.
class Weights {
public:
    explicit Weights(const std::string &file);
    Weights(const Weights &) = delete;
    // Lives as long as this.
    TessTensor tensor(const std::string &name) const;

private:
    struct Tensor {
        std::vector<int64_t> extents;
        size_t first = 0;  // of values_
    };
    std::vector<float> values_;
    std::unordered_map<std::string, Tensor> tensors_;
};

struct Reading {
    std::string text;       // UTF-8
    double confidence = 0;  // mean probability of its characters; 0 of none
};

class Recognizer {
public:
    // `folder` has what export.py writes. Throws std::runtime_error.
    explicit Recognizer(const std::string &folder);
    // How likely each character is at each position, [positions, characters]: the first is no character at all.
    const std::vector<float> &probabilities(const Line &line);
    // The likeliest character of each position, without repetitions and positions of none (Graves et al. 2006).
    Reading decode(const std::vector<float> &probabilities) const;

private:
    Weights weights_;
    std::vector<std::string> characters_;
    std::vector<TessTensor> tensors_;
    std::vector<const TessTensor *> table_;
    std::vector<float> output_;
    std::unique_ptr<void, void (*)(void *)> workspace_;
    uint64_t workspace_bytes_ = 0;
};
