// Lesson 10: check an artifact in, and keep it fresh.
//
// A tuned schedule is a file in your repository: reviewed like code, and a child of the schedule that it was tuned from. It states
// the hash of the tile program that was measured, so that anybody can tell, without measuring, whether the figure still counts;
// `check schedules` does so for every artifact of a folder, and says why one no longer does and what to measure again.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "algorithms/library/library.h"
#include "autotune/search/tuned_schedule.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

static std::string program_of(const Schedule &schedule, const Library &library) {
    const Algorithm product = bind_extents(library::matmul(numerics_named("f32")), {{"M", 64}, {"N", 96}, {"K", 32}});
    return resolved_hash(lower(product, resolve(schedule, library).stages, target_named("x86-64")));
}

static Library with_base(int64_t rows) {
    Library library;
    library.add(
        Schedule("matmul/base").stage("y", StageKnobs().micro({{"M", rows}, {"N", 8}}).vector({{"N", 4}}).loops({"micro.N", "micro.M"})));
    return library;
}

int main() {
    const Library library = with_base(4);
    const Schedule base = library.find("matmul/base");

    // What a search found, as a child that states what differs. `measured` is free-form, and says where the figure is from.
    KnobsByStage found = resolve(base, library).stages;
    found["y"].micro["N"] = 12;
    Schedule tuned = tuned_schedule("matmul/tuned", found, base, library, {});
    tuned = tuned.with_measured({{"resolved", program_of(tuned, library)}, {"seconds", 1.9e-5}, {"machine", "one of ours"}});
    std::printf("%s\n", tuned.text().substr(0, tuned.text().find("  \"measured\"")).c_str());

    // In a pull request: does the figure still count? It does while the program is the one that was measured.
    auto is_fresh = [&](const Library &now) { return tuned.document()["measured"]["resolved"] == program_of(tuned, now); };
    std::printf("today: %s\n", is_fresh(library) ? "measured" : "applied, unmeasured");

    // Somebody changes the parent. The child still applies, and it says what changed for it; its figure no longer counts.
    const Library later = with_base(2);
    std::printf("after the parent's change: %s\n", is_fresh(later) ? "measured" : "applied, unmeasured");
    std::printf("%s", explain(tuned, later).c_str());
}

// Output:
// {
//   "format": "tessera-schedule",
//   "version": 1,
//   "name": "matmul/tuned",
//   "extends": "matmul/base",
//   "stages": {
//     "y": {
//       "micro": {"N": 12}
//     }
//   },
//
// today: measured
// after the parent's change: applied, unmeasured
// matmul/tuned -> matmul/base
// /stages/y/loops     ["micro.N", "micro.M"]  matmul/base
// /stages/y/micro/M   2                       matmul/base
// /stages/y/micro/N   12                      matmul/tuned, over 8 of matmul/base
// /stages/y/vector/N  4                       matmul/base
