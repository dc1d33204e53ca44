#include <algorithm>

#include "algorithms/import/onnx/context.h"
#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera::onnx {

static std::string identifier(const std::string &wanted) {
    std::string name;
    for (char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    while (name.find("__") != std::string::npos) name.replace(name.find("__"), 2, "_");
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '_') name = "v" + name;
    return name.size() > 60 ? name.substr(0, 60) : name;
}

static std::string unused(const std::string &wanted, const std::set<std::string> &used) {
    std::string name = wanted;
    for (int n = 2; used.count(name); n++) name = wanted + "_" + std::to_string(n);
    return name;
}

DType computed_as(DType type) {
    if (is_arithmetic(type)) return type;
    return is_float(type) ? DType::f32 : DType::i32;
}

Expr Space::symbol(const std::string &name, bool at_least_one, bool limited, int64_t multiple_of, int64_t most) {
    Dim d = symbolic_dim(unused(identifier(name), dim_names_));
    d.multiple_of = multiple_of;
    d.min = at_least_one ? multiple_of : 0;
    if (limited) d.max = most / multiple_of * multiple_of;
    dim_names_.insert(d.name);
    if (multiple_of > 1) multiples_[d.name] = multiple_of;
    f.dim(d);
    bounds_.set_dim(d);
    const Expr e = extent(d.name);
    dims_.push_back({e, {d}});
    return e;
}

// A quotient of a multiple of n by a divisor of n, in quotients by n: so that |H| / 4 and |H| / 32 * 8 are one expression, as proofs that
// know nothing of multiples need it.
static Expr in_largest_quotients(const Expr &e, const std::map<std::string, int64_t> &multiples) {
    return rewrite(e, [&](const Expr &n) -> Expr {
        if (!n.is_operation(Op::div) || n->args[0].kind() != ExprKind::extent || !n->args[1].is_constant()) return {};
        const auto of = multiples.find(n->args[0]->name);
        const int64_t by = n->args[1]->value.integer;
        if (of == multiples.end() || by < 1 || by >= of->second || of->second % by) return {};
        return n->args[0] / Expr(of->second) * Expr(of->second / by);
    });
}

Expr Space::simplified(const Expr &e) const {
    const Expr made = simplify(e, bounds_);
    return multiples_.empty() ? made : simplify(in_largest_quotients(made, multiples_), bounds_);
}

bool Space::is_zero(const Expr &difference) const {
    if (simplified(difference).is_constant(0)) return true;
    if (multiples_.empty()) return false;
    // A multiple of n as n times something: quotients by divisors of n are then exact.
    const Expr taken_apart = replace_extents(difference, [&](const Expr &e) -> Expr {
        const auto of = multiples_.find(e->name);
        return of == multiples_.end() ? Expr() : Expr(of->second) * extent(e->name + "/" + std::to_string(of->second));
    });
    return simplified(taken_apart).is_constant(0);
}

static std::set<std::string> symbols_of(const Expr &e) {
    std::set<std::string> names;
    walk(e, [&](const Expr &n) {
        if (n.kind() == ExprKind::extent) names.insert(n->name);
    });
    return names;
}

Expr Space::Meaning::in_caller(const Expr &e) const {
    return replace_extents(e, [&](const Expr &n) -> Expr {
        const auto it = extents.find(n->name);
        return it == extents.end() ? Expr() : it->second;
    });
}

Expr Space::in_caller(const Expr &e) const { return meaning.caller ? meaning.caller->simplified(meaning.in_caller(e)) : e; }

std::optional<int64_t> Space::number(const Expr &e) const {
    const Expr here = simplified(e);
    if (here.is_constant()) return here->value.integer;
    const Expr there = in_caller(here);
    return there.is_constant() ? std::optional(there->value.integer) : std::nullopt;
}

std::optional<int64_t> Space::fixed(const Expr &e) const {
    const Expr here = simplified(e);
    if (here.is_constant()) return here->value.integer;
    if (meaning.caller && in_caller(here).is_constant()) throw Fix{symbols_of(here)};
    return std::nullopt;
}

bool Space::same(const Expr &a, const Expr &b) const {
    if (equal(a, b)) return true;
    const Expr difference = simplified(a - b);
    if (is_zero(difference)) return true;
    if (!meaning.caller || !meaning.caller->is_zero(in_caller(difference))) return false;
    const Expr one = simplified(a), other = simplified(b);
    if (one.kind() == ExprKind::extent && other.kind() == ExprKind::extent) throw Unify{one->name, other->name};
    throw Fix{symbols_of(difference)};
}

Dim Space::dim(const Expr &wanted, const std::set<std::string> &taken) {
    const Expr e = simplified(wanted);
    auto known = std::find_if(dims_.begin(), dims_.end(), [&](const auto &d) { return equal(d.first, e) || is_zero(d.first - e); });
    if (known == dims_.end()) known = dims_.insert(dims_.end(), {e, {}});
    for (const Dim &d : known->second)
        if (!taken.count(d.name)) return d;
    const size_t which = known->second.size();
    std::string name;
    if (e.is_constant()) name = "n" + std::to_string(e->value.integer);
    else name = which ? known->second[0].name : "d" + std::to_string(dims_.size());
    if (which) name += std::string(1, static_cast<char>('a' + std::min<size_t>(which, 25)));
    name = unused(name, dim_names_);
    dim_names_.insert(name);
    const Dim made = e.is_constant() ? fixed_dim(name, e->value.integer) : derived_dim(name, e);
    f.dim(made);
    bounds_.set_dim(made);
    known->second.push_back(made);
    return made;
}

