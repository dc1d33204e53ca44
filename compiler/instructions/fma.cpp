// left + a * b with one rounding, one product at a time: how every fold of products is computed unless its schedule asks otherwise.
#include "compiler/instructions/families.h"

namespace tessera {

Instruction built_in_families::fma() {
    return {.name = "fma",
            .meaning = tessera::fma(input(0, DType::f32), input(1, DType::f32), left(0, DType::f32)),
            .takes = [](DType) { return true; },
            .says = "sums products, each added with one rounding"};
}

}  // namespace tessera
