// What the encoder is for once it has learnt: judging texts and writing, with the MLP's weights as they are or in codes of i8.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel.h"
#include "number.h"

// Bytes of tensors by their names, as the functions of inference take them.
using Weights = std::map<std::string, std::vector<char>>;

// The same with up and down as codes of i8, and their scales, up_scales and down_scales.
Weights in_codes(const Weights &weights, int32_t threads);

class Inference {
public:
    // Codes are told by their scales.
    Inference(Weights weights, int32_t threads);

    // The mean over some batches, the same ones each time.
    double loss(const std::vector<uint8_t> &text);

    // A score of each byte that may follow the text, of which the bytes from begin_of() count. Keys and values of what the last call had as
    // well are kept, so that of a text that has grown only what was added is computed.
    std::vector<Number> scores(const std::vector<uint8_t> &text);
    // The same without anything kept. std::runtime_error with codes, which only judge and write with a cache.
    std::vector<Number> scores_at_once(const std::vector<uint8_t> &text);
    // Where a text has more bytes than the encoder has places, half of its places' bytes at a time are left out in front.
    size_t begin_of(const std::vector<uint8_t> &text) const;

    size_t bytes_of_weights() const;
    // Whole or not at all. What load() reads has to have been saved for the same sizes.
    void save(const std::filesystem::path &file) const;
    static Weights load(const std::filesystem::path &file);

private:
    Weights weights_;
    bool has_codes_;
    int32_t threads_;
    Kernel loss_, logits_;
    std::unique_ptr<Kernel> next_;  // for `rows_` bytes at once
    int64_t rows_ = 0;
    std::vector<char> keys_, values_;
    std::vector<uint8_t> kept_;  // the bytes whose keys and values these are

    std::map<std::string, void *> data() const;
};
