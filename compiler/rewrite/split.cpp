#include "compiler/rewrite/split.h"

#include <algorithm>

#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/index/prove.h"
#include "algorithms/transform/folding_parts.h"
#include "schedules/knobs/pieces.h"
#include "schedules/knobs/reduction_tree.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

[[noreturn]] void refuse_split(const std::string &stage, const std::string &dim, const std::string &why) {
    throw UserError("schedule.split", stage + ": cannot split dim '" + dim + "': " + why);
}

Expr own_element(const Stage &stage, const Tensor &result) {
    std::vector<Expr> point;
    for (const std::string &d : point_dims(stage, result)) point.push_back(variable(d));
    return load(result.name, result.dtype, element_of(stage, point));
}

// Loads of a stage's results at the point (of `dims` and each part's extra dims).
std::vector<Expr> loads_of(const Stage &stage) {
    std::vector<Expr> loads;
    for (const Tensor &t : results_of(stage)) loads.push_back(own_element(stage, t));
    return loads;
}

class Splitter {
public:
    explicit Splitter(Algorithm &a) : algorithm(a) {}

    // Puts the stages that make the one at `position` of the steps where it stands.
    void run(size_t position, const std::string &dim, const Split &split) {
        auto at = algorithm.steps.begin() + static_cast<std::ptrdiff_t>(position);
        const Stage stage = std::get<Stage>(std::move(*at));
        at = algorithm.steps.erase(at);
        std::visit(Overloaded{
                       [](const Map &) {},
                       [&](const Reduce &reduce) { split_reduce(stage, reduce, dim, split); },
                       [&](const Scan &scan) { split_scan(stage, scan, dim, split); },
                   },
                   stage.body);
        algorithm.steps.insert(at, std::make_move_iterator(stages.begin()), std::make_move_iterator(stages.end()));
    }

private:
    Algorithm &algorithm;
    std::vector<Stage> stages;

    Expr extent_of(const std::string &dim) {
        const Dim &d = algorithm.dim(dim);
        if (d.kind == DimKind::fixed) return Expr(d.value);
        return d.size.defined() ? d.size : extent(dim);
    }

    // A chain of splits of one stage makes several partial stages.
    std::string unused(const std::string &name) const {
        std::string candidate = name;
        for (int n = 2; algorithm.find_stage(candidate); n++) candidate = name + std::to_string(n);
        return candidate;
    }

    // K.o counts pieces and K.i positions in one; lanes of every piece exist, so their K.i is fixed. Stages that split a dim alike
    // share its pieces.
    PieceNames add_pieces(const std::string &dim, int64_t size, bool lanes) {
        const Expr n = extent_of(dim), pieces = (n + (size - 1)) / Expr(size);
        const bool whole = lanes || is_whole(dim, size);
        for (int number = 1;; number++) {
            const PieceNames names = piece_names(dim, number);
            const Dim outer = pieces.is_constant() ? fixed_dim(names.outer, pieces->value.integer) : derived_dim(names.outer, pieces);
            const Dim inner =
                whole ? fixed_dim(names.inner, size) : derived_dim(names.inner, min(Expr(size), n - variable(names.outer) * Expr(size)));
            const Dim *other_outer = algorithm.find_dim(outer.name), *other_inner = algorithm.find_dim(inner.name);
            if ((other_outer && !alike(*other_outer, outer)) || (other_inner && !alike(*other_inner, inner))) continue;
            if (!other_outer) algorithm.dims.push_back(outer);
            if (!other_inner) algorithm.dims.push_back(inner);
            return names;
        }
    }

    static bool alike(const Dim &a, const Dim &b) {
        const bool same_size = a.size.defined() == b.size.defined() && (!a.size.defined() || equal(a.size, b.size));
        return a.kind == b.kind && a.value == b.value && same_size;
    }

    // Whether all pieces have as many elements.
    bool is_whole(const std::string &dim, int64_t size) {
        const Expr n = extent_of(dim);
        return (n.is_constant() && n->value.integer % size == 0) || algorithm.dim(dim).multiple_of % size == 0;
    }

