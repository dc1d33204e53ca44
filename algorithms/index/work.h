// How much work index arithmetic was: a clock that goes alike on every machine.
#pragma once
#include <cstdint>

namespace tessera {

// Expressions that were simplified and steps of proofs in this thread so far.
extern constinit thread_local int64_t index_work;

}  // namespace tessera
