#include "generators/tune/tune_shapes.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/commands/command.h"
#include "generators/tune/tune_outcome.h"
#include "generators/tune/tune_progress.h"
#include "generators/tune/tune_space.h"
#include "support/processes/interruption.h"
#include "support/text/error.h"
#include "support/text/time_text.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

using Assignments = std::vector<std::pair<std::string, std::vector<int64_t>>>;  // by dim, in the order in which they are given

Assignments by_dim(const std::vector<std::string> &texts, const std::string &option) {
    Assignments all;
    for (const std::string &text : texts) {
        const auto [dim, extent] = *parse_shape({text}, option).begin();
        auto known = std::find_if(all.begin(), all.end(), [&](const auto &a) { return a.first == dim; });
        if (known == all.end()) all.push_back({dim, {extent}});
        else known->second.push_back(extent);
    }
    return all;
}

std::string text_of(const Extents &extents) {
    std::vector<std::string> all;
    for (const auto &[dim, extent] : extents) all.push_back(fmt::format("{}={}", dim, extent));
    return join(all);
}

constexpr double box_reach = 2;            // times each extent, and its part
constexpr double least_near_speed = 0.98;  // of the schedule to beat
constexpr int inner_probes = 3;

class ShapeSearch {
public:
    ShapeSearch(const Registry &registry, const TuneOptions &asked) : options_(asked) {
        const TuneOptions &options = options_;
        const std::vector<TuneOptions> all = options_by_shape(options);
        if (options.campaign.trials < static_cast<int>(all.size()))
            throw UserError("campaign.budget", fmt::format("tune: expected at least one trial for each of the {} shapes, got {}. Raise "
                                                           "--trials, or tune for fewer shapes.",
                                                           all.size(), options.campaign.trials));
        std::vector<Extents> extents;
        for (const TuneOptions &one : all) {
            shapes_.emplace_back().run = prepare_run(registry, one);
            extents.push_back(shapes_.back().run->extents);
        }
        check_packs_nothing_ahead();
        const std::string name = artifact_name(options, shapes_[0].run->prepared, extents);
        for (TunedShape &s : shapes_) s.run->options.name = name;
        if (!options.dry_run) check_output(*shapes_[0].run);
    }
    const TuneOptions &options() const { return options_; }

    void show_spaces() const {
        for (const TunedShape &s : shapes_) {
            std::cout << text_of(s.run->extents) << "\n";
            show_space(s.run->task);
        }
    }

    void search(Interruption &interruption) {
        Records records(options_.records);
        const auto begin = std::chrono::steady_clock::now();
        int trials = options_.campaign.trials;
        for (size_t i = 0; i < shapes_.size() && !interruption.asked()->load(); i++) {
            TuneRun &run = *shapes_[i].run;
            CampaignOptions &campaign = run.options.campaign;
            const int left = static_cast<int>(shapes_.size() - i);
            campaign.trials = trials / left;
            if (options_.campaign.seconds > 0) {
                const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                campaign.seconds = std::max(options_.campaign.seconds - spent, 1e-3) / left;
            }
            campaign.stop = campaign.measure.stop = interruption.asked(), campaign.measure.abandon = interruption.asked_again();
            campaign.measure.warn = warn;
            campaign.search.keep_parallel = is_over_parent(shapes_);  // the kernel is called on any number of threads
            if (campaign.seeded) seed_with_found(i);
            if (!options_.kernel.quiet) note(text_of(run.extents)), campaign.note = note;
            ProgressLine line(options_.kernel.quiet, run.prepared.request.target.measured.has_value(), campaign.goal.metric);
            try {
                const auto show = [&](const Progress &p) {
                    line.show(p);
                    say_what_stopping_does(interruption, p, artifact_place(*shapes_[0].run).string(), options_.records,
                                           options_.kernel.quiet);
                };
                shapes_[i].result = run_campaign(run.task, campaign, *shapes_[0].run->model, records, show);
                trials -= static_cast<int>(shapes_[i].result->trials.size());
            } catch (const UserError &error) {
                if (error.id().starts_with("records.")) throw;
                if (error.id() == "tune.stopped") break;
                shapes_[i].refusal = error.what();
                if (!options_.kernel.quiet) note(fmt::format("{}: {}", text_of(run.extents), shapes_[i].refusal));
            }
            // Recorded trials count, be they more than its part; each shape that is left has one all the same.
            trials = std::max(trials, left - 1);
        }
    }

