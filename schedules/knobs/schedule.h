// A Schedule says how, by name: for each stage of an algorithm, knobs that place it, tile it and bind its loops. It is a
// value with a parent; a child states only what differs, field by field (merge.h), and is the same thing as its JSON
// (artifact.h). Names are resolved against an algorithm when it is lowered, not before.
//
//   Schedule  := name, extends?, algorithm?, requires*, {stage: Knobs}, Variant*, measured?
//   Knobs     := what a stage's knobs say, those that are stated
//   Variant   := when [Condition] {stage: Knobs}                      merged over the schedule where the condition holds
//
// A stage's loops, outermost first, are (level, dim) pairs. Unless `loops` lists them they are: block over the stage's
// dims, k over reduced dims, the named levels, micro over the stage's dims, and then every dim that no level cut to its
// last tile, point by point. What is inside micro is the register tile: unrolled, with `vector` lanes along one dim of the
// stage and, where a fold has parts with dims of their own, along one of those.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/extents.h"

namespace tessera {

// Where a stage is computed: in full before its consumers (root), substituted into them (inlined), inside a consumer's loop in the region
// that the loop's body needs (at), in all loops of another stage of the same dims (beside), or in one loop of another stage, of all its
// points those that belong to the iteration (beside, with the loop). `loop` is a level ("micro": inside its innermost loop) or a level
// and a dim ("block.N").
struct Place {
    enum class Kind : uint8_t { root, inlined, at, beside } kind = Kind::root;
    std::string stage, loop;  // at; beside: the loop may be ""
    friend bool operator==(const Place &, const Place &) = default;
};

// One axis of a storage layout: a dim (factor 0) or a digit of its index in a mixed radix: the quotient "N/48", the remainder "N%48", or
// the quotient of a remainder, "K%32/2".
struct LayoutAxis {
    std::string dim;
    int64_t factor = 0;
    bool remainder = false;
    int64_t within = 0;  // of the quotient of a remainder: what the index is taken modulo first