std::string Space::fresh(const std::string &wanted) {
    const std::string name = unused(identifier(wanted), names_);
    names_.insert(name);
    return name;
}

Expr Space::read_known(const std::shared_ptr<const std::vector<Expr>> &known, const std::vector<Axis> &axes, DType dtype) {
    const std::string name = "known." + std::to_string(tables_.size());
    Table table{known, {}};
    Operands index;
    for (const Axis &a : axes) {
        table.extents.push_back(a.extent->value.integer);
        index.push_back(a.dim.empty() ? Expr(0) : variable(a.dim));
    }
    tables_[name] = table;
    return load(name, computed_as(dtype), index);
}

Expr Space::resolved(const Expr &e) const {
    if (tables_.empty()) return e;
    return replace_loads(e, [&](const Expr &n) -> Expr {
        const auto table = tables_.find(n->name);
        if (table == tables_.end()) return {};
        Expr position = 0;
        for (size_t i = 0; i < table->second.extents.size(); i++) position = position * Expr(table->second.extents[i]) + n->args[i];
        position = simplified(position);
        auto element = [&](int64_t at) {
            const Expr value = (*table->second.known)[static_cast<size_t>(at)];
            return value.type() == n.type() ? value : cast(n.type(), value);
        };
        if (position.is_constant()) return element(position->value.integer);
        const auto count = static_cast<int64_t>(table->second.known->size());
        Expr all = count ? element(count - 1) : constant_int(n.type(), 0);
        for (int64_t i = count - 2; i >= 0; i--) all = select(position == Expr(i), element(i), all);
        return all;
    });
}

Expr Space::as_index(const Expr &e) const {
    if (e.type() == DType::index) return e;
    if (e.is_constant()) return e.type() == DType::boolean ? e : is_float(e.type()) ? Expr() : Expr(e->value.integer);
    if (e.kind() == ExprKind::cast) {
        if (is_float(e->args[0].type()) || is_float(e.type())) return {};
        const Expr inner = as_index(e->args[0]);
        if (!inner.defined()) return {};
        if (inner.type() == DType::boolean) return e.type() == DType::boolean ? inner : select(inner, Expr(1), Expr(0));
        return e.type() == DType::boolean ? inner != Expr(0) : inner;
    }
    if (e.kind() != ExprKind::operation) return {};
    Operands args;
    for (const Expr &a : e->args) {
        args.push_back(as_index(a));
        if (!args.back().defined()) return {};
    }
    for (size_t i = 1; i < args.size(); i++)  // a table of truths beside one of integers
        if (e->op != Op::select && args[i].type() != args[0].type()) return {};
    return operation(e->op, args);
}

// The array with its axes in another order.
static Array transposed(const Array &array, const std::vector<int64_t> &order) {
    std::vector<int64_t> extents, strides(array.extents.size(), 1), steps;
    for (size_t i = array.extents.size(); i-- > 1;) strides[i - 1] = strides[i] * array.extents[i];
    for (int64_t axis : order)
        extents.push_back(array.extents[static_cast<size_t>(axis)]), steps.push_back(strides[static_cast<size_t>(axis)]);
    Array made(array.dtype, extents);
    const size_t bytes = array.size() ? array.data.size() / static_cast<size_t>(array.size()) : 0;
    std::vector<int64_t> at(extents.size(), 0);
    for (int64_t i = 0; i < made.size(); i++) {
        int64_t from = 0;
        for (size_t a = 0; a < at.size(); a++) from += at[a] * steps[a];
        std::copy_n(array.data.data() + static_cast<size_t>(from) * bytes, bytes, made.data.data() + static_cast<size_t>(i) * bytes);
        for (size_t a = at.size(); a-- > 0;) {
            if (++at[a] < extents[a]) break;
            at[a] = 0;
        }
    }
    return made;
}

Tile Space::weight(const Value &value, const std::vector<int64_t> &order, const std::vector<Dim> &given) {
    const auto made = made_.find(value.constant.get());
    if (made != made_.end()) return made->second;
    // Axes of one element are left out.
    std::vector<std::optional<Dim>> dims;
    std::set<std::string> taken;
    Array array = order.empty() ? *value.constant : transposed(*value.constant, order);
    std::erase(array.extents, 1);
    for (const Axis &a : value.axes) {
        dims.emplace_back();
        if (a.extent.is_constant(1)) continue;
        dims.back() = dim(a.extent, taken);
        taken.insert(dims.back()->name);
    }
    const std::string name = fresh(anonymous ? "w" : value.name.empty() ? "weight" : value.name);
    std::vector<Dim> stored;
    for (size_t i = 0; i < dims.size(); i++)
        if (const auto &d = dims[order.empty() ? i : static_cast<size_t>(order[i])]) stored.push_back(*d);
    if (!given.empty()) stored = given;
    weights.push_back({name, std::move(array), value, order});
    const Tile tile = f.input(name, stored, value.dtype);
    kept_.push_back(value.constant);
    made_[value.constant.get()] = tile;
    return tile;
}

}  // namespace tessera::onnx
