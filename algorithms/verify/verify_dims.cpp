// The dims of an algorithm: constraints that can be met, sizes that can be evaluated.
#include <algorithm>
#include <numeric>

#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::string range(int64_t lo, int64_t hi) { return std::to_string(lo) + "..=" + std::to_string(hi); }

void verify_constraint(const VerifyScope &scope, const Dim &d) {
    if (d.multiple_of < 1) scope.fail("dim", d.name, "multiple_of is " + std::to_string(d.multiple_of) + "; give 1 or more.");
    if (d.kind == DimKind::fixed) {
        if (d.value < 0 || d.value > INT32_MAX)
            scope.fail("dim", d.name, "the fixed extent is " + std::to_string(d.value) + "; give one in " + range(0, INT32_MAX) + ".");
        if (d.value % d.multiple_of)
            scope.fail("dim", d.name,
                       "the fixed extent " + std::to_string(d.value) + " is no multiple of " + std::to_string(d.multiple_of) +
                           ", as multiple_of says; change one of them.");
    }
    if (d.kind == DimKind::symbolic && (d.min < 0 || d.max > INT32_MAX || d.min > d.max))
        scope.fail("dim", d.name,
                   "no extent lies in " + range(d.min, d.max) + "; give 0 <= min <= max <= " + std::to_string(INT32_MAX) + ".");
    if (!d.equals.empty() && d.kind != DimKind::symbolic)
        scope.fail("dim", d.name, "only a symbolic dim can equal another; remove equals = '" + d.equals + "'.");
}

// Follows `equals` from `first` and checks that all dims on the way allow one extent.
void verify_equals(const VerifyScope &scope, const Dim &first) {
    std::vector<std::string> chain{first.name};
    int64_t lo = 0, hi = INT32_MAX, multiple = 1;
    for (const Dim *d = &first;;) {
        if (d->kind == DimKind::derived) break;
        bool fixed = d->kind == DimKind::fixed;
        lo = std::max(lo, fixed ? d->value : d->min);
        hi = std::min(hi, fixed ? d->value : d->max);
        multiple = std::lcm(multiple, d->multiple_of);
        if (multiple > INT32_MAX || lo > hi || hi / multiple * multiple < lo)
            scope.fail("dim", first.name,
                       "no extent is a multiple of " + std::to_string(multiple) + " in " + range(lo, hi) + ", which is what " +
                           join(chain) + " ask of it; relax one of the constraints.");
        if (d->equals.empty()) break;
        chain.push_back(d->equals);
        if (std::count(chain.begin(), chain.end(), d->equals) > 1)
            scope.fail("dim", first.name, "its equals form a cycle: " + join(chain, " == ") + "; leave one of them out.");
        d = &scope.dim(d->equals, first.name);
    }
}

void verify_acyclic(const VerifyScope &scope, const Dim &d, std::vector<std::string> &path) {
    if (d.kind != DimKind::derived) return;
    if (std::count(path.begin(), path.end(), d.name)) {
        path.push_back(d.name);
        scope.fail("dim", d.name, "its size depends on itself: " + join(path, " -> ") + "; break the cycle.");
    }
    path.push_back(d.name);
    walk(d.size, [&](const Expr &e) {
        if (e.kind() == ExprKind::extent) verify_acyclic(scope, scope.dim(e->name, d.name), path);
    });
    path.pop_back();
}

}  // namespace

void verify_constraints(const VerifyScope &scope) {
    for (const Dim &d : scope.algorithm.dims) {
        verify_constraint(scope, d);
        if (d.kind == DimKind::derived && (!d.size.defined() || d.size.type() != DType::index))
            scope.fail("dim", d.name,
                       "a derived dim needs a size of type index, got " +
                           (d.size.defined() ? std::string(name_of(d.size.type())) : "none") + "; cast it to index.");
        if (d.kind == DimKind::derived && d.size->functions)
            scope.fail("dim", d.name,
                       "its size " + brief(d.size) +
                           " uses a function of floats, whose rounding would decide how many elements "
                           "there are; count with integers.");
    }
    for (const Dim &d : scope.algorithm.dims) verify_equals(scope, d);
    for (const Dim &d : scope.algorithm.dims) {
        std::vector<std::string> path;
        verify_acyclic(scope, d, path);
    }
}

void verify_size_is_made(const VerifyScope &scope, const std::string &subject, const Dim &dim) {
    if (!dim.size.defined()) return;
    walk(dim.size, [&](const Expr &e) {
        if (e.kind() == ExprKind::load && !scope.made.count(e->name))
            scope.fail("order", subject,
                       "the extent of '" + dim.name + "' is read from '" + e->name +
                           "', which is not computed before it; move the stage that "
                           "makes '" +
                           e->name + "' forward.");
        if (e.kind() == ExprKind::extent && e->name != dim.name)
            if (const Dim *other = scope.find(e->name)) verify_size_is_made(scope, subject, *other);
    });
}

void verify_sizes(const VerifyScope &scope) {
    for (const Dim &d : scope.algorithm.dims) {
        if (d.kind != DimKind::derived) continue;
        std::vector<std::string> outer;
        for (const std::string &name : variables_in(d.size)) outer.push_back(scope.dim(name, d.name).name);
        for (const std::string &name : outer)
            if (name == d.name) scope.fail("dim", d.name, "its size uses its own index; use those of outer dims.");
        verify_expression(scope, d.name, d.size, outer);
    }
}

}  // namespace tessera
