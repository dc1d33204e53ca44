// One call: everything that the callee wants is bound to something that satisfies it.
#include <algorithm>

#include "algorithms/index/prove.h"
#include "algorithms/verify/verify_scope.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class CallChecker {
public:
    CallChecker(const VerifyScope &scope, const Call &call) : scope_(scope), call_(call), subject_(call.scope), callee_(*call.callee) {}
    void check() const;

private:
    void check_dim(const Dim &dim) const;
    void check_tensor(const Tensor &tensor) const;
    void check_known() const;
    [[noreturn]] void fail(const std::string &message) const { scope_.fail("call", subject_, message); }

    const VerifyScope &scope_;
    const Call &call_;
    const std::string &subject_;
    const Algorithm &callee_;
};

void CallChecker::check() const {
    check_known();
    for (const Dim &d : callee_.dims) check_dim(d);
    for (const Tensor &t : callee_.tensors)
        if (t.role != Role::constant) check_tensor(t);
    for (const Parameter &p : callee_.parameters) verify_expression(scope_, subject_, call_.parameters.at(p.name), {});
}

// Every binding names something of the callee.
void CallChecker::check_known() const {
    auto unknown = [&](const std::string &what, const std::string &name, const std::vector<std::string> &names) {
        if (std::count(names.begin(), names.end(), name)) return;
        fail("it binds the " + what + " '" + name + "', which " + callee_.name + " does not have; it has " + join(names) + "." +
             did_you_mean(name, names));
    };
    std::vector<std::string> dims, tensors, parameters;
    for (const Dim &d : callee_.dims) dims.push_back(d.name);
    for (const Tensor &t : callee_.tensors)
        if (t.role != Role::constant) tensors.push_back(t.name);
    for (const Parameter &p : callee_.parameters) parameters.push_back(p.name);
    for (const auto &[name, to] : call_.dims) unknown("dim", name, dims);
    for (const auto &[name, to] : call_.tensors) unknown("tensor", name, tensors);
    for (const auto &[name, to] : call_.parameters) unknown("parameter", name, parameters);
    for (const auto &[name, to] : call_.results) unknown("output", name, callee_.outputs);
}

void CallChecker::check_dim(const Dim &wanted) const {
    auto it = call_.dims.find(wanted.name);
    if (it == call_.dims.end()) {
        if (wanted.kind == DimKind::symbolic)
            fail("the dim '" + wanted.name + "' of " + callee_.name + " is not bound; bind it to a dim of " + scope_.algorithm.name + ".");
        return;
    }
    const Dim &given = scope_.dim(it->second, subject_);
    verify_size_is_made(scope_, subject_, given);
    std::string pair = "the dim '" + wanted.name + "' of " + callee_.name + " is bound to '" + given.name + "', ";
    Bounds facts(scope_.dims);
    Expr n = extent(given.name);
    if (wanted.kind == DimKind::fixed && !prove(n == Expr(wanted.value), facts))
        fail(pair + "whose extent is not known to be " + std::to_string(wanted.value) + "; fix it.");
    if (wanted.kind != DimKind::symbolic) return;
    if (!prove(n % Expr(wanted.multiple_of) == Expr(0), facts))
        fail(pair + "which is not known to be a multiple of " + std::to_string(wanted.multiple_of) + "; constrain it.");
    if (!prove(Expr(wanted.min) <= n, facts))
        fail(pair + "which is not known to be at least " + std::to_string(wanted.min) + "; constrain it.");
    if (!prove(n <= Expr(wanted.max), facts))
        fail(pair + "which is not known to be at most " + std::to_string(wanted.max) + "; constrain it.");
    auto other = call_.dims.find(wanted.equals);
    if (other != call_.dims.end() && !prove(n == extent(other->second), facts))
        fail(pair + "and '" + wanted.equals + "', which has the same extent, to '" + other->second +
             "'; those are not known to be equal. Bind both to one dim.");
}

void CallChecker::check_tensor(const Tensor &wanted) const {
    std::string name = "'" + wanted.name + "' of " + callee_.name;
    auto it = call_.tensors.find(wanted.name);
    if (it == call_.tensors.end()) fail(name + " is not bound; bind it to a tensor of " + scope_.algorithm.name + ".");
    auto found = scope_.tensors.find(it->second);
    if (found == scope_.tensors.end()) {
        std::vector<std::string> names;
        for (const auto &[n, t] : scope_.tensors) names.push_back(n);
        fail(name + " is bound to '" + it->second + "', which does not exist; there are " + join(names) + "." +
             did_you_mean(it->second, names));
    }
    if (!scope_.made.count(it->second))
        fail(name + " is bound to '" + it->second + "', which is computed later; a call takes only earlier results.");
    const Tensor &given = found->second;
    std::string pair = name + " is bound to '" + given.name + "', ";
    const Tensor *own = scope_.algorithm.find_tensor(given.name);
    if (wanted.role == Role::state && (!own || own->role != Role::state)) fail(pair + "which is no state; bind it to one.");
    if (given.dtype != wanted.dtype)
        fail(pair + "which holds " + name_of(given.dtype) + " where " + name_of(wanted.dtype) + " is wanted; cast it in a stage before.");
    if (given.dims.size() != wanted.dims.size())
        fail(pair + "which has the dims " + join(given.dims) + " where " + join(wanted.dims) + " are wanted.");
    Bounds facts(scope_.dims);
    for (size_t i = 0; i < wanted.dims.size(); i++) {
        auto dim = call_.dims.find(wanted.dims[i]);
        std::string expected = dim != call_.dims.end() ? dim->second : subject_ + "." + wanted.dims[i];
        if (given.dims[i] != expected && !prove(extent(given.dims[i]) == extent(expected), facts))
            fail(pair + "whose axis " + std::to_string(i) + " is '" + given.dims[i] + "' where '" + expected + "' is wanted, for '" +
                 wanted.dims[i] + "'; bind that to '" + given.dims[i] + "'.");
    }
}

}  // namespace

void verify_call(const VerifyScope &scope, const Call &call) { CallChecker(scope, call).check(); }

}  // namespace tessera
