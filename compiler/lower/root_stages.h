// The stages at root and the calls, one after the other.
#pragma once
#include "compiler/lower/context/built.h"
#include "compiler/lower/kept_calls.h"
#include "compiler/lower/context/names.h"

namespace tessera {

// Lowers a callee by itself.
using LowerCallee = std::function<TileProgram(const Callee &callee)>;

// The body of the whole program, in which `scope` has the arguments. `program` gets what calls invoke. UserError schedule.place for an
// output that is not at root.
Built build_roots(const Lowering &lowering, const KeptCalls &kept, const Scope &scope, const LowerCallee &lower_callee,
                  TileProgram &program);

}  // namespace tessera
