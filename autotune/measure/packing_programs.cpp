#include "autotune/measure/packing_programs.h"

#include "compiler/lower/lower.h"

namespace tessera {

std::map<size_t, TileProgram> packings_of(const Algorithm &algorithm, const TileProgram &program, const Target &target) {
    std::map<size_t, TileProgram> all;
    for (size_t i = 0; i < program.arguments.size(); i++) {
        const Argument &a = program.arguments[i];
        if (!a.packed) continue;
        all[i] = lower_packing(algorithm, {a.tensor, *a.packed}, target);
    }
    return all;
}

}  // namespace tessera
