// A Google Benchmark program of one kernel. What the compiler knows of it is in a file that `generate --benchmark` writes; a project gets
// both by tessera_add_benchmark.
#pragma once
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/random_elements.h"
#include "tessera.h"

namespace tessera_benchmark {

struct Packing {
    int32_t (*size)(const TessTensor *operand, const TessContext *context, uint64_t *bytes);
    int32_t (*pack)(const TessTensor *operand, const TessTensor *packed, const TessContext *context);
};

struct Tensor {
    TessDType dtype;
    std::vector<int64_t> extents;
    size_t bytes;
    bool read;
    RandomKind kind;  // of `elements` from this seed, where nothing is given
    uint64_t seed;
    int64_t elements;
    std::vector<int64_t> given;  // offsets of ragged dims
    const Packing *packing;      // where the kernel takes it packed
};

struct Shape {
    const char *name;  // "matmul/M:1"
    std::vector<Tensor> tensors;
    const void *parameters;
    bool counted;                       // whether the operations are known: not where a dim's extent depends on data
    double operations, bytes, bound_s;  // of one call; no call can be faster than that
};

struct Kernel {
    int32_t (*run)(const TessTensor *const *tensors, const void *parameters, const TessContext *context);
    int32_t (*workspace)(const TessTensor *const *tensors, const TessContext *context, uint64_t *bytes);
    const char *const *argument_names;
};

class Call {
public:
    Call(const Kernel &kernel, const Shape &shape) : kernel_(kernel), parameters_(shape.parameters) {
        context_.fault = &fault_, context_.threads = 1;
        for (const Tensor &t : shape.tensors) tensors_.push_back(argument(t));
        for (const TessTensor &t : tensors_) table_.push_back(&t);
        uint64_t bytes = 0;
        check(kernel_.workspace(table_.data(), &context_, &bytes));
        if (bytes) context_.workspace = memory(bytes), context_.workspace_bytes = bytes;
    }
    void operator()() {
        const int32_t status = kernel_.run(table_.data(), parameters_, &context_);
        if (status != TESS_OK) check(status);
    }

private:
    struct Free {
        void operator()(void *p) const { std::free(p); }
    };
    const Kernel &kernel_;
    const void *parameters_;
    TessFault fault_ = tess_fault();
    TessContext context_ = tess_context();
    std::vector<std::unique_ptr<void, Free>> memory_;
    std::list<uint64_t> packed_bytes_;
    std::vector<TessTensor> tensors_;
    std::vector<const TessTensor *> table_;

    void *memory(size_t bytes) {
        memory_.emplace_back(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
        if (!memory_.back()) throw std::bad_alloc();
        std::memset(memory_.back().get(), 0, bytes);
        return memory_.back().get();
    }
    void check(int32_t status) const {
        if (status == TESS_OK) return;
        char words[256];
        tess_status_message(status, &fault_, kernel_.argument_names, words, sizeof words);
        std::fprintf(stderr, "%s\n", words);
        std::exit(1);
    }
    TessTensor argument(const Tensor &t) {
        void *data = memory(t.bytes);
        if (t.read && t.given.empty()) random_elements(t.kind, t.seed, 0, t.elements, data);
        for (size_t i = 0; i < t.given.size(); i++)
            if (t.dtype == TESS_I64) static_cast<int64_t *>(data)[i] = t.given[i];
            else static_cast<int32_t *>(data)[i] = static_cast<int32_t>(t.given[i]);
        const TessTensor plain = tess_dense(data, t.dtype, static_cast<int32_t>(t.extents.size()), t.extents.data());
        if (!t.packing) return plain;
        uint64_t &bytes = packed_bytes_.emplace_back(0);
        check(t.packing->size(&plain, &context_, &bytes));
        const TessTensor packed = tess_packed(memory(bytes), &bytes);
        check(t.packing->pack(&plain, &packed, &context_));
        return packed;
    }
};

// Registers the shapes and runs those that the arguments ask for. `limit` says where bound_s is from.
inline int run(int argc, char **argv, const Kernel &kernel, const std::vector<Shape> &shapes, const char *limit) {
    benchmark::AddCustomContext("tessera_limit", limit);
    for (const Shape &shape : shapes)
        benchmark::RegisterBenchmark(shape.name, [&kernel, &shape](benchmark::State &state) {
            Call call(kernel, shape);
            for (auto _ : state) {
                call();
                benchmark::ClobberMemory();
            }
            using benchmark::Counter;
            if (shape.counted) {
                state.counters["operations"] = shape.operations;
                state.counters["operations_per_second"] = Counter(shape.operations, Counter::kIsIterationInvariantRate);
            }
            state.counters["bytes"] = shape.bytes;
            state.counters["bytes_per_second"] = Counter(shape.bytes, Counter::kIsIterationInvariantRate);
            state.counters["share_of_limit"] = Counter(shape.bound_s, Counter::kIsIterationInvariantRate);
        });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

}  // namespace tessera_benchmark
