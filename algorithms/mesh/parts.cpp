#include "algorithms/mesh/parts.h"

#include <algorithm>
#include <functional>

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Names = std::set<std::string>;

// What an expression has of a kind: the tensors that it loads, its parameters.
void add_names(const Expr &e, ExprKind kind, Names &names) {
    walk(e, [&](const Expr &n) {
        if (n.kind() == kind) names.insert(n->name);
    });
}

class PartMaker {
public:
    PartMaker(MeshProgram program, const Algorithm &algorithm) : p_(std::move(program)), a_(algorithm) {
        for (const Tensor &t : a_.tensors) declared_[t.name] = &t;
    }

    MeshProgram run(const std::vector<MeshItem> &items) {
        drop_unneeded(items);
        // A collective goes as early as what it takes allows, so that stages gather in few parts.
        std::vector<Stage> open;
        Names made_open;
        const auto close = [&] {
            if (!open.empty()) groups_.push_back(std::move(open));
            open.clear(), made_open.clear();
        };
        for (const MeshItem &item : kept_)
            std::visit(Overloaded{
                           [&](const Stage &stage) {
                               for (const Tensor &t : results_of(stage)) made_open.insert(t.name);
                               for (const Write *write : writes_of(stage)) made_open.insert(write->state);
                               open.push_back(stage);
                           },
                           [&](const Collective &c) {
                               if (made_open.count(c.tensor)) close();
                               groups_.push_back(c);
                           },
                       },
                       item);
        close();
        repeat_offsets();
        Names needed;
        for (const auto &[name, tensor] : p_.outputs) needed.insert(tensor);
        std::vector<MeshStep> steps;
        size_t number = 0;
        for (const auto &group : groups_) number += std::holds_alternative<std::vector<Stage>>(group);
        for (auto group = groups_.rbegin(); group != groups_.rend(); ++group)
            std::visit(Overloaded{
                           [&](const std::vector<Stage> &stages) { steps.push_back(part_of(stages, needed, --number)); },
                           [&](const Collective &c) {
                               steps.push_back(c);
                               needed.insert(c.tensor);
                           },
                       },
                       *group);
        p_.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
        keep_what_is_used();
        return std::move(p_);
    }

private:
    Names reads_of(const Stage &stage) const {
        Names names;
        const auto add = [&](const Expr &e) { add_names(e, ExprKind::load, names); };
        for (const Expr &e : expressions_of(stage)) add(e);
        for (const std::string &d : dims_of({stage}, {}))
            if (const Dim *dim = p_.find_dim(d); dim && dim->size.defined()) add(dim->size);
        return names;
    }

    void drop_unneeded(const std::vector<MeshItem> &items) {
        Names needed;
        for (const auto &[name, tensor] : p_.outputs) needed.insert(tensor);
        for (auto item = items.rbegin(); item != items.rend(); ++item)
            std::visit(Overloaded{
                           [&](const Stage &stage) {
                               bool is_needed = updates(stage);
                               for (const Tensor &t : results_of(stage)) is_needed |= needed.count(t.name) > 0;
                               if (!is_needed) return;
                               needed.merge(reads_of(stage));
                               kept_.push_back(stage);
                           },
                           [&](const Collective &c) {
                               if (!needed.count(c.result)) return;
                               needed.insert(c.tensor);
                               kept_.push_back(c);
                           },
                       },
                       *item);
        std::reverse(kept_.begin(), kept_.end());
    }

    // What says where the rows of segments begin and end.
    Names offsets() const {
        Names names;
        const auto add = [&](const Expr &e) { add_names(e, ExprKind::load, names); };
        for (const Dim &d : p_.dims)
            if (d.size.defined() && !variables_in(d.size).empty()) add(d.size);
        for (const MeshItem &item : kept_)
            if (const auto *stage = std::get_if<Stage>(&item))
                for (const Rows &rows : stage->rows) add(rows.first);
        return names;
    }

