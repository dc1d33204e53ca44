#include "generators/kernel/registry.h"

#include "algorithms/build/convolution.h"
#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "generators/kernel/prepare.h"
#include "tests/generators/harness.h"
#include "tests/support/words.h"

namespace tessera::test_registry {

using namespace tessera::test;

TEST_CASE("a registry finds algorithms by name and lists them sorted") {
    const Registry registry = sample_registry();
    CHECK(registry.find("matmul").summary == "y[M, N] = x[M, K] w[K, N]");
    CHECK(registry.make("matmul", numerics_named("f64")).tensors[0].dtype == DType::f64);
    std::vector<std::string> names;
    for (const auto &entry : registry.entries()) names.push_back(entry.name);
    CHECK(names == std::vector<std::string>{"cumulative_sum", "layernorm", "matmul", "ring_append", "segmented_sum"});
}

TEST_CASE("a registry's schedules come before files and have their names once") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/mine").stage("y", block({{"M", 4}})); });
    CHECK(registry.library({}).find("matmul/mine").text() != "");
    registry.add_schedule([] { return Schedule("matmul/mine").stage("y", block({{"M", 8}})); });
    check_words([&] { registry.library({}); }, {"error[schedule.duplicate]", "'matmul/mine'"});
}

TEST_CASE("options reach the algorithm, complete and in range") {
    Registry registry;
    registry.add("conv2d_nhwc", "a convolution", window_options(), library::conv2d_nhwc);
    auto hash = [&](const Options &options) { return semantic_hash(registry.make("conv2d_nhwc", {}, options)); };
    CHECK(hash({}) == hash({{"stride", 1}, {"padding", 0}}));
    CHECK(hash({}) != hash({{"stride", 2}}));
    check_words(
        [&] {
            registry.make("conv2d_nhwc", {}, {{"stride", 65}});
        },
        {"error[option.range]: conv2d_nhwc: option stride (step between windows) = 65: expected 1 ..= 64; the standard value is 1."});
    check_words(
        [&] {
            registry.make("conv2d_nhwc", {}, {{"groups", 2}});
        },
        {"error[option.unknown]: conv2d_nhwc: there is no option 'groups'; the options are stride, padding, dilation."});
    KernelOptions kernel;
    kernel.algorithm = "conv2d_nhwc", kernel.target = "avx2", kernel.schedule = "none", kernel.options = {"padding=1"};
    CHECK(prepare_schedule(registry, kernel).options == Options{{"stride", 1}, {"padding", 1}, {"dilation", 1}});
}

TEST_CASE("a registry's errors") {
    Registry registry = sample_registry();
    check_words([&] { registry.find("matmull"); }, {"error[generator.unknown-algorithm]: there is no algorithm 'matmull'; the algorithms "
                                                    "are cumulative_sum, layernorm, matmul, ring_append, segmented_sum.",
                                                    "Did you mean 'matmul'?", "One of your own is registered in a generator of your own."});
    registry.add("product", "another name", library::matmul);
    check_words([&] { registry.make("product", {}); }, {"error[generator.name]: algorithm 'product': expected it to carry the name that it "
                                                        "is registered by; got 'matmul'. Register it by that name,"});
    registry.add("product", "again", library::matmul);
    check_words([&] { registry.check(); },
                {"error[generator.duplicate]: algorithm 'product': expected one registration of each name; got two."});
    check_refused({"list"}, {"error[generator.duplicate]"}, 2, registry);
}

}  // namespace tessera::test_registry
