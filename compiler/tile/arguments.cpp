#include "compiler/tile/arguments.h"

#include <algorithm>

namespace tessera {

const std::vector<std::string> &carried_dims(const Argument &argument) {
    if (argument.half_bytes) return argument.half_bytes->dims;
    return argument.packed ? argument.packed->operand.dims : argument.tensor.dims;
}

Tensor declared_tensor(const Argument &argument) {
    Tensor tensor = argument.packed ? argument.packed->operand : argument.tensor;
    if (argument.half_bytes) tensor.dtype = argument.half_bytes->dtype, tensor.dims = argument.half_bytes->dims;
    return tensor;
}

// Whether the argument table lists the dim.
static bool is_listed(const TileProgram &program, const Dim &dim) {
    if (dim.kind != DimKind::derived) return true;
    return std::any_of(program.arguments.begin(), program.arguments.end(), [&](const Argument &a) {
        const std::vector<std::string> &dims = carried_dims(a);
        return std::find(dims.begin(), dims.end(), dim.name) != dims.end();
    });
}

Expr in_spec_dims(const Expr &size, const TileProgram &program) {
    return replace_extents(size, [&](const Expr &n) {
        const auto d = std::find_if(program.dims.begin(), program.dims.end(), [&](const Dim &dim) { return dim.name == n->name; });
        const bool stays = d == program.dims.end() || is_listed(program, *d);
        return stays ? Expr() : max(in_spec_dims(d->size, program), Expr(0));
    });
}

std::vector<Dim> spec_dims(const TileProgram &program) {
    std::vector<Dim> dims;
    for (Dim d : program.dims) {
        if (!is_listed(program, d)) continue;
        if (d.kind == DimKind::derived) d.size = in_spec_dims(d.size, program);
        dims.push_back(d);
    }
    return dims;
}

bool is_packing(const TileProgram &program) {
    return std::any_of(program.arguments.begin(), program.arguments.end(), [](const Argument &a) { return a.packed && a.written; });
}

}  // namespace tessera