    void split_reduce(const Stage &stage, const Reduce &reduce, const std::string &dim, const Split &split) {
        if (scatters(stage) && (split.how == Split::How::passes || split.how == Split::How::online))
            refuse_split(stage.name, dim,
                         "its destination is computed, and only copies of the result are folded apart (chunks, threads, lanes).");
        if (split.how == Split::How::passes) return batch(stage, reduce, dim, stage.name, {});
        if (split.size < 1) refuse_split(stage.name, dim, "it needs a size of at least 1.");
        bool lanes = split.how == Split::How::lanes;
        if (lanes && !reduce.monoid.commutative)
            refuse_split(stage.name, dim, "lanes reorder elements and the monoid '" + reduce.monoid.name + "' is not commutative.");
        const PieceNames names = add_pieces(dim, split.size, lanes);
        const std::string &kept = lanes ? names.inner : names.outer, &folded = lanes ? names.outer : names.inner;
        Expr position = variable(names.outer) * Expr(split.size) + variable(names.inner);
        auto at_piece = [&](const Expr &e) { return substitute(e, {{dim, position}}); };

        Reduce partial = reduce;
        std::replace(partial.dims.begin(), partial.dims.end(), dim, folded);
        for (Expr &e : partial.inputs) e = at_piece(e);
        if (partial.where.defined()) partial.where = at_piece(partial.where);
        if (lanes) {
            Expr inside = position < extent_of(dim);
            if (!is_whole(dim, split.size)) partial.where = partial.where.defined() ? inside && partial.where : inside;
        }
        // Each chunk of a scatter has a copy of the whole result; those of lanes lie side by side, so that no two of them meet.
        std::vector<std::string> dims = stage.dims;
        const auto where_kept = static_cast<ptrdiff_t>(scatters(stage) && !lanes ? 0 : dims.size());
        dims.insert(dims.begin() + where_kept, kept);
        for (Expr &e : partial.at) e = at_piece(e);
        if (scatters(stage)) partial.at.insert(partial.at.begin() + where_kept, variable(kept));
        Stage pieces{unused(stage.name + ".partial"), dims, partial};
        pieces.rows = stage.rows;
        if (split.how == Split::How::online) {
            if (reduce.dims.size() != 1) refuse_split(stage.name, dim, "an online split needs a reduction over one dim.");
            batch(stage, partial, folded, stage.name + ".chunk", {kept});
            std::vector<Expr> parts;
            for (size_t p = 0; p < reduce.monoid.parts.size(); p++) {
                const BatchPass &pass = reduce.monoid.batch[reduce.monoid.batch_parts[p]];
                std::vector<Expr> index;
                for (const std::string &d : dims) index.push_back(variable(d));
                for (const std::string &d : pass.dims) index.push_back(variable(d));
                parts.push_back(load(stage.name + ".chunk." + pass.name, reduce.monoid.parts[p].identity.type, element_of(pieces, index)));
            }
            stages.push_back({stage.name, stage.dims, Reduce{folding_parts(reduce.monoid), {kept}, parts, {}, {}}, {}, {}, stage.rows});
            limit_pieces(reduce, dim, names.outer, split.size);
            return;
        }
        std::vector<Expr> loads = loads_of(pieces);
        stages.push_back(std::move(pieces));
        stages.push_back(
            {stage.name, stage.dims, Reduce{folding_parts(reduce.monoid), {kept}, std::move(loads), {}, {}}, {}, {}, stage.rows});
        if (!lanes) limit_pieces(reduce, dim, names.outer, split.size);
    }

    // Pieces in which `where` holds nowhere need no visit: the final fold keeps those in which it may hold. It is left whole where what a
    // piece without elements gives is not neutral to the bit.
    void limit_pieces(const Reduce &reduce, const std::string &dim, const std::string &pieces, int64_t size) {
        if (!reduce.where.defined()) return;
        const Expr first = variable(pieces) * Expr(size);
        const Expr may_hold = anywhere(reduce.where, dim, first, first + Expr(size - 1));
        if (may_hold.defined() && has_exact_identity(reduce.monoid)) std::get<Reduce>(stages.back().body).where = may_hold;
    }

