// The tuner's table of knobs: the decisions that each is made of, by the word that a decision's name begins with ("micro" of "micro.N").
#pragma once
#include <optional>
#include <string>

#include "schedules/knobs/knob.h"

namespace tessera {

struct KnobDecisions {
    Knob knob;
    std::array<const char *, 3> words;  // null: none
};

inline constexpr std::array knob_decisions = {
    KnobDecisions{Knob::place, {"inline", "place", "beside"}},
    KnobDecisions{Knob::block, {"block"}},
    KnobDecisions{Knob::k, {"k"}},
    KnobDecisions{Knob::micro, {"micro"}},
    KnobDecisions{Knob::levels, {"tile"}},
    KnobDecisions{Knob::loops, {"order"}},
    KnobDecisions{Knob::vector, {"vector"}},
    KnobDecisions{Knob::unroll, {"unroll"}},
    KnobDecisions{Knob::parallel, {"parallel"}},
    KnobDecisions{Knob::pack, {"pack"}},
    KnobDecisions{Knob::prefetch, {"prefetch"}},
    KnobDecisions{Knob::stream, {"stream"}},
    KnobDecisions{Knob::layout, {"layout"}},
    KnobDecisions{Knob::tail, {"tail"}},
    KnobDecisions{Knob::split, {"split"}},
    KnobDecisions{Knob::instruction, {"instruction"}},
    KnobDecisions{Knob::call, {}},  // what is emitted once is for the author to say
    KnobDecisions{Knob::use, {}},   // likewise
    KnobDecisions{Knob::warps, {"warps"}},
    KnobDecisions{Knob::directives, {}},  // say what other knobs say too
};
static_assert(has_every_knob(knob_decisions), "every knob has its decisions, in the order of the enumeration");

// The knob that a decision ("micro.N") makes; nothing where no knob is made of decisions of this name.
std::optional<Knob> knob_made_by(const std::string &decision);

}  // namespace tessera
