#include "compiler/rewrite/target_knobs.h"

#include <catch2/catch.hpp>

namespace tessera::test_target_knobs {

TEST_CASE("knobs that a target has no use for") {
    Knobs warps, parallel, prefetch;
    KnobsByStage stages;
    stages["y"].stream = "M";
    const Knobs &stream = stages["y"];
    warps.warps = 4, parallel.parallel = {"M"}, prefetch.prefetch["x"] = {};
    for (const char *name : {"avx2", "arm64"}) {
        const Target cpu = target_named(name);
        CHECK(knob_without_use(warps, cpu) == Knob::warps);
        CHECK_FALSE(knob_without_use(parallel, cpu));
        CHECK_FALSE(knob_without_use(prefetch, cpu));
        CHECK_FALSE(knob_without_use(stream, cpu));
    }
    for (const char *name : {"opencl", "cuda-sm80"}) {
        const Target gpu = target_named(name);
        CHECK_FALSE(knob_without_use(warps, gpu));
        CHECK(knob_without_use(parallel, gpu) == Knob::parallel);
        CHECK(knob_without_use(prefetch, gpu) == Knob::prefetch);
        CHECK(knob_without_use(stream, gpu) == Knob::stream);
    }
    CHECK_FALSE(knob_without_use(Knobs{}, target_named("opencl")));
}

}  // namespace tessera::test_target_knobs