    // That rows of segments lie inside of a tensor is proved of the stage that makes their offsets: each part that reads offsets makes them
    // itself. Those that only other parts read are made by these alone.
    void repeat_offsets() {
        const Names all = offsets();
        std::map<std::string, Stage> makers;  // by what they make
        Names written, kept;
        for (const MeshItem &item : kept_)
            if (const auto *stage = std::get_if<Stage>(&item)) {
                for (const Tensor &t : results_of(*stage))
                    if (all.count(t.name)) makers[t.name] = *stage;
                for (const Write *write : writes_of(*stage)) written.insert(write->state);
            }
        if (makers.empty()) return;
        for (const auto &[name, tensor] : p_.outputs) kept.insert(tensor);
        for (auto &group : groups_) {
            auto *stages = std::get_if<std::vector<Stage>>(&group);
            if (!stages) continue;
            Names made;
            for (const Stage &stage : *stages)
                for (const Tensor &t : results_of(stage)) made.insert(t.name);
            std::vector<Stage> again;
            const std::function<void(const Stage &)> repeat_for = [&](const Stage &reader) {
                for (const std::string &name : reads_of(reader)) {
                    const auto maker = makers.find(name);
                    if (maker == makers.end() || made.count(name)) continue;
                    refuse_written(maker->second, name, written);
                    for (const Tensor &t : results_of(maker->second)) made.insert(t.name);
                    repeat_for(maker->second);
                    again.push_back(maker->second);
                }
            };
            for (const Stage &stage : *stages) repeat_for(stage);
            stages->insert(stages->begin(), again.begin(), again.end());
            Names read = kept;
            std::vector<Stage> needed;
            for (auto stage = stages->rbegin(); stage != stages->rend(); ++stage) {
                const std::vector<Tensor> results = results_of(*stage);
                const bool is_unread = !results.empty() && !updates(*stage) &&
                                       std::all_of(results.begin(), results.end(),
                                                   [&](const Tensor &t) { return makers.count(t.name) && !read.count(t.name); });
                if (is_unread) continue;
                read.merge(reads_of(*stage));
                needed.push_back(*stage);
            }
            stages->assign(std::make_move_iterator(needed.rbegin()), std::make_move_iterator(needed.rend()));
        }
        std::erase_if(groups_, [](const auto &group) {
            const auto *stages = std::get_if<std::vector<Stage>>(&group);
            return stages && stages->empty();
        });
    }

    void refuse_written(const Stage &maker, const std::string &offsets, const Names &written) const {
        for (const std::string &state : reads_of(maker)) {
            if (!written.count(state)) continue;
            std::string rows;
            for (const Dim &d : p_.dims)
                if (d.size.defined())
                    walk(d.size, [&](const Expr &e) {
                        if (e.kind() == ExprKind::load && e->name == offsets) rows = d.name;
                    });
            throw UserError("mesh.ragged",
                            a_.name + "." + maker.name + ": it makes the offsets of the rows '" + rows + "' of the state '" + state +
                                "', which a stage writes, and parts before and after collectives read them; give the offsets "
                                "as an input, or cut no dim of what these parts read.");
        }
    }

