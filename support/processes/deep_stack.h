// A stack that is deep enough for what calls itself once for each level of an expression, whatever the shell allows (ulimit -s).
#pragma once
#include <functional>

namespace tessera {

// Gives what `f` gives, which runs in a thread of its own while this one waits; threads that are made from then on have as deep a stack.
// Where no such thread can be had, `f` runs in this one. What `f` throws ends the program.
int on_deep_stack(const std::function<int()> &f);

}  // namespace tessera
