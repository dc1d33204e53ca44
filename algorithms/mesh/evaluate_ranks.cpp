#include "algorithms/mesh/evaluate_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

int64_t product_of(const std::vector<int64_t> &extents, size_t first, size_t end) {
    int64_t all = 1;
    for (size_t i = first; i < end; i++) all *= extents[i];
    return all;
}

// Elements [first, first + count) along an axis.
Array part_along(const Array &whole, size_t axis, int64_t first, int64_t count) {
    std::vector<int64_t> extents = whole.extents;
    extents[axis] = count;
    Array part(whole.dtype, extents);
    const int64_t row = product_of(extents, axis + 1, extents.size()) * size_of(whole.dtype);
    for (int64_t i = 0; i < product_of(extents, 0, axis); i++)
        std::memcpy(part.data.data() + i * count * row, whole.data.data() + (i * whole.extents[axis] + first) * row,
                    static_cast<size_t>(count * row));
    return part;
}

Array joined_along(const std::vector<Array> &parts, size_t axis) {
    std::vector<int64_t> extents = parts[0].extents;
    const int64_t count = extents[axis], n = static_cast<int64_t>(parts.size());
    extents[axis] *= n;
    Array whole(parts[0].dtype, extents);
    const int64_t row = product_of(extents, axis + 1, extents.size()) * size_of(whole.dtype);
    for (int64_t i = 0; i < product_of(extents, 0, axis); i++)
        for (int64_t r = 0; r < n; r++)
            std::memcpy(whole.data.data() + (i * n + r) * count * row, parts[static_cast<size_t>(r)].data.data() + i * count * row,
                        static_cast<size_t>(count * row));
    return whole;
}

Scalar folded(MeshMonoid monoid, const Scalar &a, const Scalar &b) {
    const bool is_real = is_float(a.type), first_is_nan = is_real && std::isnan(a.real);
    const bool is_greater = is_real ? a.real > b.real : a.integer > b.integer, is_less = is_real ? a.real < b.real : a.integer < b.integer;
    const Scalar both[] = {a, b};
    switch (monoid) {
    case MeshMonoid::sum: return apply(Op::add, both);
    case MeshMonoid::product: return apply(Op::mul, both);
    case MeshMonoid::max: return is_greater || first_is_nan ? a : b;
    case MeshMonoid::min: return is_less || first_is_nan ? a : b;
    }
    throw InternalError("a monoid of meshes that nothing folds by");
}

// The fold of one element of chunks [lo, hi).
Scalar fold_tree(MeshMonoid monoid, const std::function<Scalar(int64_t)> &chunk, int64_t lo, int64_t hi) {
    if (hi - lo == 1) return chunk(lo);
    int64_t power = 1;
    while (power * 2 < hi - lo) power *= 2;
    const Scalar left = fold_tree(monoid, chunk, lo, lo + power);
    return folded(monoid, left, fold_tree(monoid, chunk, lo + power, hi));
}

// All chunks of all ranks, (n c, …), to (…).
Array fold_chunks(MeshMonoid monoid, const Array &chunks) {
    Array result(chunks.dtype, std::vector<int64_t>(chunks.extents.begin() + 1, chunks.extents.end()));
    const int64_t count = result.size();
    for (int64_t i = 0; i < count; i++)
        result.set(i, fold_tree(
                          monoid, [&](int64_t chunk) { return chunks.get(chunk * count + i); }, 0, chunks.extents[0]));
    return result;
}

const Array &array_of(const Arrays &arrays, const MeshProgram &program, const std::string &name) {
    const auto it = arrays.find(name);
    if (it == arrays.end()) throw UserError("mesh.array", program.name + ": the array '" + name + "' is not given.");
    return it->second;
}

size_t axis_of(const MeshTensor &tensor, const std::string &dim) {
    return static_cast<size_t>(std::find(tensor.dims.begin(), tensor.dims.end(), dim) - tensor.dims.begin());
}

// The whole of one tensor, of what each rank has.
Array whole_of(const MeshProgram &program, const MeshTensor &tensor, std::vector<Array> of_rank) {
    for (const MeshAxis &axis : program.mesh.axes) {
        const auto on = tensor.placement.find(axis.name);
        std::vector<Array> next(of_rank.size());
        for (int64_t rank = 0; rank < program.mesh.ranks(); rank++) {
            std::vector<Array> group;
            for (const int64_t r : program.mesh.group(rank, axis.name)) group.push_back(of_rank[static_cast<size_t>(r)]);
            if (on == tensor.placement.end()) {
                for (const Array &other : group)
                    if (other != group[0])
                        throw UserError("mesh.array", program.name + "." + tensor.name + ": it is replicate along " + axis.name +
                                                          ", and its ranks have different elements.");
                next[static_cast<size_t>(rank)] = group[0];
            } else next[static_cast<size_t>(rank)] = joined_along(group, axis_of(tensor, on->second.dim));
        }
        of_rank = std::move(next);
    }
    return of_rank[0];
}

}  // namespace

std::vector<Array> exchanged(const Collective &c, const std::vector<Array> &given) {
    const auto n = static_cast<int64_t>(given.size());
    if (c.kind == CollectiveKind::all_to_all) {
        std::vector<Array> results;
        const int64_t count = given[0].extents[0] / n;
        for (int64_t r = 0; r < n; r++) {
            std::vector<Array> parts;
            for (const Array &from : given) {
                Array part = part_along(from, 0, r * count, count);
                part.extents.insert(part.extents.begin(), 1);
                parts.push_back(std::move(part));
            }
            results.push_back(joined_along(parts, 0));
        }
        return results;
    }
    const Array all = joined_along(given, 0);
    if (c.kind == CollectiveKind::all_gather) return std::vector<Array>(given.size(), all);
    const Array fold = fold_chunks(c.monoid, all);
    if (c.kind == CollectiveKind::all_reduce) return std::vector<Array>(given.size(), fold);
    std::vector<Array> parts;
    const int64_t count = fold.extents[0] / n;
    for (int64_t r = 0; r < n; r++) parts.push_back(part_along(fold, 0, r * count, count));
    return parts;
}

