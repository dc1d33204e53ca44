#include "compiler/rewrite/prepack.h"

#include <algorithm>

#include "algorithms/transform/half_bytes.h"
#include "compiler/abi/c_names.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

[[noreturn]] void refuse_packing(const std::string &stage, const std::string &operand, const std::string &why) {
    throw UserError("schedule.prepack", stage + ": cannot pack '" + operand + "' ahead of time: " + why);
}

std::vector<LayoutAxis> complete(const std::vector<LayoutAxis> &layout, const Tensor &operand) {
    std::vector<LayoutAxis> axes = layout;
    if (axes.empty())
        for (const std::string &d : operand.dims) axes.push_back({d, 0, false});
    return axes;
}

std::string packed_name(const std::string &operand) { return operand + ".packed"; }

std::string text_of(const std::vector<LayoutAxis> &layout) {
    std::vector<std::string> axes;
    for (const LayoutAxis &axis : layout) axes.push_back(to_string(axis));
    return join(axes);
}

bool loads(const Expr &e, const std::string &tensor) {
    bool found = false;
    walk(e, [&](const Expr &n) { found |= n.kind() == ExprKind::load && n->name == tensor; });
    return found;
}

bool loads(const Stage &stage, const std::string &tensor) {
    const std::vector<Expr> all = expressions_of(stage);
    return std::any_of(all.begin(), all.end(), [&](const Expr &e) { return loads(e, tensor); });
}

Expr extent_in(const std::vector<Dim> &dims, const std::string &name) {
    for (const Dim &d : dims)
        if (d.name == name && d.kind == DimKind::fixed) return Expr(d.value);
    return extent(name);
}

std::string axis_dim(const LayoutAxis &axis) {
    if (axis.factor == 0) return axis.dim;
    return axis.dim + (axis.within ? ".i" + std::to_string(axis.within) : "") + (axis.remainder ? ".i" : ".o") +
           std::to_string(axis.factor);
}

// The dims of a packed tensor, where `dims` has the operand's.
std::vector<Dim> axis_dims(const Packing &packing, const std::vector<Dim> &dims) {
    const std::vector<Expr> extents = packed_extents(packing, dims);
    std::vector<Dim> made;
    for (size_t i = 0; i < extents.size(); i++) {
        if (packing.layout[i].factor == 0) continue;
        const std::string name = axis_dim(packing.layout[i]);
        made.push_back(extents[i].is_constant() ? fixed_dim(name, extents[i]->value.integer) : derived_dim(name, extents[i]));
    }
    return made;
}

void add_dims(std::vector<Dim> &dims, const std::vector<Dim> &more) {
    for (const Dim &d : more)
        if (std::none_of(dims.begin(), dims.end(), [&](const Dim &known) { return known.name == d.name; })) dims.push_back(d);
}

// The input that `stage` wants packed. Whether it can be is for `check_readers` to say.
PackedInput wanted_input(const Algorithm &a, const std::string &stage, const std::string &operand, const Pack &pack,
                         const std::set<std::string> &computed) {
    const Tensor *tensor = computed.count(operand) ? nullptr : a.find_tensor(operand);
    if (!tensor || tensor->role != Role::input) {
        std::vector<std::string> inputs;
        for (const Tensor &t : a.tensors)
            if (t.role == Role::input && !computed.count(t.name)) inputs.push_back(t.name);
        const char *what = !tensor ? "it is computed by the kernel" : tensor->role == Role::state ? "it is a state" : "it is a constant";
        refuse_packing(stage, operand,
                       std::string(what) + ", and only inputs can be; the inputs are " + join(inputs) +
                           ". Pack it at a loop of the stage, or at root.");
    }
    if (a.large.count(operand))
        refuse_packing(stage, operand,
                       "it is declared large, and what is packed has positions of 32 bits. Pack it at a loop of the stage.");
    return tessera::packed_input(a, stage, *tensor, complete(pack.layout, *tensor));
}

