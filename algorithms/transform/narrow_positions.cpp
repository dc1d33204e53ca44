#include "algorithms/transform/narrow_positions.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

// The ends of i64 stand for "none" in an identity; those of i32 stand for them. All other numbers stay what they are, so comparisons
// of two positions mean the same in both types.
bool lies_inside(int64_t value) { return value > INT32_MIN && value < INT32_MAX; }

std::optional<int64_t> narrow_value(int64_t value) {
    if (value == INT64_MAX) return INT32_MAX;
    if (value == INT64_MIN) return INT32_MIN;
    return lies_inside(value) ? std::optional(value) : std::nullopt;
}

Expr narrow_constant(const Expr &e) {
    if (!e.is_constant() || e.type() != DType::i64) return {};
    const std::optional<int64_t> value = narrow_value(e->value.integer);
    return value ? constant_int(DType::i32, *value) : Expr();
}

// The ends of i64 that a monoid's positions may be.
struct Ends {
    bool lowest = false, highest = false;
};

Ends ends_of(const Monoid &m) {
    Ends ends;
    auto find = [&](const Scalar &s) {
        if (s.type == DType::i64) ends.lowest |= s.integer == INT64_MIN, ends.highest |= s.integer == INT64_MAX;
    };
    for (const Part &p : m.parts) find(p.identity);
    for (const std::vector<Expr> *definition : {&m.lift, &m.combine, &m.step})
        for (const Expr &e : *definition)
            walk(e, [&](const Expr &n) {
                if (n.is_constant()) find(n->value);
            });
    return ends;
}

// What the i64 is that a position stands for, as `type`.
Expr as(DType type, const Expr &position, Ends ends) {
    Expr value = cast(type, position);
    auto stands_for = [&](int64_t narrow, int64_t end) {
        value = select(position == constant_int(DType::i32, narrow), cast(type, constant_int(DType::i64, end)), value);
    };
    if (ends.lowest) stands_for(INT32_MIN, INT64_MIN);
    if (ends.highest) stands_for(INT32_MAX, INT64_MAX);
    return value;
}

// An i64 that is an index or a constant, as i32; undefined where it is neither, or is not proved to lie between the ends of i32.
Expr narrow_index(const Expr &e, const Bounds &bounds) {
    if (e.type() != DType::i64) return {};
    if (e.is_constant()) return lies_inside(e->value.integer) ? cast(DType::i32, e) : Expr();
    if (e.kind() != ExprKind::cast || e->args[0].type() != DType::index) return {};
    const auto range = constant_range(e->args[0], bounds);
    return range && lies_inside(range->first) && lies_inside(range->second) ? cast(DType::i32, e->args[0]) : Expr();
}

// The i32 forms of what is i64 after rewriting.
class Forms {
public:
    Expr keep(const Expr &wide, const Expr &narrow) {
        forms_.insert_or_assign(wide.get(), std::pair(wide, narrow));
        return wide;
    }
    Expr narrow(const Expr &wide) const {
        auto it = forms_.find(wide.get());
        return it == forms_.end() ? Expr() : it->second.second;
    }

private:
    std::map<const Expr::Node *, std::pair<Expr, Expr>> forms_;  // the first keeps its address alive
};

// A monoid with some of its parts and inputs in i32.
class NarrowMonoid {
public:
    NarrowMonoid(const Monoid &m, const std::set<int> &parts, const std::set<int> &inputs)
        : ends_(ends_of(m)), parts_(parts), inputs_(inputs) {}

    // The expression of a part that is narrow; undefined where it may be more than a position.
    Expr position(const Expr &e) { return narrow(wide(e)); }
    // The expression of any other part.
    Expr wide(const Expr &e) {
        return rewrite(e, [this](const Expr &n) { return rebuilt(n); });
    }

private:
    const Ends ends_;
    const std::set<int> &parts_, &inputs_;
    Forms forms_;

    Expr narrow(const Expr &e) const { return e.is_constant() ? narrow_constant(e) : forms_.narrow(e); }

    Expr rebuilt(const Expr &n) {
        const bool is_part = n.kind() == ExprKind::left || n.kind() == ExprKind::right;
        if (is_part && parts_.count(n->number)) {
            const Expr held = n.kind() == ExprKind::left ? left(n->number, DType::i32) : right(n->number, DType::i32);
            return forms_.keep(as(DType::i64, held, ends_), held);
        }
        if (n.kind() == ExprKind::input && inputs_.count(n->number)) {
            const Expr given = input(n->number, DType::i32);
            return forms_.keep(cast(DType::i64, given), given);
        }
        return n.kind() == ExprKind::operation ? rebuilt_operation(n) : Expr();
    }

    // What chooses a position is one, and two of them compare as they are.
    Expr rebuilt_operation(const Expr &n) {
        Operands args = n->args;
        const bool chooses = n->op == Op::select || n->op == Op::min || n->op == Op::max;
        const bool compares = n->op == Op::lt || n->op == Op::le || n->op == Op::eq || n->op == Op::ne;
        if (!chooses && !compares) return {};
        for (size_t i = n->op == Op::select ? 1 : 0; i < args.size(); i++) {
            args[i] = narrow(args[i]);
            if (!args[i].defined()) return {};
        }
        const Expr small = operation(n->op, args);
        return compares ? small : forms_.keep(n, small);
    }
};

std::vector<std::vector<Expr> Monoid::*> definitions() { return {&Monoid::lift, &Monoid::combine, &Monoid::step}; }

