// Random algorithms under random schedules, made of few enough choices that a failing one can be made smaller and printed as
// the C++ that rebuilds it.
#pragma once
#include <random>
#include <set>

#include "tests/compiler/harness.h"

namespace tessera::test {

// One more tile made of earlier ones.
struct Step {
    int kind = 0;                  // see random_case.cpp
    int a = 0, b = 0, choice = 0;  // operands, counted from the last tile back, and what the kind makes of `choice`
    int forms = 0;                 // of a call: what its tensors are of the caller, three bits for each
    std::vector<Step> callee = {};
};

struct RandomCase {
    std::string name;
    std::vector<Step> steps;
    KnobsByStage stages;
    std::vector<Extents> shapes;
    std::set<std::string> known;   // dims of whose extents in `shapes` the program knows the range and what divides them
    std::string numerics = "f32";  // a policy
    uint32_t large = 0;            // a bit for each tensor and output that is large; where there are any, all of callees are
};

RandomCase random_case(const std::string &name, std::mt19937 &random, const Target &target);
// Another schedule for the same program.
KnobsByStage random_stages(const RandomCase &c, std::mt19937 &random, const Target &target);
Case build(const RandomCase &c);
// C++ that makes the algorithm, the schedule and the extents.
std::string to_cpp(const RandomCase &c);
// The case with one thing less, for each thing.
std::vector<RandomCase> smaller(const RandomCase &c);

}  // namespace tessera::test
