// unseen_deriving [-t TARGET] [NAME...]: what deriving takes, and how good the cost model thinks the result, for the algorithms of this
// folder and those of the library that have no schedule, beside softmax and attention. A line for each: processor seconds of all threads,
// seconds that passed, candidates, thousands of steps of index arithmetic, the mean over the workloads of log2 of the predicted speed (0 at
// the bound of the machine), and a hash of what was derived.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "autotune/search/derive.h"
#include "generators/choose/model_choice.h"
#include "support/text/error.h"
#include "support/text/sha256.h"
#include "tests/unseen/algorithms.h"

using namespace tessera;

static double processor_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval &t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

static void add_of_library(Registry &registry) {
    registry.add("gelu", "", library::gelu)
        .add("swiglu", "", library::swiglu)
        .add("linear_swiglu", "", library::linear_swiglu)
        .add("group_norm_nhwc", "", library::group_norm_nhwc)
        .add("group_norm_nchw", "", library::group_norm_nchw)
        .add("batch_norm", "", library::batch_norm)
        .add("logsumexp", "", library::logsumexp)
        .add("conv1d", "", window_options(), library::conv1d)
        .add("conv3d_ndhwc", "", window_options(), library::conv3d_ndhwc)
        .add("grouped_conv2d_nhwc", "", window_options(), library::grouped_conv2d_nhwc)
        .add("depthwise_conv2d_fused_nhwc", "", library::fused_window_options(), library::depthwise_conv2d_fused_nhwc)
        .add("transposed_conv2d_nhwc", "", library::transposed_conv_options(), library::transposed_conv2d_nhwc)
        .add("global_average_pool_nhwc", "", library::global_average_pool_nhwc)
        .add("resize_nearest_nhwc", "", library::resize_nearest_nhwc)
        .add("resize_bilinear_nhwc", "", library::resize_options(), library::resize_bilinear_nhwc)
        .add("resize_bicubic_nhwc", "", library::resize_options(), library::resize_bicubic_nhwc)
        .add("sgd_momentum", "", library::sgd_momentum)
        .add("embedding", "", library::embedding)
        .add("argmax", "", library::argmax)
        .add("softmax", "", library::softmax)
        .add("attention", "", library::attention);
}

namespace {

// The mean over all workloads of log2 of the speed that the model predicts for what runs there.
double predicted_score(const Algorithm &algorithm, const Target &target, const std::vector<ExpectedWorkload> &workloads,
                       const Derivation &derived, CostModel &model) {
    double sum = 0;
    for (const ExpectedWorkload &w : workloads) {
        const auto own = std::find_if(derived.variants.begin(), derived.variants.end(), [&](const TunedVariant &v) {
            return std::all_of(v.when.begin(), v.when.end(), [&](const Condition &c) { return w.workload.extents.at(c.dim) <= c.bound; });
        });
        const SearchSpace space = {algorithm, target, w.workload.extents, w.workload.threads, {}, {}};
        const Candidate chosen = Search(space, {}, model).made_of(own == derived.variants.end() ? derived.stages : own->stages, "derived");
        sum += model.predict({chosen.features}).front();
    }
    return sum / static_cast<double>(workloads.size());
}

std::string hash_of(const Derivation &derived) {
    std::string text = document_of(derived.stages).dump();
    for (const TunedVariant &v : derived.variants) text += document_of(v.stages).dump();
    return sha256(text).substr(std::string_view("sha256:").size(), 8);
}

}  // namespace

int main(int argc, char **argv) {
    std::vector<std::string> names(argv + 1, argv + argc);
    std::string on = "avx2";
    if (names.size() > 1 && names[0] == "-t") on = names[1], names.erase(names.begin(), names.begin() + 2);
    Registry registry = test::unseen_algorithms();
    add_of_library(registry);
    const Target target = as_shipped_model_sees(target_named(on));
    std::vector<double> times;
    double scores = 0;
    std::printf("%-28s %8s %8s %10s %8s %8s  %s\n", "algorithm", "cpu s", "s", "candidates", "work/k", "score", "hash");
    for (const Registry::Entry &entry : registry.entries()) {
        if (!names.empty() && std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
        try {
            const Algorithm algorithm = registry.make(entry.name, {});
            const std::vector<ExpectedWorkload> workloads = expected_workloads(algorithm);
            const double begin = processor_seconds();
            const auto start = std::chrono::steady_clock::now();
            const auto model = model_for(registry, "", target);
            const Derivation derived = derive(algorithm, target, workloads, *model);
            const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            times.push_back(processor_seconds() - begin);
            const double score = predicted_score(algorithm, target, workloads, derived, *model);
            scores += score;
            std::printf("%-28s %8.2f %8.2f %10zu %8lld %8.3f  %s\n", entry.name.c_str(), times.back(), passed, derived.candidates,
                        static_cast<long long>(derived.work / 1000), score, hash_of(derived).c_str());
            std::fflush(stdout);
        } catch (const UserError &error) {
            std::printf("%s: %s\n", entry.name.c_str(), error.what());
            return 1;
        }
    }
    if (times.empty()) return 0;
    std::printf("%-28s %8.2f median, %.2f at most; mean score %.4f\n", "all", median(times), *std::max_element(times.begin(), times.end()),
                scores / static_cast<double>(times.size()));
    return 0;
}
