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

void warn(const std::string &text) { std::cerr << "warning: " << text << "\n"; }

void note(const std::string &text) { std::cerr << "note: " << text << "\n"; }

std::string gain_text(double gain, Metric metric) {
    if (is_speed(metric)) return fmt::format("{:.3f} of the base's speed", gain);
    return fmt::format("{:.2f} times less {} than the base", gain, metric == Metric::code_size ? "code" : "workspace");
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
    const std::string text =
        fmt::format("{}  {}{}  {:.0f} s", trials_text(p.trials, p.budget), best, verdicts_text(p.verdicts), p.elapsed_s);
    if (terminal_) std::cerr << "\r\033[K" << text << std::flush;
    else if (p.best_ratio > best_ * 1.005 || p.trials / 16 != trials_ / 16) std::cerr << text << "\n";
    else return;
    best_ = p.best_ratio, trials_ = p.trials;
}

}  // namespace tessera