    // How many positions the axis has; 0 where the dim's extent says it.
    int64_t positions() const { return remainder ? factor : within ? within / factor : 0; }
    // How far its next position is along the dim.
    int64_t step() const { return remainder || factor == 0 ? 1 : factor; }
    friend bool operator==(const LayoutAxis &, const LayoutAxis &) = default;
};

// Copy an operand's region into a buffer of this layout at a loop of the stage ("" layout: the operand's own order), or
// take all of it in this layout as the argument, which a function of its own has packed ahead of time.
struct Pack {
    std::string at = "block";  // a loop of the stage, "root" for the whole operand before it, or "prepack"
    std::vector<LayoutAxis> layout;
    // GPU, at a loop over slices that a block goes through: as many lie in shared memory at once, and all but one of them are on their way
    // while one is used.
    int64_t stages = 1;
    bool is_ahead() const { return at == "prepack"; }
    friend bool operator==(const Pack &, const Pack &) = default;
};

// Asks for the cache line of an operand's element at the point that the stage is about to compute, with the loop `loop` of
// `stage`, which stands around that point, `ahead` iterations further; no loop: at the point itself, for what is read or
// written later.
struct PrefetchRule {
    std::string stage, loop;
    int64_t ahead = 0;
    friend bool operator==(const PrefetchRule &, const PrefetchRule &) = default;
};

// How a reduction or scan over a dim is split into pieces of `size`:
//   chunks   partial results piece by piece, then a fold over the pieces (a scan: local scans, totals, fix-up)
//   threads  the same, with the pieces computed in parallel
//   lanes    `size` interleaved partial results, lane i taking every size-th element, then a fold over the lanes
//   online   a running element, combined with each piece's batch form
//   passes   the monoid's batch form over the whole dim (size is not given)
//   tree     into lanes, those into fewer lanes, and so on (reduction_tree.h writes it out as splits of the kind `lanes`)
struct Split {
    enum class How : uint8_t { chunks, threads, lanes, online, passes, tree } how = How::chunks;
    int64_t size = 0;
    std::vector<int64_t> levels = {};  // of a tree: lanes of each level, most first; each divides the one before
    friend bool operator==(const Split &, const Split &) = default;
};

// What the last, partial tile of a dim does: mask computes the whole tile and stores what is inside; loop runs a scalar
// loop over what is left; narrow computes a register tile of as few rows and vectors as cover it, and masks its last vector.
enum class Tail : uint8_t { mask, loop, narrow };
inline constexpr std::array tail_names = {"mask", "loop", "narrow"};  // in order
constexpr const char *name_of(Tail policy) { return tail_names[static_cast<size_t>(policy)]; }

// A named edit of one loop, for what the knobs do not say. `after` names a directive or is "".
struct Directive {
    std::string id, after;
    std::string op;    // "unroll", "vectorize", "parallel"
    std::string loop;  // "level.dim"
    int64_t factor = 0;
    friend bool operator==(const Directive &, const Directive &) = default;
};

// Each field is a knob, with an enumerator and a rule in knob.h.
struct Knobs {
    std::optional<Place> place;
    Extents block, k, micro;                       // of one tile, > 0
    std::map<std::string, Extents> levels;         // further tile levels by name; `loops` orders them
    std::vector<std::string> loops;                // "block.N", "k.K", "micro.M", "K" (point loop)
    Extents vector, unroll;                        // dim -> lanes; dim -> iterations
    std::vector<std::string> parallel;             // loops, adjacent and outermost
    std::map<std::string, Pack> pack;              // operand tensor -> copy
    std::map<std::string, PrefetchRule> prefetch;  // operand tensor, or one that the stage's dims index -> when; CPU
    // A loop of the stage, which writes an argument: what an iteration of it computes stays near and then goes to memory past the caches,
    // a row of the argument at a time. For results that nobody reads soon and that no cache holds; CPU.
    std::optional<std::string> stream;
    std::vector<LayoutAxis> layout;          // of the stage's own result
    std::map<std::string, Tail> tail;        // dim -> policy
    std::map<std::string, Split> split;      // reduced or scanned dim -> split
    std::optional<std::string> instruction;  // "fma"
    std::optional<std::string> call;         // "inline" or "once": for the scope of a Call; stages keep their names
    std::optional<std::string> use;          // for the scope of a Call: the callee's schedule, or "none" (callee_schedules.h)
    std::optional<int64_t> warps;            // GPU: warps in a block
    std::vector<Directive> directives;
    friend bool operator==(const Knobs &, const Knobs &) = default;
};
using KnobsByStage = std::map<std::string, Knobs>;

// "M <= 16", "N % 16 == 0" over extents, or a CPU feature's name.
struct Condition {
    std::string dim;  // empty for a feature
    std::string feature;
    int64_t modulus = 0;   // 0: the extent itself is compared
    std::string relation;  // "<=", "<", ">=", ">", "==", "!="
    int64_t bound = 0;
    friend bool operator==(const Condition &, const Condition &) = default;
};

struct Variant {
    std::vector<Condition> when;  // all must hold
    KnobsByStage stages;          // whole: what the variant states, merged over the schedule's own stages
    friend bool operator==(const Variant &, const Variant &) = default;
};

// A schedule whose ancestors have been merged in: what lowering reads.
struct ResolvedSchedule {
    std::string name;
    std::vector<std::string> requires_features;  // CPU features, as in tess_cpu_feature_name
    KnobsByStage stages;
    std::vector<Variant> variants;   // tried in order; none holds: `stages` alone
    std::string algorithm, surface;  // the algorithm it was made for and that one's surface hash; "" if not said
    std::vector<std::string> chain;  // itself, its parent, …: for messages, no part of its meaning

    friend bool operator==(const ResolvedSchedule &a, const ResolvedSchedule &b) {
        return a.name == b.name && a.requires_features == b.requires_features && a.stages == b.stages && a.variants == b.variants &&
               a.algorithm == b.algorithm && a.surface == b.surface;
    }
};

}  // namespace tessera
