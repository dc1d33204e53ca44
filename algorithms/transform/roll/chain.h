// One chain of equal steps in a program.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Every expression of a step: those of a stage, or the views and parameters of a call.
std::vector<Expr> expressions_of(const Step &step);
// The tensors that a step reads, in the order in which it names them, each once.
std::vector<std::string> reads_of(const Step &step);
// The results of a step, "" for those that have no name.
std::vector<std::string> makes_of(const Step &step);
// The step with other names for what it reads and makes; names that `of` does not have stay.
Step with_names(Step step, const std::map<std::string, std::string> &of);

// The steps of an algorithm, which it refers to, with what they read and make.
struct StepTable {
    // By which step a tensor is made, as which of its results.
    struct Origin {
        size_t step = 0, result = 0;
    };
    // The first and the last step that reads a tensor.
    struct Readers {
        size_t first = 0, last = 0;
    };
    const Algorithm &algorithm;
    std::vector<std::vector<std::string>> reads, makes;  // by step
    std::map<std::string, Origin> origins;
    std::map<std::string, Readers> readers;
    std::set<std::string> outputs;

    explicit StepTable(const Algorithm &of);
    // The type and dims of a tensor that the algorithm has or a step makes. InternalError where neither does.
    Tensor tensor(const std::string &name) const;
};

// Whether a number that the call passes on as this parameter may be another in each round.
bool may_differ(const Call &call, const std::string &parameter);

// `rounds` rounds of `period` steps each, the first at `begin`. Equal steps are at equal places of each.
struct Stretch {
    size_t begin = 0, period = 0, rounds = 0;
    size_t end() const { return begin + period * rounds; }
    size_t saved() const { return period * (rounds - 1); }
};

// What goes into the rounds of a stretch, and what comes out. Names are those of the first round.
struct Chain {
    struct Carried {
        std::string first;   // what the first round takes, made before the chain
        std::string result;  // what a round makes of it
    };
    struct Stack {
        std::string first;                 // what the first round takes
        std::vector<std::string> members;  // what each takes
    };
    // A number that a call passes on, another in each round.
    struct Number {
        size_t step = 0;  // of the round
        std::string parameter;
        std::vector<Scalar> values;
    };
    std::vector<Carried> carried;
    std::vector<Stack> stacks;
    std::vector<Number> numbers;
    std::vector<std::string> shared;
    // Results that are used behind the chain: of the first round, and of the last.
    std::vector<std::pair<std::string, std::string>> results;
};

// Nothing where the stretch is no chain: its rounds are more than one another's results, or of unequal types.
std::optional<Chain> chain_of(const StepTable &steps, const Stretch &stretch, const std::set<std::string> &stackable);

}  // namespace tessera
