#include "generators/certify/kernel_time.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <list>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/evict.h"
#include "bench/measure/instruction_count.h"
#include "bench/measure/integer_inputs.h"
#include "bench/measure/seconds_now.h"
#include "bench/measure/work.h"
#include "compiler/tile/arguments.h"
#include "generators/output/loaded_kernel.h"
#include "support/files/json_text.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

// Memory aligned to 64 bytes, since its alignment shows in the time.
class Aligned {
public:
    explicit Aligned(size_t bytes) : memory_(bytes + 64) {
        void *at = memory_.data();
        size_t space = memory_.size();
        data_ = std::align(64, bytes, at, space);
    }
    void *data() const { return data_; }

private:
    std::vector<std::byte> memory_;
    void *data_;
};

// A kernel on one thread is timed by what that thread had of its processor: by the wall clock, a call of some milliseconds while another
// program runs takes whole slices of the scheduler more.
double now(bool one_thread) {
    timespec t{};
    if (!one_thread || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return seconds_now();
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Seconds for one call, sorted; each from as many calls as take a tenth of a millisecond or, with cold caches, from one.
std::vector<double> times(const std::function<void()> &call, const Timing &timing) {
    using Clock = std::chrono::steady_clock;
    const bool one_thread = timing.threads == 1, cold = timing.cold;
    auto run = [&](int64_t calls) {
        const double start = now(one_thread);
        for (int64_t i = 0; i < calls; i++) call();
        return now(one_thread) - start;
    };
    int64_t calls = 1;
    while (!cold && run(calls) < 1e-4) calls *= 2;
    std::vector<double> all;
    const auto end = Clock::now() + std::chrono::duration<double>(timing.seconds);
    while (all.size() < 5 || Clock::now() < end) {
        if (cold && evict_caches() != 0)
            throw UserError("bench.memory",
                            "--cold-caches: expected memory of twice the size of the largest cache, got none. Leave it out.");
        all.push_back(run(calls) / static_cast<double>(calls));
    }
    std::sort(all.begin(), all.end());
    return all;
}

// A kernel with everything that a call of it needs.
class ReadyCall {
public:
    ReadyCall(const PreparedKernel &p, const LoadedKernels &loaded, const Extents &extents, int32_t threads, const StatedInputs &stated)
        : kernel_(loaded.kernel),
          name_(p.compiled.kernel.name),
          inputs_(random_inputs(variant_for(p.compiled.kernel, extents).program, extents, 1, stated)),
          pool_(threads > 1 ? tess_pool_create(threads) : nullptr, tess_pool_destroy) {
        const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
        context_.threads = threads, context_.pool = pool_.get();
        auto packing = loaded.packings.begin();
        for (const Argument &a : program.arguments) {
            if (!a.packed) {
                arguments_.push_back(tensor(a.tensor, declared_tensor(a), a.read, extents));
                continue;
            }
            uint64_t &bytes = sizes_.emplace_back(0);
            std::vector<TessTensor> operand = {tensor(a.packed->operand, declared_tensor(a), true, extents), tess_packed(nullptr, &bytes)};
            check(packing->size(operand, context_, bytes));
            memory_.emplace_back(bytes);
            operand.back() = tess_packed(memory_.back().data(), &bytes);
            check((packing++)->run(operand, {}, context_));
            arguments_.push_back(operand.back());
        }
        check(kernel_.workspace(arguments_, context_, context_.workspace_bytes));
        memory_.emplace_back(context_.workspace_bytes);
        context_.workspace = context_.workspace_bytes ? memory_.back().data() : nullptr;
    }

    void operator()() const { check(kernel_.run(arguments_, inputs_.parameters, context_)); }

private:
    const LoadedKernel &kernel_;
    const std::string name_;
    const Inputs inputs_;
    std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool_;
    TessContext context_ = tess_context();
    std::list<Aligned> memory_;
    std::list<std::vector<int64_t>> shapes_;
    std::list<uint64_t> sizes_;
    std::vector<TessTensor> arguments_;

    void check(int status) const {
        if (status != TESS_OK) throw InternalError(name_ + " refuses its arguments: " + kernel_.message(status));
    }
    // The tensor `t` of the program, as `declared` to callers.
    TessTensor tensor(const Tensor &t, const Tensor &declared, bool read, const Extents &extents) {
        const std::vector<int64_t> &shape = shapes_.emplace_back(shape_of(declared, extents));
        const Array array = read ? inputs_.tensors.at(t.name) : Array(t.dtype, shape_of(t, extents));
        memory_.emplace_back(array.data.size());
        std::copy(array.data.begin(), array.data.end(), static_cast<std::byte *>(memory_.back().data()));
        return descriptor_of(declared.dtype, shape, memory_.back().data());
    }
};

StatedInputs inputs_for(const PreparedKernel &p, const Extents &extents, const Timing &timing) {
    return with_integer_inputs(p.request.bound, extents, timing.inputs, 1);
}

KernelTime measured(const PreparedKernel &p, const LoadedKernels &loaded, const Extents &extents, const Timing &timing) {
    const ReadyCall call(p, loaded, extents, timing.threads, inputs_for(p, extents, timing));
    const std::vector<double> all = times(std::cref(call), timing);
    const Work work = work_of(p.request.bound, variant_for(p.compiled.kernel, extents).program, extents);
    return {all.size(), all[all.size() / 2], all.front(), work.operations, work.bytes};
}

// From the process that measures.
std::string text_of(const KernelTime &t) {
    ordered_json document = {{"samples", t.samples}, {"median_s", t.median_s}, {"min_s", t.min_s}, {"bytes", t.bytes}};
    if (t.operations) document["operations"] = *t.operations;
    return json_text(document);
}

KernelTime read_time(const std::string &text) {
    const ordered_json document = from_json_text(text);
    KernelTime t{document["samples"], document["median_s"], document["min_s"], {}, document["bytes"]};
    if (document.contains("operations")) t.operations = document["operations"].get<double>();
    return t;
}

}  // namespace

// What no machine does within the limits is refused before anything is compiled. Inputs are held twice: as they were made, and where the
// kernel finds them.
static void check_size(const PreparedKernel &p, const Extents &extents, const Timing &timing) {
    constexpr double operations_per_s = 2e12;  // more than a core has
    constexpr int calls = 6;                   // the fewest
    const Work work = work_of(p.request.bound, variant_for(p.compiled.kernel, extents).program, extents);
    const double seconds = calls * work.operations.value_or(0) / operations_per_s / timing.threads;
    const std::string name = p.compiled.kernel.name;
    if (2 * work.bytes > static_cast<double>(timing.run.memory_bytes))
        throw UserError("bench.size",
                        fmt::format("{}: expected at most {:.1f} GB of arguments to time, got {:.1f}. Choose a smaller shape.", name,
                                    static_cast<double>(timing.run.memory_bytes) / 2e9, work.bytes / 1e9));
    if (seconds > timing.run.seconds)
        throw UserError(
            "bench.size",
            fmt::format("{}: expected a shape that is timed within {:g} s, got {:.3g} operations a call, of which {} calls take "
                        "{:.0f} s at least. Choose a smaller shape, or raise --run-limit-s.",
                        name, timing.run.seconds, *work.operations, calls, seconds));
}

// What `measure` writes of the kernel, in a process of its own.
static std::string measured_apart(const PreparedKernel &p, const std::string &doing, const Extents &symbolic, const Timing &timing,
                                  const std::function<std::string(const LoadedKernels &, const Extents &)> &measure) {
    const Extents extents = all_extents(p.request.bound, symbolic);
    check_size(p, extents, timing);
    const TemporaryFolder folder;
    const std::filesystem::path library = library_to_load(p, timing.compile, folder);
    const OutputFolder out(folder.path());
    const Activity running{p.compiled.kernel.name, doing, "bench.limit", "Choose a smaller shape", "--run-limit-s"};
    run_limited(running, timing.run, [&] {
        const LoadedKernels kernels(library, p);
        out.write("result.json", measure(kernels, extents));
    });
    return out.read("result.json");
}

KernelTime time_of(const PreparedKernel &p, const Extents &symbolic, const Timing &timing) {
    return read_time(measured_apart(p, "timing", symbolic, timing, [&](const LoadedKernels &kernels, const Extents &extents) {
        return text_of(measured(p, kernels, extents, timing));
    }));
}

uint64_t instructions_of(const PreparedKernel &p, const Extents &symbolic, const Timing &timing) {
    constexpr uint64_t most = 20'000'000;
    return std::stoull(
        measured_apart(p, "counting instructions", symbolic, timing, [&](const LoadedKernels &kernels, const Extents &extents) {
            const ReadyCall call(p, kernels, extents, 1, inputs_for(p, extents, timing));
            return std::to_string(count_instructions(kernels.kernel.code(), std::cref(call), most));
        }));
}

}  // namespace tessera
