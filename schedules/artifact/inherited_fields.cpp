#include "schedules/artifact/inherited_fields.h"

#include <algorithm>
#include <optional>

#include "schedules/artifact/renamed_fields.h"
#include "schedules/knobs/notation.h"

namespace tessera {

namespace {

bool is_in(const std::string &name, const std::string &stage) { return name == stage || name.starts_with(stage + "."); }

LoopName loop_of(const std::string &text, const Stage &stage) {
    return parse_loop(text, [&](const std::string &d) {
        const std::vector<std::string> folded = folded_dims(stage);
        return std::count(stage.dims.begin(), stage.dims.end(), d) || std::count(folded.begin(), folded.end(), d);
    });
}

// Tile levels by name, in the order in which they stand.
std::vector<std::pair<std::string, const Extents *>> levels_of(const Knobs &k) {
    std::vector<std::pair<std::string, const Extents *>> all = {{"block", &k.block}, {"k", &k.k}};
    for (const auto &[name, extents] : k.levels) all.emplace_back(name, &extents);
    all.emplace_back("micro", &k.micro);
    return all;
}

std::vector<LoopName> tile_loops(const Knobs &k, const Stage &stage) {
    std::vector<LoopName> loops;
    if (k.loops.empty()) {
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : folded_dims(stage)) dims.push_back(d);
        for (const auto &[name, extents] : levels_of(k))
            for (const std::string &d : dims)
                if (extents->count(d)) loops.push_back({name, d});
    }
    for (const std::string &text : k.loops) loops.push_back(loop_of(text, stage));
    return loops;
}

// A product that stands in the tiles of its reader, and the reader's loops around it, as one stage.
class OneNest {
public:
    OneNest(KnobsByStage &stages, const Stage &product, const Stage &reader)
        : stages_(stages), product_(product), reader_(reader), k_(stages[product.name]), r_(stages[reader.name]) {}

    // Whether the product stands there.
    bool make() {
        if (!k_.place || k_.place->stage != reader_.name || k_.place->kind == Place::Kind::inlined) return false;
        const std::vector<LoopName> around = tile_loops(r_, reader_);
        const LoopName at = loop_of(k_.place->loop, reader_);
        size_t inside = 0;
        for (size_t i = 0; i < around.size(); i++)
            if (is_within(around[i], at)) inside = i + 1;
        if (inside == 0 && !k_.place->loop.empty()) return false;
        const std::vector<LoopName> own = tile_loops(k_, product_);
        std::vector<std::string> loops;
        for (size_t i = 0; i < inside; i++) loops.push_back(moved_[around[i].text()] = level_for(around[i]));
        for (const LoopName &loop : own)
            if (std::find(loops.begin(), loops.end(), loop.text()) == loops.end()) loops.push_back(loop.text());
        k_.loops = loops;
        k_.parallel.clear();
        for (const std::string &loop : r_.parallel)
            if (const auto own_loop = moved_.find(loop_of(loop, reader_).text()); own_loop != moved_.end())
                k_.parallel.push_back(own_loop->second);
        k_.tail.insert(r_.tail.begin(), r_.tail.end());
        if (k_.vector.empty()) k_.vector = r_.vector;
        k_.place.reset(), k_.layout.clear(), k_.stream.reset();
        for (auto &[operand, pack] : k_.pack) move_pack(operand, pack);
        for (auto &[operand, rule] : k_.prefetch)
            if (const auto loop = moved(rule.stage, rule.loop)) rule.stage = product_.name, rule.loop = *loop;
        return true;
    }

private:
    KnobsByStage &stages_;
    const Stage &product_, &reader_;
    Knobs &k_;
    const Knobs &r_;
    std::map<std::string, std::string> moved_;  // the reader's loops -> the product's

    static bool is_within(const LoopName &loop, const LoopName &at) {
        return loop.level == at.level && (at.dim.empty() || loop.dim == at.dim);
    }

    // A level of the product's with tiles of the same size, or another one around its own.
    std::string level_for(const LoopName &loop) {
        if (loop.level.empty()) return loop.dim;
        int64_t extent = 0;
        for (const auto &[name, extents] : levels_of(r_))
            if (name == loop.level)
                if (const auto own = extents->find(loop.dim); own != extents->end()) extent = own->second;
        for (const auto &[name, extents] : levels_of(k_))
            if (const auto own = extents->find(loop.dim); own != extents->end() && own->second == extent) return name + "." + loop.dim;
        if (k_.block.emplace(loop.dim, extent).second) return "block." + loop.dim;
        k_.levels["outer"][loop.dim] = extent;
        return "outer." + loop.dim;
    }

