#include "algorithms/mesh/shard.h"

#include <algorithm>
#include <numeric>

#include "algorithms/mesh/boundary.h"
#include "algorithms/mesh/parts.h"
#include "algorithms/transform/folding_parts.h"
#include "algorithms/transform/inline_calls.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Order = std::vector<size_t>;

// Where a tensor of the algorithm is at some point of the program. Axis k of the tensor that holds it is its own axis order[k].
struct Held {
    std::string name;
    Order order;
    Cut cut;  // axis -> its own dim
};

std::optional<MeshMonoid> mesh_monoid_of(const Monoid &m) {
    if (m.parts.size() != 1 || !m.parts[0].dims.empty() || m.combine.size() != 1) return std::nullopt;
    const DType type = m.parts[0].identity.type;
    if (!is_arithmetic(type) || type == DType::boolean || type == DType::index) return std::nullopt;
    const Expr a = left(0, type), b = right(0, type);
    if (equal(m.combine[0], a + b)) return MeshMonoid::sum;
    if (equal(m.combine[0], a * b)) return MeshMonoid::product;
    if (equal(m.combine[0], max(a, b))) return MeshMonoid::max;
    if (equal(m.combine[0], min(a, b))) return MeshMonoid::min;
    return std::nullopt;
}

class Sharder {
public:
    Sharder(const Algorithm &algorithm, const Mesh &mesh, const Layout &layout) : a_(algorithm), mesh_(mesh), layout_(layout) {
        p_.name = a_.name, p_.mesh = mesh_, p_.dims = a_.dims, p_.parameters = a_.parameters;
        for (const Stage &stage : a_.stages()) {
            names_.insert(stage.name);
            for (const Tensor &t : results_of(stage)) names_.insert(t.name);
        }
    }

    MeshProgram run() {
        for (const Parameter &parameter : a_.parameters)
            for (const MeshAxis &axis : mesh_.axes)
                if (parameter.name == rank_parameter(axis.name))
                    throw UserError("mesh.axis", a_.name + ": its parameter '" + parameter.name + "' would be the coordinate on the axis " +
                                                     axis.name + "; rename the axis.");
        for (const Tensor &t : a_.tensors) add_boundary(t);
        for (const Stage &stage : a_.stages()) add(stage);
        for (const std::string &output : a_.outputs) p_.outputs.emplace_back(output, placed_output(output));
        MeshProgram made = with_parts(std::move(p_), a_, items_);
        verify(made);
        return made;
    }

private:
    // --- names and dims

    int64_t extent_of(const std::string &dim) const { return a_.dim(dim).value; }

    // A dim that the rewrite makes, which is what `of` says. The algorithm may have dims of its own of any name.
    std::string made_dim(const std::vector<std::string> &of, const std::string &name, int64_t extent) {
        std::string &made = made_dims_[of];
        if (!made.empty()) return made;
        made = name;
        for (int n = 2; p_.find_dim(made); n++) made = name + std::to_string(n);
        p_.dims.push_back(fixed_dim(made, extent));
        return made;
    }

    // A rank's part of a dim.
    std::string cut_dim(const std::string &dim, const std::string &axis) {
        return made_dim({"part", dim, axis}, dim + "." + axis, extent_of(dim) / mesh_.ranks_on(axis));
    }

    std::string unused(const std::string &name) {
        std::string candidate = name;
        for (int n = 2; !names_.insert(candidate).second; n++) candidate = name + std::to_string(n);
        return candidate;
    }

    int64_t chunks_on(const std::string &axis) const { return layout_.chunks ? layout_.chunks : mesh_.ranks_on(axis); }

    Expr coordinate(const std::string &axis) const { return cast(DType::index, parameter(rank_parameter(axis), DType::i32)); }
    // The index of the whole dim, of an index of the rank's part.
    Expr whole_index(const std::string &dim, const std::string &axis, const Expr &own) const {
        return coordinate(axis) * Expr(extent_of(dim) / mesh_.ranks_on(axis)) + own;
    }

