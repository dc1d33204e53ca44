#include "schedules/knobs/knob_names.h"

namespace tessera {

Knobs renamed(const Knobs &given, const KnobNames &names) {
    Knobs k = given;
    auto by_dim = [&](auto &knob) {
        std::remove_reference_t<decltype(knob)> own;
        for (const auto &[dim, value] : knob) own[names.dim(dim)] = value;
        knob = own;
    };
    if (k.place && k.place->kind == Place::Kind::at) {
        k.place->loop = names.loop(given.place->stage, given.place->loop);
        k.place->stage = names.stage(given.place->stage);
    }
    for (auto *extents : {&k.block, &k.k, &k.micro, &k.vector, &k.unroll}) by_dim(*extents);
    for (auto &[level, extents] : k.levels) by_dim(extents);
    by_dim(k.tail), by_dim(k.split);
    for (auto *loops : {&k.loops, &k.parallel})
        for (std::string &text : *loops) text = names.loop("", text);
    k.pack.clear();
    for (auto [operand, pack] : given.pack) {
        pack.at = names.loop("", pack.at);
        for (LayoutAxis &axis : pack.layout) axis.dim = names.axis(operand, axis.dim);
        k.pack[names.tensor(operand)] = pack;
    }
    k.prefetch.clear();
    for (auto [operand, rule] : given.prefetch) {
        if (!rule.loop.empty()) {
            rule.loop = names.loop(rule.stage, rule.loop);
            rule.stage = names.stage(rule.stage);
        }
        k.prefetch[names.tensor(operand)] = rule;
    }
    for (LayoutAxis &axis : k.layout) axis.dim = names.dim(axis.dim);
    for (Directive &d : k.directives) d.loop = names.loop("", d.loop);
    return k;
}

}  // namespace tessera
