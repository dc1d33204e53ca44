// left + a * b with a rounding each: what processors without fma do in two instructions, where one fma takes them some fifty. Other
// bits come out, so a schedule asks for it.
#include "compiler/instructions/families.h"

namespace tessera {

Instruction built_in_families::mul_add() {
    return {.name = "mul_add",
            .meaning = left(0, DType::f32) + input(0, DType::f32) * input(1, DType::f32),
            .takes = is_float,
            .says = "sums products of floats, each product and each sum with a rounding"};
}

}  // namespace tessera
