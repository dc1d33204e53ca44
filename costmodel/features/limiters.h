// Where a tile program's time goes by the draft of the cost model (roofline.h), and what the code of each part has that makes it slow.
// Nothing is run: it is an estimate, for a person who asks which part of a schedule to change first.
#pragma once
#include <string>
#include <vector>

#include "costmodel/features/profile.h"

namespace tessera {

// What slows a part down, as a sentence that says what is there and what may be done.
struct Limiter {
    std::string id;  // "no-lanes", for programs and tests
    std::string text;
};

// What stores the same buffers: all versions of a loop nest, interior and edges.
struct PartOfProgram {
    std::vector<std::string> stores;  // buffers; "call of p" for programs that are invoked
    double seconds = 0, share = 0;    // of one call; of all parts'
    Profile profile;                  // of the version that takes longest
    std::vector<Limiter> limiters;
};

// The parts, the slowest first. The limiters, of those with a share of 2 % or more:
//   no-lanes      elements are computed one by one: no loop of the part is a vector
//   apart         lanes load or store elements that do not lie side by side
//   divisions     divisions and roots take a third of the core's time or more
//   functions     an element that is no sum takes 12 operations or more
//   chain         additions wait for one another half of the time or more
//   registers     more vectors are live than the target has
//   memory        bytes from beyond a cache level take longer than the core's work
//   masked        half of the loads and stores or more have lanes that may be off
//   branches      conditions are tested for elements one by one
//   waste         a tenth or more of the points lie past an end
//   one-thread    with several threads: a fifth of the work or more is outside of parallel loops
//   imbalance     with several threads: the busiest has a quarter more than the mean
std::vector<PartOfProgram> parts_of(const TileProgram &program, const Extents &extents, const Target &target, int threads);

}  // namespace tessera
