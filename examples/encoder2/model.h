// The weights of the encoder, what training keeps beside them, and the generated functions that change them.
#pragma once
#include <tessera/runtime/state/precision.h>

#include <filesystem>
#include <string>
#include <vector>

#include "inference.h"
#include "kernel.h"
#include "text.h"

// All that a step of training changes, and what it depends on.
struct State {
    std::vector<Number> w, m, v;  // all weights as one vector, which steps add up in, and the moments of AdamW
    std::vector<Number> losses;   // of each step
    uint64_t seed = 1, text = 0;
    TessPrecision precision = {};  // what losses are scaled by, and which functions the next step calls
};

struct Recipe {
    double rate = 3e-3, warm_up = 20, decay = 0.01, longest = 1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, dropout = 0.1;
};

class Model {
public:
    explicit Model(int32_t threads);

    int64_t weights() const { return size_; }
    std::vector<int64_t> sizes() const;  // B S L D H E F V
    bool is_mixed() const { return policies_.size() > 1; }
    // No step was taken: norms scale by 1, other weights are spread evenly with a deviation of 1 / sqrt(D). Of a mixed training the first
    // loss is scaled by 2^exponent.
    State initial(uint64_t seed, uint64_t text, int32_t exponent) const;

    // One step on a batch of the text: the loss before it, which is added to the state's, and the length of the gradient before it was cut.
    // In bf16 a gradient that is not finite changes nothing, and after some of them steps are made in f32 for a while.
    struct Step {
        double loss, length;
    };
    Step advance(State &state, const std::vector<uint8_t> &text, const Recipe &recipe);
    // As the functions of inference take them.
    Weights inference(const State &state) const;

    // Whole or not at all, whenever the process ends.
    void save(const std::filesystem::path &file, State &state) const;
    State load(const std::filesystem::path &file) const;

private:
    struct Part {
        std::string name;
        int64_t begin = 0, size = 0;
    };
    // The functions of one numerics policy.
    struct Policy {
        Kernel gradients, length, update;
        uint64_t each;        // bytes of a weight and of a gradient
        std::vector<char> g;  // all gradients
    };
    std::vector<Policy> policies_;  // the usual one, and where that is narrow a wide one
    std::vector<Part> parts_;
    int64_t size_ = 0, texts_ = 0, bytes_ = 0, width_ = 0;
    TessPrecisionConfig precision_ = tess_precision_config();

    using Describe = int32_t (*)(TessKernel *);
    void add_policy(Describe gradients, Describe length, Describe update, int32_t threads);
    std::vector<char> stored(const std::vector<Number> &w, uint64_t each) const;
    std::map<std::string, void *> data_of(std::vector<char> &all, uint64_t each, const std::string &suffix = "") const;
};