    static std::string axis_of(const Cut &cut, const std::string &dim) {
        for (const auto &[axis, d] : cut)
            if (d == dim) return axis;
        return "";
    }

    // --- tensors

    void add_boundary(const Tensor &t) {
        tensors_[t.name] = t, names_.insert(t.name);
        Held held{t.name, identity(t.dims.size()), {}};
        if (t.role != Role::constant) {
            held.cut = cut_of(a_, layout_, t.name, t.dims);
            declare(held, t, t.role);
        }
        held_[t.name] = held;
    }

    static Order identity(size_t count) {
        Order order(count);
        std::iota(order.begin(), order.end(), size_t{0});
        return order;
    }

    // The tensor that holds one of the algorithm's.
    void declare(const Held &held, const Tensor &of, std::optional<Role> role = {}) {
        MeshTensor &t = p_.tensors.emplace_back();
        t.name = held.name, t.dtype = of.dtype, t.dims = dims_in(held, of), t.role = role;
        for (const auto &[axis, dim] : held.cut) t.placement[axis] = {PlacementKind::shard, cut_dim(dim, axis)};
    }

    std::vector<std::string> dims_in(const Held &held, const Tensor &of) {
        std::vector<std::string> dims;
        for (const size_t own : held.order) {
            const std::string axis = axis_of(held.cut, of.dims[own]);
            dims.push_back(axis.empty() ? of.dims[own] : cut_dim(of.dims[own], axis));
        }
        return dims;
    }

    // Axis -> the dim along which it is to be cut, "" for none: what is to move before a tensor is read.
    using Moves = std::map<std::string, std::string>;

    // The tensor, gathered along these axes, or cut along other dims.
    Held gathered(const std::string &tensor, const Moves &moves) {
        const Tensor &of = tensors_.at(tensor);
        Held held = held_.at(tensor);
        Moves done;
        for (const auto &[axis, dim] : moves) {
            done[axis] = dim;
            auto &known = gathered_[tensor];
            if (const auto it = known.find(done); it != known.end()) {
                held = it->second;
                continue;
            }
            if (!dim.empty()) {
                held = known[done] = exchanged_to(held, of, axis, dim);
                continue;
            }
            held = with_outermost(held, of, {held.cut.at(axis)});
            Held whole = held;
            whole.name = unused(tensor + ".whole"), whole.cut.erase(axis);
            declare(whole, of);
            items_.emplace_back(Collective{CollectiveKind::all_gather, axis, held.name, whole.name});
            held = known[done] = whole;
        }
        return held;
    }