    // What existing artifacts have, for shapes that found nothing, and where what was found holds.
    const std::vector<TunedShape> &conclude(const Registry &registry) {
        keep_existing(shapes_);
        if (!is_over_parent(shapes_)) return shapes_;
        std::vector<Extents> extents;
        for (const TunedShape &s : shapes_) extents.push_back(s.run->extents);
        const std::vector<ShapeBox> boxes = shape_boxes(extents, box_reach);
        for (size_t i = 0; i < shapes_.size(); i++)
            if (shapes_[i].existing) shapes_[i].within = recorded_box(shapes_[i]);
            else if (const auto &r = shapes_[i].result; r && r->improved) probe(registry, shapes_[i], boxes[i]);
        while (!are_confirmed(registry)) {}
        return shapes_;
    }

private:
    TuneOptions options_;
    std::vector<TunedShape> shapes_;

    // One packing has to do for all variants of a kernel, and what is best for one shape is packed otherwise than for another.
    void check_packs_nothing_ahead() const {
        const ScheduledKernel &p = shapes_[0].run->prepared;
        const std::vector<std::string> ahead = packed_ahead(options_, p);
        if (!ahead.empty())
            throw UserError("tune.prepack",
                            fmt::format("{}: expected one shape where operands may be packed ahead of time, since all variants of a "
                                        "kernel take them packed alike; got {} shapes, and {} packed by --prepack, --space or the "
                                        "schedule to beat. Tune one shape at a time, or pack nothing ahead of time.",
                                        p.request.declared.name, shapes_.size(), join(ahead)));
    }

    static std::optional<ShapeBox> recorded_box(const TunedShape &s) {
        const auto within = s.existing->choice.find("within");
        if (within == s.existing->choice.end()) return std::nullopt;
        return ShapeBox{within->at("low").get<Extents>(), within->at("high").get<Extents>()};
    }

    // A schedule that was tuned for one shape may be slow near it: where a tile divides it no more, or a loop is long enough to leave a
    // cache. So it is timed around it, and where it is slower than the schedule to beat its box ends before.
    void probe(const Registry &registry, TunedShape &s, ShapeBox box) const {
        const Extents &shape = s.run->extents;
        std::map<Extents, double> speeds;
        for (bool is_whole = false; !is_whole;) {
            is_whole = true;
            s.probed.clear();
            for (const Extents &probe : probes_of(box, shape, inner_probes)) {
                const auto [known, is_new] = speeds.try_emplace(probe, 0);
                if (is_new) known->second = speed_at(registry, s, probe);
                s.probed.emplace_back(*known);
                if (known->second >= least_near_speed) continue;
                box = shrunk(box, shape, probe);
                is_whole = false;
                break;
            }
        }
        s.within = box;
    }

    // Times the programs that the boxes make simpler than the ones that were found. A shape where one is not faster than the schedule to
    // beat loses its box; others may then have other programs, so not all is confirmed.
    bool are_confirmed(const Registry &registry) {
        const auto has_new_box = [](const TunedShape &s) { return s.within && !s.existing; };
        if (std::none_of(shapes_.begin(), shapes_.end(), has_new_box)) return true;
        const PreparedKernel artifact = kernel_of(shapes_);
        bool all = true;
        for (TunedShape &s : shapes_) {
            if (!has_new_box(s)) continue;
            const TileProgram &program = variant_for(artifact.compiled.kernel, s.run->extents).program;
            const std::string resolved = resolved_hash(program);
            if (resolved == s.result->best.resolved) s.confirmed.clear();
            else if (resolved != s.confirmed) {
                s.confirmed = resolved;
                if (speed_at(registry, s, s.run->extents, program) < 1) s.within.reset(), all = false;
            }
        }
        return all;
    }

