#include "autotune/search/campaign.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autotune/search/tuned_schedule.h"
#include "support/files/json_text.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int max_simplifications = 2;  // of the winner, by what its changes are worth

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

json without_relatives(json document) {
    document.erase("relatives");
    return document;
}

std::vector<std::string> differing_fields(const json &a, const json &b) {
    std::vector<std::string> names;
    for (const auto *one : {&a, &b})
        for (const auto &[name, value] : one->items())
            if (one == &a ? !b.contains(name) || b[name] != value : !a.contains(name)) names.push_back(name);
    return names;
}

}  // namespace

KnobsByStage first_stages(const CampaignTask &task) { return task.base ? *task.base : first_stages(task.space); }

struct Campaign::State {
    State(const CampaignTask &task, const CampaignOptions &options, CostModel &model, Records &records,
          std::function<void(const Progress &)> show)
        : task_(task),
          options_(options),
          records_(records),
          show_(std::move(show)),
          model_(model, options.goal),
          search_(task.space, options.search, model_),
          warm_starts_(task.warm_starts) {
        const KnobsByStage stages = first_stages(task_);
        result_.base = search_.made_of(stages, "base");
        model_.set_base(result_.base.features);
        search_.keep_as(stages);
        open();
        search_.stop_when([this] { return stopped() || (!result_.trials.empty() && over_time()); });
        if (options_.seeded) search_.seed(stages);
        for (const auto &warm_start : warm_starts_) search_.seed(warm_start);
        const MeasurementTask measured{task_.space.algorithm, task_.space.target,    task_.space.extents, task_.space.threads,
                                       options_.search.seed,  options_.goal.callers, task_.inputs};
        measurer_ = std::make_unique<Measurer>(measured, options_.measure, result_.base.program);
        handle({result_.base});
        if (result_.trials.empty()) stopped_before_the_base(task_.name);
        if (const Measurement &m = result_.trials[0].measurement; m.verdict != Verdict::measured) {
            std::string why = m.message;
            if (why.ends_with('.')) why.pop_back();
            throw UserError("tune.base", task_.name + ": the schedule to beat cannot be measured: " + why +
                                             ". Fix the runner or the schedule, or name another with --schedule.");
        }
        if (options_.seconds > 0)
            measurer_->end_at(begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds)));
    }

    bool step(size_t most) {
        if (is_over()) return false;
        const auto start = Clock::now();
        const size_t left = std::min(most, static_cast<size_t>(trials_) - result_.trials.size());
        std::vector<Candidate> batch = search_.propose(batch_size());  // whatever is left, so that more trials go on from here
        if (batch.size() > left) batch.resize(left);
        result_.search_s += since(start);
        if (batch.empty()) return false;
        handle(batch);
        return true;
    }

    const Progress &progress() const { return result_.progress; }

    CampaignResult conclude() {
        result_.stopped = stopped() && static_cast<int>(result_.trials.size()) < trials_;
        finish();
        return result_;
    }

