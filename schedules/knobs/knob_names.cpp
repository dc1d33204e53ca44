#include "schedules/knobs/knob_names.h"

#include "schedules/knobs/knob.h"

namespace tessera {

namespace {

// By the type of a knob's field, so that a knob of a new kind does not compile before it is known what names are in it.
class Renaming {
public:
    explicit Renaming(const KnobNames &names) : names_(names) {}

    void operator()(std::optional<Place> &place) const {
        if (!place || place->stage.empty()) return;
        if (place->kind == Place::Kind::at) place->loop = names_.loop(place->stage, place->loop);
        place->stage = names_.stage(place->stage);
    }

    template <ByDim Value>
    void operator()(std::map<std::string, Value> &by_dim) const {
        std::map<std::string, Value> own;
        for (const auto &[dim, value] : by_dim) own[names_.dim(dim)] = value;
        by_dim = own;
    }

    void operator()(std::map<std::string, Extents> &levels) const {
        for (auto &[level, extents] : levels) (*this)(extents);
    }

    void operator()(std::vector<std::string> &loops) const {
        for (std::string &text : loops) text = names_.loop("", text);
    }

    void operator()(std::map<std::string, Pack> &packs) const {
        std::map<std::string, Pack> own;
        for (auto [operand, pack] : packs) {
            pack.at = names_.loop("", pack.at);
            for (LayoutAxis &axis : pack.layout) axis.dim = names_.axis(operand, axis.dim);
            own[names_.tensor(operand)] = pack;
        }
        packs = own;
    }

    void operator()(std::map<std::string, PrefetchRule> &rules) const {
        std::map<std::string, PrefetchRule> own;
        for (auto [operand, rule] : rules) {
            if (!rule.loop.empty()) {
                rule.loop = names_.loop(rule.stage, rule.loop);
                rule.stage = names_.stage(rule.stage);
            }
            own[names_.tensor(operand)] = rule;
        }
        rules = own;
    }

    void operator()(std::vector<LayoutAxis> &layout) const {
        for (LayoutAxis &axis : layout) axis.dim = names_.dim(axis.dim);
    }

    void operator()(std::vector<Directive> &directives) const {
        for (Directive &d : directives) d.loop = names_.loop("", d.loop);
    }

    void operator()(std::optional<std::string> &) const {}
    void operator()(std::optional<int64_t> &) const {}

private:
    const KnobNames &names_;
};

}  // namespace

Knobs renamed(const Knobs &knobs, const KnobNames &names) {
    Knobs result = knobs;
    for_each_knob(result, [rename = Renaming(names)](Knob, auto &field) { rename(field); });
    return result;
}

KnobNames with_packed_stages(const KnobNames &names, const KnobsByStage &stages) {
    std::map<std::string, std::string> packed;
    for (const auto &[stage, knobs] : stages)
        for (const auto &[operand, pack] : knobs.pack)
            packed[stage + "." + operand + ".packed"] = names.stage(stage) + "." + names.tensor(operand) + ".packed";
    KnobNames result = names;
    result.stage = [packed, stage = names.stage](const std::string &name) {
        auto copy = packed.find(name);
        return copy == packed.end() ? stage(name) : copy->second;
    };
    return result;
}

KnobsByStage renamed(const KnobsByStage &stages, const KnobNames &names) {
    const KnobNames all = with_packed_stages(names, stages);
    KnobsByStage result;
    for (const auto &[stage, knobs] : stages) result[all.stage(stage)] = renamed(knobs, all);
    return result;
}

}  // namespace tessera