void check_dims(const Algorithm &a, const std::string &stage, const Tensor &operand) {
    if (operand.dims.empty())
        refuse_packing(stage, operand.name, "it has one element, so there is nothing to pack. Delete the pack (null).");
    for (size_t i = 0; i < operand.dims.size(); i++) {
        const Dim &d = a.dim(operand.dims[i]);
        bool varies = false;
        if (d.size.defined())
            walk(d.size, [&](const Expr &n) {
                varies |= n.kind() == ExprKind::load || n.kind() == ExprKind::variable || n.kind() == ExprKind::parameter;
            });
        if (varies)
            refuse_packing(stage, operand.name, "the extent of its dim '" + d.name + "' is data (" + brief(d.size) + "). Pack it at root.");
        if (std::count(operand.dims.begin(), operand.dims.end(), d.name) > 1)
            refuse_packing(stage, operand.name, "its dim '" + d.name + "' stands in it twice. Pack it at root.");
    }
}

// Every use of the operand goes through such a pack, of one layout.
void check_readers(const Algorithm &a, const KnobsByStage &stages, const std::string &stage, const Packing &packing) {
    const std::string &operand = packing.operand.name, layout = text_of(packing.layout);
    for (const Stage &reader : a.stages()) {
        if (!loads(reader, operand)) continue;
        auto knobs = stages.find(reader.name);
        const Pack *pack = nullptr;
        if (knobs != stages.end())
            if (auto it = knobs->second.pack.find(operand); it != knobs->second.pack.end()) pack = &it->second;
        if (!pack || !pack->is_ahead())
            refuse_packing(stage, operand,
                           "the stage '" + reader.name + "' reads it too" + (pack ? ", and packs it at " + pack->at : ", unpacked") +
                               "; state the same pack there (\"at\": \"prepack\", layout " + layout + "), or pack it at a loop here.");
        if (const std::vector<LayoutAxis> other = complete(pack->layout, packing.operand); other != packing.layout)
            refuse_packing(stage, operand,
                           "the stage '" + reader.name + "' wants it in the layout " + text_of(other) + ", this one in " + layout +
                               "; state one layout in both.");
    }
    for (const Dim &d : a.dims)
        if (d.size.defined() && loads(d.size, operand))
            refuse_packing(stage, operand, "the extent of dim '" + d.name + "' is read from it. Pack it at root.");
    for (const Call &call : a.calls())
        for (const auto &[callee, view] : call.tensors)
            if (view.tensor == operand)
                refuse_packing(
                    stage, operand,
                    "the call '" + call.scope + "', which is emitted once, reads it too; inline the call, or pack it at a loop here.");
}

// The index of a packed tensor's element, given the index of the operand's.
std::vector<Expr> packed_index(const Packing &packing, const std::vector<Expr> &index) {
    std::vector<Expr> result;
    for (const LayoutAxis &axis : packing.layout) {
        Expr e = index[static_cast<size_t>(operand_axis(packing, axis))];
        if (axis.within) e = e % Expr(axis.within);
        if (axis.factor) e = axis.remainder ? e % Expr(axis.factor) : e / Expr(axis.factor);
        result.push_back(e);
    }
    return result;
}

Expr reading(const Expr &e, const PackedInput &input) {
    return rewrite(e, [&](const Expr &n) -> Expr {
        if (n.kind() != ExprKind::load || n->name != input.packing.operand.name) return {};
        const size_t rank = input.packing.operand.dims.size();
        const std::vector<Expr> index = packed_index(input.packing, {n->args.begin(), n->args.begin() + static_cast<std::ptrdiff_t>(rank)});
        if (!n->guarded) return load(input.tensor.name, n.type(), index);
        return load_or(input.tensor.name, n.type(), index, n->args[rank], n->args[rank + 1]);
    });
}

}  // namespace