// Takes out those parts that may hold something else than positions.
void keep_positions(std::set<int> &parts, const std::set<int> &inputs, const Monoid &m) {
    auto is_position = [&](int p) {
        NarrowMonoid narrow(m, parts, inputs);
        return std::ranges::all_of(definitions(), [&](auto definition) { return narrow.position((m.*definition)[p]).defined(); });
    };
    while (std::erase_if(parts, [&](int p) { return !is_position(p); })) {}
}

Monoid narrowed(const Monoid &m, const std::set<int> &parts, const std::set<int> &inputs) {
    Monoid result = m;
    result.derivative.reset();  // what is scheduled is differentiated before
    NarrowMonoid narrow(m, parts, inputs);
    for (auto definition : definitions())
        for (size_t p = 0; p < m.parts.size(); p++) {
            const Expr &e = (m.*definition)[p];
            (result.*definition)[p] = parts.count(static_cast<int>(p)) ? narrow.position(e) : narrow.wide(e);
        }
    for (int p : parts) result.parts[p].identity = Scalar::of_integer(DType::i32, *narrow_value(m.parts[p].identity.integer));
    for (int i : inputs) result.inputs[i] = DType::i32;
    return result;
}

// Where the points of a fold lie.
Bounds bounds_of(const std::vector<Dim> &all, const Stage &fold) {
    Bounds bounds(all);
    std::vector<std::string> dims = fold.dims;
    for (const std::string &d : folded_dims(fold)) dims.push_back(d);
    for (const Part &p : monoid_of(fold).parts) dims.insert(dims.end(), p.dims.begin(), p.dims.end());
    for (const std::string &d : dims) bounds.set(d, Expr(0), extent(d) - 1);
    return bounds;
}

// The tensors that somebody else reads as i64.
std::set<std::string> read_outside(const Algorithm &a) {
    std::set<std::string> names(a.outputs.begin(), a.outputs.end());
    for (const Call &call : a.calls())
        for (const auto &[own, view] : call.tensors) names.insert(view.tensor);
    return names;
}

std::set<int> candidates(const Stage &fold, const std::set<std::string> &kept) {
    const std::vector<Tensor> results = results_of(fold);
    std::set<int> parts;
    for (size_t p = 0; p < results.size(); p++) {
        const Scalar &identity = monoid_of(fold).parts[p].identity;
        if (identity.type == DType::i64 && narrow_value(identity.integer) && !kept.count(results[p].name))
            parts.insert(static_cast<int>(p));
    }
    return parts;
}

// The fold with its positions in i32; adds the names of these to `narrow`.
Stage with_narrow_positions(Stage fold, const std::vector<Dim> &dims, const std::set<std::string> &kept,
                            std::map<std::string, Ends> &narrow) {
    if (!is_fold(fold) || !monoid_of(fold).batch.empty()) return fold;
    std::set<int> parts = candidates(fold, kept), inputs;
    if (parts.empty()) return fold;
    const Bounds bounds = bounds_of(dims, fold);
    std::vector<Expr> given = inputs_of(fold);
    for (size_t i = 0; i < given.size(); i++)
        if (const Expr index = narrow_index(given[i], bounds); index.defined()) given[i] = index, inputs.insert(static_cast<int>(i));
    keep_positions(parts, inputs, monoid_of(fold));
    if (parts.empty()) return fold;
    const Ends ends = ends_of(monoid_of(fold));
    fold = map_monoid(std::move(fold), [&](const Monoid &m) { return narrowed(m, parts, inputs); });
    std::visit(Overloaded{[&](Reduce &r) { r.inputs = given; }, [&](Scan &s) { s.inputs = given; }, [](auto &) {}}, fold.body);
    for (int p : parts) narrow[results_of(fold)[p].name] = ends;
    return fold;
}

// What reads positions, after they are narrow.
class Reader {
public:
    explicit Reader(const std::map<std::string, Ends> &narrow) : narrow_(narrow) {}

    Expr read(const Expr &root) {
        return rewrite(root, [this](const Expr &n) { return rebuilt(n); });
    }

private:
    const std::map<std::string, Ends> &narrow_;
    Forms forms_;

    Expr rebuilt(const Expr &n) {
        if (n.kind() == ExprKind::load && narrow_.count(n->name))
            return n->guarded ? guarded(n) : widened(load(n->name, DType::i32, n->args));
        if (n.kind() != ExprKind::cast || n.type() != DType::i32) return {};
        const Expr position = forms_.narrow(n->args[0]);
        return position.defined() ? as(DType::i32, position, narrow_.at(position->name)) : Expr();
    }

    Expr widened(const Expr &position) { return forms_.keep(as(DType::i64, position, narrow_.at(position->name)), position); }

    Expr guarded(const Expr &n) {
        Operands index(n->args.begin(), n->args.end() - 2);
        const Expr guard = n->args[n->args.size() - 2], fill = n->args.back();
        return select(guard, widened(load_or(n->name, DType::i32, index, guard, constant_int(DType::i32, 0))), fill);
    }
};

}  // namespace

Algorithm narrow_positions(Algorithm algorithm) {
    const std::set<std::string> kept = read_outside(algorithm);
    std::map<std::string, Ends> narrow;
    for (Stage &stage : algorithm.stages()) stage = with_narrow_positions(std::move(stage), algorithm.dims, kept, narrow);
    if (narrow.empty()) return algorithm;
    Reader reader(narrow);
    return map_expressions(std::move(algorithm), [&](const Expr &e) { return reader.read(e); });
}

}  // namespace tessera
