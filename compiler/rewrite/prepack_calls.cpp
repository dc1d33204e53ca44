#include "compiler/rewrite/prepack_calls.h"

#include <algorithm>

#include "compiler/rewrite/order.h"
#include "support/text/error.h"

namespace tessera {

namespace {

[[noreturn]] void refuse(const Callee &callee, const std::string &operand, const std::string &why) {
    throw UserError("schedule.prepack", callee.scope + ": cannot pack '" + operand + "' of " + callee.algorithm.name +
                                            " ahead of time: " + why + " Pack it at a loop of the stage.");
}

// How many of a tensor's outer axes a view fixes, where it has all inner ones as they are.
std::optional<size_t> sliced_axes(const View &view, const Tensor &argument, const Tensor &tensor) {
    if (view.index.empty()) return 0;
    const size_t rank = argument.dims.size(), sliced = tensor.dims.size() - std::min(rank, tensor.dims.size());
    if (view.index.size() != sliced + rank) return std::nullopt;
    for (size_t i = 0; i < view.index.size(); i++) {
        if (i >= sliced && !equal(view.index[i], axis(i - sliced))) return std::nullopt;
        bool is_free = true;
        walk(view.index[i], [&](const Expr &e) { is_free &= e.kind() != ExprKind::variable || e->name[0] != '%'; });
        if (i < sliced && !is_free) return std::nullopt;
    }
    return sliced;
}

}  // namespace

Algorithm prepack_calls(Algorithm algorithm, std::map<std::string, Callee> &callees,
                        const std::function<std::vector<PackedInput>(const Callee &)> &packed_of, std::vector<PackedInput> &packed,
                        const std::set<std::string> &computed) {
    Algorithm result = algorithm;
    std::map<std::string, PackedInput> wanted;  // by the caller's input
    for (auto &[scope, callee] : callees)
        for (const PackedInput &own : packed_of(callee)) {
            const Tensor &operand = own.packing.operand;
            const View view = callee.tensors.at(operand.name);
            const Tensor *input = computed.count(view.tensor) ? nullptr : algorithm.find_tensor(view.tensor);
            if (!input || input->role != Role::input)
                refuse(callee, operand.name,
                       "what the call takes for it, '" + view.tensor + "', is not an input of its caller, so it cannot be packed there.");
            if (algorithm.large.count(input->name))
                refuse(callee, operand.name,
                       "it is a part of '" + input->name + "', which is declared large, and what is packed has positions of 32 bits.");
            const auto sliced = sliced_axes(view, operand, *input);
            if (!sliced)
                refuse(callee, operand.name, "the call takes a part of '" + view.tensor + "' that does not have whole inner axes.");
            std::vector<LayoutAxis> layout;
            std::vector<Expr> index;
            for (size_t i = 0; i < *sliced; i++) layout.push_back({input->dims[i], 0, false}), index.push_back(view.index[i]);
            for (LayoutAxis axis : own.packing.layout) {
                axis.dim = input->dims[*sliced + static_cast<size_t>(operand_axis(own.packing, axis))];
                layout.push_back(axis);
            }
            const PackedInput made = packed_input(algorithm, callee.scope, *input, layout);
            auto [known, fresh] = wanted.emplace(input->name, made);
            if (known->second.packing.layout != layout)
                refuse(callee, operand.name, "another call wants '" + input->name + "' in another layout.");
            if (fresh) take_packed(result, made), packed.push_back(made);
            for (size_t i = 0; *sliced > 0 && i < own.tensor.dims.size(); i++) index.push_back(axis(i));
            callee.tensors.erase(operand.name);
            callee.tensors[own.tensor.name] = View(made.tensor.name, index);
        }
    for (const auto &[input, made] : wanted) {
        int readers = 0;
        for (const Step &step : algorithm.steps) {
            const auto *call = std::get_if<Call>(&step);
            if (!call) readers += static_cast<int>(tensors_read(step, algorithm).count(input));
        }
        for (const auto &[scope, callee] : callees)
            for (const auto &[own, view] : callee.tensors) readers += view.tensor == input;
        for (const Dim &d : algorithm.dims)
            if (d.size.defined())
                walk(d.size, [&, name = input](const Expr &e) { readers += e.kind() == ExprKind::load && e->name == name; });
        if (readers)
            throw UserError("schedule.prepack",
                            algorithm.name + ": cannot pack '" + input +
                                "' ahead of time: it is read as it is too. State the same pack where it is, or pack it at a "
                                "loop of the stage.");
        for (Call &call : result.calls())
            for (auto &[own, view] : call.tensors)
                if (view.tensor == input) view = View(made.tensor.name);
    }
    std::sort(packed.begin(), packed.end(), [&](const PackedInput &p, const PackedInput &q) {
        return result.find_tensor(p.tensor.name) < result.find_tensor(q.tensor.name);
    });
    return result;
}

}  // namespace tessera