    std::optional<std::string> moved(const std::string &stage, const std::string &loop) const {
        if (stage != reader_.name) return std::nullopt;
        const LoopName name = loop_of(loop, reader_);
        std::optional<std::string> last;
        for (const LoopName &around : tile_loops(r_, reader_))
            if (is_within(around, name))
                if (const auto own = moved_.find(around.text()); own != moved_.end()) last = own->second;
        return last;
    }

    // A copy that is made in a loop of the reader.
    void move_pack(const std::string &operand, Pack &pack) {
        const auto copy = stages_.find(product_.name + "." + operand + ".packed");
        if (copy == stages_.end() || !copy->second.place) return;
        if (const auto loop = moved(copy->second.place->stage, copy->second.place->loop)) pack.at = *loop, copy->second.place.reset();
    }
};

class Inheriting {
public:
    Inheriting(const StageRole &role, const Fields &stated, const Algorithm &algorithm, const Algorithm &other)
        : role_(role), stated_(stated), algorithm_(algorithm), other_(other), stages_(written_stages(stated, other)) {}

    InheritedFields run() {
        const Stage &product = *other_.find_stage(role_.of);
        const Stage *reader = role_.reader_of.empty() ? nullptr : other_.find_stage(role_.reader_of);
        bool with_reader = reader && !role_.reader.empty();
        if (reader && !with_reader) OneNest(stages_, product, *reader).make();
        // A reader has loops of its own unless the product stands in them.
        const Knobs &k = stages_[role_.of];
        with_reader = with_reader && k.place && k.place->stage == role_.reader_of;
        std::erase_if(stages_,
                      [&](const auto &s) { return !belongs(s.first, role_.of) && !(with_reader && belongs(s.first, role_.reader_of)); });
        for (auto &[name, knobs] : stages_) leave_out(name, knobs);
        pack_transposed(product);
        for (const std::string &copy : gone_) stages_.erase(copy);
        std::erase_if(stages_, [](const auto &s) { return s.second == Knobs{}; });
        made_.fields = renamed_fields(
            stages_, names(), [&](const FieldPath &path) { return origin(path); },
            [&](const std::string &by) { return by + " of " + role_.of; });
        return std::move(made_);
    }

private:
    const StageRole &role_;
    const Fields &stated_;
    const Algorithm &algorithm_, &other_;
    KnobsByStage stages_;
    InheritedFields made_;
    std::vector<std::string> gone_;

    // The stage itself, and those that its knobs add: copies of operands, pieces of splits.
    bool belongs(const std::string &name, const std::string &stage) const {
        return name == stage || (is_in(name, stage) && !other_.find_stage(name));
    }

    std::optional<std::string> stage_here(const std::string &name) const {
        if (belongs(name, role_.of)) return role_.stage + name.substr(role_.of.size());
        if (!role_.reader_of.empty() && !role_.reader.empty() && belongs(name, role_.reader_of))
            return role_.reader + name.substr(role_.reader_of.size());
        return std::nullopt;
    }

    // Pieces of a split dim have names that begin with the dim's.
    std::optional<std::string> dim_here(const std::string &name) const {
        for (size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1))
            if (auto it = role_.dims.find(name.substr(0, end)); it != role_.dims.end()) return it->second + name.substr(end);
        return std::nullopt;
    }

    static std::vector<std::string> dims_of(const Algorithm &algorithm, const std::string &tensor) {
        if (const Tensor *t = algorithm.find_tensor(tensor)) return t->dims;
        if (const Stage *stage = defining_stage(algorithm, tensor))
            for (const Tensor &result : results_of(*stage))
                if (result.name == tensor) return result.dims;
        return {};
    }

