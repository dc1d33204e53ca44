// The stages at root and the calls, one after the other.
#pragma once
#include <functional>
#include <vector>

#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"
#include "compiler/lower/kept_calls.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// Lowers a callee by itself.
using LowerCallee = std::function<TileProgram(const Callee &callee)>;

// A stage or a call, and the buffers of its results.
struct RootPart {
    const Stage *stage;  // of the lowering's algorithm; null: a call
    std::vector<Buffer> buffers;
    TileBody body;
};

// In order: each part stands inside the storage of its results, together with all parts after it.
struct RootStages {
    std::vector<RootPart> parts;
    std::vector<std::string> names;  // that were made, in that order
    bool has_border_version = false;
    TileBody whole_body() const;
};

// What is at root, in a `scope` that has the arguments. `program` gets what calls invoke. UserError schedule.place for an output that is
// not at root.
RootStages build_roots(const Lowering &lowering, const KeptCalls &kept, const Scope &scope, const LowerCallee &lower_callee,
                       TileProgram &program);

}  // namespace tessera