int64_t operand_axis(const Packing &packing, const LayoutAxis &axis) {
    const std::vector<std::string> &dims = packing.operand.dims;
    return std::find(dims.begin(), dims.end(), axis.dim) - dims.begin();
}

std::vector<Expr> packed_extents(const Packing &packing, const std::vector<Dim> &dims) {
    std::vector<Expr> extents;
    for (const LayoutAxis &axis : packing.layout) {
        const Expr n = extent_in(dims, axis.dim);
        extents.push_back(axis.factor == 0   ? n
                          : axis.positions() ? Expr(axis.positions())
                                             : (n + Expr(axis.factor - 1)) / Expr(axis.factor));
    }
    return extents;
}

PackedInput packed_input(const Algorithm &algorithm, const std::string &subject, const Tensor &operand, std::vector<LayoutAxis> layout) {
    check_dims(algorithm, subject, operand);
    PackedInput made{operand, {operand, std::move(layout)}};
    made.tensor.name = packed_name(operand.name);
    made.tensor.dims.clear();
    for (const LayoutAxis &axis : made.packing.layout) made.tensor.dims.push_back(axis_dim(axis));
    return made;
}

void take_packed(Algorithm &algorithm, const PackedInput &input) {
    for (Tensor &t : algorithm.tensors)
        if (t.name == input.packing.operand.name) t = input.tensor;
    add_dims(algorithm.dims, axis_dims(input.packing, algorithm.dims));
}

static bool packs_ahead(const Knobs &knobs) {
    return std::any_of(knobs.pack.begin(), knobs.pack.end(), [](const auto &p) { return p.second.is_ahead(); });
}

Algorithm prepack(Algorithm algorithm, KnobsByStage &stages, std::vector<PackedInput> &packed, const std::set<std::string> &computed) {
    if (std::none_of(stages.begin(), stages.end(), [](const auto &s) { return packs_ahead(s.second); })) return algorithm;
    Algorithm result = algorithm;
    const KnobsByStage asked = stages;
    for (const auto &[stage, knobs] : asked)
        for (const auto &[operand, pack] : knobs.pack) {
            if (!pack.is_ahead()) continue;
            const Stage *reader = algorithm.find_stage(stage);
            if (!reader || !loads(*reader, operand)) refuse_packing(stage, operand, "the stage does not load it.");
            Knobs &left = stages[stage];
            left.pack.erase(operand);
            if (auto ahead = left.prefetch.extract(operand); !ahead.empty()) {
                ahead.key() = packed_name(operand);
                left.prefetch.insert(std::move(ahead));
            }
            const bool known = std::any_of(packed.begin(), packed.end(),
                                           [&, name = operand](const PackedInput &p) { return p.packing.operand.name == name; });
            if (known) continue;
            const PackedInput input = wanted_input(algorithm, stage, operand, pack, computed);
            check_readers(algorithm, asked, stage, input.packing);
            for (Stage &s : result.stages()) s = map_expressions(std::move(s), [&](const Expr &e) { return reading(e, input); });
            take_packed(result, input);
            packed.push_back(input);
        }
    std::sort(packed.begin(), packed.end(), [&](const PackedInput &p, const PackedInput &q) {
        return result.find_tensor(p.tensor.name) < result.find_tensor(q.tensor.name);
    });
    return result;
}

