// Schedules and algorithms that several tests use.
#pragma once
#include <random>
#include <string>

#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/artifact.h"
#include "schedules/artifact/library.h"

namespace tessera::test {

// Every field of the format, in canonical text.
extern const char *const full_text;

// acc[M, N] = dot over K of (x[M, K], w[K, N]); y[M, N] = acc + b[N]; p[M, N] = running sum of y along N; output p.
Algorithm sample_algorithm();

// A schedule of every knob with random values, legal for read.h.
Schedule random_schedule(std::mt19937 &random, const std::string &name);
// A child of `parent` that overrides, adds and deletes at random.
Schedule random_child(std::mt19937 &random, const std::string &name, const Schedule &parent, const Library &library);
// root <- … <- the last, `length` of them.
Schedule random_chain(std::mt19937 &random, int length, const Library &library);

}  // namespace tessera::test
