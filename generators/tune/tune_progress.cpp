#include "generators/tune/tune_progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_text.h"
#include "support/text/time_text.h"

namespace tessera {

std::string trials_text(int trials, int budget) {
    return budget == max_trials ? fmt::format("{:4} trials", trials) : fmt::format("{:4} of {} trials", trials, budget);
}

std::string verdicts_text(const std::map<Verdict, int> &verdicts) {
    std::string text;
    for (const auto &[verdict, count] : verdicts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name_of(verdict));
    return text;
}

std::string bound_text(double bound, double seconds, bool calibrated) {
    return calibrated && seconds > 0 ? fmt::format(" ({:.0f} % of the bound)", 100 * bound / seconds) : "";
}

std::string stopped_text(size_t trials, size_t budget) {
    const std::string of = budget == max_trials ? "" : fmt::format(" of {}", std::max(trials, budget));
    return fmt::format("stopped after {}{} trials; ", trials, of) +
           (trials > 0 ? "--resume goes on from here" : "the same command begins again");
}

std::string document_text(const nlohmann::ordered_json &document) { return lossy_json_text(document, 2) + "\n"; }

std::string gain_text(double gain, Metric metric) {
    if (is_speed(metric)) return fmt::format("{:.3f} of the base's speed", gain);
    return fmt::format("{:.2f} times less {} than the base", gain, metric == Metric::code_size ? "code" : "workspace");
}

static std::string at_first(const Progress &p, const std::string &place) {
    switch (p.phase) {
    case Phase::searching:
        if (p.trials == 0) return "the schedule to beat is not measured yet, so nothing will be written";
        return fmt::format("trial {} is dropped, the best so far is measured again, then {} is written if it is faster", p.trials + 1,
                           place);
    case Phase::confirming: return fmt::format("the best is measured again to the end, then {} is written if it is faster", place);
    case Phase::weighing: return fmt::format("what its changes are worth is left open, and {} is written", place);
    }
    return "";
}

void say_what_stopping_does(Interruption &interruption, const Progress &p, const std::string &place, const std::string &records,
                            bool quiet) {
    if (quiet) return;
    const std::string line = isatty(2) == 1 ? "\r\033[K" : "";
    const std::string then = p.phase == Phase::weighing ? "" : "nothing is written; ";
    interruption.say(
        line + "stopping: " + at_first(p, place) + "; press Ctrl-C again to stop at once\n",
        line + "stopping at once: " + then + "what was measured is kept in " + records + ", and --resume goes on from there\n");
}

static const char *what_of(Phase phase) {
    switch (phase) {
    case Phase::searching: return "";
    case Phase::confirming: return "  measures the best again";
    case Phase::weighing: return "  measures what its changes are worth (--no-ablation does not)";
    }
    return "";
}

ProgressLine::ProgressLine(bool quiet, bool calibrated, Metric metric)
    : terminal_(isatty(2) == 1), quiet_(quiet), calibrated_(calibrated), metric_(metric) {}

ProgressLine::~ProgressLine() {
    if (terminal_ && !quiet_ && trials_ > 0) std::cerr << "\n";
}

void ProgressLine::show(const Progress &p) {
    if (quiet_) return;
    std::string best;
    if (p.best_seconds > 0)
        best = fmt::format("best {}, {}{}  ", gain_text(p.best_ratio, metric_), time_text(p.best_seconds),
                           bound_text(p.bound_seconds, p.best_seconds, calibrated_));
    const std::string text = fmt::format("{}  {}{}  {:.0f} s{}", trials_text(p.trials, p.budget), best, verdicts_text(p.verdicts),
                                         p.elapsed_s, what_of(p.phase));
    if (terminal_) std::cerr << "\r\033[K" << text << std::flush;
    else if (p.best_ratio > best_ * 1.005 || p.trials / 16 != trials_ / 16 || p.phase != phase_) std::cerr << text << "\n";
    else return;
    best_ = p.best_ratio, trials_ = p.trials, phase_ = p.phase;
}

}  // namespace tessera
