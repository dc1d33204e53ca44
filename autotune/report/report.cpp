#include "autotune/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autotune/report/plot.h"
#include "costmodel/features/roofline.h"
#include "support/text/time_text.h"

namespace tessera {

namespace {

constexpr const char *style = R"(
:root { color-scheme: light dark; --page: #ffffff; --text: #1c2430; --soft: #5b6675; --rule: #d9dee6; --panel: #f5f7fa;
  --measured: #2563eb; --slow: #8c97a8; --failed: #c81e1e; --best: #047857; --base: #b45309; --seed: #7c3aed; }
@media (prefers-color-scheme: dark) { :root { --page: #14181f; --text: #e6eaf0; --soft: #9aa6b6; --rule: #303846; --panel: #1c222c;
  --measured: #7aa8ff; --slow: #7f8b9c; --failed: #ff7b72; --best: #3fcf9b; --base: #f0a94b; --seed: #b79cff; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 60rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; }
p, .note { color: var(--soft); margin: .25rem 0 .75rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.figures div { background: var(--panel); border: 1px solid var(--rule); border-radius: .5rem; padding: .6rem .8rem; }
.figures b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.figures span { color: var(--soft); font-size: .85rem; }
svg { width: 100%; height: auto; background: var(--panel); border: 1px solid var(--rule); border-radius: .5rem; }
svg .grid { stroke: var(--rule); } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .line { fill: none; stroke-width: 2; }
circle.measured, .key.measured { fill: var(--measured); color: var(--measured); }
circle.slow, .key.slow { fill: var(--slow); color: var(--slow); }
circle.failed, .key.failed { fill: var(--failed); color: var(--failed); }
circle.winner, .key.winner { fill: var(--best); color: var(--best); }
circle.base, .key.base { fill: var(--base); color: var(--base); }
path.best, path.roof { stroke: var(--best); } path.base { stroke: var(--base); stroke-dasharray: 5 4; } path.level { stroke: var(--slow); }
svg .interval { stroke: var(--measured); opacity: .45; }
svg .interval.slow { stroke: var(--slow); } svg .interval.winner { stroke: var(--best); }
svg text.best, svg text.roof { fill: var(--best); } svg text.base { fill: var(--base); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: .5rem; padding: .8rem; overflow-x: auto;
  font: 13px/1.45 ui-monospace, monospace; }
summary { cursor: pointer; } .key { margin-right: 1rem; } .key::before { content: "\25CF\00A0"; }
)";

bool timed(const Trial &t) { return is_timed(t.measurement.verdict); }

class Page {
public:
    explicit Page(const Report &report) : report_(report), r_(report.result) {
        for (const Trial &t : r_.trials) {
            if (!timed(t)) failures_[t.measurement.verdict]++;
            if (r_.improved && t.resolved == r_.best.resolved) winner_ = t.number;
        }
    }

    std::string text() const {
        std::string page =
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\">\n<title>" +
            escaped(report_.task) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n<h1>" + escaped(report_.task) + "</h1>\n";
        return page + summary() + curve() + predictions() + roofline() + changes() + program() + failures() + origin() +
               "</body>\n</html>\n";
    }

private:
    const Report &report_;
    const CampaignResult &r_;
    std::map<Verdict, int> failures_;
    int64_t winner_ = -1;

    double tuned_s() const { return r_.base_seconds / std::max(r_.measurement.ratio, 1e-9); }
    double bound_s() const { return r_.base.features.bound; }

    static std::string section(const std::string &title, const std::string &note, const std::string &body) {
        return body.empty() ? "" : "<h2>" + escaped(title) + "</h2>\n<p>" + note + "</p>\n" + body;
    }

    std::string summary() const {
        auto figure = [](const std::string &value, const std::string &meaning) {
            return "<div><b>" + escaped(value) + "</b><span>" + escaped(meaning) + "</span></div>\n";
        };
        std::string all;
        if (r_.improved) {
            all += figure(fmt::format("{:.3f}", r_.measurement.ratio),
                          fmt::format("of the base's speed; 95 %: {:.3f} to {:.3f}", r_.measurement.lower, r_.measurement.upper));
            all += figure(time_text(tuned_s()), "tuned");
        }
        all += figure(time_text(r_.base_seconds), report_.base);
        if (report_.target.measured && bound_s() > 0)
            all += figure(fmt::format("{:.0f} %", 100 * bound_s() / (r_.improved ? tuned_s() : r_.base_seconds)),
                          "of the roofline's bound, " + time_text(bound_s()));
        all += figure(std::to_string(r_.trials.size()),
                      fmt::format("trials in {:.0f} s; {} schedules made and judged", r_.progress.elapsed_s, r_.made));
        const std::string words = !r_.improved               ? "Nothing that is surely faster was found."
                                  : report_.artifact.empty() ? ""
                                                             : "Written to <code>" + escaped(report_.artifact) + "</code>.";
        const std::string stopped = r_.stopped ? fmt::format("Stopped after {} trials. ", r_.trials.size()) : "";
        return "<p>" + stopped + words + "</p>\n<div class=\"figures\">\n" + all + "</div>\n";
    }

    std::string curve() const {
        Plot plot{"speed of each trial over the base's", "trial", "speed over the base's", false, false, {}, {}};
        PlotLine best{{}, "best", "best so far"}, base{{}, "base", "base"};
        double highest = 0;
        for (const Trial &t : r_.trials) {
            const double n = static_cast<double>(t.number);
            const Measurement &m = t.measurement;
            const std::string what = fmt::format("trial {}, {}: {}", t.number, t.origin,
                                                 timed(t) ? fmt::format("{:.3f} ({:.3f} to {:.3f})", m.ratio, m.lower, m.upper)
                                                          : std::string(name_of(m.verdict)) + ": " + m.message);
            plot.points.push_back({n, timed(t) ? m.ratio : 0,
                                   t.number == winner_              ? "winner"
                                   : m.verdict == Verdict::measured ? "measured"
                                   : m.verdict == Verdict::slow     ? "slow"
                                                                    : "failed",
                                   what, timed(t) ? m.lower : 0, timed(t) ? m.upper : 0});
            if (m.verdict == Verdict::measured && m.lower > highest) {
                if (!best.points.empty()) best.points.push_back({n, highest});
                best.points.push_back({n, highest = m.lower});
            }
            base.points = {{0, 1}, {n, 1}};
        }
        if (!best.points.empty()) best.points.push_back({static_cast<double>(r_.trials.back().number), highest});
        plot.lines = {base, best};
        std::string keys = "<span class=\"key measured\">measured, with the interval of 95 %</span>";
        if (std::any_of(r_.trials.begin(), r_.trials.end(), [](const Trial &t) { return t.measurement.verdict == Verdict::slow; }))
            keys += "<span class=\"key slow\">clearly slower, not compared</span>";
        if (winner_ >= 0) keys += "<span class=\"key winner\">the winner</span>";
        for (const auto &[verdict, count] : failures_)
            keys += fmt::format("<span class=\"key failed\">{} {}</span>", count, name_of(verdict));
        return section("Search",
                       keys + "<br>The line is what is surely reached: the largest lower end of an interval. Failures stand at 0.",
                       svg_of(plot));
    }

    std::string predictions() const {
        Plot draft{"seconds that the roofline's draft predicts, against measured ones",
                   "seconds that the draft predicts",
                   "seconds measured",
                   true,
                   true,
                   {},
                   {}};
        Plot model{"the model's score, against measured speed",
                   "the model's score when it was proposed",
                   "speed over the base's",
                   false,
                   false,
                   {},
                   {}};
        std::vector<double> drafts, scores, speeds;
        double low = 1e300, high = 0;
        for (const Trial &t : r_.trials) {
            if (!timed(t)) continue;
            const double seconds = r_.base_seconds / t.measurement.ratio;
            const std::string mark = t.number == winner_ ? "winner" : name_of(t.measurement.verdict);
            draft.points.push_back({t.draft, seconds, mark,
                                    fmt::format("trial {}: {} predicted, {} measured", t.number, time_text(t.draft), time_text(seconds))});
            low = std::min({low, t.draft, seconds}), high = std::max({high, t.draft, seconds});
            drafts.push_back(-t.draft);
            speeds.push_back(t.measurement.ratio);
            if (t.number == 0) continue;  // the base is not proposed
            model.points.push_back({t.score, t.measurement.ratio, mark,
                                    fmt::format("trial {}: score {:.3f}, speed {:.3f}", t.number, t.score, t.measurement.ratio)});
            scores.push_back(t.score);
        }
        if (speeds.size() < 3) return "";
        draft.lines = {{{{low, low}, {high, high}}, "base", "equal"}};
        const std::vector<double> proposed(speeds.begin() + (r_.trials[0].number == 0 && timed(r_.trials[0]) ? 1 : 0), speeds.end());
        return section("Predicted against measured",
                       fmt::format("The draft, from the tile program alone: rank correlation {:.2f}.", rank_correlation(drafts, speeds)),
                       svg_of(draft)) +
               "<p>The model, as it was when each was proposed: rank correlation " +
               fmt::format("{:.2f}", rank_correlation(scores, proposed)) + ".</p>\n" + svg_of(model);
    }

    std::string roofline() const {
        const double operations = report_.work.operations.value_or(0);
        if (operations <= 0 || report_.work.bytes <= 0 || report_.target.is_gpu()) return "";
        const Rates rates = rates_of(report_.target);
        const double peak = rates.fma * 2 * report_.target.vector_bytes / 4 * report_.threads / 1e9,
                     intensity = operations / report_.work.bytes;
        Plot plot{"speed over operations per byte, under the machine's roofs",
                  "operations for each byte of the arguments",
                  "Gop/s",
                  true,
                  true,
                  {},
                  {}};
        const char *names[] = {"level 2", "level 3", "memory"};
        const double least = std::min(intensity, peak / (rates.read[0] / 1e9)) / 8,
                     most = std::max(intensity, peak / (rates.read[2] / 1e9)) * 8;
        for (int level = 0; level < 3; level++) {
            const double slope = rates.read[level] / 1e9 * (level < 2 ? report_.threads : 1);
            plot.lines.push_back({{{peak / slope, peak}, {least, slope * least}}, level < 2 ? "level" : "roof", names[level]});
            plot.points.push_back({least, slope * least, "slow", fmt::format("{}: {:.0f} GB/s", names[level], slope)});
        }
        plot.lines.push_back({{{peak / (rates.read[0] / 1e9), peak}, {most, peak}}, "roof", fmt::format("{:.0f}", peak)});
        auto speed = [&](double seconds) { return operations / seconds / 1e9; };
        if (r_.base_seconds > 0)
            plot.points.push_back({intensity, speed(r_.base_seconds), "base", fmt::format("base: {:.1f} Gop/s", speed(r_.base_seconds))});
        if (r_.improved)
            plot.points.push_back({intensity, speed(tuned_s()), "winner", fmt::format("tuned: {:.1f} Gop/s", speed(tuned_s()))});
        const std::string keys =
            std::string("<span class=\"key base\">base</span>") + (r_.improved ? "<span class=\"key winner\">tuned</span>" : "");
        return section(
            "Roofline",
            keys + fmt::format("<br>{:.3g} operations, {:.3g} bytes of arguments, {:.2f} operations for each byte. The slopes are what the "
                               "second and third cache level and memory give. {}",
                               operations, report_.work.bytes, intensity,
                               report_.target.measured ? "Rates of this machine, by <code>doctor --calibrate</code>."
                                                       : "Rates are assumed; <code>doctor --calibrate</code> measures this machine's."),
            svg_of(plot));
    }

    std::string changes() const {
        std::string ablations;
        for (const auto &[worth, changes] : ablation_rows(r_.ablations))
            ablations += "<tr><td class=\"number\">" + worth + "</td><td>" + escaped(changes) + "</td></tr>\n";
        if (!ablations.empty())
            ablations =
                "<table>\n<tr><th>the tuned speed over the speed with the base's</th><th>knobs</th></tr>\n" + ablations + "</table>\n";
        return section("What differs from the base", "Field by field, then what each change is worth, most first.",
                       (report_.changes.empty() ? "" : "<pre>" + escaped(report_.changes) + "</pre>\n") + ablations);
    }

    std::string program() const {
        return section(r_.improved ? "The winner's tile program" : "The base's tile program",
                       "Every loop, tail, copy and order of additions; compiled code equals its interpreter by bits. <code>" +
                           escaped(r_.best.resolved) + "</code>",
                       "<details><summary>show it</summary>\n<pre>" + escaped(to_text(r_.best.program)) + "</pre>\n</details>\n");
    }

    std::string failures() const {
        std::string rows;
        for (const Trial &t : r_.trials)
            if (!timed(t))
                rows += fmt::format("<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n", t.number,
                                    name_of(t.measurement.verdict), escaped(t.measurement.message));
        return rows.empty() ? ""
                            : section("Failures", "They never win, and the model learns from them.",
                                      "<table>\n<tr><th>trial</th><th>kind</th><th>why</th></tr>\n" + rows + "</table>\n");
    }

    std::string origin() const {
        std::string rows;
        for (const auto &[name, value] : report_.origin) rows += "<tr><th>" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
        return section("Where and with what", "Times are medians of one call; only ratios to the interleaved base are compared.",
                       "<table>\n" + rows + "</table>\n");
    }
};

}  // namespace

std::string report_page(const Report &report) { return Page(report).text(); }

}  // namespace tessera
