// Lesson 3: inherit a schedule.
//
// A schedule for one machine or one shape is mostly like the next one. So a schedule names a parent and states only what
// differs, field by field, where a field is one dim of one knob of one stage. It is the same thing in C++ and as a JSON
// file: what a person wrote by hand, what a program made, and what is checked in are one form.
#include <cstdio>

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

// A child as a file would hold it. `micro.N` is overridden and `micro.M` is not mentioned, so it is inherited. `null`
// deletes: the child runs on one thread.
static const char *const child_text = R"({
  "format": "tessera-schedule",
  "version": 1,
  "name": "matmul/narrow",
  "extends": "matmul/lesson",
  "stages": {
    "y": {
      "micro": {"N": 8},
      "parallel": null
    }
  }
})";

static TileProgram lowered(const Schedule &schedule, const Library &library) {
    return lower(library::matmul(numerics_named("f32")), resolve(schedule, library).stages, target_named("x86-64"));
}

// The words of a mistake.
static void expect_error(const char *text, const Library &library) {
    try {
        resolve(Schedule::parse(text, "mistake.json"), library);
        require(false, "this schedule is refused");
    } catch (const UserError &e) { std::printf("%s\n", e.what()); }
}

int main() {
    // The parent. A Library finds schedules by name: registered ones, as here, and <folder>/<name>.json in its folders.
    const Schedule parent =
        Schedule("matmul/lesson").stage("y", block({{"M", 64}}).micro({{"M", 4}, {"N", 16}}).vector({{"N", 4}}).parallel({"block.M"}));
    Library library;
    library.add(parent);
    const Schedule child = Schedule::parse(child_text, "narrow.json");

    // `explain` says who set each field and what that overrode; the command `explain` of every generator prints this.
    std::printf("%s\n", explain(child, library).c_str());

    // `diff` compares two schedules after merging.
    std::printf("%s\n", diff(parent, child, library).c_str());

    // The same child in C++. Schedules are values: `with_micro` and `remove` leave `parent` as it was.
    const Schedule same = Schedule("matmul/narrow").extends("matmul/lesson").with_micro("y", {{"N", 8}}).remove("y", "parallel");
    require(same == child, "C++ and JSON make the same document");
    require(resolve(same, library) == resolve(child, library), "so they resolve to the same schedule");

    // A law: `flatten` gives a schedule without a parent that lowers to the same program. What is equal in the end has an
    // equal hash, whoever its ancestors were.
    const Schedule flat = flatten(child, library);
    require(flat.parent_name().empty(), "a flat schedule extends nothing");
    require(resolved_hash(lowered(flat, library)) == resolved_hash(lowered(child, library)), "flattening keeps the program");
    require(resolved_hash(lowered(parent, library)) != resolved_hash(lowered(child, library)), "overriding changes it");
    std::printf("%s\n", flat.text().c_str());

    // Deleting what nobody stated, and a knob that does not exist, are mistakes, not silence.
    expect_error(R"({"format": "tessera-schedule", "version": 1, "name": "a", "extends": "matmul/lesson",
                     "stages": {"y": {"unroll": null}}})",
                 library);
    expect_error(R"({"format": "tessera-schedule", "version": 1, "name": "b", "extends": "matmul/lesson",
                     "stages": {"y": {"micr": {"N": 8}}}})",
                 library);
}

// Output:
// matmul/narrow -> matmul/lesson
// /stages/y/block/M   64  matmul/lesson
// /stages/y/micro/M   4   matmul/lesson
// /stages/y/micro/N   8   matmul/narrow, over 16 of matmul/lesson
// /stages/y/vector/N  4   matmul/lesson
//
// /stages/y/micro/N   16 -> 8
// /stages/y/parallel  ["block.M"] -> (none)
//
// {
//   "format": "tessera-schedule",
//   "version": 1,
//   "name": "matmul/narrow",
//   "stages": {
//     "y": {
//       "block": {"M": 64},
//       "micro": {"M": 4, "N": 8},
//       "vector": {"N": 4}
//     }
//   }
// }
//
// error[schedule.nothing-to-delete]: schedule 'a' (extends matmul/lesson) at /stages/y/unroll: it is deleted, but none of the ancestors
//> states it. Correct the name or remove the null.
// error[schedule.unknown-knob]: schedule 'b' at /stages/y/micr: there is no knob 'micr'; the knobs are place, block, k, micro, levels,
//> loops, vector, unroll, parallel, pack, prefetch, stream, layout, tail, split, instruction, call, use, warps, directives. Correct its
//> name or remove it. Did you mean 'micro'?
