// One expression in its place: names, types, ranks, and loads inside their tensors.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "algorithms/index/prove.h"
#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::vector<std::string> names_in(const std::map<std::string, Tensor> &tensors) {
    std::vector<std::string> names;
    for (const auto &[name, t] : tensors) names.push_back(name);
    return names;
}

std::string access(const std::string &tensor, const std::vector<Expr> &index) {
    std::vector<std::string> parts;
    for (const Expr &e : index) parts.push_back(brief(e));
    return tensor + "[" + (parts.empty() ? "" : join(parts)) + "]";
}

// The largest magnitude of an index expression whose leaves have 32 bits, and whether data that nothing clamps is in it.
struct Size {
    double most = 0x1p31;
    bool data = false;
};

class Checker {
public:
    Checker(const VerifyScope &scope, const std::string &subject, const std::vector<std::string> &dims)
        : scope_(scope), subject_(subject), dims_(dims) {}
    Bounds facts() const { return scope_.facts(dims_); }
    void check(const Expr &e, const Bounds &facts);
    void inside(const Tensor &tensor, const std::vector<Expr> &index, const Bounds &facts) const;

private:
    struct Scan {
        const Bounds &facts;
        std::unordered_set<const Expr::Node *> seen;
    };
    void visit(const Expr &e, Scan &scan);
    void check_variable(const Expr &e) const;
    void check_extent(const Expr &e) const;
    void check_parameter(const Expr &e) const;
    void check_load(const Expr &e, Scan &scan);
    Size size_of_position(const Expr &e);
    Size make_size(const Expr &e);

    static constexpr int max_visited = 100000;  // nodes, each once under every chain of guards around it
    int visited_ = 0;
    AddressMap<Size> sizes_;
    const VerifyScope &scope_;
    const std::string &subject_;
    const std::vector<std::string> &dims_;
};

void Checker::check(const Expr &e, const Bounds &facts) {
    Scan scan{facts, {}};
    visit(e, scan);
}

Size Checker::size_of_position(const Expr &e) {
    if (const Size *known = sizes_.find(e.get())) return *known;
    const Size made = make_size(e);
    return *sizes_.add(e.get()).first = made;
}

Size Checker::make_size(const Expr &e) {
    if (e.is_constant()) return {std::abs(static_cast<double>(e->value.integer)), false};
    if (e.kind() == ExprKind::cast) {
        const DTypeTraits &from = traits_of(e->args[0].type());
        const bool small = from.kind != DTypeKind::real && from.lowest >= INT8_MIN && from.highest <= UINT8_MAX;
        return {small ? 256 : 0x1p31, !small};
    }
    if (e.kind() != ExprKind::operation || e.type() != DType::index) return {};
    Size sum{0, false}, product{1, false};
    for (size_t i = e->op == Op::select ? 1 : 0; i < e->args.size(); i++) {
        const Size arg = size_of_position(e->args[i]);
        sum = {sum.most + arg.most, sum.data || arg.data}, product.most *= arg.most;
    }
    return {e->op == Op::mul ? product.most : sum.most, sum.data};
}

void Checker::visit(const Expr &e, Scan &scan) {
    if (!scan.seen.insert(e.get()).second) return;
    if (++visited_ > max_visited)
        scope_.fail("guards", subject_,
                    "there are more than " + std::to_string(max_visited) +
                        " operations under different guards, as where guarded loads lie in the indices of guarded loads again and again; "
                        "name an index on the way (named), and it is computed once.");
    if (e.kind() == ExprKind::load) return check_load(e, scan);
    for (const Expr &arg : e->args) visit(arg, scan);
    switch (e.kind()) {
    case ExprKind::variable: return check_variable(e);
    case ExprKind::extent: return check_extent(e);
    case ExprKind::parameter: return check_parameter(e);
    case ExprKind::bounded:
        if (!prove(e->args[1] < e->args[2], scan.facts))
            scope_.fail("bounds", subject_,
                        brief(e) + ": cannot prove " + brief(e->args[1] < e->args[2]) +
                            ", and nothing can be clamped into an empty range; guard it with load_or, or constrain the dims.");
        return;
    case ExprKind::operation:
        if (const Size size = e.is_operation(Op::mul) && e.type() == DType::index ? size_of_position(e) : Size();
            size.data && size.most >= 0x1p63)
            scope_.fail("bounds", subject_,
                        brief(e) +
                            ": what is loaded there may be any number of 32 bits, and the product may then be beyond 64; clamp "
                            "what is loaded with bounded.");
        return;
    case ExprKind::left:
    case ExprKind::right:
    case ExprKind::input:
        scope_.fail("expression", subject_,
                    brief(e) +
                        " is an operand of a monoid's definition and means nothing here; "
                        "use a load, an index, an extent or a parameter.");
    case ExprKind::constant:
    case ExprKind::load:
    case ExprKind::function:
    case ExprKind::bitcast:
    case ExprKind::cast: return;
    }
}