std::vector<Arrays> placed(const MeshProgram &program, const Arrays &whole) {
    std::vector<Arrays> ranks(static_cast<size_t>(program.mesh.ranks()));
    for (const MeshTensor &t : program.tensors) {
        if (!t.role) continue;
        const Array &array = array_of(whole, program, t.name);
        for (int64_t rank = 0; rank < program.mesh.ranks(); rank++) {
            Array own = array;
            for (const auto &[axis, on] : t.placement) {
                const size_t at = axis_of(t, on.dim);
                const int64_t count = program.find_dim(on.dim)->value, n = program.mesh.ranks_on(axis);
                if (at >= array.extents.size() || array.extents[at] != count * n)
                    throw UserError("mesh.array", program.name + "." + t.name + ": it is " + to_string(t.placement, axis) + " along " +
                                                      axis + " of " + std::to_string(n) + " ranks; expected " + std::to_string(count * n) +
                                                      " along that dim of the whole.");
                own = part_along(own, at, program.mesh.coordinate(rank, axis) * count, count);
            }
            ranks[static_cast<size_t>(rank)][t.name] = std::move(own);
        }
    }
    return ranks;
}

std::vector<Arrays> evaluate_ranks(const MeshProgram &program, std::vector<Arrays> arrays, const std::map<std::string, Scalar> &parameters,
                                   const Extents &extents) {
    require(static_cast<int64_t>(arrays.size()) == program.mesh.ranks(), "arrays for each rank of " + program.name);
    Extents known = extents;  // of symbolic dims, which are whole everywhere
    const auto learn = [&](const MeshTensor &t, const Array &array) {
        for (size_t i = 0; i < t.dims.size() && i < array.extents.size(); i++)
            if (const Dim *d = program.find_dim(t.dims[i]); d && d->kind == DimKind::symbolic) known.emplace(d->name, array.extents[i]);
    };
    for (const MeshTensor &t : program.tensors)
        if (t.role) learn(t, array_of(arrays[0], program, t.name));
    const auto run_part = [&](const Algorithm &part, int64_t rank, Arrays &own) {
        Arrays given;
        for (const Tensor &t : part.tensors)
            if (t.role != Role::constant) given[t.name] = array_of(own, program, t.name);
        std::map<std::string, Scalar> values;
        for (const Parameter &p : part.parameters)
            if (const auto it = parameters.find(p.name); it != parameters.end()) values[p.name] = it->second;
        for (const MeshAxis &axis : program.mesh.axes)
            values[rank_parameter(axis.name)] = Scalar::of_integer(DType::i32, program.mesh.coordinate(rank, axis.name));
        EvaluationOptions options;
        for (const Dim &d : part.dims)
            if (const auto it = known.find(d.name); it != known.end() && d.kind == DimKind::symbolic) options.extents.insert(*it);
        for (auto &[name, array] : evaluate(part, std::move(given), values, options)) own[name] = std::move(array);
    };
    const auto run_collective = [&](const Collective &c) {
        for (int64_t rank = 0; rank < program.mesh.ranks(); rank++) {
            if (program.mesh.coordinate(rank, c.axis) != 0) continue;
            const std::vector<int64_t> group = program.mesh.group(rank, c.axis);
            std::vector<Array> given;
            for (const int64_t r : group) given.push_back(array_of(arrays[static_cast<size_t>(r)], program, c.tensor));
            std::vector<Array> results = exchanged(c, given);
            for (size_t i = 0; i < group.size(); i++) arrays[static_cast<size_t>(group[i])][c.result] = std::move(results[i]);
        }
    };
    for (const MeshStep &step : program.steps)
        std::visit(
            Overloaded{
                [&](const Algorithm &part) {
                    for (int64_t rank = 0; rank < program.mesh.ranks(); rank++) run_part(part, rank, arrays[static_cast<size_t>(rank)]);
                    for (const std::string &output : part.outputs) learn(program.tensor(output), arrays[0].at(output));
                },
                run_collective,
            },
            step);
    std::vector<Arrays> results(arrays.size());
    for (size_t rank = 0; rank < arrays.size(); rank++) {
        for (const auto &[name, tensor] : program.outputs) results[rank][name] = arrays[rank].at(tensor);
        for (const MeshTensor &t : program.tensors)
            if (t.role == Role::state) results[rank][t.name] = arrays[rank].at(t.name);
    }
    return results;
}

Arrays gathered(const MeshProgram &program, const std::vector<Arrays> &ranks) {
    Arrays whole;
    const auto add = [&](const std::string &name, const MeshTensor &tensor) {
        std::vector<Array> of_rank;
        for (const Arrays &own : ranks) of_rank.push_back(array_of(own, program, name));
        whole[name] = whole_of(program, tensor, std::move(of_rank));
    };
    for (const auto &[name, tensor] : program.outputs) add(name, program.tensor(tensor));
    for (const MeshTensor &t : program.tensors)
        if (t.role == Role::state) add(t.name, t);
    return whole;
}

Arrays evaluate_whole(const MeshProgram &program, const Arrays &whole, const std::map<std::string, Scalar> &parameters,
                      const Extents &extents) {
    return gathered(program, evaluate_ranks(program, placed(program, whole), parameters, extents));
}

}  // namespace tessera
