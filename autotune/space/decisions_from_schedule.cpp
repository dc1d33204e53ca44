#include "autotune/space/decisions_from_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "schedules/knobs/notation.h"

namespace tessera {

namespace {

std::string after(const std::string &text, const std::string &prefix) { return text.substr(prefix.size()); }

std::optional<std::string> extent_in(const Extents &extents, const std::string &dim) {
    auto e = extents.find(dim);
    if (e == extents.end()) return std::nullopt;
    return std::to_string(e->second);
}

// Every loop over tiles has a tile of its level; what begins with no such level is a dim.
LoopName parsed(const std::string &loop, const Knobs &k) {
    return parse_loop(loop, [&](const std::string &text) {
        const std::string level = text.substr(0, text.find('.'));
        const std::string dim = level == text ? "" : text.substr(level.size() + 1);
        auto other = k.levels.find(level);
        if (other != k.levels.end()) return !other->second.count(dim);
        return !(level == "block" ? k.block : level == "k" ? k.k : level == "micro" ? k.micro : Extents{}).count(dim);
    });
}

// The dims that an order is asked of, in the order of a level's loops or, where `block` is false, of those inside it.
std::string order_of(const Knobs &k, bool block, const Decision &d) {
    const std::string asked = ":" + d.answers[0].value + ":";
    std::string order;
    std::vector<std::string> seen;
    for (const std::string &loop : k.loops) {
        const auto [level, dim] = parsed(loop, k);
        if ((level == "block") != block || asked.find(":" + dim + ":") == std::string::npos ||
            std::find(seen.begin(), seen.end(), dim) != seen.end())
            continue;
        seen.push_back(dim);
        order += (order.empty() ? "" : ":") + dim;
    }
    return order;
}

// Whether a fold's points stand around its slices.
std::string order_of_slices(const Knobs &k) {
    bool inside = false;
    for (const std::string &loop : k.loops) {
        if (parsed(loop, k).level == "k") return "slices";
        if (inside && parsed(loop, k).level.empty()) return "points";
        inside |= parsed(loop, k).level == "block";
    }
    return "slices";
}

std::string split_text(const Split &split, const Decision &d) {
    const std::string team = "team:" + std::to_string(split.size);
    if (split.how == Split::How::lanes && std::any_of(d.answers.begin(), d.answers.end(), [&](const Answer &a) { return a.value == team; }))
        return team;
    switch (split.how) {
    case Split::How::passes: return "passes";
    case Split::How::online: return "online:" + std::to_string(split.size);
    case Split::How::chunks: return "chunks:" + std::to_string(split.size);
    case Split::How::threads: return "threads:" + std::to_string(split.size);
    case Split::How::lanes: break;
    }
    // The nearest number of partial results that the space has; how they are folded is the space's own.
    std::string nearest = "lanes:" + std::to_string(split.size);
    double least = std::numeric_limits<double>::infinity();
    for (const Answer &a : d.answers) {
        if (!a.value.starts_with("lanes:")) continue;
        const double apart = std::abs(std::log2(std::stod(after(a.value, "lanes:")) / static_cast<double>(split.size)));
        if (apart < least) least = apart, nearest = a.value;
    }
    return nearest;
}

std::optional<std::string> answer_in(const KnobsByStage &stages, const Decision &d) {
    auto found = stages.find(d.stage);
    static const Knobs none;
    const Knobs &k = found == stages.end() ? none : found->second;
    const std::string &knob = d.knob;
    if (knob.starts_with("split.")) {
        const std::string dim = after(knob, "split.");
        auto split = k.split.find(dim);
        return split == k.split.end() ? "none" : split_text(split->second, d);
    }
    if (knob == "inline") return k.place && k.place->kind == Place::Kind::inlined ? "yes" : "no";
    if (knob == "place") {
        if (!k.place || k.place->kind != Place::Kind::at) return "root";
        return k.place->stage + "." + k.place->loop;
    }
    if (knob == "vector") {
        for (const auto &[dim, lanes] : k.vector)
            for (const Answer &a : d.answers)
                if (a.value == dim) return dim;
        return "none";
    }
    if (knob.starts_with("vector.")) return k.vector.count(after(knob, "vector.")) ? "yes" : "no";
    if (knob.starts_with("micro.")) return extent_in(k.micro, after(knob, "micro.")).value_or("1");
    if (knob.starts_with("tile.")) {
        auto tile = k.levels.find("tile");
        return tile == k.levels.end() ? "none" : extent_in(tile->second, after(knob, "tile.")).value_or("none");
    }
    if (knob.starts_with("block.")) return extent_in(k.block, after(knob, "block.")).value_or("none");
    if (knob.starts_with("k.")) return extent_in(k.k, after(knob, "k.")).value_or("none");
    if (knob.starts_with("prefetch.")) {
        auto rule = k.prefetch.find(after(knob, "prefetch."));
        return rule == k.prefetch.end() ? "none" : rule->second.loop.empty() ? "0" : std::to_string(rule->second.ahead);
    }
    if (knob.starts_with("unroll.")) return extent_in(k.unroll, after(knob, "unroll.")).value_or("1");
    if (knob.starts_with("tail.")) {
        auto tail = k.tail.find(after(knob, "tail."));
        return tail != k.tail.end() && tail->second == Tail::loop ? "loop" : "mask";
    }
    if (knob == "warps") return std::to_string(k.warps.value_or(1));
    if (knob == "layout") return k.layout.empty() ? d.answers[0].value : k.layout.back().dim;
    if (knob == "order.k") return order_of_slices(k);
    if (knob == "order.block") return order_of(k, true, d);
    if (knob == "order.micro") return order_of(k, false, d);
    if (knob == "parallel") return std::to_string(k.parallel.size());
    if (knob == "instruction") return k.instruction.value_or("fma");
    if (knob.starts_with("pack.")) {
        const std::string operand = after(knob, "pack.");
        auto pack = k.pack.find(operand);
        if (pack == k.pack.end()) return "none";
        if (pack->second.is_ahead()) return "ahead";
        if (pack->second.at != "root") return d.stage + "." + pack->second.at;
        auto copy = stages.find(d.stage + "." + operand + ".packed");
        if (copy != stages.end() && copy->second.place && copy->second.place->kind == Place::Kind::at)
            return copy->second.place->stage + "." + copy->second.place->loop;
        return "root";
    }
    return std::nullopt;
}

}  // namespace

Choose decisions_from_schedule(const KnobsByStage &stages, const Choose &otherwise) {
    return [stages, otherwise](const Decision &d) -> size_t {
        const std::optional<std::string> answer = answer_in(stages, d);
        if (!answer) return otherwise(d);
        // A place may name a level; then it is that level's innermost loop.
        std::optional<size_t> level;
        for (size_t i = 0; i < d.answers.size(); i++) {
            if (d.answers[i].value == *answer) return i;
            if (d.answers[i].value.starts_with(*answer + ".")) level = i;
        }
        if (level) return *level;
        return replaying({{d.name(), *answer}}, otherwise)(d);
    };
}

}  // namespace tessera
