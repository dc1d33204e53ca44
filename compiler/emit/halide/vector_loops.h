// Loops for which the back end makes good vector code only from one form.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// The statement for a vector loop whose body is one step of a family that the processor has, where accumulators are
// contiguous and each operand's groups are either one group for all lanes or one after the other; otherwise undefined, and
// the loop is emitted as the arithmetic that it is.
Halide::Internal::Stmt vector_instruction(const Loop &loop, const std::vector<std::string> &features, const Addresses &addresses,
                                          Values &values);

// The statement for an unrolled loop around a vector loop that copies contiguous elements to every count-th place, where
// the places of all iterations together are contiguous: loads, an interleaving shuffle, and one store.
Halide::Internal::Stmt interleaved_copy(const Loop &unrolled, const Addresses &addresses, Values &values);

}  // namespace tessera::emit
