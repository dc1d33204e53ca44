// A gradient as two algorithms: what the backward part reads of the forward part are outputs of the one and inputs of the other.
#include <algorithm>

#include "algorithms/transform/derivatives/backward.h"
#include "algorithms/transform/derivatives/compute_again.h"
#include "support/text/error.h"

namespace tessera::differentiation {

namespace {

std::vector<Tensor> results_in(const std::vector<Step> &steps) {
    std::vector<Tensor> all;
    for (const Step &step : steps)
        for (Tensor &t : std::visit([](const auto &s) { return results_of(s); }, step)) all.push_back(std::move(t));
    return all;
}

std::set<std::string> read_by(const Algorithm &a) {
    std::set<std::string> read;
    for (const Step &step : a.steps) read.merge(reads_of(step));
    for (const Dim &d : a.dims)
        if (d.size.defined())
            walk(d.size, [&](const Expr &e) {
                if (e.kind() == ExprKind::load) read.insert(e->name);
            });
    return read;
}

// Inputs that nothing reads stay where they alone say an extent.
std::set<std::string> with_extents(const Algorithm &a, std::set<std::string> kept) {
    std::set<std::string> known;
    const auto add = [&](const std::vector<std::string> &dims) { known.insert(dims.begin(), dims.end()); };
    for (const Tensor &t : a.tensors)
        if (kept.count(t.name)) add(t.dims);
    for (const Tensor &t : results_in(a.steps))
        if (std::find(a.outputs.begin(), a.outputs.end(), t.name) != a.outputs.end()) add(t.dims);
    for (const Tensor &t : a.tensors) {
        const bool is_new = std::any_of(t.dims.begin(), t.dims.end(), [&](const std::string &d) { return !known.count(d); });
        if (is_new && kept.insert(t.name).second) add(t.dims);
    }
    return kept;
}

}  // namespace

ForwardBackward Backward::run_apart() {
    make();
    const auto is_again = [&](const std::string &name) {
        if (!request_.residuals.saves(name, false)) return true;
        const std::vector<Tensor> results = results_of(*p_.made.find_stage(name));
        return std::any_of(results.begin(), results.end(), [&](const Tensor &t) {
            return std::any_of(t.dims.begin(), t.dims.end(), [&](const std::string &d) { return p_.is_ragged(d); });
        });
    };
    const std::vector<Copy> copies = compute_again(p_, forward_, is_again);
    Program forward = p_;
    const auto parts = p_.made.steps.begin() + static_cast<std::ptrdiff_t>(forward_);
    forward.made.steps.erase(forward.made.steps.begin() + static_cast<std::ptrdiff_t>(forward_), forward.made.steps.end());
    p_.made.steps.erase(p_.made.steps.begin(), parts);
    p_.drop_unneeded(false);
    take_names_of_gone(p_, copies);

    ForwardBackward made;
    const std::set<std::string> read = read_by(p_.made);
    for (const Step &step : forward.made.steps)
        if (const auto *stage = std::get_if<Stage>(&step))
            for (const Write *w : writes_of(*stage))
                if (read.count(w->state))
                    throw UserError("derivative.write",
                                    request_.f.name + "." + stage->name + ": the backward part reads the state '" + w->state +
                                        "', which the forward part has written by then; expected states that one of them reads",
                                    "Take value_and_grad, which does both in one kernel, or give the state's value as an input too.")
                        .about(stage->name, stage->span);
    std::set<std::string> made_here;
    for (const Tensor &t : results_in(p_.made.steps)) made_here.insert(t.name);
    forward.made.outputs = request_.f.outputs;
    std::map<std::string, Tensor> residuals;
    std::vector<std::string> &outputs = forward.made.outputs;
    for (Tensor t : results_in(forward.made.steps)) {
        if (!read.count(t.name) || made_here.count(t.name)) continue;
        if (std::find(outputs.begin(), outputs.end(), t.name) == outputs.end()) outputs.push_back(t.name);
        t.role = Role::input;
        residuals.emplace(t.name, std::move(t));
    }
    for (const std::string &output : outputs)  // one order for both, so that they may be handed over by place
        if (const auto residual = residuals.find(output); residual != residuals.end()) {
            made.residuals.push_back(output);
            p_.made.tensors.push_back(residual->second);
        }
    std::set<std::string> kept = read;
    for (const Tensor &t : p_.made.tensors)
        if (!request_.f.find_tensor(t.name)) kept.insert(t.name);  // y.grad
    p_.drop_unread_inputs(with_extents(p_.made, kept));
    p_.made.name = request_.f.name + ".backward", forward.made.name = request_.f.name + ".forward";
    std::erase_if(forward.made.tensors, [&](const Tensor &t) { return !request_.f.find_tensor(t.name); });
    forward.drop_unneeded(true);
    made.forward = forward.finished(), made.backward = p_.finished();
    return made;
}

}  // namespace tessera::differentiation
