#include "algorithms/mesh/boundary.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera {

namespace {

void check_cut(const Algorithm &a, const Mesh &mesh, const std::string &name, const std::string &axis) {
    const Dim *d = a.find_dim(name);
    if (!d)
        throw UserError("mesh.unknown-dim", a.name + ": the layout cuts '" + name + "'; the dims are " + join(names_of(a.dims)) + "." +
                                                did_you_mean(name, names_of(a.dims)));
    if (!mesh.has(axis))
        throw UserError("mesh.unknown-axis",
                        a.name + "." + name + ": the layout cuts it along '" + axis + "'; the mesh is " + to_string(mesh) + ".");
    if (d->kind != DimKind::fixed)
        throw UserError("mesh.extent", a.name + "." + name + ": the layout cuts it along " + axis +
                                           ", and its extent is not fixed; bind it first (bind_extents).");
    const int64_t n = mesh.ranks_on(axis);
    if (d->value % n != 0)
        throw UserError("mesh.divides", a.name + "." + name + ": expected a multiple of the " + std::to_string(n) + " ranks of the axis " +
                                            axis + ", got " + std::to_string(d->value) + "; pad it, or cut another dim.");
    for (const Dim &other : a.dims)
        if (other.size.defined() && uses_variable(other.size, name))
            throw UserError("mesh.ragged", a.name + "." + name + ": the layout cuts it along " + axis + ", and the extent of '" +
                                               other.name + "' depends on its index; cut another dim.");
}

}  // namespace

void check(const Algorithm &a, const Mesh &mesh, const Layout &layout) {
    check(mesh);
    if (layout.chunks < 0 || layout.chunks > max_mesh_chunks)
        throw UserError("mesh.chunks", a.name + ": expected 0 to " + std::to_string(max_mesh_chunks) + " chunks, got " +
                                           std::to_string(layout.chunks) + ".");
    for (const auto &[dim, axis] : layout.dims) check_cut(a, mesh, dim, axis);
    for (const auto &[name, dims] : layout.tensors) {
        std::vector<std::string> known = a.outputs, own;
        for (const Tensor &t : a.tensors)
            if (t.role != Role::constant) known.push_back(t.name);
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw UserError("mesh.unknown-tensor", a.name + ": the layout places '" + name + "'; its inputs, states and outputs are " +
                                                       join(known) + "." + did_you_mean(name, known));
        if (const Tensor *t = a.find_tensor(name)) own = t->dims;
        for (const Stage &stage : a.stages())
            for (const Tensor &t : results_of(stage))
                if (t.name == name) own = t.dims;
        for (const auto &[dim, axis] : dims) {
            if (std::find(own.begin(), own.end(), dim) == own.end())
                throw UserError("mesh.unknown-dim", a.name + "." + name + ": the layout cuts its dim '" + dim + "'; it has " + join(own) +
                                                        "." + did_you_mean(dim, own));
            if (!axis.empty()) check_cut(a, mesh, dim, axis);
        }
    }
}

Cut cut_of(const Algorithm &a, const Layout &layout, const std::string &tensor, const std::vector<std::string> &dims) {
    Cut cut;
    const auto own = layout.tensors.find(tensor);
    const auto add = [&](const std::string &dim, const std::string &axis, bool is_said) {
        const auto [it, fresh] = cut.emplace(axis, dim);
        if (!fresh && it->second != dim && is_said)
            throw UserError("mesh.twice", a.name + "." + tensor + ": the layout cuts it along " + axis + " by shard(" + it->second +
                                              ") and by shard(" + dim + "); an axis cuts one dim of a tensor.");
        if (std::count(dims.begin(), dims.end(), dim) > 1)
            throw UserError("mesh.twice", a.name + "." + tensor + ": the layout cuts its dim '" + dim + "' along " + axis +
                                              ", which it has twice; give one of them a name of its own.");
    };
    if (own != layout.tensors.end())
        for (const auto &[dim, axis] : own->second)
            if (!axis.empty()) add(dim, axis, true);
    for (const std::string &dim : dims) {
        const auto general = layout.dims.find(dim);
        if (general == layout.dims.end() || (own != layout.tensors.end() && own->second.count(dim))) continue;
        if (!cut.count(general->second)) add(dim, general->second, false);
    }
    return cut;
}

}  // namespace tessera
