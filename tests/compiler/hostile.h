// Cases whose inputs decide where their kernels look.
#pragma once
#include <functional>

#include "tests/compiler/cases.h"

namespace tessera::test {

using HostileInputs = std::function<Arrays(const Algorithm &, const Extents &shape, uint32_t seed)>;

// On every shape of every case the reference, the interpreter and the emitted code, on memory laid out as `layouts` says for the
// how-manieth shape of the case it is (from 1), give the same bits.
void check_hostile(const std::vector<Case> &cases, const Target &target, const Build &build, const HostileInputs &inputs,
                   const std::function<std::vector<Layout>(uint32_t number)> &layouts);

}  // namespace tessera::test
