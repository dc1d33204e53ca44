#include "compiler/tile/arguments.h"

#include <algorithm>

namespace tessera {

const std::vector<std::string> &carried_dims(const Argument &argument) {
    return argument.packed ? argument.packed->operand.dims : argument.tensor.dims;
}

std::vector<Dim> spec_dims(const TileProgram &program) {
    auto carried = [&](const std::string &name) {
        for (const Argument &a : program.arguments)
            for (const std::string &d : carried_dims(a))
                if (d == name) return true;
        return false;
    };
    std::vector<Dim> dims;
    for (const Dim &d : program.dims)
        if (d.kind != DimKind::derived || carried(d.name)) dims.push_back(d);
    return dims;
}

bool is_packing(const TileProgram &program) {
    return std::any_of(program.arguments.begin(), program.arguments.end(), [](const Argument &a) { return a.packed && a.written; });
}

}  // namespace tessera