    // With these dims in front.
    Held with_outermost(const Held &held, const Tensor &of, const std::vector<std::string> &dims) {
        Held moved = held;
        for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
            const auto at = std::find_if(moved.order.begin(), moved.order.end(), [&](size_t own) { return of.dims[own] == *dim; });
            std::rotate(moved.order.begin(), at, at + 1);
        }
        if (moved.order == held.order) return held;
        for (const std::string &d : of.dims)
            if (std::count(of.dims.begin(), of.dims.end(), d) > 1)
                throw UserError("mesh.twice", a_.name + "." + of.name + ": it has the dim '" + d +
                                                  "' twice, and other ranks read it; give one of them a name of its own.");
        moved.name = unused(of.name + "." + dims[0] + "_first");
        declare(moved, of);
        Stage stage;
        stage.name = moved.name, stage.dims = dims_in(moved, of);
        std::map<size_t, Expr> index;
        for (size_t k = 0; k < moved.order.size(); k++) index[moved.order[k]] = variable(stage.dims[k]);
        stage.body = Map(load(held.name, of.dtype, in_order(held, index)));
        items_.emplace_back(stage);
        return moved;
    }

    // What is cut along one dim, cut along another: ranks exchange parts, which are then put side by side.
    Held exchanged_to(const Held &given, const Tensor &of, const std::string &axis, const std::string &dim) {
        const std::string from = given.cut.at(axis);
        const Held sent = with_outermost(given, of, {dim, from});
        const int64_t n = mesh_.ranks_on(axis);
        MeshTensor parts = p_.tensor(sent.name);
        const std::string ranks = made_dim({"ranks", axis}, axis + ".ranks", n), own = cut_dim(dim, axis);
        parts.name = unused(of.name + ".parts"), parts.role.reset();
        parts.dims[0] = own, parts.dims.insert(parts.dims.begin(), ranks);
        parts.placement[axis] = {PlacementKind::shard, own};
        p_.tensors.push_back(parts);
        items_.emplace_back(Collective{CollectiveKind::all_to_all, axis, sent.name, parts.name});
        Held held = sent;
        held.name = unused(of.name + "." + dim + "_cut"), held.cut[axis] = dim;
        std::swap(held.order[0], held.order[1]);  // the whole dim, then the one that is cut
        declare(held, of);
        Stage stage;
        stage.name = held.name, stage.dims = dims_in(held, of);
        const Expr count(extent_of(from) / n), whole = variable(from);
        Operands index = {whole / count, variable(own), whole % count};
        for (size_t k = 2; k < stage.dims.size(); k++) index.push_back(variable(stage.dims[k]));
        stage.body = Map(load(parts.name, of.dtype, index));
        items_.emplace_back(stage);
        return held;
    }

    // An index of the algorithm's tensor, by its own axes, as one of what holds it.
    static Operands in_order(const Held &held, const std::map<size_t, Expr> &index) {
        Operands ordered;
        for (const size_t own : held.order) ordered.push_back(index.at(own));
        return ordered;
    }

    // --- stages

    // Which dim of a stage is cut along each axis, and how its indices are said then.
    struct Choice {
        Cut own, folded;
        std::map<std::string, Expr> local, whole;  // by dim
        std::string cut(const std::string &axis) const {
            if (const auto it = own.find(axis); it != own.end()) return it->second;
            const auto it = folded.find(axis);
            return it == folded.end() ? "" : it->second;
        }
    };

    static size_t rank_of(const Expr &load) { return load->args.size() - (load->guarded ? 2 : 0); }

    // Along which axes a load reads what other ranks have.
    Moves missing(const Expr &load, const Choice &choice, const std::string &only = "") const {
        Moves moves;
        const Tensor &of = tensors_.at(load->name);
        for (const auto &[axis, dim] : held_.at(load->name).cut) {
            if (!only.empty() && axis != only) continue;
            const std::string cut = choice.cut(axis);
            std::string read;  // the dim that is read at the index of the one that the stage is cut along
            for (size_t i = 0; i < rank_of(load) && !cut.empty(); i++) {
                const bool is_own = load->args[i].kind() == ExprKind::variable && load->args[i]->name == cut &&
                                    a_.dim(of.dims[i]).kind == DimKind::fixed && extent_of(cut) == extent_of(of.dims[i]);
                if (is_own && (read.empty() || of.dims[i] == dim)) read = of.dims[i];
            }
            if (read != dim) moves[axis] = can_be_cut(of, axis, read) ? read : "";
        }
        return moves;
    }

    // Whether a tensor that is cut along the axis can be cut along this dim of it instead.
    bool can_be_cut(const Tensor &of, const std::string &axis, const std::string &dim) const {
        if (dim.empty() || std::set<std::string>(of.dims.begin(), of.dims.end()).size() != of.dims.size()) return false;
        const std::string other = axis_of(held_.at(of.name).cut, dim);
        return (other.empty() || other == axis) && extent_of(dim) % mesh_.ranks_on(axis) == 0;
    }

    template <typename Visit>
    static void each_load(const Stage &stage, const Visit &visit) {
        for (const Expr &e : expressions_of(stage))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load) visit(n);
            });
    }

    int64_t bytes_of(const Tensor &t) const {
        int64_t bytes = size_of(t.dtype);
        for (const std::string &name : t.dims) bytes *= known_extent(a_.dims, name);
        return bytes;
    }

    // Bytes that move because of a choice along one axis, of all ranks together. The number of ranks does not count: what is folded in
    // chunks, and so the bits, must be the same for each.
    int64_t bytes_of(const Stage &stage, const Choice &choice, const std::string &axis) const {
        std::set<std::string> moved;
        each_load(stage, [&](const Expr &load) {
            if (!missing(load, choice, axis).empty()) moved.insert(load->name);
        });
        int64_t bytes = 0;
        for (const std::string &name : moved) bytes += bytes_of(tensors_.at(name));
        if (!choice.folded.count(axis)) return bytes;
        // A reduce-scatter sends what it folds once, an all-reduce twice, and other folds gather all chunks.
        const bool scatters_parts = choice.folded.size() == 1 && !scattered_dim(stage, choice).empty();
        const int64_t times = !mesh_monoid_of(monoid_of(stage)) ? chunks_on(axis) : scatters_parts ? 1 : 2;
        for (const Tensor &t : results_of(stage)) bytes += times * bytes_of(t);
        return bytes;
    }

    [[noreturn]] void fail(const std::string &rule, const Stage &stage, const std::string &words) const {
        throw UserError("mesh." + rule, a_.name + "." + stage.name + ": " + words).about(stage.name, stage.span);
    }

    // The dims of a stage that may be cut along an axis: those of its result, then those that it folds.
    std::vector<std::string> candidates(const Stage &stage, const std::string &axis) const {
        std::vector<std::string> dims;
        if (!stage.rows.empty()) return dims;
        const std::string scanned = scanned_dim(stage);
        const auto add = [&](const std::string &d) {
            const auto it = layout_.dims.find(d);
            if (it != layout_.dims.end() && it->second == axis && d != scanned && std::find(dims.begin(), dims.end(), d) == dims.end())
                dims.push_back(d);
        };
        for (const std::string &d : ordinary_dims(stage)) add(d);
        for (const std::string &d : reduced_dims(stage)) add(d);
        return dims;
    }

    [[noreturn]] void refuse_write(const Stage &stage, const Tensor &state, const std::string &axis, const std::string &words) const {
        const Cut &cut = held_.at(state.name).cut;
        const auto on = cut.find(axis);
        fail("state", stage,
             "it writes '" + state.name + "', which is " + (on == cut.end() ? "replicate" : "shard(" + on->second + ")") + " along " +
                 axis + ", " + words);
    }

    // A state is written where it lies: the stage is cut along the dim at whose index that is, and along none where all states are whole.
    std::vector<std::string> candidates_of_writer(const Stage &stage, const std::string &axis, const Choice &taken) const {
        std::vector<std::string> dims = stage.dims;
        const Tensor *whole = nullptr, *cut = nullptr;  // a state that is whole along the axis, one that is not
        for (const Write *write : writes_of(stage)) {
            const Tensor &state = tensors_.at(write->state);
            const Cut &of_state = held_.at(write->state).cut;
            const auto on = of_state.find(axis);
            (on == of_state.end() ? whole : cut) = &state;
            if (whole && cut)
                refuse_write(stage, *whole, axis,
                             "and '" + cut->name + "', which is shard(" + held_.at(cut->name).cut.at(axis) +
                                 ") there; place both alike, or write them in two stages.");
            if (on == of_state.end()) continue;
            const auto at = static_cast<size_t>(std::find(state.dims.begin(), state.dims.end(), on->second) - state.dims.begin());
            const Expr &index = write->index[at];
            std::erase_if(dims, [&](const std::string &d) {
                return index.kind() != ExprKind::variable || index->name != d || a_.dim(d).kind != DimKind::fixed ||
                       extent_of(d) != extent_of(on->second);
            });
            if (dims.empty() || !stage.rows.empty())
                refuse_write(stage, state, axis,
                             "at another index than that of a dim of " + std::to_string(extent_of(on->second)) + "; leave '" + on->second +
                                 "' of it replicate.");
            for (const std::string &d : dims)
                if (const std::string other = axis_of(taken.own, d); !other.empty())
                    refuse_write(stage, state, axis,
                                 "at the index of '" + d + "', along which the stage is cut on " + other + "; leave '" + on->second +
                                     "' of it replicate.");
        }
        return cut ? dims : std::vector<std::string>{};
    }

    Choice choose(const Stage &stage) const {
        Choice all;
        const std::vector<std::string> reduced = reduced_dims(stage);
        for (const MeshAxis &axis : mesh_.axes) {
            const bool writes = updates(stage);
            std::vector<std::string> dims = writes ? candidates_of_writer(stage, axis.name, all) : candidates(stage, axis.name);
            std::optional<Choice> best;
            int64_t fewest = 0;
            for (const std::string &d : dims) {
                if (!axis_of(all.own, d).empty() || !axis_of(all.folded, d).empty()) continue;
                const bool folds = std::count(reduced.begin(), reduced.end(), d) > 0;
                // Partial results of other monoids are gathered along one axis alone.
                if (folds && !mesh_monoid_of(monoid_of(stage)) && !all.folded.empty()) continue;
                // Chunks of an inner dim would come before the outer one's next index.
                if (folds && !monoid_of(stage).commutative && d != reduced.front()) continue;
                Choice choice = all;
                (folds ? choice.folded : choice.own)[axis.name] = d;
                const int64_t bytes = bytes_of(stage, choice, axis.name);
                if (!best || bytes < fewest) best = choice, fewest = bytes;
            }
            if (best) all = *best;
        }
        return all;
    }

    struct Chunks {
        std::string outer, inner;  // chunks of a rank, elements of a chunk
        int64_t count = 1;         // of all ranks
    };
    Chunks add_chunks(const Stage &stage, const std::string &dim, const std::string &axis) {
        const int64_t n = mesh_.ranks_on(axis), count = chunks_on(axis), whole = extent_of(dim);
        if (count % n != 0 || whole % count != 0)
            fail("chunks", stage,
                 "it folds '" + dim + "' of " + std::to_string(whole) + " along " + axis + " of " + std::to_string(n) + " ranks in " +
                     std::to_string(count) + " chunks; expected a multiple of the ranks that divides the extent.");
        return {made_dim({"chunks of a rank", dim, axis}, dim + "." + axis + ".chunks", count / n),
                made_dim({"chunk", dim, axis}, dim + "." + axis + ".chunk", whole / count), count};
    }

    // Expressions of the stage, as a rank has them.
    Stage rewritten(const Stage &stage, const Choice &choice) {
        std::map<std::string, std::map<Moves, Held>> reads;
        each_load(stage, [&](const Expr &load) {
            const Moves moves = missing(load, choice);
            reads[load->name][moves] = gathered(load->name, moves);
        });
        return map_expressions(stage, [&](const Expr &e) {
            const Expr loads = rewrite(e, [&](const Expr &n) {
                if (n.kind() != ExprKind::load) return Expr();
                const Held &held = reads.at(n->name).at(missing(n, choice));
                const Tensor &of = tensors_.at(n->name);
                std::map<size_t, Expr> index;
                for (size_t i = 0; i < rank_of(n); i++)
                    index[i] = axis_of(held.cut, of.dims[i]).empty() ? n->args[i] : choice.local.at(n->args[i]->name);
                Operands ordered = in_order(held, index);
                if (!n->guarded) return load(held.name, n.type(), ordered);
                return load_or(held.name, n.type(), ordered, n->args[rank_of(n)], n->args[rank_of(n) + 1]);
            });
            return substitute(loads, choice.whole);
        });
    }

    void check_sizes(const Stage &stage) const {
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : folded_dims(stage)) dims.push_back(d);
        for (const std::string &name : dims) {
            const Dim &d = a_.dim(name);
            if (!d.size.defined()) continue;
            walk(d.size, [&](const Expr &e) {
                if (e.kind() != ExprKind::load) return;
                const Held &held = held_.at(e->name);
                if (!held.cut.empty())
                    fail("ragged", stage,
                         "the extent of its dim '" + name + "' is read from '" + e->name + "', which is shard(" + held.cut.begin()->second +
                             ") along " + held.cut.begin()->first + "; leave that tensor replicate.");
                require(held.name == e->name, "sizes are read from tensors as they are");
            });
        }
    }

    void add(const Stage &stage) {
        check_sizes(stage);
        for (const Tensor &t : results_of(stage)) tensors_[t.name] = t;
        Choice choice = choose(stage);
        std::map<std::string, Chunks> chunks;  // by axis
        for (const auto &[axis, d] : choice.own) {
            choice.local[d] = variable(cut_dim(d, axis));
            choice.whole[d] = whole_index(d, axis, choice.local[d]);
        }
        for (const auto &[axis, d] : choice.folded) {
            const Chunks &c = chunks[axis] = add_chunks(stage, d, axis);
            const int64_t n = mesh_.ranks_on(axis);
            choice.local[d] = variable(c.outer) * Expr(extent_of(d) / c.count) + variable(c.inner);
            choice.whole[d] = coordinate(axis) * Expr(extent_of(d) / n) + choice.local[d];
        }
        Stage own = rewritten(stage, choice);
        for (std::string &d : own.dims)
            if (const std::string axis = axis_of(choice.own, d); !axis.empty()) d = cut_dim(d, axis);
        if (auto *reduce = std::get_if<Reduce>(&own.body))
            for (const std::string &d : ordinary_dims(stage))
                if (const std::string axis = axis_of(choice.own, d); !axis.empty() && !reduce->at.empty())
                    reduce->at[static_cast<size_t>(std::find(stage.dims.begin(), stage.dims.end(), d) - stage.dims.begin())] =
                        choice.local[d];
        if (auto *map = std::get_if<Map>(&own.body)) write_in_place(stage, choice, *map);
        for (const Write *write : writes_of(stage)) gathered_.erase(write->state);
        if (!choice.folded.empty()) return add_fold(stage, std::move(own), choice, chunks);
        for (const Tensor &t : results_of(stage)) hold(t, choice.own, identity(t.dims.size()));
        names_.insert(stage.name);
        items_.emplace_back(std::move(own));
    }

    // What is written lies at the rank's own index.
    void write_in_place(const Stage &stage, const Choice &choice, Map &map) const {
        const auto &before = std::get<Map>(stage.body);
        for (size_t i = 0; i < map.values.size(); i++) {
            if (!map.values[i].to) continue;
            const Tensor &state = tensors_.at(before.values[i].to->state);
            for (const auto &[axis, dim] : held_.at(state.name).cut) {
                const auto at = static_cast<size_t>(std::find(state.dims.begin(), state.dims.end(), dim) - state.dims.begin());
                map.values[i].to->index[at] = choice.local.at(choice.own.at(axis));
            }
        }
    }

    // A result of the stage: its own dims that are cut, not those of parts.
    void hold(const Tensor &t, const Cut &cut, Order order, const std::string &name = "") {
        Held held{name.empty() ? t.name : name, std::move(order), {}};
        for (const auto &[axis, d] : cut)
            if (std::find(t.dims.begin(), t.dims.end(), d) != t.dims.end()) held.cut[axis] = d;
        names_.insert(held.name);
        declare(held, t);
        held_[t.name] = held;
    }

    void add_fold(const Stage &stage, Stage partial, const Choice &choice, const std::map<std::string, Chunks> &chunks) {
        auto &reduce = std::get<Reduce>(partial.body);
        for (const auto &[axis, c] : chunks) std::replace(reduce.dims.begin(), reduce.dims.end(), choice.folded.at(axis), c.inner);
        const std::optional<MeshMonoid> monoid = mesh_monoid_of(reduce.monoid);
        const Cut scattered = monoid && chunks.size() == 1 ? scattered_dim(stage, choice) : Cut{};
        // Own axes of the results in the order in which the partial ones have them.
        Order order = identity(stage.dims.size());
        if (!scattered.empty())
            std::rotate(order.begin(),
                        std::find_if(order.begin(), order.end(), [&](size_t i) { return stage.dims[i] == scattered.begin()->second; }),
                        std::find_if(order.begin(), order.end(), [&](size_t i) { return stage.dims[i] == scattered.begin()->second; }) + 1);
        std::vector<std::string> dims;
        std::vector<Expr> at;
        for (const auto &[axis, c] : chunks) dims.push_back(c.outer), at.push_back(variable(c.outer));
        for (const size_t i : order) {
            dims.push_back(partial.dims[i]);
            if (!reduce.at.empty()) at.push_back(reduce.at[i]);
        }
        partial.dims = dims;
        if (!reduce.at.empty()) reduce.at = at;
        partial.name = unused(stage.name + ".partial");
        partial.results.clear();
        const std::vector<std::string> names = names_of_results(stage);
        for (size_t i = 0; i < reduce.monoid.parts.size(); i++) {
            const std::string of = i < names.size() && !names[i].empty() ? names[i] : stage.name + "." + reduce.monoid.parts[i].name;
            const std::string wanted = of + ".partial";
            partial.results.push_back(wanted == partial.name ? wanted : unused(wanted));
        }
        const std::vector<Tensor> made = results_of(partial);
        const std::vector<Tensor> results = results_of(stage);
        for (const Tensor &t : made) {
            MeshTensor &m = p_.tensors.emplace_back();
            m.name = t.name, m.dtype = t.dtype, m.dims = t.dims;
            for (const auto &[axis, d] : choice.own) m.placement[axis] = {PlacementKind::shard, cut_dim(d, axis)};
            for (const auto &[axis, c] : chunks)
                m.placement[axis] = {monoid ? PlacementKind::partial : PlacementKind::shard, c.outer, monoid.value_or(MeshMonoid::sum)};
        }
        items_.emplace_back(partial);
        if (monoid) fold_by_collectives(results.at(0), made.at(0), choice, chunks, *monoid, scattered, order);
        else fold_by_a_stage(stage, made, choice, chunks);
    }

    // Another dim of the result on the axis along which the one dim is folded.
    Cut scattered_dim(const Stage &stage, const Choice &choice) const {
        const auto &[axis, folded] = *choice.folded.begin();
        for (const std::string &d : ordinary_dims(stage)) {
            const auto it = layout_.dims.find(d);
            if (it != layout_.dims.end() && it->second == axis && axis_of(choice.own, d).empty()) return {{axis, d}};
        }
        return {};
    }

    void fold_by_collectives(const Tensor &result, Tensor partial, const Choice &choice, const std::map<std::string, Chunks> &chunks,
                             MeshMonoid monoid, const Cut &scattered, const Order &order) {
        if (!scattered.empty()) {
            Cut cut = choice.own;
            cut.insert(scattered.begin(), scattered.end());
            hold(result, cut, order);
            items_.emplace_back(Collective{CollectiveKind::reduce_scatter, scattered.begin()->first, partial.name, result.name, monoid});
            return;
        }
        size_t left = chunks.size();
        Placement placement = p_.tensor(partial.name).placement;
        for (const auto &[axis, c] : chunks) {
            placement.erase(axis), partial.dims.erase(partial.dims.begin());
            const std::string from = partial.name;
            if (--left == 0) {
                hold(result, choice.own, order);
                partial.name = result.name;
            } else {
                partial.name = unused(from + "." + axis);
                p_.tensors.push_back({partial.name, partial.dtype, partial.dims, placement});
            }
            items_.emplace_back(Collective{CollectiveKind::all_reduce, axis, from, partial.name, monoid});
        }
    }

    void fold_by_a_stage(const Stage &stage, const std::vector<Tensor> &partial, const Choice &choice,
                         const std::map<std::string, Chunks> &chunks) {
        const auto &[axis, c] = *chunks.begin();
        const std::string &dim = choice.folded.at(axis);
        const std::string all = made_dim({"chunks of all ranks", dim, axis}, dim + ".chunks", c.count);
        Stage fold;
        fold.name = stage.name, fold.results = stage.results, fold.span = stage.span;
        Reduce reduce;
        reduce.monoid = folding_parts(monoid_of(stage)), reduce.dims = {all};
        for (const Tensor &t : partial) {
            MeshTensor whole = p_.tensor(t.name);
            whole.name = unused(t.name + "s"), whole.dims[0] = all, whole.placement.erase(axis);
            p_.tensors.push_back(whole);
            items_.emplace_back(Collective{CollectiveKind::all_gather, axis, t.name, whole.name});
            Operands index;
            for (const std::string &d : whole.dims) index.push_back(variable(d));
            reduce.inputs.push_back(load(whole.name, t.dtype, index));
        }
        fold.dims.assign(partial.at(0).dims.begin() + 1, partial.at(0).dims.begin() + 1 + static_cast<std::ptrdiff_t>(stage.dims.size()));
        fold.body = reduce;
        for (const Tensor &t : results_of(stage)) hold(t, choice.own, identity(t.dims.size()));
        names_.insert(stage.name);
        items_.emplace_back(std::move(fold));
    }

    // The tensor that holds an output as the layout places it.
    std::string placed_output(const std::string &output) {
        const Tensor &of = tensors_.at(output);
        const Cut wanted = cut_of(a_, layout_, output, of.dims);
        Moves moves;
        for (const auto &[axis, dim] : held_.at(output).cut) {
            const auto it = wanted.find(axis);
            if (it == wanted.end()) moves[axis] = "";
            else if (it->second != dim) moves[axis] = can_be_cut(of, axis, it->second) ? it->second : "";
        }
        const Held held = gathered(output, moves);
        if (held.cut == wanted && held.order == identity(of.dims.size())) return held.name;
        Held placed{unused(output + ".placed"), identity(of.dims.size()), wanted};
        declare(placed, of);
        Stage stage;
        stage.name = placed.name, stage.dims = dims_in(placed, of);
        std::map<size_t, Expr> index;
        for (size_t i = 0; i < of.dims.size(); i++) {
            index[i] = variable(stage.dims[i]);
            const std::string axis = axis_of(wanted, of.dims[i]);
            if (!axis.empty() && axis_of(held.cut, of.dims[i]).empty()) index[i] = whole_index(of.dims[i], axis, index[i]);
        }
        stage.body = Map(load(held.name, of.dtype, in_order(held, index)));
        items_.emplace_back(stage);
        return placed.name;
    }

    const Algorithm &a_;
    const Mesh &mesh_;
    const Layout &layout_;
    MeshProgram p_;
    std::map<std::string, Tensor> tensors_;  // of the algorithm, results too
    std::map<std::string, Held> held_;
    std::map<std::string, std::map<Moves, Held>> gathered_;
    std::set<std::string> names_;
    std::map<std::vector<std::string>, std::string> made_dims_;  // by what they are
    std::vector<MeshItem> items_;
};

}  // namespace

MeshProgram shard(const Algorithm &algorithm, const Mesh &mesh, const Layout &layout) {
    check(algorithm, mesh, layout);
    const Algorithm flat = inline_calls(algorithm, keeps_repeats(algorithm));
    for (const Call &call : flat.calls())
        throw UserError("mesh.repeat", algorithm.name + "." + call.scope + ": it repeats over '" + call.repeat->dim +
                                           "', and a call that repeats is not cut; write its rounds one after the other.");
    return Sharder(flat, mesh, layout).run();
}

}  // namespace tessera