void Checker::check_variable(const Expr &e) const {
    if (std::count(dims_.begin(), dims_.end(), e->name)) return;
    scope_.dim(e->name, subject_);
    scope_.fail("variable", subject_,
                "the index '" + e->name + "' is not defined here; the indices here are those of " + join(dims_) +
                    ". Add the dim to the stage, or reduce over it.");
}

void Checker::check_extent(const Expr &e) const {
    const Dim &d = scope_.dim(e->name, subject_);
    for (const std::string &outer : d.size.defined() ? variables_in(d.size) : std::set<std::string>())
        if (!std::count(dims_.begin(), dims_.end(), outer))
            scope_.fail("ragged", subject_,
                        "|" + d.name + "| varies with the index of '" + outer +
                            "', which is not defined here; "
                            "use it inside '" +
                            outer + "'.");
}

void Checker::check_parameter(const Expr &e) const {
    std::vector<std::string> names;
    for (const Parameter &p : scope_.parameters) {
        if (p.name == e->name && p.dtype == e.type()) return;
        if (p.name == e->name)
            scope_.fail("type", subject_,
                        "the parameter '" + p.name + "' is " + name_of(p.dtype) + ", but is used as " + name_of(e.type()) + "; cast it.");
        names.push_back(p.name);
    }
    scope_.fail("unknown-parameter", subject_,
                "there is no parameter '" + e->name + "'; the parameters are " + join(names) + "." + did_you_mean(e->name, names));
}

void Checker::check_load(const Expr &e, Scan &scan) {
    size_t rank = e->args.size() - (e->guarded ? 2 : 0);
    std::vector<Expr> index(e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank));
    auto it = scope_.tensors.find(e->name);
    if (it == scope_.tensors.end())
        scope_.fail("unknown-tensor", subject_,
                    "there is no tensor '" + e->name + "'; there are " + join(names_in(scope_.tensors)) + "." +
                        did_you_mean(e->name, names_in(scope_.tensors)));
    const Tensor &t = it->second;
    if (!scope_.made.count(t.name))
        scope_.fail("order", subject_,
                    "it loads '" + t.name + "', which is not computed before it; move the stage that makes '" + t.name + "' forward.");
    if (rank != t.dims.size())
        scope_.fail(
            "rank", subject_,
            access(t.name, index) + " has " + std::to_string(rank) + " indices, but '" + t.name + "' has the dims " + join(t.dims) + ".");
    if (e.type() != t.dtype)
        scope_.fail("type", subject_,
                    access(t.name, index) + " is loaded as " + name_of(e.type()) + ", but '" + t.name + "' holds " + name_of(t.dtype) +
                        "; load that and cast it.");
    for (const Expr &i : index)
        if (i.type() != DType::index)
            scope_.fail("type", subject_,
                        access(t.name, index) + ": the index " + brief(i) + " is " + name_of(i.type()) + "; cast it to index.");
    if (!e->guarded) {
        for (const Expr &i : index) visit(i, scan);
        return inside(t, index, scan.facts);
    }
    const Expr &guard = e->args[rank], &fill = e->args[rank + 1];
    if (guard.type() != DType::boolean || fill.type() != t.dtype)
        scope_.fail("type", subject_,
                    access(t.name, index) + ": the guard must be bool and the fill " + name_of(t.dtype) + ", got " + name_of(guard.type()) +
                        " and " + name_of(fill.type()) + "; convert them.");
    visit(guard, scan);
    visit(fill, scan);
    Bounds guarded = scan.facts;
    guarded.assume(guard);
    Scan under{guarded, {}};
    for (const Expr &i : index) visit(i, under);
    inside(t, index, guarded);
}

void Checker::inside(const Tensor &t, const std::vector<Expr> &index, const Bounds &facts) const {
    for (size_t axis = 0; axis < index.size(); axis++)
        for (const Expr &claim : {Expr(0) <= index[axis], index[axis] < extent(t.dims[axis])})
            if (!prove(claim, facts))
                scope_.fail("bounds", subject_,
                            access(t.name, index) + ": cannot prove " + brief(claim) +
                                "; guard it with load_or, clamp it with bounded, or constrain the dims.");
}

}  // namespace

void verify_expression(const VerifyScope &scope, const std::string &subject, const Expr &e, const std::vector<std::string> &dims) {
    Checker checker(scope, subject, dims);
    checker.check(e, checker.facts());
}

void verify_inside(const VerifyScope &scope, const std::string &subject, const Tensor &tensor, const std::vector<Expr> &index,
                   const std::vector<std::string> &dims) {
    Checker checker(scope, subject, dims);
    checker.inside(tensor, index, checker.facts());
}

}  // namespace tessera
