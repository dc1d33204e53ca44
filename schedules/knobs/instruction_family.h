// The instruction families that the knob `instruction` may name, a closed set; compiler/tile/instruction.h says what each does. Who gives
// families a meaning of its own switches over the enumeration without a default.
#pragma once
#include <array>
#include <string>
#include <vector>

namespace tessera {

enum class InstructionFamily { fma, mul_add, dot2, dot4 };

inline constexpr std::array instruction_family_names = {"fma", "mul_add", "dot2", "dot4"};
static_assert(instruction_family_names.size() == static_cast<size_t>(InstructionFamily::dot4) + 1, "every family has its name, in order");

constexpr const char *name_of(InstructionFamily family) { return instruction_family_names[static_cast<size_t>(family)]; }
// Their names, in order.
const std::vector<std::string> &instruction_families();

}  // namespace tessera
