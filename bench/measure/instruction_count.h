// How many machine instructions a call takes: the same number on every run of the same code, whatever else the machine does.
#pragma once
#include <cstdint>
#include <functional>

namespace tessera {

struct CodeRange {
    uintptr_t begin, end;
};

// Runs `call` once in a copy of this process, instruction by instruction (ptrace's single steps, so any instruction set that the processor
// has is counted), and counts those that lie in `code`: library functions outside of it do not count. One step of a repeated string
// instruction counts as one. A step takes microseconds. Stops behind `most` counted ones. UserError bench.instructions where this system
// allows no steps, where the call does not come back, or takes more than `most`.
uint64_t count_instructions(const CodeRange &code, const std::function<void()> &call, uint64_t most);

}  // namespace tessera