    // What is true if `e` is anywhere between two indices of the dim, both included; undefined where it always may be. A comparison in
    // which the dim goes one way is true at one of the ends then.
    static Expr anywhere(const Expr &e, const std::string &dim, const Expr &first, const Expr &last) {
        if (!uses_variable(e, dim)) return e;
        if (e.is_operation(Op::bit_and) || e.is_operation(Op::bit_or)) {
            const Expr a = anywhere(e->args[0], dim, first, last), b = anywhere(e->args[1], dim, first, last);
            if (e.is_operation(Op::bit_or)) return a.defined() && b.defined() ? a || b : Expr();
            return a.defined() && b.defined() ? a && b : a.defined() ? a : b;
        }
        if ((!e.is_operation(Op::le) && !e.is_operation(Op::lt)) || e->args[0].type() != DType::index) return {};
        const Expr slack = e->args[1] - e->args[0];
        const Expr step = simplify(substitute(slack, {{dim, variable(dim) + 1}}) - slack, Bounds());
        if (!step.is_constant()) return {};
        return substitute(e, {{dim, step->value.integer < 0 ? first : last}});
    }

    // The passes of the batch form of `reduce` over `dim`, named prefix + "." + pass, with `kept` dims added.
    void batch(const Stage &stage, const Reduce &reduce, const std::string &dim, const std::string &prefix,
               const std::vector<std::string> &kept) {
        const Monoid &m = reduce.monoid;
        if (m.batch.empty()) refuse_split(stage.name, dim, "the monoid '" + m.name + "' has no batch form; use chunks.");
        std::vector<std::string> outer = stage.dims;
        outer.insert(outer.end(), kept.begin(), kept.end());
        std::vector<Expr> made;
        auto resolve = [&](const Expr &value) {
            return rewrite(value, [&](const Expr &n) -> Expr {
                if (n.kind() == ExprKind::input) return reduce.inputs[n->number];
                if (n.kind() != ExprKind::right) return {};
                return made[n->number];
            });
        };
        for (const BatchPass &pass : m.batch) {
            Stage s{prefix + "." + pass.name, outer, Map{}};
            s.rows = stage.rows;
            if (m.batch.size() == 1) s.name = prefix;
            s.dims.insert(s.dims.end(), pass.dims.begin(), pass.dims.end());
            std::vector<Expr> values;
            for (const Expr &v : pass.values) values.push_back(resolve(v));
            if (pass.monoid.empty()) {
                s.dims.insert(s.dims.end(), reduce.dims.begin(), reduce.dims.end());
                Expr value = values[0];
                if (reduce.where.defined()) value = select(reduce.where, value, constant(value.type(), 0));
                s.body = Map(value);
            } else if (pass.monoid == "each") {
                s.body = Map(values[0]);
            } else if (pass.monoid == "sum" && values[0].is_constant() && !reduce.where.defined()) {
                // The sum of a constant is a product; only the count of a Welford fold is one.
                Expr count = 1;
                for (const std::string &d : reduce.dims) count = count * extent(d);
                s.body = Map(values[0] * cast(values[0].type(), count));
            } else {
                const StandardMonoid *monoid = find_pass_monoid(pass.monoid);
                require(monoid, "passes fold by monoids that the verifier knows");
                s.body = Reduce{monoid->make(values[0].type()), reduce.dims, values, reduce.where, {}};
            }
            made.push_back(own_element(s, results_of(s)[0]));
            stages.push_back(std::move(s));
        }
    }

