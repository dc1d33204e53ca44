#include "compiler/tile/arguments.h"

#include <algorithm>
#include <functional>

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

std::vector<Dim> spec_dims(const TileProgram &program) {
    auto carried = [&](const std::string &name) {
        for (const Argument &a : program.arguments)
            for (const std::string &d : carried_dims(a))
                if (d == name) return true;
        return false;
    };
    auto find = [&](const std::string &name) {
        return std::find_if(program.dims.begin(), program.dims.end(), [&](const Dim &d) { return d.name == name; });
    };
    // A size may use the extent of a derived dim that is not listed.
    std::function<Expr(const Expr &)> written_out = [&](const Expr &size) {
        return replace_extents(size, [&](const Expr &n) {
            const auto d = find(n->name);
            const bool stays = d == program.dims.end() || d->kind != DimKind::derived || carried(n->name);
            return stays ? Expr() : max(written_out(d->size), Expr(0));
        });
    };
    std::vector<Dim> dims;
    for (Dim d : program.dims) {
        if (d.kind == DimKind::derived && !carried(d.name)) continue;
        if (d.kind == DimKind::derived) d.size = written_out(d.size);
        dims.push_back(d);
    }
    return dims;
}

bool is_packing(const TileProgram &program) {
    return std::any_of(program.arguments.begin(), program.arguments.end(), [](const Argument &a) { return a.packed && a.written; });
}

}  // namespace tessera
