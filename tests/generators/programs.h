// Programs with calls, small enough to be compiled and tuned in a test.
#pragma once
#include "generators/registry/registry.h"

namespace tessera::test {

// L layers of two products of one name at two shapes and a norm, and the norm once more after them.
Algorithm layered_program(const Numerics &numerics = {});
// It, as "layered". Of its schedules "layered/silent" and that of its layers say nothing, "layered/once" emits callees once, "layered/own"
// states stages of one, and "product/f32/avx2" is one element at a time.
Registry program_registry();

}  // namespace tessera::test
