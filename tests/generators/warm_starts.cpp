#include "generators/tune/warm_starts.h"

#include <nlohmann/json.hpp>

#include "tests/generators/harness.h"

namespace tessera::test_warm_starts {

using namespace tessera::test;

static Schedule tuned(const std::string &name, const Extents &fixed, const std::string &target = "avx2",
                      const std::string &numerics = "f32") {
    Provenance p;
    p.task = {"matmul", numerics, {}, fixed, {}, target, 1};
    p.resolved = "sha256:0";
    return Schedule(name).stage("y", StageKnobs().vector({{"N", 8}})).with_measured(json_of(p));
}

static std::vector<std::string> names(const std::vector<WarmStart> &warm_starts) {
    std::vector<std::string> all;
    for (const WarmStart &w : warm_starts) all.push_back(w.name);
    return all;
}

TEST_CASE("warm starts are the nearest artifacts, then the families of lesser targets") {
    const Extents shape = {{"M", 64}, {"N", 64}, {"K", 64}};
    Library library;
    library.add(tuned("z/same", shape));
    library.add(tuned("a/far", {{"M", 64}, {"N", 1024}, {"K", 64}}));
    library.add(tuned("m/near", {{"M", 64}, {"N", 100}, {"K", 64}}));
    library.add(tuned("b/other_machine", shape, "arm64"));
    library.add(tuned("b/other_dims", {{"M", 64}}));
    library.add(tuned("c/lesser", shape, "x86-64", "f64"));
    library.add(Schedule("matmul/avx2"));
    library.add(Schedule("matmul/x86-64"));
    library.add(Schedule("d/malformed").with_measured({{"task", 3}, {"resolved", "sha256:0"}}));
    KernelOptions options;
    options.algorithm = "matmul", options.target = "avx2", options.schedule = "none";
    options.shape = {"M=64", "N=64", "K=64"};
    ScheduledKernel p = prepare_schedule(sample_registry(), options);
    p.choice.match.schedule = library.find("matmul/avx2");
    CHECK(names(warm_starts_for(p, {}, library, 9)) == std::vector<std::string>{"z/same", "m/near", "c/lesser", "a/far", "matmul/x86-64"});
    CHECK(names(warm_starts_for(p, {}, library, 2)) == std::vector<std::string>{"z/same", "m/near"});
    p.choice.match.schedule = library.find("z/same");
    CHECK(names(warm_starts_for(p, {}, library, 2)) == std::vector<std::string>{"m/near", "c/lesser"});
}

}  // namespace tessera::test_warm_starts
