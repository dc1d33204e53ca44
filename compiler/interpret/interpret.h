// Runs a tile program as it is written, one element after the other. What it leaves in the outputs are the bits that
// emitted code must leave there on every target (any NaN counts as any other).
//
// Loops of every kind run in order and copies arrive at once: verify_tiles.h shows that no other order differs. Positions
// have 64 bits here; a conversion to a position saturates to 32 bits, as it does in emitted code.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "compiler/interpret/follower.h"
#include "compiler/interpret/team_observer.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

struct InterpretOptions {
    // Also refuse a count, condition, position or element of an argument that depends on an element that was never written, and an
    // output with elements that were not written. Padding may be computed from such elements as long as nothing depends on it.
    // Buffers of the program start with a poison pattern either way.
    bool checked = true;
    // Who counts what runs is told of it: of a loop that begins, with its iterations; of a condition that was tested; of an element that
    // is computed, whether or not it is stored. Loops, conditions and values are those of the program itself, not copies.
    std::function<void(const Loop &, int64_t)> on_loop = {};
    std::function<void(const Guard &, bool)> on_guard = {};
    std::function<void(const TileStore &)> on_store = {};
    Follower *follower = nullptr;      // who carries something along with the values
    TeamObserver *observer = nullptr;  // who looks at what threads touch
    // Loops whose iterations may run at once begin with the last one. No bit may depend on it.
    bool backwards = false;
};

// Arguments by name, with the extents of their dims; strides may be any. Dims that no argument carries are looked up in `extents`;
// derived ones that are not there are computed. InternalError, with the values of the loops' variables, for an index outside its
// buffer, a broken check, an unknown name or an argument that does not fit.
void interpret(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents = {},
               const std::map<std::string, Scalar> &parameters = {}, const InterpretOptions &options = {});

}  // namespace tessera
