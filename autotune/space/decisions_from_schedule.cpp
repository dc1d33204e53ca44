#include "autotune/space/decisions_from_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "autotune/space/knob_decisions.h"
#include "compiler/instructions/families.h"
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

// Whether the loop along a scan stands inside some tile: the answer that says so, or the one that does not.
std::string order_of_scan(const Knobs &k, const Decision &d) {
    bool tiled = false, inside = false;
    for (const std::string &loop : k.loops) {
        tiled |= !parsed(loop, k).level.empty();
        inside |= tiled && "inside:" + loop == d.answers.back().value;
    }
    return inside ? d.answers.back().value : d.answers.front().value;
}

std::string split_text(const Split &split, const Decision &d) {
    const bool is_tree = split.how == Split::How::tree;
    const int64_t lanes = is_tree ? split.levels.front() : split.size;
    const std::string team = "team:" + std::to_string(lanes);
    if ((is_tree || split.how == Split::How::lanes) &&
        std::any_of(d.answers.begin(), d.answers.end(), [&](const Answer &a) { return a.value == team; }))
        return team;
    switch (split.how) {
    case Split::How::passes: return "passes";
    case Split::How::online: return "online:" + std::to_string(split.size);
    case Split::How::chunks: return "chunks:" + std::to_string(split.size);
    case Split::How::threads: return "threads:" + std::to_string(split.size);
    case Split::How::lanes:
    case Split::How::tree: break;
    }
    // The nearest number of partial results that the space has; how they are folded is the space's own.
    std::string nearest = "lanes:" + std::to_string(lanes);
    double least = std::numeric_limits<double>::infinity();
    for (const Answer &a : d.answers) {
        if (!a.value.starts_with("lanes:")) continue;
        const double apart = std::abs(std::log2(std::stod(after(a.value, "lanes:")) / static_cast<double>(lanes)));
        if (apart < least) least = apart, nearest = a.value;
    }
    return nearest;
}

std::string place_answer(const Knobs &k, const Decision &d) {
    if (d.knob == "inline") return k.place && k.place->kind == Place::Kind::inlined ? "yes" : "no";
    if (d.knob == "beside") return k.place && k.place->kind == Place::Kind::beside && k.place->loop.empty() ? k.place->stage : "none";
    if (k.place && k.place->kind == Place::Kind::beside && !k.place->loop.empty()) return to_string(*k.place);
    if (!k.place || k.place->kind != Place::Kind::at) return "root";
    return k.place->stage + "." + k.place->loop;
}

std::string vector_answer(const Knobs &k, const Decision &d, const std::string &dim) {
    if (!dim.empty()) return k.vector.count(dim) ? "yes" : "no";
    for (const auto &[along, lanes] : k.vector)
        for (const Answer &a : d.answers)
            if (a.value == along) return along;
    // Columns of fragments are lanes too, and lie along the last dim.
    const Instruction *family = k.instruction ? find_family(*k.instruction) : nullptr;
    if (family && has_fragments(*family))
        for (auto a = d.answers.rbegin(); a != d.answers.rend(); ++a)
            if (k.micro.count(a->value)) return a->value;
    return "none";
}

std::string tile_answer(const Knobs &k, const std::string &dim) {
    auto tile = k.levels.find("tile");
    return tile == k.levels.end() ? "none" : extent_in(tile->second, dim).value_or("none");
}

std::optional<std::string> order_answer(const Knobs &k, const Decision &d, const std::string &level) {
    if (level == "k") return order_of_slices(k);
    if (level == "block") return order_of(k, true, d);
    if (level == "micro") return order_of(k, false, d);
    if (level == "scan") return order_of_scan(k, d);
    return std::nullopt;
}

std::string pack_answer(const KnobsByStage &stages, const Knobs &k, const std::string &stage, const std::string &operand) {
    auto pack = k.pack.find(operand);
    if (pack == k.pack.end()) return "none";
    if (pack->second.is_ahead()) return "ahead";
    if (pack->second.at != "root") return stage + "." + pack->second.at;
    auto copy = stages.find(stage + "." + operand + ".packed");
    if (copy != stages.end() && copy->second.place && copy->second.place->kind == Place::Kind::at)
        return copy->second.place->stage + "." + copy->second.place->loop;
    return "root";
}

std::string prefetch_answer(const Knobs &k, const std::string &operand) {
    auto rule = k.prefetch.find(operand);
    return rule == k.prefetch.end() ? "none" : rule->second.loop.empty() ? "0" : std::to_string(rule->second.ahead);
}

std::string tail_answer(const Knobs &k, const std::string &dim) {
    auto tail = k.tail.find(dim);
    return name_of(tail == k.tail.end() ? Tail::mask : tail->second);
}

std::string split_answer(const Knobs &k, const Decision &d, const std::string &dim) {
    auto split = k.split.find(dim);
    return split == k.split.end() ? "none" : split_text(split->second, d);
}

std::optional<std::string> answer_in(const KnobsByStage &stages, const Decision &d) {
    auto found = stages.find(d.stage);
    static const Knobs none;
    const Knobs &k = found == stages.end() ? none : found->second;
    const std::optional<Knob> knob = knob_made_by(d.knob);
    if (!knob) return std::nullopt;
    const size_t dot = d.knob.find('.');
    const std::string of = dot == std::string::npos ? "" : d.knob.substr(dot + 1);  // a dim, an operand or a level
    switch (*knob) {
    case Knob::place: return place_answer(k, d);
    case Knob::block: return extent_in(k.block, of).value_or("none");
    case Knob::k: return extent_in(k.k, of).value_or("none");
    case Knob::micro: return extent_in(k.micro, of).value_or("1");
    case Knob::levels: return tile_answer(k, of);
    case Knob::loops: return order_answer(k, d, of);
    case Knob::vector: return vector_answer(k, d, of);
    case Knob::unroll: return extent_in(k.unroll, of).value_or("1");
    case Knob::parallel: return std::to_string(k.parallel.size());
    case Knob::pack: return pack_answer(stages, k, d.stage, of);
    case Knob::prefetch: return prefetch_answer(k, of);
    case Knob::stream: return k.stream.value_or("none");
    case Knob::layout: return k.layout.empty() ? d.answers[0].value : k.layout.back().dim;
    case Knob::tail: return tail_answer(k, of);
    case Knob::split: return split_answer(k, d, of);
    case Knob::instruction: return k.instruction.value_or(usual_family);
    case Knob::warps: return std::to_string(k.warps.value_or(1));
    case Knob::call:
    case Knob::use:
    case Knob::directives: break;
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
