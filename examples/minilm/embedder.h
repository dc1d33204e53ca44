// Sentences to unit vectors, by the generated function: it owns the packed weights, the workspace and the threads.
#pragma once
#include <tessera.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer.h"

// A generated function that computes sentence_embedding, and those that pack its operands.
struct Program {
    using Size = int32_t (*)(const TessTensor *, const TessContext *, uint64_t *);
    using Pack = int32_t (*)(const TessTensor *, const TessTensor *, const TessContext *);
    struct Packing {
        std::string operand;
        Size size;
        Pack pack;
    };
    std::string name;
    int32_t (*describe)(TessKernel *);
    std::vector<Packing> packings;
};

// As many sentences of as many tokens, those that are padding marked.
struct Batch {
    int64_t sentences = 0, tokens = 0;
    std::vector<int32_t> ids;   // [sentences, tokens]
    std::vector<uint8_t> keep;  // likewise: 1, or 0 where padding is
};
Batch batch_of(const std::vector<std::vector<int32_t>> &sentences);

class Embedder {
public:
    // `folder` has model.safetensors and vocab.txt. std::runtime_error where they cannot be read, or a function refuses what it is given.
    Embedder(const Program &program, const std::string &folder, int32_t threads);

    int64_t width() const { return width_; }
    const Tokenizer &tokenizer() const { return tokenizer_; }
    // Unit vectors [sentences, width()].
    std::vector<float> run(const Batch &batch);
    // The same of any number of sentences, in batches of some of like length.
    std::vector<float> embed(const std::vector<std::string> &sentences);

private:
    // Memory of a tensor, and its extents, to which the tensor points.
    struct Argument {
        std::vector<int64_t> extents;
        std::unique_ptr<char, decltype(&std::free)> data{nullptr, &std::free};
        uint64_t packed_bytes = 0;
        TessTensor tensor;
    };

    Tokenizer tokenizer_;
    TessKernel kernel_ = tess_kernel();
    std::vector<std::string> names_;
    std::vector<Argument> arguments_;
    std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool_{nullptr, &tess_pool_destroy};
    TessFault fault_ = tess_fault();
    TessContext context_ = tess_context();
    std::unique_ptr<char, decltype(&std::free)> workspace_{nullptr, &std::free};
    int64_t width_ = 0;

    void check(int32_t status, const std::vector<std::string> &names) const;
    void pack(const Program &program, const std::string &name, Argument &argument);
};
