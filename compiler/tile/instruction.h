// Instruction families: what one machine instruction does to a group of consecutive elements of a reduction, as an
// expression of the grammar.
//
// A schedule asks for a family by the knob `instruction`. Lowering then folds `group` elements at a time, and writes the
// family's exact meaning into the tile program: interpreters, verifiers and other emitters need to know nothing of it. The
// emitter for a processor that has the instruction recognises the meaning and emits the instruction; any other emits the
// arithmetic, which gives the same bits.
//
//   fma      left + a * b with one rounding, one element at a time
//   mul_add  the same with a rounding each: what processors without fma do in two instructions, where one fma takes them
//            some fifty. It is a rewrite of the fold, so other bits come out
//   dot2     f32 += bf16 * bf16, two elements, the second first, each by a flushed_fma (algorithms/functions/conversions.h), whatever the
//            rounding mode (vdpbf16ps; Intel, Architecture Instruction Set Extensions, 319433-040, 2.4)
//   dot4     i32 += u8 * i8, four elements, wrapping (vpdpbusd; ARM's sdot, twice; AVX2's vpmaddwd of even bytes and of odd ones)
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/instruction_family.h"
#include "schedules/target/target.h"

namespace tessera {

struct Instruction {
    InstructionFamily family = InstructionFamily::fma;
    std::string name;
    int group = 1;
    DType accumulator = DType::f32, first = DType::f32, second = DType::f32;  // of the elements, in either order
    Expr meaning;                       // over left(0), and input(2 * i), input(2 * i + 1) of element i
    std::vector<std::string> features;  // CPU features of which each alone brings the instruction
    bool flushes = false;               // takes subnormal numbers for zeros
};

// In the order of the families.
const std::vector<Instruction> &instructions();
const Instruction &instruction_of(InstructionFamily family);
const Instruction *find_instruction(const std::string &name);
bool is_on(const Instruction &family, const Target &target);
// How many instructions a step takes on such a target, without what the rows of a register tile share.
int instructions_of(const Instruction &family, const Target &target);

// Whether the monoid adds a * b with one rounding.
bool is_sum_of_products(const Monoid &monoid);
// Rewrites each stage whose knob is mul_add to a sum of products that are rounded before they are added. UserError
// schedule.instruction if such a stage is no sum of products of floats.
Algorithm with_mul_add(Algorithm algorithm, const KnobsByStage &stages);
// The operands of a sum of products, in the family's order, before their casts to the accumulator's type. Nothing if the fold is no
// such sum. A sum of integers counts as a sum of products with ones.
std::optional<std::vector<Expr>> operands_for(const Instruction &family, const Reduce &reduce);
// The meaning applied to an accumulator and 2 * group operands.
Expr apply(const Instruction &family, const Expr &accumulator, const std::vector<Expr> &operands);
// The accumulator and the operands, in this order, if `e` is the family's meaning; otherwise empty.
std::vector<Expr> match(const Instruction &family, const Expr &e);

}  // namespace tessera
