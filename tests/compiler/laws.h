// What holds for every case: tile program and algorithm agree, and so do code and tile program.
#pragma once
#include <functional>

#include "tests/compiler/harness.h"

namespace tessera::test {

// Each case's tile program gives what its algorithm says; bit by bit where the schedule keeps the order of folds.
void check_programs(const std::vector<Case> &cases, const Target &target);
// Code that was made of `programs`, one for each case, gives their bits. The layouts of a shape are chosen by its number, from 1.
void check_code(const std::vector<Case> &cases, const std::vector<TileProgram> &programs, const Loaded &code,
                const std::function<std::vector<Layout>(uint32_t number)> &layouts);

}  // namespace tessera::test
