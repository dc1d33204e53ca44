// A Decision is one question that a space (search_space.h) asks on its way to a schedule: "how many rows has y's register tile?",
// with the legal answers. Who answers is a Choose: a random sampler, a trace of earlier answers, a mutation of one, a
// schedule that somebody wrote. Since the space asks only what is legal after the answers so far, whatever answers, the
// schedule that comes out is one that fits the algorithm.
//
// The idea of a schedule as the trace of a probabilistic program is MetaSchedule's (Shao et al., NeurIPS 2022).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/measure/inputs.h"

namespace tessera {

struct Answer {
    std::string value;  // "48", "none", "y.micro"
    double prior = 1;   // how likely a sample takes it, relative to the other answers; > 0
};

struct Decision {
    std::string stage, knob;      // "y", "micro.N"
    std::vector<Answer> answers;  // at least one, no value twice
    bool ordered = false;         // neighbours in the list are alike: extents
    std::string name() const { return stage + "." + knob; }
};

// UserError tune.decision: it has no answers, one twice, or one that is never taken. For what a user's mutator asks.
void check_decision(const Decision &decision);

// The position of the option that is taken.
using Choose = std::function<size_t(const Decision &)>;

// The answers that led to a schedule, by the decision's name.
using Trace = std::map<std::string, std::string>;

size_t most_likely(const Decision &decision);  // the first of them
// Each option with a probability in proportion to its prior. `random` outlives the result.
Choose sampling(RandomNumbers &random);
// The trace's answer where it has one that is an option; of an ordered decision the option nearest to it. Otherwise what
// `otherwise` says.
Choose replaying(const Trace &trace, const Choose &otherwise);
// Keeps what is answered in `trace`, and in `asked`, where that is not null, every decision.
Choose recording(const Choose &choose, Trace &trace, std::vector<Decision> *asked = nullptr);

// What a user allows: values by decision, "y.micro.N", or by knob of any stage, "block.M"; the first wins.
using Restrictions = std::map<std::string, std::vector<std::string>>;
// "block.M=64,128" each. UserError tune.space: not of this form, or a decision twice.
Restrictions parse_restrictions(const std::vector<std::string> &texts);
// Leaves only what is allowed, where a restriction names the decision and allows one of its answers.
Decision restricted(const Decision &decision, const Restrictions &restrictions);

}  // namespace tessera
