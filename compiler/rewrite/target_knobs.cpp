#include "compiler/rewrite/target_knobs.h"

namespace tessera {

namespace {

enum class Targets : uint8_t { all, cpus, gpus };

// Beside each knob: the steps that give it its meaning.
struct KnobUse {
    Knob knob;
    Targets targets;
};

constexpr std::array uses = {
    KnobUse{Knob::place, Targets::all},        // rewrite/inline_stages, rewrite/order, lower
    KnobUse{Knob::block, Targets::all},        // lower
    KnobUse{Knob::k, Targets::all},            // lower
    KnobUse{Knob::micro, Targets::all},        // lower
    KnobUse{Knob::levels, Targets::all},       // lower
    KnobUse{Knob::loops, Targets::all},        // lower
    KnobUse{Knob::vector, Targets::all},       // lower
    KnobUse{Knob::unroll, Targets::all},       // lower
    KnobUse{Knob::parallel, Targets::cpus},    // lower
    KnobUse{Knob::pack, Targets::all},         // rewrite/split, rewrite/prepack
    KnobUse{Knob::prefetch, Targets::cpus},    // lower
    KnobUse{Knob::stream, Targets::cpus},      // lower
    KnobUse{Knob::layout, Targets::all},       // rewrite/prepack, lower
    KnobUse{Knob::tail, Targets::all},         // lower
    KnobUse{Knob::split, Targets::all},        // rewrite/split
    KnobUse{Knob::instruction, Targets::all},  // lower
    KnobUse{Knob::call, Targets::all},         // rewrite/calls
    KnobUse{Knob::use, Targets::all},          // schedules/artifact/callee_schedules
    KnobUse{Knob::warps, Targets::gpus},       // lower
    KnobUse{Knob::directives, Targets::all},   // schedules/knobs/directives
};
static_assert(has_every_knob(uses), "every knob has a use, in the order of the enumeration");

}  // namespace

std::optional<Knob> knob_without_use(const Knobs &knobs, const Target &target) {
    std::optional<Knob> first;
    for_each_knob(knobs, [&](Knob knob, const auto &field) {
        const Targets targets = uses[static_cast<size_t>(knob)].targets;
        const bool used = targets == Targets::all || (targets == Targets::gpus) == target.is_gpu();
        if (!first && !used && is_stated(field)) first = knob;
    });
    return first;
}

}  // namespace tessera
