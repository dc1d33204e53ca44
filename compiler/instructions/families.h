// The table of instruction families: Tessera's, each with a file of its own here, and those that a generator adds.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "compiler/instructions/instruction.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// How folds of products are computed where no schedule asks otherwise.
inline constexpr const char *usual_family = "fma";

// Tessera's first; rows never move.
const std::deque<Instruction> &families();
// Adds one before anything is lowered. It has a meaning, and is right everywhere by it; its emission may be empty. UserError
// instruction.family: the name is taken or no name, the meaning is none of such operands, layouts and registers do not fit the shape, or
// shape and scope are more than tile programs have today: accumulators of a thread, and several products.
void add_family(Instruction family);
const Instruction *find_family(const std::string &name);
std::vector<std::string> family_names();  // of those that schedules may ask for

// Rewrites each stage whose knob names a family of one product to that family's step, as mul_add, whose products are rounded before they
// are added. UserError schedule.instruction if such a stage is no sum of products of types that the family takes.
Algorithm with_steps_of_families(Algorithm algorithm, const KnobsByStage &stages);

namespace built_in_families {

// flushed_fma_f32, and what it needs.
std::vector<CStep::Function> flushed_fma_in_c();

Instruction fma();
Instruction mul_add();
Instruction dot2();
Instruction dot4();
Instruction amx_bf16();
Instruction amx_u8s8();
Instruction amx_s8s8();
Instruction smmla();
Instruction usmmla();
Instruction bfmmla();
Instruction mma_bf16();
Instruction mma_f16();
Instruction mma_s8();
Instruction mma_u8s8();

}  // namespace built_in_families

}  // namespace tessera
