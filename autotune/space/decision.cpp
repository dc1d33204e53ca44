#include "autotune/space/decision.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

static std::optional<size_t> position_of(const Decision &decision, const std::string &value) {
    for (size_t i = 0; i < decision.answers.size(); i++)
        if (decision.answers[i].value == value) return i;
    return std::nullopt;
}

// The extent that an answer stands for; "none" and other words stand for none.
static std::optional<double> extent_in(const std::string &value) {
    char *end = nullptr;
    const long long n = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != 0) return std::nullopt;
    return static_cast<double>(n);
}

static std::optional<size_t> nearest(const Decision &decision, const std::string &value) {
    const std::optional<double> wanted = extent_in(value);
    if (!wanted || *wanted <= 0) return std::nullopt;
    std::optional<size_t> best;
    double least = 0;
    for (size_t i = 0; i < decision.answers.size(); i++) {
        const std::optional<double> extent = extent_in(decision.answers[i].value);
        if (!extent || *extent <= 0) continue;
        const double distance = std::abs(std::log(*extent / *wanted));
        if (!best || distance < least) best = i, least = distance;
    }
    return best;
}

void check_decision(const Decision &decision) {
    auto fail = [&](const std::string &got, const std::string &remedy) {
        throw UserError("tune.decision", "the decision '" + printable(decision.name()) +
                                             "': expected at least one answer, each once and with a prior above 0; got " + got + ". " +
                                             remedy);
    };
    if (decision.answers.empty()) fail("none", "Ask only where there is something to choose.");
    for (size_t i = 0; i < decision.answers.size(); i++) {
        const auto &[value, prior] = decision.answers[i];
        if (position_of(decision, value) != i) fail("'" + printable(value) + "' twice", "Leave one of them out.");
        if (!(prior > 0 && std::isfinite(prior)))
            fail("a prior of " + std::to_string(prior) + " for '" + printable(value) + "'", "Leave an answer out that must not be taken.");
    }
}

size_t most_likely(const Decision &decision) {
    auto best = std::max_element(decision.answers.begin(), decision.answers.end(),
                                 [](const Answer &a, const Answer &b) { return a.prior < b.prior; });
    return static_cast<size_t>(best - decision.answers.begin());
}

Choose sampling(RandomNumbers &random) {
    return [&random](const Decision &decision) -> size_t {
        if (decision.answers.size() == 1) return 0;
        double total = 0;
        for (const Answer &o : decision.answers) total += o.prior;
        double left = random.unit() * total;
        for (size_t i = 0; i + 1 < decision.answers.size(); i++)
            if ((left -= decision.answers[i].prior) < 0) return i;
        return decision.answers.size() - 1;
    };
}

Choose replaying(const Trace &trace, const Choose &otherwise) {
    return [trace = std::make_shared<const Trace>(trace), otherwise](const Decision &decision) -> size_t {
        auto answer = trace->find(decision.name());
        if (answer == trace->end()) return otherwise(decision);
        if (auto exact = position_of(decision, answer->second)) return *exact;
        if (decision.ordered)
            if (auto near = nearest(decision, answer->second)) return *near;
        return otherwise(decision);
    };
}

Choose recording(const Choose &choose, Trace &trace, std::vector<Decision> *asked) {
    return [choose, &trace, asked](const Decision &decision) {
        const size_t taken = choose(decision);
        require(taken < decision.answers.size(), "a decision is answered by one of its answers");
        if (!trace.emplace(decision.name(), decision.answers[taken].value).second)
            throw UserError("tune.decision", "the decision '" + decision.name() +
                                                 "' is asked twice in one walk; give what a mutator asks a name of its own.");
        if (asked) asked->push_back(decision);
        return taken;
    };
}

Restrictions parse_restrictions(const std::vector<std::string> &texts) {
    Restrictions all;
    for (const std::string &text : texts) {
        const size_t equals = text.find('=');
        std::vector<std::string> values;
        if (equals != std::string::npos)
            for (size_t at = equals + 1; at <= text.size();) {
                const size_t comma = std::min(text.find(',', at), text.size());
                values.push_back(text.substr(at, comma - at));
                at = comma + 1;
            }
        const bool whole = !values.empty() && std::none_of(values.begin(), values.end(), [](const std::string &v) { return v.empty(); });
        if (equals == 0 || !whole)
            throw UserError(
                "tune.space",
                "--space '" + text +
                    "': expected <decision>=<value>[,<value>…], as in block.M=64,128 or y.micro.N=48; --dry-run lists the decisions.");
        if (!all.emplace(text.substr(0, equals), values).second)
            throw UserError("tune.space",
                            "--space '" + text + "': '" + text.substr(0, equals) + "' is restricted twice; state all its values at once.");
    }
    return all;
}

Decision restricted(const Decision &decision, const Restrictions &restrictions) {
    for (const std::string &name : {decision.name(), decision.knob}) {
        auto allowed = restrictions.find(name);
        if (allowed == restrictions.end()) continue;
        Decision left = decision;
        left.answers.clear();
        for (const Answer &o : decision.answers)
            if (std::find(allowed->second.begin(), allowed->second.end(), o.value) != allowed->second.end()) left.answers.push_back(o);
        if (left.answers.empty())
            throw UserError("tune.space", "--space '" + name + "=" + join(allowed->second, ",") + "': it allows none of the answers to " +
                                              decision.name() + ".");
        return left;
    }
    return decision;
}

}  // namespace tessera