private:
    const CampaignTask &task_;
    const CampaignOptions &options_;
    Records &records_;
    const std::function<void(const Progress &)> show_;
    GoalModel model_;
    Search search_;
    std::vector<KnobsByStage> warm_starts_;
    std::unique_ptr<Measurer> measurer_;
    CampaignResult result_;
    int trials_ = 0;                    // to measure, or to take from the records
    std::optional<int64_t> other_way_;  // from this number on the recorded trials are not its own
    int64_t id_ = 0;
    std::unique_ptr<Claim> claim_;
    std::map<int64_t, Trial> recorded_;
    std::vector<std::pair<Candidate, Measurement>> ranked_;  // measured, best first
    std::optional<Measurement> control_;                     // the base beside itself, where that is surely not 1
    Clock::time_point begin_ = Clock::now();
    Phase phase_ = Phase::searching;

    // A candidate for each runner, at least.
    size_t batch_size() const { return std::max(static_cast<size_t>(options_.batch), options_.measure.runners.size()); }
    bool stopped() const { return options_.stop && options_.stop->load(); }
    bool over_time() const { return options_.seconds > 0 && since(begin_) >= options_.seconds; }
    bool is_over() const { return stopped() || static_cast<int>(result_.trials.size()) >= trials_ || over_time(); }

    void open() {
        nlohmann::ordered_json document = task_.identity;
        document["base"] = result_.base.resolved, document["search"] = search_version;
        document["seed"] = options_.search.seed, document["population"] = options_.search.population,
        document["brood"] = options_.search.brood;
        document["exploration"] = options_.search.exploration, document["plant"] = options_.seeded, document["batch"] = batch_size();
        if (options_.goal.metric != Metric::latency)
            document["metric"] = name_of(options_.goal.metric), document["least_speed"] = options_.goal.min_speed;
        if (options_.measure.cold) document["caches"] = "cold";
        if (options_.search.keep_bits) document["bits"] = "kept";
        if (options_.search.keep_parallel) document["parallel"] = "kept";
        if (options_.measure.seconds != MeasureOptions{}.seconds) document["measure_s"] = options_.measure.seconds;
        if (options_.goal.callers > 1) document["callers"] = options_.goal.callers;
        document["relatives"] = nlohmann::ordered_json::array();
        for (const auto &warm_start : warm_starts_) document["relatives"].push_back(nlohmann::ordered_json(document_of(warm_start)));
        const json own = without_relatives(json(document));
        std::string last, id;
        std::vector<std::string> unlike;  // fields in which the most like campaign of the task is another one
        int64_t last_id = 0;
        json seeds;
        for (const CampaignRow &row : records_.campaigns()) {
            json other = row.stated();
            if (!other.is_object() || !other.contains("id")) continue;
            other.erase("id");
            const json theirs = without_relatives(other);
            if (theirs == own) last = row.key, last_id = row.id, seeds = other.value("relatives", json::array());
            else if (const auto fields = differing_fields(own, theirs);
                     row.task() == printable(task_.name) && (unlike.empty() || fields.size() <= unlike.size()))
                unlike = fields;
        }
        // A name that no campaign of another machine has, so that records can be merged.
        std::random_device chance;
        for (int i = 0; i < 4; i++) id += fmt::format("{:08x}", chance());
        document["id"] = id;
        if (options_.resume && !last.empty()) { warm_starts_ = warm_starts_in(seeds, last_id); }
        id_ = records_.campaign(options_.resume && !last.empty() ? last : sha256(json_text(document)), document);
        claim_ = std::make_unique<Claim>(records_, id_);
        for (const Trial &t : records_.trials(id_))
            if (is_credible(t)) recorded_[t.number] = t;
        int recorded = 0;
        while (recorded_.count(recorded)) recorded++;
        trials_ = std::max(options_.trials, recorded);
        result_.progress.recorded = recorded;
        if (!options_.note) return;
        if (options_.resume && !last.empty()) {
            const std::string seeds_of_it = warm_starts_.empty() ? "" : ", and the seeds that it began with";
            options_.note(fmt::format("{}: goes on with {} recorded trials{}", task_.name, recorded, seeds_of_it));
            return;
        }
        if (!task_.warm_start_names.empty())
            options_.note(fmt::format("{}: the search begins with {} too", task_.name, join(task_.warm_start_names)));
        if (options_.resume)
            options_.note(fmt::format("{}: nothing to resume: {}; a new campaign begins", task_.name,
                                      unlike.empty() ? "the records have no campaign of this task"
                                                     : "the recorded campaign of this task differs in " + printable(join(unlike))));
    }

    std::vector<KnobsByStage> warm_starts_in(const json &seeds, int64_t campaign) const {
        try {
            std::vector<KnobsByStage> all;
            for (const json &one : seeds) all.push_back(knobs_from(one));
            return all;
        } catch (const UserError &error) {
            throw UserError(
                "campaign.records",
                fmt::format("{}: the records' campaign {} began with a schedule that cannot be read ({}). Leave out --resume to begin "
                            "a new campaign, or name other --records.",
                            task_.name, campaign, printable(error.message())));
        }
    }

    Trial trial_of(const Candidate &c, int64_t number, const Measurement &m) const {
        Trial t;
        t.number = number, t.schedule = json_text(document_of(c.stages)), t.origin = c.origin, t.resolved = c.resolved, t.measurement = m;
        t.draft = c.features.draft, t.bound = c.features.bound, t.score = c.score;
        return t;
    }

    // Where the records have another program than what is proposed, they and the search part: the rest of them is of no use, and goes
    // with the first trial that is measured in its place.
    void part_from_records(int64_t number) {
        recorded_.erase(recorded_.lower_bound(number), recorded_.end());
        other_way_ = number, trials_ = std::max(options_.trials, static_cast<int>(number));
        if (options_.measure.warn)
            options_.measure.warn(
                fmt::format("{}: the campaign goes another way than its records from trial {} on, since the program, the target, "
                            "the compiler or the search changed; trials from there on are measured anew, in place of the recorded ones",
                            task_.name, number));
    }

    // Measures what is not in the records yet, and learns from all of it.
    void handle(std::vector<Candidate> batch) {
        const size_t first = result_.trials.size();
        for (size_t i = 0; i < batch.size(); i++) {
            const auto known = recorded_.find(static_cast<int64_t>(first + i));
            if (known == recorded_.end() || known->second.resolved == batch[i].resolved) continue;
            if (stopped() || over_time()) batch.resize(i);  // proposing was cut short, and says nothing
            else part_from_records(known->first);
        }
        batch.resize(std::min(batch.size(), static_cast<size_t>(trials_) - first));
        std::vector<Measurement> results(batch.size());
        std::vector<size_t> open;
        for (size_t i = 0; i < batch.size(); i++) {
            auto known = recorded_.find(static_cast<int64_t>(first + i));
            const bool counts = known != recorded_.end() && (first + i > 0 || known->second.measurement.verdict == Verdict::measured);
            if (counts) results[i] = known->second.measurement;
            else open.push_back(i);
        }
        std::vector<TileProgram> programs;
        for (size_t i : open) programs.push_back(batch[i].program);
        const auto start = Clock::now();
        measurer_->measure(programs, worth_timing(), [&](size_t n, const Measurement &m) {
            if (m.verdict == Verdict::unmeasured) return;
            const size_t i = open[n];
            results[i] = m;
            if (first + i == 0 && m.verdict != Verdict::measured) return;  // the campaign cannot begin; another time it may
            records_.add(id_, {trial_of(batch[i], static_cast<int64_t>(first + i), m)}, std::exchange(other_way_, std::nullopt));
            shown(results);
        });
        result_.measure_s += since(start);
        std::vector<double> goodness;
        std::vector<Example> examples;
        std::vector<Candidate> done;
        for (size_t i = 0; i < batch.size(); i++) {
            const Measurement &m = results[i];
            if (m.verdict == Verdict::unmeasured) break;
            const bool timed = is_timed(m.verdict);
            result_.trials.push_back(trial_of(batch[i], static_cast<int64_t>(first + i), m));
            done.push_back(batch[i]);
            goodness.push_back(timed ? gain(m) : 0);
            examples.push_back({task_.name, batch[i].features, timed ? base_time() / m.lower : 0});
            if (m.verdict == Verdict::measured) ranked_.push_back({batch[i], m});
        }
        if (base_time() > 0) records_.set_base(id_, base_time());
        std::stable_sort(ranked_.begin(), ranked_.end(), [&](const auto &a, const auto &b) { return gain(a.second) > gain(b.second); });
        const auto learning = Clock::now();
        search_.learn(done, goodness, examples);
        result_.search_s += since(learning);
        shown({});
    }

    bool is_for_speed() const { return is_speed(options_.goal.metric); }
    double gain(const Measurement &m) const {
        return gain_over(result_.trials.empty() ? m : result_.trials[0].measurement, m, options_.goal);
    }
    double best_ratio() const { return ranked_.empty() ? 0 : gain(ranked_[0].second); }
    // What is clearly below half of it is timed no longer.
    double worth_timing() const { return is_for_speed() ? best_ratio() : 2 * options_.goal.min_speed; }
    // The first trial is the base itself. One number for all of the campaign, so that a replay sees what was seen.
    double base_time() const { return result_.trials.empty() ? 0 : result_.trials[0].measurement.seconds; }

    void shown(const std::vector<Measurement> &now) {
        Progress p;
        p.recorded = result_.progress.recorded, p.phase = phase_;
        p.budget = trials_, p.elapsed_s = since(begin_), p.bound_seconds = result_.base.features.bound, p.best_ratio = best_ratio();
        for (const Trial &t : result_.trials) p.verdicts[t.measurement.verdict]++;
        for (const Measurement &m : now)
            if (m.verdict != Verdict::unmeasured) {
                p.verdicts[m.verdict]++;
                if (m.verdict == Verdict::measured) p.best_ratio = std::max(p.best_ratio, gain(m));
            }
        for (const auto &[verdict, n] : p.verdicts) p.trials += n;
        p.base_seconds = base_time();
        const double speed = is_for_speed() ? p.best_ratio : ranked_.empty() ? 0 : ranked_[0].second.lower;
        p.best_seconds = speed > 0 ? p.base_seconds / speed : 0;
        result_.progress = p;
        if (show_) show_(p);
    }

    // The best of the search, measured again side by side, since the best of many noisy numbers is too good.
    void finish() {
        result_.made = search_.made(), result_.refused = search_.refused(), result_.impossible = search_.impossible(),
        result_.other_bits = search_.other_bits(), result_.scored = search_.scored(), result_.score_s = search_.scoring_s();
        result_.base_seconds = base_time();
        if (!result_.trials.empty()) result_.base_measurement = result_.trials[0].measurement;
        result_.best = result_.base;
        result_.measurement.verdict = Verdict::measured;
        result_.measurement.ratio = result_.measurement.lower = result_.measurement.upper = 1;
        result_.measurement.seconds = result_.base_seconds;
        std::vector<Candidate> finalists;
        for (const auto &[c, m] : ranked_)
            if (static_cast<int>(finalists.size()) < options_.finalists && c.resolved != result_.base.resolved) finalists.push_back(c);
        if (finalists.empty()) return;
        enter(Phase::confirming);
        std::vector<Candidate> beside = finalists;
        beside.push_back(result_.base);
        std::vector<Measurement> again = measured_again(beside, beside.size());
        result_.confirmed = !options_.measure.abandon || !options_.measure.abandon->load();
        if (const Measurement &base = again.back(); base.verdict == Verdict::measured && (base.lower > 1 || base.upper < 1)) {
            const bool favours_others = base.lower > 1;
            if (favours_others) control_ = base;
            if (options_.measure.warn)
                options_.measure.warn(
                    fmt::format("{}: the schedule to beat, measured beside itself, is at {:.3f} of its own speed ({:.3f} to {:.3f}); {}",
                                task_.name, base.ratio, base.lower, base.upper,
                                favours_others ? "the ratios of others are divided by that" : "others may be faster than they seem"));
        }
        again.pop_back();
        if (confirm(finalists, again) && options_.ablations > 0 && !stopped()) weigh_changes();
    }

    // Confirming is not stopped, but abandoned.
    void enter(Phase phase) {
        phase_ = phase;
        measurer_->stops(phase != Phase::confirming);
        shown({});
    }

    // Whether one of them is better than the winner so far, as they were measured again. Then it is the winner.
    bool confirm(const std::vector<Candidate> &finalists, std::vector<Measurement> again) {
        correct(again);
        bool better = false;
        for (size_t i = 0; i < again.size(); i++) {
            result_.finalists.push_back({finalists[i].resolved, again[i]});
            if (again[i].verdict != Verdict::measured || gain(again[i]) <= result_.gain) continue;
            result_.best = finalists[i], result_.measurement = again[i], result_.gain = gain(again[i]), result_.improved = better = true;
            // At the pace that the base was measured at: the machine's changes meanwhile.
            result_.measurement.seconds = result_.base_seconds / result_.measurement.ratio;
        }
        return better;
    }

    // Where the base beside itself is surely faster, measuring favours that side, and other ratios are corrected by as much.
    void correct(std::vector<Measurement> &all) const {
        if (control_)
            for (Measurement &m : all) m.ratio /= control_->ratio, m.lower /= control_->upper, m.upper /= control_->lower;
    }

    // What the records have of it is not measured once more. As one of several comparisons, finalists are measured in several processes,
    // with intervals that hold together.
    std::vector<Measurement> measured_again(const std::vector<Candidate> &candidates, size_t comparisons = 0) {
        const std::map<std::string, Measurement> known = records_.measured_again(id_);
        const auto key = [&](const Candidate &c) {
            return comparisons > 0 ? fmt::format("{}, one of {}", c.resolved, comparisons) : c.resolved;
        };
        std::vector<Measurement> all(candidates.size());
        std::vector<TileProgram> programs;
        std::vector<size_t> open;
        for (size_t i = 0; i < candidates.size(); i++)
            if (auto m = known.find(key(candidates[i])); m != known.end()) all[i] = m->second;
            else open.push_back(i), programs.push_back(candidates[i].program);
        const auto keep = [&](size_t n, const Measurement &m) {
            all[open[n]] = m;
            if (m.verdict != Verdict::unmeasured) records_.add_again(id_, key(candidates[open[n]]), m);
        };
        if (comparisons > 0) measurer_->confirm(programs, comparisons, keep);
        else measurer_->measure(programs, 0, keep);
        return all;
    }

    // What each change is worth. Where the winner is better without some of them, that becomes the winner, and its changes are weighed
    // anew.
    void weigh_changes() {
        for (int round = 0;; round++) {
            std::vector<AblationCandidate> all = ablations_of(result_.best, result_.base, search_, model_, options_.ablations);
            enter(Phase::weighing);
            weigh(all);
            result_.ablations.clear();
            for (const AblationCandidate &a : all) result_.ablations.push_back(a.ablation);
            sort_by_worth(result_.ablations);
            if (round == max_simplifications || stopped()) return;
            const std::vector<Candidate> simpler = without_harm(all, result_.best, result_.base, search_, task_.space);
            const size_t comparisons = 1 + result_.finalists.size() + simpler.size();  // with the control
            enter(Phase::confirming);
            if (simpler.empty() || !confirm(simpler, measured_again(simpler, comparisons))) return;
        }
    }

    void weigh(std::vector<AblationCandidate> &ablations) {
        std::vector<Candidate> candidates;
        for (const AblationCandidate &a : ablations)
            if (a.without) candidates.push_back(*a.without);
        std::vector<Measurement> all = measured_again(candidates);
        correct(all);
        size_t next = 0;
        for (AblationCandidate &a : ablations) {
            if (!a.without) continue;
            const Measurement &m = all[next++];
            Ablation &w = a.ablation;
            w.without = m.verdict;
            if (!is_timed(m.verdict)) continue;
            if (!is_for_speed()) {
                w.gain = w.lower = w.upper = result_.gain / gain(m);
                continue;
            }
            w.gain = result_.measurement.ratio / m.ratio, w.lower = result_.measurement.lower / m.upper,
            w.upper = result_.measurement.upper / m.lower;
        }
    }
};

Campaign::Campaign(const CampaignTask &task, const CampaignOptions &options, CostModel &model, Records &records,
                   std::function<void(const Progress &)> show)
    : state_(std::make_unique<State>(task, options, model, records, std::move(show))) {}
Campaign::~Campaign() = default;
bool Campaign::step(size_t most) { return state_->step(most); }
const Progress &Campaign::progress() const { return state_->progress(); }
CampaignResult Campaign::finish() { return state_->conclude(); }

CampaignResult run_campaign(const CampaignTask &task, const CampaignOptions &options, CostModel &model, Records &records,
                            const std::function<void(const Progress &)> &show) {
    Campaign campaign(task, options, model, records, show);
    while (campaign.step()) {}
    return campaign.finish();
}

}  // namespace tessera