    // An operand that is read as it lies there, and lies in another order here, is copied in the order of the tiles: otherwise each step of
    // the fold would take a few elements of another line.
    void pack_transposed(const Stage &product) {
        Knobs &k = stages_[role_.of];
        for (const auto &[operand, here] : role_.tensors) {
            const std::vector<std::string> there = dims_of(other_, operand), folded = folded_dims(product);
            const bool is_read = std::any_of(folded.begin(), folded.end(),
                                             [&](const std::string &d) { return std::count(there.begin(), there.end(), d) > 0; });
            if (!is_read || k.pack.count(operand)) continue;
            std::vector<std::string> order, lies = dims_of(algorithm_, here);
            for (const std::string &d : there) order.push_back(dim_here(d).value_or(""));
            if (order == lies || !std::is_permutation(order.begin(), order.end(), lies.begin(), lies.end())) continue;
            std::vector<LayoutAxis> outer, inner;
            for (const std::string &d : there) {
                if (std::count(folded.begin(), folded.end(), d)) continue;
                const auto tile = k.micro.find(d);
                const bool is_tiled = tile != k.micro.end() && tile->second > 1;
                outer.push_back({d, is_tiled ? tile->second : 0, false});
                if (is_tiled) inner.push_back({d, tile->second, true});
            }
            if (inner.empty()) continue;
            for (const std::string &d : folded) outer.push_back({d, 0, false});
            outer.insert(outer.end(), inner.begin(), inner.end());
            k.pack[operand] = {"root", outer};
            stages_[role_.of + "." + operand + ".packed"].place = Place{};
        }
    }

    void left_out(const std::string &what, const std::string &why) { made_.left_out.push_back(role_.of + ": " + what + ": " + why); }

    // Why an operand cannot be packed as it is there; "" where it can.
    std::string misfit(const std::string &operand, const Pack &pack) const {
        const auto here = role_.tensors.find(operand);
        if (here == role_.tensors.end()) return "no operand has its role";
        const std::vector<std::string> dims = dims_of(algorithm_, here->second);
        for (const LayoutAxis &axis : pack.layout)
            if (const auto d = dim_here(axis.dim); !d || !std::count(dims.begin(), dims.end(), *d))
                return here->second + " has no dim in the role of " + axis.dim;
        return "";
    }

    void leave_out(const std::string &name, Knobs &k) {
        if (k.place && !k.place->stage.empty() && !stage_here(k.place->stage)) {
            left_out("place", "no stage has the role of " + k.place->stage);
            k.place.reset();
        }
        std::erase_if(k.pack, [&](const auto &p) {
            const std::string why = misfit(p.first, p.second);
            if (why.empty()) return false;
            left_out("pack of " + p.first, why);
            gone_.push_back(name + "." + p.first + ".packed");
            return true;
        });
        std::erase_if(k.prefetch, [&](const auto &p) {
            if (role_.tensors.count(p.first) && (p.second.stage.empty() || stage_here(p.second.stage))) return false;
            left_out("prefetch of " + p.first, "no operand or loop has its role");
            return true;
        });
    }

    // In one nest a product has what its reader states.
    Field origin(const FieldPath &path) const {
        FieldPath of_reader = path;
        of_reader[1] = role_.reader_of;
        if (const Field *own = origin_of(path, stated_)) return *own;
        if (const Field *own = origin_of(of_reader, stated_)) return {own->value, own->set_by, {}, own->order};
        for (const FieldPath &any : {path, of_reader})
            for (const auto &[other, field] : stated_)
                if (other.size() > 1 && other[1] == any[1]) return {field.value, field.set_by, {}, field.order};
        return {{}, "", {}, 0};
    }

    KnobNames names() const {
        KnobNames names;
        names.dim = [this](const std::string &d) { return dim_here(d).value_or(d); };
        names.axis = [this](const std::string &, const std::string &d) { return dim_here(d).value_or(d); };
        names.stage = [this](const std::string &name) { return stage_here(name).value_or(name); };
        names.loop = [this](const std::string &, const std::string &text) {
            LoopName name = parse_loop(text, [&](const std::string &d) { return dim_here(d).has_value(); });
            name.dim = dim_here(name.dim).value_or(name.dim);
            return name.text();
        };
        names.tensor = [this](const std::string &name) {
            const auto here = role_.tensors.find(name);
            return here == role_.tensors.end() ? name : here->second;
        };
        return names;
    }
};

}  // namespace

InheritedFields inherited_fields(const StageRole &role, const Fields &stated, const Algorithm &algorithm, const Algorithm &other) {
    return Inheriting(role, stated, algorithm, other).run();
}

}  // namespace tessera