    // Those of stages and tensors, with those that sizes and constraints of others name.
    Names dims_of(const std::vector<Stage> &stages, const std::vector<Tensor> &tensors) const {
        Names names;
        std::function<void(const std::string &)> add;
        const auto add_expr = [&](const Expr &e) {
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::variable || n.kind() == ExprKind::extent) add(n->name);
            });
        };
        add = [&](const std::string &name) {
            const Dim *d = p_.find_dim(name);
            if (!d || !names.insert(name).second) return;
            if (d->size.defined()) add_expr(d->size);
            if (!d->equals.empty()) add(d->equals);
        };
        for (const Tensor &t : tensors)
            for (const std::string &d : t.dims) add(d);
        for (const Stage &stage : stages) {
            for (const std::string &d : stage.dims) add(d);
            for (const std::string &d : folded_dims(stage)) add(d);
            for (const Tensor &t : results_of(stage))
                for (const std::string &d : t.dims) add(d);
            if (is_fold(stage))
                for (const Part &part : monoid_of(stage).parts)
                    for (const std::string &d : part.dims) add(d);
            for (const Rows &rows : stage.rows) add(rows.dim), add(rows.flat);
            for (const Expr &e : expressions_of(stage)) add_expr(e);
        }
        return names;
    }

    // `needed` is what later steps read; it becomes what this and later steps read.
    Algorithm part_of(const std::vector<Stage> &stages, Names &needed, size_t number) const {
        Algorithm part;
        part.name = p_.name + "_" + std::to_string(number);
        part.numerics = a_.numerics, part.draws = a_.draws;
        Names made, read;
        for (const Stage &stage : stages) {
            for (const Tensor &t : results_of(stage)) {
                made.insert(t.name);
                if (needed.erase(t.name)) part.outputs.push_back(t.name);  // of a stage that is repeated, the last part's
            }
            for (const Write *write : writes_of(stage)) read.insert(write->state);
            read.merge(reads_of(stage));
            part.updates_state |= updates(stage);
            part.steps.push_back(stage);
        }
        for (const std::string &name : read) {
            if (made.count(name)) continue;
            const auto own = declared_.find(name);
            if (own != declared_.end() && own->second->role == Role::constant) {
                part.tensors.push_back(*own->second);
                continue;
            }
            const MeshTensor &t = p_.tensor(name);
            Tensor &input = part.tensors.emplace_back();
            input.name = name, input.dtype = t.dtype, input.dims = t.dims, input.role = t.role.value_or(Role::input);
            needed.insert(name);
        }
        const Names dims = dims_of(stages, part.tensors);
        for (const Dim &d : p_.dims)
            if (dims.count(d.name)) part.dims.push_back(d);
        Names parameters;
        const auto add = [&](const Expr &e) { add_names(e, ExprKind::parameter, parameters); };
        for (const Stage &stage : stages)
            for (const Expr &e : expressions_of(stage)) add(e);
        for (const Dim &d : part.dims)
            if (d.size.defined()) add(d.size);
        for (const Parameter &parameter : p_.parameters)
            if (parameters.count(parameter.name)) part.parameters.push_back(parameter);
        for (const MeshAxis &axis : p_.mesh.axes)
            if (parameters.count(rank_parameter(axis.name)))
                part.parameters.push_back(
                    {rank_parameter(axis.name), DType::i32, parameter_range(part.name, DType::i32, int64_t{0}, axis.ranks - 1)});
        for (const std::string &name : a_.large)
            if (std::count(part.outputs.begin(), part.outputs.end(), name) || part.find_tensor(name)) part.large.insert(name);
        return part;
    }

    void keep_what_is_used() {
        Names tensors, dims;
        for (const MeshStep &step : p_.steps)
            std::visit(Overloaded{
                           [&](const Algorithm &part) { tensors.insert(part.outputs.begin(), part.outputs.end()); },
                           [&](const Collective &c) { tensors.insert(c.result); },
                       },
                       step);
        std::erase_if(p_.tensors, [&](const MeshTensor &t) { return !t.role && !tensors.count(t.name); });
        std::vector<Tensor> used;
        for (const MeshTensor &t : p_.tensors) used.emplace_back().dims = t.dims;
        dims = dims_of({}, used);
        std::erase_if(p_.dims, [&](const Dim &d) { return !dims.count(d.name); });
    }

    MeshProgram p_;
    const Algorithm &a_;
    std::map<std::string, const Tensor *> declared_;
    std::vector<MeshItem> kept_;
    std::vector<std::variant<std::vector<Stage>, Collective>> groups_;
};

}  // namespace

MeshProgram with_parts(MeshProgram program, const Algorithm &algorithm, const std::vector<MeshItem> &items) {
    return PartMaker(std::move(program), algorithm).run(items);
}

}  // namespace tessera
