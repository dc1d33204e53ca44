// tessera-paths: what the compiler does again and again, by Google Benchmark. One thread. Each benchmark is named <path>/<kernel>.
#include <benchmark/benchmark.h>

#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/library/library.h"
#include "bench/measure/inputs.h"
#include "bench/measure/work.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/compile/variants.h"
#include "compiler/lower/lower.h"
#include "costmodel/features/features.h"
#include "generators/choose/model_choice.h"
#include "generators/output/loaded_kernel.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// A kernel at its shipped schedule, and a shape for what depends on one.
struct Subject {
    std::string name;
    PreparedKernel prepared;
    Extents extents;
    KnobsByStage knobs;

    const TileProgram &program() const { return variant_for(prepared.compiled.kernel, extents).program; }
    Featured features(const Extents &at) const {
        const TileProgram &p = variant_for(prepared.compiled.kernel, at).program;
        const Target &target = prepared.request.target;
        return features_of(profile_of(p, all_extents(p, at), target, 1), work_of(prepared.request.bound, p, at), target, 1);
    }
};

// The same target wherever it runs, so that machines lower the same programs.
std::string target_name() { return host_arch() == Arch::x86_64 ? "avx2" : "host"; }

Subject subject(const Registry &registry, const std::string &name, const Extents &symbolic) {
    KernelOptions options;
    options.algorithm = name, options.target = target_name();
    PreparedKernel p = prepare(registry, options);
    const Extents extents = all_extents(p.request.bound, symbolic);
    KnobsByStage knobs = knobs_for(p.request, p.choice, extents);
    return {name, std::move(p), extents, std::move(knobs)};
}

void lowering(benchmark::State &state, const Subject &s) {
    for (auto _ : state) benchmark::DoNotOptimize(lower(s.prepared.request.bound, s.knobs, s.prepared.request.target));
}

void verifying(benchmark::State &state, const Subject &s) {
    for (auto _ : state) benchmark::DoNotOptimize(verify(s.program()));
}

void features(benchmark::State &state, const Subject &s) {
    for (auto _ : state) benchmark::DoNotOptimize(s.features(s.extents));
}

// By the model that ships for the target. As many candidates as a round of a search has, told apart by their shapes.
void scoring(benchmark::State &state, const Subject &s, const CostModel &model) {
    constexpr int64_t candidates = 64;
    std::vector<Featured> all;
    for (int64_t i = 0; i < candidates; i++) {
        Extents at = s.extents;
        for (auto &[dim, extent] : at) extent += i;
        all.push_back(s.features(all_extents(s.prepared.request.bound, at)));
    }
    for (auto _ : state) benchmark::DoNotOptimize(model.predict(all));
    state.SetItemsProcessed(state.iterations() * candidates);
}

struct Close {
    void operator()(TessLoaded *library) const { tess_loaded_close(library); }
};
using Loaded = std::unique_ptr<TessLoaded, Close>;

Loaded load(const std::string &archive) {
    TessLoaded *loaded = nullptr;
    TessLoadError error;
    const TessLoadStatus status = tess_load_archive(archive.data(), archive.size(), &loaded, &error);
    if (status != TESS_LOAD_OK) throw UserError(tess_load_status_id(status), error.text);
    return Loaded(loaded);
}

// And taking it out of memory again.
void loading(benchmark::State &state, const std::string &archive) {
    for (auto _ : state) benchmark::DoNotOptimize(load(archive));
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(archive.size()));
}

