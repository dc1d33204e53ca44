// Runs a generator's command line inside the test, or as a program of its own.
#pragma once
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "generators/registry/registry.h"
#include "schedules/knobs/schedule.h"
#include "support/files/output_folder.h"
#include "tests/support/shell.h"

namespace tessera::test {

// A few algorithms of the standard library.
Registry sample_registry();
Registry sample_registry_with_encoder();
Outcome generator(const std::vector<std::string> &arguments, const Registry &registry = sample_registry());
// The stock generator as a process; `shell` may set its folder and environment ("cd /tmp && LC_ALL=C ").
Outcome stock_generator(const std::string &arguments, const std::string &shell = "");

// Names that a folder may have, in which shells, make, formats of C, LLVM, linkers and loaders see something else.
std::vector<std::string> odd_names();

// A schedule for tune to beat, "matmul/slow": one element at a time, tens of times slower with AVX2 than nearly all of the space, so
// that whatever else the machine is doing, a few trials find something that is surely faster.
Schedule slow_matmul();

// count[M] = how many elements of x[M, K] are above -2, by a monoid whose combine is wrong where its right operand is `wrong_at`, which no
// law meets; "count/plain" is one element at a time.
Registry miscounting_registry(double wrong_at);

// The command fails with this code, and stderr has each of the parts.
void check_refused(const std::vector<std::string> &arguments, const std::vector<std::string> &parts, int code = 2,
                   const Registry &registry = sample_registry());

}  // namespace tessera::test