Algorithm packing_algorithm(const Algorithm &algorithm, const PackedInput &input) {
    const Tensor &operand = input.packing.operand;
    Algorithm a;
    a.name = algorithm.name + c_packing_suffix(operand.name);
    a.numerics = algorithm.numerics;
    a.tensors = {operand};
    // The dims stand alone here: what they equal or are derived from is in other arguments of the kernel.
    for (const std::string &name : operand.dims) {
        Dim own = algorithm.dim(name);
        for (const Dim *d = &own; !d->equals.empty();) {
            d = &algorithm.dim(d->equals);
            if (d->kind == DimKind::fixed) own.kind = DimKind::fixed, own.value = d->value;
        }
        if (own.kind == DimKind::derived) own = symbolic_dim(name);
        own.equals.clear();
        a.dims.push_back(own);
    }
    if (const auto half = algorithm.half_bytes.find(operand.name); half != algorithm.half_bytes.end()) {
        // Bytes along the last axis, of elements along a dim that callers see.
        a.half_bytes.insert(*half);
        Dim elements = algorithm.dim(half->second.dims.back());
        if (elements.kind == DimKind::derived) elements = symbolic_dim(elements.name);
        elements.equals.clear();
        a.dims.back() = elements;
        a.dims.push_back(bytes_along(elements));
        a.dims.back().name = operand.dims.back();
    }
    add_dims(a.dims, axis_dims(input.packing, a.dims));
    std::vector<Expr> index;
    Expr inside;
    for (const std::string &name : operand.dims) {
        int64_t panel = 0;
        Expr position;
        for (const LayoutAxis &axis : input.packing.layout) {
            if (axis.dim != name) continue;
            if (axis.factor && axis.positions() == 0) panel = axis.factor;
            const Expr digit = axis.step() == 1 ? variable(axis_dim(axis)) : variable(axis_dim(axis)) * Expr(axis.step());
            position = position.defined() ? position + digit : digit;
        }
        index.push_back(position);
        if (panel == 0) continue;
        const Dim &d = a.dim(name);
        if ((d.kind == DimKind::fixed ? d.value : d.multiple_of) % panel == 0) continue;
        const Expr here = index.back() < extent_in(a.dims, name);
        inside = inside.defined() ? inside && here : here;
    }
    const Expr value = inside.defined() ? load_or(operand.name, operand.dtype, index, inside, constant(operand.dtype, 0))
                                        : load(operand.name, operand.dtype, index);
    a.steps = {Stage{input.tensor.name, input.tensor.dims, Map(value)}};
    a.outputs = {input.tensor.name};
    return a;
}

KnobsByStage packing_schedule(const PackedInput &input, const Target &target) {
    const std::vector<LayoutAxis> &layout = input.packing.layout;
    const std::vector<std::string> &dims = input.tensor.dims;
    const int64_t lanes = std::max(1, target.vector_bytes / 4);
    Knobs k;
    // Lanes go along the operand's last dim, whole or inside a panel; what is left of panels after that is unrolled.
    size_t vector = layout.size();
    for (size_t i = 0; i < layout.size(); i++)
        if (layout[i].dim == input.packing.operand.dims.back() &&
            (layout[i].factor == 0 || (layout[i].remainder && layout[i].factor % lanes == 0)))
            vector = i;
    if (vector < layout.size()) {
        k.vector[dims[vector]] = lanes;
        for (size_t i = vector + 1; i < layout.size(); i++)
            if (layout[i].remainder && layout[i].factor <= 4) k.micro[dims[i]] = layout[i].factor, k.micro[dims[vector]] = lanes;
    }
    if (layout.size() > 1 && vector != 0 && !k.micro.count(dims[0])) k.parallel = {dims[0]};
    return {{input.tensor.name, k}};
}

std::string layout_text_hash(const Packing &packing) {
    std::string text =
        "packed operand 1\n" + std::string(name_of(packing.operand.dtype)) + "[" + std::to_string(packing.operand.dims.size()) + "]\n";
    for (const LayoutAxis &axis : packing.layout)
        text += std::to_string(operand_axis(packing, axis)) + (axis.within ? "%" + std::to_string(axis.within) : "") +
                (axis.factor == 0 ? "" : (axis.remainder ? "%" : "/") + std::to_string(axis.factor)) + "\n";
    return sha256(text + "zeros\n");
}

uint64_t layout_hash(const Packing &packing) {
    const std::string text = layout_text_hash(packing);
    return std::stoull(text.substr(text.find(':') + 1, 16), nullptr, 16);
}

}  // namespace tessera