    // The speed-up of what was found, or of a program of it, beside the schedule to beat; 0 where it does not apply or cannot be measured.
    double speed_at(const Registry &registry, const TunedShape &s, const Extents &extents,
                    const std::optional<TileProgram> &program = std::nullopt) const {
        TuneOptions options = s.run->options;
        options.extents = assignments(extents), options.kernel.quiet = true;
        try {
            const auto run = prepare_run(registry, options);
            const CampaignOptions &campaign = run->options.campaign;
            const Search search(run->task.space, campaign.search, *run->model);
            const TileProgram base = search.made_of(first_stages(run->task), "base").program;
            const TileProgram found = program ? *program : search.made_of(s.result->best.stages, "base").program;
            const SearchSpace &space = run->task.space;
            Measurer measurer({space.algorithm, space.target, space.extents, space.threads, campaign.search.seed, campaign.goal.callers},
                              campaign.measure, base);
            double speed = 0;
            measurer.measure({found}, 0, [&](size_t, const Measurement &m) { speed = m.verdict == Verdict::measured ? m.ratio : 0; });
            return speed;
        } catch (const UserError &) { return 0; }
    }

    void seed_with_found(size_t i) {
        auto &warm_starts = shapes_[i].run->task.warm_starts;
        for (size_t before = 0; before < i; before++)
            if (const auto &found = shapes_[before].result; found && found->improved)
                warm_starts.insert(warm_starts.begin(), found->best.stages);
    }
};

bool is_stopped(const std::vector<TunedShape> &shapes) {
    return std::any_of(shapes.begin(), shapes.end(), [](const TunedShape &s) { return s.result ? s.result->stopped : s.refusal.empty(); });
}

std::string text_report(const std::vector<TunedShape> &shapes, const std::vector<std::string> &cases, const Written &written, int trials) {
    size_t width = 5, when = 4;
    for (const TunedShape &s : shapes) width = std::max(width, text_of(s.run->extents).size());
    for (const std::string &c : cases) when = std::max(when, c.size());
    std::string text = fmt::format("{}\n{:{}}  {:{}}  {:>6}  {:>10}  {:>10}  {}\n", shapes[0].run->prepared.request.declared.name, "shape",
                                   width, "runs", when, "trials", "base", "tuned", "speed");
    for (size_t i = 0; i < shapes.size(); i++) {
        text += fmt::format("{:{}}  {:{}}  ", text_of(shapes[i].run->extents), width, cases.empty() ? "-" : cases[i], when);
        if (!shapes[i].result) {
            const std::string keeps = shapes[i].existing ? "keeps what the artifact had" : "keeps the base";
            text += shapes[i].refusal.empty() ? "not reached; " + keeps + "\n" : keeps + ": " + shapes[i].refusal + "\n";
            continue;
        }
        const CampaignResult &r = *shapes[i].result;
        const double ratio = r.improved ? r.measurement.ratio : 1;
        text += fmt::format("{:>6}  {:>10}  {:>10}  {}\n", r.trials.size(), time_text(r.base_seconds), time_text(r.base_seconds / ratio),
                            shapes[i].existing    ? "keeps what the artifact had, which was not measured"
                            : r.improved          ? fmt::format("{:.3f}", ratio)
                            : r.trials.size() < 2 ? "only the base was measured; give more --trials"
                                                  : "nothing better was found");
    }
    if (is_stopped(shapes)) {
        size_t all = 0;
        for (const TunedShape &s : shapes) all += s.result ? s.result->trials.size() : 0;
        text += stopped_text(all, static_cast<size_t>(trials)) + "\n";
    }
    const std::string end = written_text(*shapes[0].run, written);
    return text + (end.empty() ? "no artifact is written\n" : end);
}