    // Scans of the pieces, a fold of each piece, a scan over those, and a combination of the last with the first. A segmented
    // scan is split as one of (begun, value) pairs. Backward, pieces and the elements in them are met from the last.
    void split_scan(const Stage &stage, const Scan &declared, const std::string &dim, const Split &split) {
        if (split.how != Split::How::chunks && split.how != Split::How::threads)
            refuse_split(stage.name, dim, "a scan splits in chunks or across threads.");
        if (declared.monoid.parts.size() != 1 || !declared.monoid.parts[0].dims.empty())
            refuse_split(stage.name, dim, "only a scan of one part can be split.");
        if (split.size < 1) refuse_split(stage.name, dim, "it needs a size of at least 1.");
        if (!stage.rows.empty()) refuse_split(stage.name, dim, "it keeps rows of segments, whose scans are not cut.");
        const auto [outer_dim, inner_dim] = add_pieces(dim, split.size, false);
        Scan scan = declared;
        if (declared.segments.defined()) {
            scan.monoid = segmented_monoid(declared.monoid);
            scan.inputs.insert(scan.inputs.begin(), declared.segments);
            scan.segments = Expr();
        }
        Expr o = variable(outer_dim), i = variable(inner_dim);
        auto inputs_at = [&](const Expr &position) {
            std::vector<Expr> inputs;
            for (const Expr &e : scan.inputs) inputs.push_back(substitute(e, {{dim, position}}));
            return inputs;
        };
        std::vector<std::string> local, pieces;
        for (const std::string &d : stage.dims) {
            local.push_back(d == dim ? outer_dim : d);
            pieces.push_back(local.back());
            if (d == dim) local.push_back(inner_dim);
        }

        Scan inner = scan;
        inner.dim = inner_dim, inner.inputs = inputs_at(o * Expr(split.size) + i);
        Stage local_stage{stage.name + ".local", local, inner};
        Expr met = scan.direction == ScanDirection::forward ? i : extent_of(inner_dim) - 1 - i;
        Stage total{stage.name + ".total", pieces, Reduce{scan.monoid, {inner_dim}, inputs_at(o * Expr(split.size) + met), {}, {}}};
        Scan over;
        over.monoid = folding_parts(scan.monoid), over.dim = outer_dim, over.inclusive = false, over.direction = scan.direction;
        over.inputs = loads_of(total);
        Stage offset{stage.name + ".offset", pieces, over};
        auto at_point = [&](const Stage &s) {
            std::vector<Expr> loads = loads_of(s);
            for (Expr &e : loads)
                e = substitute(e, {{outer_dim, variable(dim) / Expr(split.size)}, {inner_dim, variable(dim) % Expr(split.size)}});
            return loads;
        };
        std::vector<Expr> before = at_point(offset), within = at_point(local_stage);
        Expr fixed_up = rewrite(scan.monoid.combine.back(), [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::left) return before[static_cast<size_t>(n->number)];
            return n.kind() == ExprKind::right ? within[static_cast<size_t>(n->number)] : Expr();
        });
        // What an exclusive scan folds before an element that begins a segment belongs to another one.
        if (declared.segments.defined() && !declared.inclusive)
            fixed_up = select(declared.segments, constant(declared.monoid.parts[0].identity), fixed_up);
        stages = {local_stage, total, offset, Stage{stage.name, stage.dims, Map(fixed_up)}};
    }
};

}  // namespace

Algorithm apply_splits(Algorithm algorithm, const KnobsByStage &stages) {
    // A split may name a stage or a dim that another split made ("acc.partial", "K.i"), so one is applied at a time, until
    // none applies; that of the first stage first, so that the order of stages decides whose pieces get a number.
    std::map<std::string, std::map<std::string, Split>> pending;
    for (auto &[name, knobs] : without_trees(stages, algorithm))
        if (!knobs.split.empty()) pending[name] = knobs.split;
    auto apply_one = [&] {
        for (size_t i = 0; i < algorithm.steps.size(); i++) {
            if (!std::holds_alternative<Stage>(algorithm.steps[i])) continue;
            const auto &stage = std::get<Stage>(algorithm.steps[i]);
            auto it = pending.find(stage.name);
            if (it == pending.end()) continue;
            const std::vector<std::string> folded = folded_dims(stage);
            for (auto one = it->second.begin(); one != it->second.end(); ++one) {
                const std::string dim = dim_called(one->first, folded, algorithm);
                if (std::find(folded.begin(), folded.end(), dim) == folded.end()) continue;
                Splitter(algorithm).run(i, dim, one->second);
                it->second.erase(one);
                if (it->second.empty()) pending.erase(it);
                return true;
            }
        }
        return false;
    };
    while (!pending.empty() && apply_one()) {}
    for (auto &[name, splits] : pending) {
        const Stage *stage = algorithm.find_stage(name);
        refuse_split(name, splits.begin()->first,
                     stage ? "the stage folds over " + join(folded_dims(*stage)) + "." : "there is no such stage.");
    }
    return algorithm;
}

