#include "algorithms/mesh/mesh.h"

#include <algorithm>
#include <set>

#include "support/text/error.h"

namespace tessera {

namespace {

std::vector<std::string> axis_names(const Mesh &mesh) {
    std::vector<std::string> names;
    for (const MeshAxis &axis : mesh.axes) names.push_back(axis.name);
    return names;
}

// The entries of "a=b,c=d", in order.
std::vector<std::pair<std::string, std::string>> entries_of(const std::string &text, const std::string &what, const std::string &example) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (size_t at = 0; at <= text.size() && !text.empty();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string entry = text.substr(at, end - at);
        const size_t sign = entry.find('=');
        if (sign == std::string::npos || sign == 0)
            throw UserError("mesh.text", what + ": expected entries like \"" + example + "\", got \"" + entry + "\".");
        entries.emplace_back(entry.substr(0, sign), entry.substr(sign + 1));
        at = end + 1;
    }
    return entries;
}

bool is_name(const std::string &name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

int64_t Mesh::ranks() const {
    int64_t all = 1;
    for (const MeshAxis &axis : axes) all *= axis.ranks;
    return all;
}

bool Mesh::has(const std::string &axis) const {
    return std::any_of(axes.begin(), axes.end(), [&](const MeshAxis &a) { return a.name == axis; });
}

int64_t Mesh::ranks_on(const std::string &axis) const {
    for (const MeshAxis &a : axes)
        if (a.name == axis) return a.ranks;
    throw InternalError("no axis " + axis + " in the mesh " + to_string(*this));
}

int64_t Mesh::coordinate(int64_t rank, const std::string &axis) const {
    for (size_t i = axes.size(); i-- > 0;) {
        if (axes[i].name == axis) return rank % axes[i].ranks;
        rank /= axes[i].ranks;
    }
    throw InternalError("no axis " + axis + " in the mesh " + to_string(*this));
}

std::vector<int64_t> Mesh::group(int64_t rank, const std::string &axis) const {
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0 && axes[i].name != axis;) stride *= axes[i].ranks;
    const int64_t first = rank - coordinate(rank, axis) * stride;
    std::vector<int64_t> group;
    for (int64_t i = 0; i < ranks_on(axis); i++) group.push_back(first + i * stride);
    return group;
}

Mesh mesh_named(const std::string &text) {
    Mesh mesh;
    for (const auto &[name, ranks] : entries_of(text, "a mesh", "data=2")) {
        const bool is_number =
            !ranks.empty() && ranks.size() < 8 && std::all_of(ranks.begin(), ranks.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!is_number)
            throw UserError("mesh.text", "a mesh: expected a number of ranks from 1 to " + std::to_string(max_mesh_ranks) +
                                             " for the axis '" + name + "', as in \"data=2\", got \"" + ranks + "\".");
        mesh.axes.push_back({name, std::stoll(ranks)});
    }
    check(mesh);
    return mesh;
}

std::string to_string(const Mesh &mesh) {
    std::vector<std::string> axes;
    for (const MeshAxis &axis : mesh.axes) axes.push_back(axis.name + "=" + std::to_string(axis.ranks));
    return join(axes, ",");
}

void check(const Mesh &mesh) {
    const auto fail = [&](const std::string &words) { throw UserError("mesh.axis", "the mesh " + to_string(mesh) + ": " + words); };
    if (mesh.axes.empty() || mesh.axes.size() > max_mesh_axes)
        fail("expected 1 to " + std::to_string(max_mesh_axes) + " axes, got " + std::to_string(mesh.axes.size()) + ".");
    std::set<std::string> seen;
    int64_t all = 1;
    for (const MeshAxis &axis : mesh.axes) {
        if (!is_name(axis.name)) fail("an axis is named '" + axis.name + "'; expected letters, digits and '_', no digit first.");
        if (!seen.insert(axis.name).second) fail("the axis '" + axis.name + "' is there twice; rename one.");
        if (axis.ranks < 1 || axis.ranks > max_mesh_ranks)
            fail("the axis '" + axis.name + "' has " + std::to_string(axis.ranks) + " ranks; expected 1 to " +
                 std::to_string(max_mesh_ranks) + ".");
        if (axis.ranks > max_mesh_ranks / all)
            fail("up to the axis '" + axis.name + "' it has " + std::to_string(all * axis.ranks) + " ranks; expected at most " +
                 std::to_string(max_mesh_ranks) + " of all axes together.");
        all *= axis.ranks;
    }
}

Layout layout_named(const Algorithm &algorithm, const std::string &text, int64_t chunks) {
    Layout layout;
    layout.chunks = chunks;
    std::map<std::string, std::string> said;
    for (const auto &[name, axis] : entries_of(text, "a layout", "M=data")) {
        if (const auto [before, fresh] = said.emplace(name, axis); !fresh)
            throw UserError("mesh.text", algorithm.name + ": a layout has '" + name + "' twice, as \"" + name + "=" + before->second +
                                             "\" and as \"" + name + "=" + axis + "\"; remove one.");
        if (algorithm.find_dim(name)) {
            if (!axis.empty()) layout.dims[name] = axis;
            continue;
        }
        bool is_found = false;
        for (size_t point = name.find('.'); point != std::string::npos && !is_found; point = name.find('.', point + 1)) {
            const std::string dim = name.substr(point + 1);
            is_found = algorithm.find_dim(dim) != nullptr;
            if (is_found) layout.tensors[name.substr(0, point)][dim] = axis;
        }
        if (!is_found)
            throw UserError("mesh.text", algorithm.name + ": a layout has '" + name + "'; expected a dim, or a tensor and its dim as in " +
                                             "\"w.N=tensor\". The dims are " + join(names_of(algorithm.dims)) + "." +
                                             did_you_mean(name, names_of(algorithm.dims)));
    }
    return layout;
}

const char *name_of(MeshMonoid monoid) {
    switch (monoid) {
    case MeshMonoid::sum: return "sum";
    case MeshMonoid::max: return "max";
    case MeshMonoid::min: return "min";
    case MeshMonoid::product: return "product";
    }
    throw InternalError("a monoid of meshes without a name");
}

std::string to_string(const Placement &placement, const std::string &axis) {
    const auto on = placement.find(axis);
    if (on == placement.end()) return "replicate";
    if (on->second.kind == PlacementKind::shard) return "shard(" + on->second.dim + ")";
    return std::string("partial(") + name_of(on->second.monoid) + " over " + on->second.dim + ")";
}

std::string to_string(const Mesh &mesh, const Placement &placement) {
    if (placement.empty()) return "replicate";
    std::vector<std::string> words;
    for (const std::string &axis : axis_names(mesh)) words.push_back(axis + ": " + to_string(placement, axis));
    return join(words);
}

}  // namespace tessera
