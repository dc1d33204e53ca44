#include "algorithms/mesh/program.h"

#include <algorithm>

#include "algorithms/text/hash.h"
#include "algorithms/text/print.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

const char *name_of(CollectiveKind kind) {
    switch (kind) {
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::all_to_all: return "all_to_all";
    }
    throw InternalError("a collective without a name");
}

bool folds(const Collective &collective) {
    return collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::reduce_scatter;
}

const MeshTensor *MeshProgram::find_tensor(const std::string &wanted) const {
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const MeshTensor &t) { return t.name == wanted; });
    return it == tensors.end() ? nullptr : &*it;
}

const MeshTensor &MeshProgram::tensor(const std::string &wanted) const {
    const MeshTensor *t = find_tensor(wanted);
    require(t, "no tensor " + wanted + " in " + name);
    return *t;
}

const Dim *MeshProgram::find_dim(const std::string &wanted) const {
    const auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim &d) { return d.name == wanted; });
    return it == dims.end() ? nullptr : &*it;
}

std::string rank_parameter(const std::string &axis) { return "rank_" + axis; }

// Nothing where an index, a parameter, an element or a symbolic dim decides it.
static Expr constant_extent(const std::vector<Dim> &dims, const std::string &name) {
    const auto d = std::find_if(dims.begin(), dims.end(), [&](const Dim &dim) { return dim.name == name; });
    if (d == dims.end()) return {};
    if (d->kind == DimKind::fixed) return Expr(d->value);
    if (d->kind == DimKind::symbolic) return d->equals.empty() ? Expr() : constant_extent(dims, d->equals);
    bool is_known = true;
    const Expr size = replace_extents(d->size, [&](const Expr &e) {
        const Expr extent = constant_extent(dims, e->name);
        is_known &= extent.defined();
        return extent.defined() ? extent : e;
    });
    return is_known && size.is_constant() ? size : Expr();
}

int64_t known_extent(const std::vector<Dim> &dims, const std::string &name) {
    const Expr extent = constant_extent(dims, name);
    return extent.defined() ? std::max<int64_t>(extent->value.integer, 0) : 1;
}

static int64_t bytes_of(const MeshProgram &program, const MeshTensor &tensor) {
    int64_t bytes = size_of(tensor.dtype);
    for (const std::string &name : tensor.dims) bytes *= known_extent(program.dims, name);
    return bytes;
}

int64_t bytes_sent(const MeshProgram &program, const Collective &c) {
    const int64_t n = program.mesh.ranks_on(c.axis), result = bytes_of(program, program.tensor(c.result));
    switch (c.kind) {
    case CollectiveKind::all_reduce: return 2 * result * (n - 1) / n;
    case CollectiveKind::reduce_scatter: return result * (n - 1);
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all: return result * (n - 1) / n;
    }
    throw InternalError("a collective without bytes");
}

namespace {

std::string dim_text(const Dim &d) {
    if (d.kind == DimKind::fixed) return d.name + "=" + std::to_string(d.value);
    return d.name;
}

std::string shape_text(const MeshProgram &p, const MeshTensor &t) {
    std::vector<std::string> dims;
    for (const std::string &name : t.dims) {
        const Dim *d = p.find_dim(name);
        dims.push_back(d ? dim_text(*d) : name);
    }
    return t.name + "[" + join(dims) + "]: " + name_of(t.dtype) + ", " + to_string(p.mesh, t.placement);
}

std::vector<std::string> inputs_of(const Algorithm &part) {
    std::vector<std::string> names;
    for (const Tensor &t : part.tensors)
        if (t.role != Role::constant) names.push_back(t.name);
    return names;
}

std::string text_of(const MeshProgram &p, bool is_whole) {
    std::string text = "mesh program " + p.name + ": " + to_string(p.mesh) + "\n";
    for (const Parameter &parameter : p.parameters) text += "  parameter " + to_string(parameter) + "\n";
    for (const MeshTensor &t : p.tensors)
        if (t.role) text += std::string("  ") + name_of(*t.role) + " " + shape_text(p, t) + "\n";
    const auto made = [&](const std::string &name) {
        const MeshTensor *t = p.find_tensor(name);
        return t ? shape_text(p, *t) : name;
    };
    for (const MeshStep &step : p.steps)
        std::visit(Overloaded{
                       [&](const Algorithm &part) {
                           text += "  part " + part.name + " of " + join(inputs_of(part)) + "\n";
                           for (const std::string &output : part.outputs) text += "    " + made(output) + "\n";
                           if (!is_whole) return;
                           std::string inner = to_text(part);
                           for (size_t at = 0; at < inner.size();) {
                               const size_t end = std::min(inner.find('\n', at), inner.size());
                               text += "      " + inner.substr(at, end - at) + "\n";
                               at = end + 1;
                           }
                       },
                       [&](const Collective &c) {
                           text += std::string("  ") + name_of(c.kind) + (folds(c) ? std::string(" ") + name_of(c.monoid) : "") +
                                   " along " + c.axis + " of " + c.tensor + ", " + std::to_string(bytes_sent(p, c)) + " bytes a rank\n";
                           text += "    " + made(c.result) + "\n";
                       },
                   },
                   step);
    for (const auto &[name, tensor] : p.outputs) {
        text += "  output " + name;
        if (tensor != name) text += " = " + tensor;
        text += "\n";
    }
    return text;
}

}  // namespace

std::string to_text(const MeshProgram &program) { return text_of(program, false); }
std::string to_whole_text(const MeshProgram &program) { return text_of(program, true); }

std::string hash_of(const MeshProgram &program) {
    std::string text = to_text(program);
    for (const MeshStep &step : program.steps)
        if (const auto *part = std::get_if<Algorithm>(&step)) {
            text += "part " + semantic_hash(*part);
            for (const std::string &name : inputs_of(*part)) text += " " + name;
            for (const Parameter &p : part->parameters) text += " " + p.name;
            text += " ->";
            for (const std::string &name : part->outputs) text += " " + name;
            text += "\n";
        }
    return sha256(text);
}

}  // namespace tessera
