#include "generators/commands/bench.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <list>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/measure/evict.h"
#include "bench/measure/work.h"
#include "generators/commands/kernel_line.h"
#include "generators/kernel/comparison.h"
#include "support/files/json_text.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

struct BenchOptions {
    KernelOptions kernel;
    std::vector<std::string> extents;
    double seconds = 1;
    int32_t threads = 1;
    bool json = false, cold = false;
    Limits compile, run{300};
};

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

// Seconds for one call, sorted; each from as many calls as take a tenth of a millisecond or, with cold caches, from one.
std::vector<double> times(const std::function<void()> &call, double seconds, bool cold) {
    using Clock = std::chrono::steady_clock;
    auto run = [&](int64_t calls) {
        const auto start = Clock::now();
        for (int64_t i = 0; i < calls; i++) call();
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    int64_t calls = 1;
    while (!cold && run(calls) < 1e-4) calls *= 2;
    std::vector<double> all;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (all.size() < 5 || Clock::now() < end) {
        if (cold && evict_caches() != 0)
            throw UserError("bench.memory",
                            "--cold-caches: expected memory of twice the size of the largest cache, got none. Leave it out.");
        all.push_back(run(calls) / static_cast<double>(calls));
    }
    std::sort(all.begin(), all.end());
    return all;
}

ordered_json measured(const PreparedKernel &p, const LoadedKernels &loaded, const Extents &extents, const BenchOptions &options) {
    const LoadedKernel &kernel = loaded.kernel;
    const TileProgram &program = variant_for(p.kernel, extents).program;
    const Inputs inputs = random_inputs(program, extents, 1);
    const std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(options.threads > 1 ? tess_pool_create(options.threads) : nullptr,
                                                                       tess_pool_destroy);
    TessContext context = tess_context();
    context.threads = options.threads, context.pool = pool.get();
    auto check = [&](int status) {
        if (status != TESS_OK) throw InternalError(p.kernel.name + " refuses its arguments: " + kernel.message(status));
    };
    std::list<Aligned> memory;
    std::list<std::vector<int64_t>> shapes;
    std::list<uint64_t> sizes;
    auto tensor = [&](const Tensor &t, bool read) {
        const std::vector<int64_t> &shape = shapes.emplace_back(shape_of(t, extents));
        const Array array = read ? inputs.tensors.at(t.name) : Array(t.dtype, shape);
        memory.emplace_back(array.data.size());
        std::copy(array.data.begin(), array.data.end(), static_cast<std::byte *>(memory.back().data()));
        return descriptor_of(t.dtype, shape, memory.back().data());
    };
    std::vector<TessTensor> arguments;
    auto packing = loaded.packings.begin();
    for (const Argument &a : program.arguments) {
        if (!a.packed) {
            arguments.push_back(tensor(a.tensor, a.read));
            continue;
        }
        uint64_t &bytes = sizes.emplace_back(0);
        std::vector<TessTensor> operand = {tensor(a.packed->operand, true), tess_packed(nullptr, &bytes)};
        check(packing->size(operand, context, bytes));
        memory.emplace_back(bytes);
        operand.back() = tess_packed(memory.back().data(), &bytes);
        check((packing++)->run(operand, {}, context));
        arguments.push_back(operand.back());
    }
    check(kernel.workspace(arguments, inputs.parameters, context, context.workspace_bytes));
    const Aligned workspace(context.workspace_bytes);
    context.workspace = context.workspace_bytes ? workspace.data() : nullptr;
    const std::vector<double> all = times([&] { check(kernel.run(arguments, inputs.parameters, context)); }, options.seconds, options.cold);
    const double median = all[all.size() / 2];
    const Work work = work_of(p.bound, program, extents);
    ordered_json result = {{"samples", all.size()}, {"median_s", median}, {"min_s", all.front()}};
    if (work.operations) result["operations"] = *work.operations, result["gflops"] = *work.operations / median * 1e-9;
    result["bytes"] = work.bytes, result["gbytes_per_s"] = work.bytes / median * 1e-9;
    return result;
}

int report(const PreparedKernel &p, const BenchOptions &options) {
    const Extents symbolic = parse_shape(options.extents, "--extents"), extents = all_extents(p.bound, symbolic);
    const TemporaryFolder folder;
    const std::filesystem::path object = link_kernel(p, options.compile, folder);
    const OutputFolder out(folder.path());
    const Activity running{p.kernel.name, "timing", "bench.limit", "Choose a smaller shape", "--run-limit-s"};
    run_limited(running, options.run, [&] {
        const LoadedKernels kernel(object, p);
        out.write("result.json", json_text(measured(p, kernel, extents, options)));
    });
    const ordered_json r = from_json_text(out.read("result.json"));
    Extents shape = p.fixed;
    shape.insert(symbolic.begin(), symbolic.end());
    const std::string schedule = p.schedule ? p.schedule->name() : "none";
    if (options.json) {
        ordered_json whole = {{"format", "tessera-bench"},
                              {"version", 1},
                              {"kernel", p.kernel.name},
                              {"target", p.target.name},
                              {"numerics", p.declared.numerics.name},
                              {"schedule", schedule},
                              {"extents", shape},
                              {"threads", options.threads}};
        if (options.cold) whole["caches"] = "cold";
        whole.update(r);
        std::cout << json_text(whole, 2) << "\n";
        return exit_ok;
    }
    std::cout << fmt::format("{} on {}, {}, schedule {}, {}, {} thread{}{}\n", p.kernel.name, p.target.name, p.declared.numerics.name,
                             schedule, to_string(shape), options.threads, options.threads == 1 ? "" : "s",
                             options.cold ? ", cold caches" : "");
    std::cout << fmt::format("  median {:.3f} us, min {:.3f} us of {} samples", r["median_s"].get<double>() * 1e6,
                             r["min_s"].get<double>() * 1e6, r["samples"].get<size_t>());
    if (r.contains("gflops")) std::cout << fmt::format("; {:.1f} GFLOP/s", r["gflops"].get<double>());
    std::cout << fmt::format("; {:.1f} GB/s of arguments\n", r["gbytes_per_s"].get<double>());
    return exit_ok;
}

}  // namespace

Command bench_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<BenchOptions>();
    const CommandLine line = program.command("bench", "Compile a kernel and time it on this machine");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    line.option("--extents", options->extents, "Extents of the dims that the kernel leaves dynamic").takes("DIM=EXTENT");
    line.seconds("--seconds", options->seconds, "How long to measure");
    line.flag("--cold-caches", options->cold,
              "Time calls that find nothing of their data in the caches, as when other work runs between them");
    line.option("--threads", options->threads, "Threads that the kernel may use").in_range(1, 4096).shows_default();
    line.seconds("--compile-limit-s", options->compile.seconds, "Most seconds that compiling may take");
    line.seconds("--run-limit-s", options->run.seconds, "Most seconds that timing may take");
    line.flag("--json", options->json, "For programs");
    return {line, [=, &registry] { return report(prepare(registry, options->kernel), *options); }};
}

}  // namespace tessera