// So many vectors of a panel's row are copied without a loop.
static constexpr int64_t max_copied = 16;

Algorithm insert_packs(Algorithm algorithm, KnobsByStage &stages, int lanes) {
    if (std::all_of(stages.begin(), stages.end(), [](const auto &s) { return s.second.pack.empty(); })) return algorithm;
    std::vector<Step> made;
    for (const Step &step : algorithm.steps) {
        if (std::holds_alternative<Call>(step)) {
            made.push_back(step);
            continue;
        }
        const auto &stage = std::get<Stage>(step);
        auto it = stages.find(stage.name);
        Stage s = stage;
        if (it != stages.end()) {
            std::map<std::string, Pack> packs = it->second.pack;
            for (auto &[operand, pack] : packs) {
                std::optional<Tensor> tensor;
                if (const Tensor *t = algorithm.find_tensor(operand)) tensor = *t;
                if (const Stage *d = defining_stage(algorithm, operand))
                    for (const Tensor &t : results_of(*d))
                        if (t.name == operand) tensor = t;
                if (!tensor)
                    throw UserError("schedule.pack", stage.name + ": cannot pack '" + operand +
                                                         "': no tensor of that name is stored when the "
                                                         "stage runs; an inlined stage is not, nor is one that a split has replaced.");
                std::string name = stage.name + "." + operand + ".packed";
                std::vector<Expr> index;
                for (const std::string &d : tensor->dims) index.push_back(variable(d));
                made.emplace_back(Stage{name, tensor->dims, Map(load(operand, tensor->dtype, index))});
                bool used = false;
                s = map_expressions(std::move(s), [&](const Expr &root) {
                    return rewrite(root, [&](const Expr &n) -> Expr {
                        if (n.kind() != ExprKind::load || n->name != operand) return {};
                        used = true;
                        return load_of(name, n);
                    });
                });
                if (!used) throw UserError("schedule.pack", stage.name + ": cannot pack '" + operand + "': the stage does not load it.");
                Knobs &k = stages[name];
                if (!k.place) {
                    k.place = Place{};
                    if (pack.at != "root") *k.place = {Place::Kind::at, stage.name, pack.at};
                }
                if (k.layout.empty()) k.layout = pack.layout;
                // The copy runs tile by tile of the layout, along its contiguous axis in vectors.
                if (lanes && k.block.empty() && k.micro.empty() && k.loops.empty() && !pack.layout.empty()) {
                    const LayoutAxis &last = pack.layout.back();
                    if (last.remainder) {
                        const bool written_out = last.factor <= max_copied * lanes;
                        (written_out ? k.micro : k.levels["panel"])[last.dim] = last.factor;
                        k.loops.push_back((written_out ? "micro." : "panel.") + last.dim);
                        for (const LayoutAxis &axis : pack.layout)
                            if (axis.dim != last.dim && !axis.remainder && axis.factor == 0) k.loops.push_back(axis.dim);
                        if (!written_out || last.factor % lanes == 0) k.vector[last.dim] = lanes;
                    } else {
                        k.vector[last.dim] = lanes;
                    }
                }
            }
        }
        made.emplace_back(std::move(s));
    }
    algorithm.steps = std::move(made);
    return algorithm;
}

}  // namespace tessera
