#include "algorithms/transform/as_a_call.h"

#include <algorithm>

#include "algorithms/transform/inline_calls.h"

namespace tessera {

// Whether what says its extent is there before the call.
static bool is_known_before(const Algorithm &f, const Dim &d) {
    bool is_known = true;
    walk(d.size, [&](const Expr &e) {
        const Tensor *t = e.kind() == ExprKind::load ? f.find_tensor(e->name) : nullptr;
        is_known &= e.kind() != ExprKind::load || (t && t->role != Role::constant);
        if (e.kind() == ExprKind::extent && e->name != d.name) is_known &= is_known_before(f, f.dim(e->name));
    });
    return is_known;
}

Algorithm as_a_call(const Algorithm &f, const std::map<std::string, std::string> &names) {
    const auto called = [&](const std::string &name) {
        const auto it = names.find(name);
        return it == names.end() ? name : it->second;
    };
    Algorithm outer = f;
    outer.rule = nullptr;
    outer.steps.clear(), outer.checks.clear();
    std::erase_if(outer.tensors, [](const Tensor &t) { return t.role == Role::constant; });
    std::erase_if(outer.dims, [&](const Dim &d) { return !is_known_before(f, d); });

    Call call;
    const std::string last = f.name.substr(f.name.rfind('.') + 1);
    const auto is_taken = [&](const std::string &name) {
        const auto is = [&](const auto &named) { return named.name == name; };
        const auto is_called = [&](const std::string &output) { return called(output) == name; };
        return std::any_of(f.tensors.begin(), f.tensors.end(), [&](const Tensor &t) { return is_called(t.name); }) ||
               outer.find_dim(name) || std::any_of(f.outputs.begin(), f.outputs.end(), is_called) ||
               std::any_of(f.parameters.begin(), f.parameters.end(), is);
    };
    call.scope = last;
    for (int n = 2; is_taken(call.scope); n++) call.scope = last + std::to_string(n);
    call.callee = std::make_shared<const Algorithm>(f);
    for (const Dim &d : outer.dims) call.dims[d.name] = d.name;
    for (Tensor &t : outer.tensors) call.tensors[t.name] = View(called(t.name)), t.name = called(t.name);
    for (Dim &d : outer.dims)
        if (d.size.defined()) d.size = replace_loads(d.size, [&](const Expr &e) { return load_of(called(e->name), e); });
    for (const Parameter &p : f.parameters) call.parameters[p.name] = parameter(p.name, p.dtype);
    for (std::string &output : outer.outputs) call.results[output] = called(output), output = called(output);
    outer.large.clear(), outer.stated_ranges.clear();
    for (const std::string &name : f.large) outer.large.insert(called(name));
    for (const auto &[name, range] : f.stated_ranges) outer.stated_ranges[called(name)] = range;
    for (const Dim &d : renamed(call, [](const std::string &) { return true; }).dims)  // those that the call brings
        if (!outer.find_dim(d.name)) outer.dims.push_back(d);
    outer.steps.emplace_back(std::move(call));
    return outer;
}

}  // namespace tessera