// What a kernel's arguments cost: its own code is in the place of a function that does nothing.
class EmptyKernel {
public:
    EmptyKernel(const Subject &s, const std::string &archive) : loaded_(load(archive)) {
        void *symbol = tess_loaded_symbol(loaded_.get(), (s.name + "_describe").c_str());
        const auto describe = reinterpret_cast<int32_t (*)(TessKernel *)>(symbol);
        require(describe && describe(&kernel_) == TESS_OK, "a library of a kernel has it");
        kernel_.plan = nullptr;
        kernel_.body = [](void *, int64_t *) -> int32_t { return 0; };
        for (const Argument &a : s.program().arguments) {
            const std::vector<int64_t> &shape = shapes_.emplace_back(shape_of(a.tensor, s.extents));
            Array &array = arrays_.emplace_back(a.tensor.dtype, shape);
            tensors_.push_back(descriptor_of(a.tensor.dtype, shape, array.data.data()));
            data_.push_back(array.data.data());
        }
        for (const TessTensor &t : tensors_) table_.push_back(&t);
        uint64_t bytes = 0;
        check(tess_plan_bytes(&kernel_, &bytes));
        plan_.resize(bytes / sizeof(uint64_t) + 1);
        check(tess_plan_make(&kernel_, table_.data(), nullptr, &context_, plan_.data(), bytes));
        check(call());
        check(run_plan());
    }
    EmptyKernel(const EmptyKernel &) = delete;
    EmptyKernel &operator=(const EmptyKernel &) = delete;
    int32_t call() const { return tess_call(&kernel_, table_.data(), nullptr, &context_); }
    int32_t run_plan() const { return tess_plan_run(reinterpret_cast<const TessPlan *>(plan_.data()), data_.data(), nullptr, &context_); }

private:
    Loaded loaded_;
    TessKernel kernel_ = tess_kernel();
    TessContext context_ = tess_context();
    std::list<std::vector<int64_t>> shapes_;
    std::list<Array> arrays_;
    std::vector<TessTensor> tensors_;
    std::vector<const TessTensor *> table_;
    std::vector<void *> data_;
    std::vector<uint64_t> plan_;

    static void check(int32_t status) { require(status == TESS_OK, "a kernel takes what it declares"); }
};

int run() {
    Registry registry;
    registry.add("matmul", "", library::matmul).add("softmax", "", library::softmax).add("attention", "", library::attention);
    const std::vector<Subject> subjects = {
        subject(registry, "matmul", {{"M", 512}, {"N", 768}, {"K", 768}}),
        subject(registry, "softmax", {{"M", 128}, {"N", 1024}}),
        subject(registry, "attention", {{"H", 12}, {"S", 128}, {"T", 128}, {"D", 64}, {"E", 64}}),
    };
    const std::unique_ptr<CostModel> model = model_for(registry, "", subjects[0].prepared.request.target);
    const TemporaryFolder folder;
    std::list<std::string> archives;
    std::list<EmptyKernel> kernels;
    const auto add = [](const std::string &path, const Subject &s, const std::function<void(benchmark::State &)> &timed) {
        benchmark::RegisterBenchmark((path + "/" + s.name).c_str(), timed);
    };
    for (const Subject &s : subjects) {
        const std::string &archive = archives.emplace_back(read_file(library_to_load(s.prepared, {}, folder)));
        add("lowering", s, [&s](benchmark::State &state) { lowering(state, s); });
        add("verifying", s, [&s](benchmark::State &state) { verifying(state, s); });
        add("features", s, [&s](benchmark::State &state) { features(state, s); });
        add("scoring", s, [&s, &model](benchmark::State &state) { scoring(state, s, *model); });
        add("loading", s, [&archive](benchmark::State &state) { loading(state, archive); });
        const EmptyKernel &kernel = kernels.emplace_back(s, archive);
        add("call", s, [&kernel](benchmark::State &state) {
            for (auto _ : state) benchmark::DoNotOptimize(kernel.call());
        });
        add("plan_run", s, [&kernel](benchmark::State &state) {
            for (auto _ : state) benchmark::DoNotOptimize(kernel.run_plan());
        });
    }
    benchmark::AddCustomContext("tessera_target", subjects[0].prepared.request.target.name);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

}  // namespace

}  // namespace tessera

int main(int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    try {
        return tessera::run();
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