std::string json_report(const std::vector<TunedShape> &shapes, const std::vector<std::string> &cases, const std::filesystem::path &file) {
    const CampaignResult unreached;
    ordered_json all = ordered_json::array();
    for (size_t i = 0; i < shapes.size(); i++) {
        ordered_json one = {{"task", shapes[i].run->task.name}, {"extents", shapes[i].run->extents}, {"runs", nullptr}};
        if (!cases.empty()) one["runs"] = cases[i];
        const CampaignResult &r = shapes[i].result ? *shapes[i].result : unreached;
        one["kept"] = shapes[i].existing.has_value(), one["trials"] = r.trials.size(), one["improved"] = r.improved;
        one.update(times_json(r));
        if (!shapes[i].refusal.empty()) one["message"] = shapes[i].refusal;
        all.push_back(one);
    }
    return document_text(ordered_json{
        {"format", "tessera-tune-shapes"}, {"version", 1}, {"artifact", file}, {"stopped", is_stopped(shapes)}, {"shapes", all}});
}

}  // namespace

std::vector<TuneOptions> options_by_shape(const TuneOptions &options) {
    Assignments fixed = by_dim(options.kernel.shape, "--shape"), extents = by_dim(options.extents, "--extents");
    size_t count = 1;
    std::string many;
    for (const auto *all : {&fixed, &extents})
        for (const auto &[dim, values] : *all) {
            if (values.size() == 1) continue;
            if (count > 1 && values.size() != count)
                throw UserError("command.shape",
                                fmt::format("--shape: expected as many extents of {} as of {}, which has {}, one for each shape; "
                                            "got {}. Give a dim once where all shapes have the same of it.",
                                            dim, many, count, values.size()));
            count = values.size(), many = dim;
        }
    if (count == 1) return {options};
    std::vector<TuneOptions> shapes(count, options);
    for (size_t i = 0; i < count; i++) {
        TuneOptions &one = shapes[i];
        one.kernel.shape.clear(), one.extents.clear();
        for (const auto *all : {&fixed, &extents})
            for (const auto &[dim, values] : *all) {
                const bool stays_fixed = all == &fixed && values.size() == 1;
                (stays_fixed ? one.kernel.shape : one.extents)
                    .push_back(fmt::format("{}={}", dim, values.size() == 1 ? values[0] : values[i]));
            }
        for (size_t before = 0; before < i; before++)
            if (shapes[before].extents == one.extents)
                throw UserError("command.shape",
                                "--shape: expected shapes that differ; " + join(one.extents) + " is given twice. Give it once.");
    }
    return shapes;
}

std::function<int(Interruption &)> prepared_shapes(const Registry &registry, const TuneOptions &options) {
    auto all = std::make_shared<ShapeSearch>(registry, options);
    return [all, &registry](Interruption &interruption) {
        const TuneOptions &asked = all->options();
        if (asked.dry_run) {
            all->show_spaces();
            return exit_ok;
        }
        all->search(interruption);
        std::vector<std::string> cases;
        const std::vector<TunedShape> &shapes = all->conclude(registry);
        const Written written = write_artifact(*shapes[0].run, artifact_of(shapes, cases));
        std::cout << (asked.json ? json_report(shapes, cases, written.file) : text_report(shapes, cases, written, asked.campaign.trials))
                  << std::flush;
        written.check();
        const bool whole = std::all_of(shapes.begin(), shapes.end(), [](const TunedShape &s) { return s.refusal.empty(); });
        return whole ? exit_ok : exit_check_failed;
    };
}

int tune_shapes(const Registry &registry, const TuneOptions &options) {
    const auto prepared = prepared_shapes(registry, options);
    Interruption interruption;
    return prepared(interruption);
}

}  // namespace tessera
