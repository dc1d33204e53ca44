// What decides the bits of a kernel's results, as commands say it.
#include "generators/kernel/kernel_bits.h"

#include <nlohmann/json.hpp>

#include "compiler/lower/lower.h"
#include "generators/kernel/prepare.h"
#include "tests/generators/harness.h"

namespace tessera::test_kernel_bits {

using namespace tessera::test;

static Registry with_schedules() {
    Registry registry = sample_registry();
    auto rows = [](int64_t m) { return Schedule("matmul/rows").stage("y", block({{"M", m}, {"N", 16}})); };
    auto split = [] { return StageKnobs().split("K", Split::How::chunks, 64); };
    registry.add_schedule([=] { return rows(4); });
    registry.add_schedule([=] { return rows(8).named("matmul/more"); });
    registry.add_schedule([=] { return rows(4).named("matmul/split").stage("y", split()); });
    registry.add_schedule([=] { return rows(4).named("matmul/single").variant({"M == 1"}, "y", split()); });
    registry.add_schedule([=] { return rows(4).named("matmul/narrow").variant({"N <= 8"}, "y", split()); });
    registry.add_schedule([=] { return rows(4).named("matmul/both").variant({"M == 1"}, "y", block({{"N", 8}})); });
    return registry;
}

static KernelBits bits_with(const std::string &schedule, const std::vector<std::string> &shape = {}) {
    const Registry registry = with_schedules();
    KernelOptions options;
    options.algorithm = "matmul", options.schedule = schedule, options.target = "avx2", options.shape = shape, options.quiet = true;
    const ScheduledKernel p = prepare_schedule(registry, options);
    return bits_of(p.request, p.choice);
}

using Names = std::vector<std::string>;

TEST_CASE("a row has its bits in every batch where no variant splits what others do not") {
    CHECK(bits_with("matmul/rows").batch_invariant == Names{"M", "N"});
    CHECK(bits_with("matmul/split").batch_invariant == Names{"M", "N"});
    CHECK(bits_with("matmul/single").batch_invariant == Names{"N"});
    CHECK(bits_with("matmul/narrow").batch_invariant == Names{"M"});
    CHECK(bits_with("matmul/both").batch_invariant == Names{"M", "N"});
    CHECK(bits_with("matmul/rows", {"M=8"}).batch_invariant == Names{"N"});  // of those that are dynamic
}

TEST_CASE("variants with one tree have its hash, and fixed dims change none") {
    const std::string one = bits_with("matmul/rows").hash;
    CHECK(bits_with("matmul/more").hash == one);
    CHECK(bits_with("matmul/both").hash == one);
    CHECK(bits_with("matmul/rows", {"K=64"}).hash == one);
    CHECK(bits_with("matmul/single", {"M=2"}).hash == one);
    CHECK(bits_with("matmul/single").hash != one);
    CHECK(bits_with("matmul/single", {"M=1"}).hash == bits_with("matmul/split").hash);
}

TEST_CASE("show prints the reduction trees of each variant") {
    const Outcome o =
        generator({"show", "matmul", "--schedule", "matmul/single", "--target", "avx2", "--what", "bits", "--quiet"}, with_schedules());
    CHECK(o.code == 0);
    CHECK_THAT(o.out, Catch::StartsWith("bits sha256:") && Catch::Contains("\n# M == 1: sha256:") &&
                          Catch::Contains("\n  y.partial, for each K.o < (|K| + 63)/64: dot over K.i < min(64, |K| - K.o*64)\n"
                                          "  y: dot over K.o < (|K| + 63)/64\n# otherwise: sha256:") &&
                          Catch::Contains("\n  y: dot over K < |K|\nbatch-invariant: no bits depend on how long N is\n"));
}

TEST_CASE("diff says whether other bits come out, and which fold makes the difference") {
    auto diff = [](const std::string &a, const std::string &b) { return generator({"diff", a, b}, with_schedules()).out; };
    CHECK_THAT(diff("matmul/rows", "matmul/more"), Catch::Contains("4 -> 8") && Catch::EndsWith("bits: the same\n"));
    CHECK_THAT(diff("matmul/rows", "matmul/split"),
               Catch::EndsWith("bits: others come out, by the trees (-) of the first and (+) of the second\n"
                               "  y\n"
                               "    - y: dot over K < |K|\n"
                               "    + y.partial, for each K.o < (|K| + 63)/64: dot over K.i < min(64, |K| - K.o*64)\n"
                               "    + y: dot over K.o < (|K| + 63)/64\n"));
    CHECK_THAT(diff("matmul/rows", "matmul/single"), Catch::Contains("where otherwise of the first, M == 1 of the second\n  y\n"));
}

TEST_CASE("tune keeps the bits of the schedule to beat where it is told to") {
    const TemporaryFolder folder;
    const Registry registry = with_schedules();
    const std::string out = folder.path().string();
    const Outcome o = generator({"tune",     "matmul", "--target",     "x86-64", "--schedule",      "matmul/rows",
                                 "--shape",  "M=32",   "N=32",         "K=64",   "--deterministic", "--keep-bits",
                                 "--trials", "8",      "--population", "16",     "--name",          "kept",
                                 "--out",    out},
                                registry);
    CHECK(o.code == 0);
    CHECK_THAT(o.out,
               Catch::Contains("  the bits of results are those of the base; ") && Catch::Contains(" schedules made would give others"));
    CHECK_THAT(generator({"diff", "matmul/rows", out + "/kept.json"}, registry).out, Catch::EndsWith("bits: the same\n"));
}

TEST_CASE("the manifest has the bits hash and the dims that are batch-invariant") {
    const TemporaryFolder folder;
    const Outcome o = generator({"generate", "matmul", "--schedule", "matmul/split", "--target", "x86-64", "--shape", "N=16", "K=32",
                                 "--out", folder.path().string(), "--quiet", "--emit", "c"},
                                with_schedules());
    REQUIRE(o.code == 0);
    const auto manifest = nlohmann::json::parse(read_file(folder.path() / "matmul.manifest.json"));
    CHECK(manifest["targets"][0]["bits"] == bits_with("matmul/split").hash);
    CHECK(manifest["targets"][0]["batch_invariant"] == Names{"M"});
}

}  // namespace tessera::test_kernel_bits
