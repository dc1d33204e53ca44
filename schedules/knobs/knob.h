// The knobs as a closed set: one enumerator and one line of a table for each. What gives knobs a meaning has a table or a switch
// without a default over the enumeration, so that a knob that is added does not compile before it has one everywhere:
//
//   here                                   its name, what it is about, how a child's statement of it is merged
//   schedules/artifact/read.cpp            its JSON form and range
//   schedules/check/check_stage.cpp        whether what it names is there
//   compiler/rewrite/target_knobs.h        the targets that have a use for it
//   autotune/space/knob_decisions.h        the decisions that it is made of
//
// What only passes over knobs (renaming, patterns, laying one set over another, writing JSON) goes by the type of the field.
#pragma once
#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "schedules/knobs/schedule.h"

namespace tessera {

// In the order of the format, which is that of the fields of Knobs.
enum class Knob : uint8_t {
    place,
    block,
    k,
    micro,
    levels,
    loops,
    vector,
    unroll,
    parallel,
    pack,
    prefetch,
    stream,
    layout,
    tail,
    split,
    instruction,
    call,
    use,
    warps,
    directives
};

// What a schedule states of a knob over what it inherits.
enum class Merge : uint8_t {
    whole,    // replaces it
    entries,  // adds or replaces entries
    nested,   // the same, inside each entry
    by_id     // adds or replaces the list's elements by their ids
};

enum class About : uint8_t {
    stage,    // how the stage stands in the program
    loops,    // loops and storage of its own, which an inlined stage does not have
    declared  // the algorithm as it is declared: a fold to split, a call
};

struct KnobRule {
    Knob knob;
    const char *name;
    Merge merge;
    About about;
};

inline constexpr std::array knob_rules = {
    KnobRule{Knob::place, "place", Merge::whole, About::stage},
    KnobRule{Knob::block, "block", Merge::entries, About::loops},
    KnobRule{Knob::k, "k", Merge::entries, About::loops},
    KnobRule{Knob::micro, "micro", Merge::entries, About::loops},
    KnobRule{Knob::levels, "levels", Merge::nested, About::loops},
    KnobRule{Knob::loops, "loops", Merge::whole, About::loops},
    KnobRule{Knob::vector, "vector", Merge::entries, About::loops},
    KnobRule{Knob::unroll, "unroll", Merge::entries, About::loops},
    KnobRule{Knob::parallel, "parallel", Merge::whole, About::loops},
    KnobRule{Knob::pack, "pack", Merge::entries, About::loops},
    KnobRule{Knob::prefetch, "prefetch", Merge::entries, About::loops},
    KnobRule{Knob::stream, "stream", Merge::whole, About::loops},
    KnobRule{Knob::layout, "layout", Merge::whole, About::loops},
    KnobRule{Knob::tail, "tail", Merge::entries, About::loops},
    KnobRule{Knob::split, "split", Merge::entries, About::declared},
    KnobRule{Knob::instruction, "instruction", Merge::whole, About::loops},
    KnobRule{Knob::call, "call", Merge::whole, About::declared},
    KnobRule{Knob::use, "use", Merge::whole, About::declared},
    KnobRule{Knob::warps, "warps", Merge::whole, About::stage},
    KnobRule{Knob::directives, "directives", Merge::by_id, About::loops},
};

// Whether a table has a line for every knob, in order.
template <typename Table>
constexpr bool has_every_knob(const Table &table) {
    if (table.size() != static_cast<size_t>(Knob::directives) + 1) return false;
    for (size_t i = 0; i < table.size(); i++)
        if (table[i].knob != static_cast<Knob>(i)) return false;
    return true;
}
static_assert(has_every_knob(knob_rules), "every knob has a rule, in the order of the enumeration");

constexpr const KnobRule &rule_of(Knob knob) { return knob_rules[static_cast<size_t>(knob)]; }
constexpr const char *name_of(Knob knob) { return rule_of(knob).name; }
// Nothing where there is no knob of this name.
std::optional<Knob> knob_named(const std::string &name);
// In the order of the format.
const std::vector<std::string> &knob_names();

// The fields in the order of the enumeration. A field that is added to Knobs does not compile before it is named here.
template <typename AnyKnobs>
auto fields_of(AnyKnobs &knobs) {
    auto &[place, block, k, micro, levels, loops, vector, unroll, parallel, pack, prefetch, stream, layout, tail, split, instruction, call,
           use, warps, directives] = knobs;
    return std::tie(place, block, k, micro, levels, loops, vector, unroll, parallel, pack, prefetch, stream, layout, tail, split,
                    instruction, call, use, warps, directives);
}
static_assert(std::tuple_size_v<decltype(fields_of(std::declval<Knobs &>()))> == knob_rules.size(), "every field is a knob");

// Calls visit(knob, field) for each.
template <typename AnyKnobs, typename Visit>
void for_each_knob(AnyKnobs &knobs, Visit visit) {
    size_t next = 0;
    std::apply([&](auto &...field) { (visit(static_cast<Knob>(next++), field), ...); }, fields_of(knobs));
}

// Calls visit(knob, field of a, field of b) for each.
template <typename A, typename B, typename Visit>
void for_each_knob(A &a, B &b, Visit visit) {
    const auto of_a = fields_of(a);
    const auto of_b = fields_of(b);
    [&]<size_t... I>(std::index_sequence<I...>) { (visit(static_cast<Knob>(I), std::get<I>(of_a), std::get<I>(of_b)), ...); }
    (std::make_index_sequence<knob_rules.size()>());
}

template <typename Value>
bool is_stated(const std::optional<Value> &field) {
    return field.has_value();
}
template <typename Container>
bool is_stated(const Container &field) {
    return !field.empty();
}

// What a map whose keys are dims holds. Other maps have operands (Pack, PrefetchRule) or levels (Extents) as keys.
template <typename Value>
concept ByDim = std::same_as<Value, int64_t> || std::same_as<Value, Tail> || std::same_as<Value, Split>;

}  // namespace tessera
