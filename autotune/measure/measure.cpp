#include "autotune/measure/measure.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "autotune/measure/interval.h"
#include "autotune/measure/programs.h"
#include "autotune/measure/worker_client.h"
#include "bench/measure/inputs.h"
#include "compiler/check/verify_tiles.h"
#include "support/text/error.h"
#include "support/text/shell_words.h"

namespace tessera {

namespace fs = std::filesystem;
using Clock = LineProcess::Clock;

struct Measurer::State {
    MeasurementTask task;
    MeasureOptions options;
    TileProgram base;
    std::unique_ptr<Programs> built;
    std::optional<Clock::time_point> end;
    std::set<size_t> broken;  // runners
    size_t comparisons = 0;   // that are believed together; 0 while one process tells

    bool stopped() const {
        return (options.stop && options.stop->load()) || (options.abandon && options.abandon->load()) || (end && Clock::now() >= *end);
    }

    // Drivers keep what they compiled: here among what goes with this object.
    std::string command_of(const fs::path &program, const std::string &runner) const {
        const bool is_driven_here = task.target.is_gpu() && runner.empty();
        const std::string cache =
            is_driven_here ? "env " + shell_word("POCL_CACHE_DIR=" + (built->folder() / "driver").string()) + " " : "";
        return cache + (runner.empty() ? "" : runner + " ") + shell_word(program.string());
    }
    WorkerLimits limits_of(const std::string &runner) const {
        const bool limited = runner.empty() && !task.target.is_gpu();  // drivers reserve address space by the terabyte
        return {options.run_limit_s, limited ? options.run_memory_bytes : 0, [this] { return stopped(); }};
    }

    // A program to run, with the name that its files have.
    struct Run {
        const TileProgram &program;
        std::filesystem::path path;
        size_t seed;
        bool compares = true;  // its results
        int most = 3;          // times that what is known badly is measured again
    };

    void run_one(const Run &run, const std::string &runner, double best, Measurement &result) const {
        const double least = options.cold ? 2e-5 : 1e-3;  // seconds of calls in one round; to empty the caches takes milliseconds a call
        constexpr size_t fewest = 6, most = 400;          // rounds
        constexpr size_t first_look = 3;                  // after which what is far behind is timed no longer
        const Extents extents = all_extents(task.algorithm, task.extents);
        Inputs inputs = random_inputs(run.program, extents, task.seed + 2 * run.seed);
        WorkerClient worker(task, run.program, command_of(run.path, runner), limits_of(runner), run.path.string() + ".said");
        if (options.cold) worker.time_cold();
        const WorkerClient::Ran first = worker.run_on(inputs);
        result.workspace_bytes = first.workspace_bytes;
        std::vector<double> own, ratios;
        auto calls_for = [least](double seconds) {
            return std::clamp<long>(static_cast<long>(std::ceil(least / std::max(seconds, 1e-9))), 1, 1000000);
        };
        auto [own_s, base_s] = worker.time(calls_for(first.seconds), 1);
        std::tie(own_s, base_s) = worker.time(calls_for(own_s), calls_for(base_s));
        const long own_calls = calls_for(own_s), base_calls = calls_for(base_s);
        const auto enough = LineProcess::after(options.seconds);
        ConfidenceInterval ratio;
        bool checked = false;
        for (size_t round = 0; round < most; round++) {
            const auto [a, b] = worker.time(own_calls, base_calls);
            own.push_back(a), ratios.push_back(b / a);
            if (ratios.size() < first_look) continue;
            ratio = interval_of_ranks(ratios);
            if (!checked && ratio.upper < 0.5 * best) break;
            if (!checked) {
                if (run.compares) worker.compare(first, inputs, task.seed + run.seed);
                checked = true;
                continue;
            }
            if (ratios.size() < fewest) continue;
            if (ratio.spread() < options.precision || ratio.upper < 0.8 * best || Clock::now() > enough) break;
        }
        result.seconds = median(own), result.ratio = ratio.centre, result.lower = ratio.lower, result.upper = ratio.upper;
        result.verdict = Verdict::slow;
        if (!checked) return;
        result.verdict = Verdict::measured;
        if (!run.compares) return;
        worker.aside([&] { inputs = random_inputs(run.program, extents, task.seed + 2 * run.seed + 1); });
        worker.compare(worker.run_on(inputs), inputs, task.seed + run.seed + 1);
    }

    // What is known badly is measured again, as far as it may matter; the closest counts.
    void run_until_known(const Run &run, const std::string &runner, double best, Measurement &result) const {
        for (int n = 0; n < run.most && !(n > 0 && stopped()); n++) {
            Measurement again = result;
            try {
                run_one(run, runner, best, again);
            } catch (const Failed &why) {
                if (n > 0 && why.verdict == Verdict::unmeasured) return;
                again.verdict = why.verdict, again.message = why.message;
            }
            auto width = [](const Measurement &m) { return m.upper - m.lower; };
            if (n == 0 || again.verdict != Verdict::measured || width(again) < width(result)) result = again;
            if (result.verdict != Verdict::measured || width(result) / 2 <= options.widest * result.ratio || result.upper < 0.8 * best)
                return;
        }
    }

    // In three processes, where it may be the best: what counts is the one in the middle, since where a process's memory comes to lie
    // changes ratios by more than their spread within it, and a search that goes by the luckiest finds luck.
    void run_in_the_middle(Run run, const std::string &runner, double best, Measurement &result) const {
        constexpr size_t odd = 3;
        const Measurement before = result;
        std::vector<Measurement> all;
        for (size_t n = 0; n < odd; n++) {
            Measurement one = before;
            run_until_known(run, runner, best, one);
            if (n > 0 && one.verdict == Verdict::unmeasured) break;  // stopped
            if (!is_timed(one.verdict)) {
                result = one;
                return;
            }
            all.push_back(one);
            if (one.upper < 0.8 * best) break;
            run.compares = false, run.most = 1;  // it is the same program
        }
        std::sort(all.begin(), all.end(), [](const Measurement &a, const Measurement &b) { return a.ratio < b.ratio; });
        result = all[(all.size() - 1) / 2];
    }

    // In processes of its own, for an interval that holds from one to the next: where a process's memory comes to lie, and what else runs
    // meanwhile, changes ratios by more than their spread within one. Where a gain may be none, as many processes decide once more.
    void run_in_processes(Run run, const std::string &runner, size_t comparisons, Measurement &result) const {
        std::vector<double> seconds, ratios;
        run.most = 1;
        for (size_t look = 0; look < looks; look++) {
            for (size_t n = 0; n < processes; n++) {
                Measurement one = result;
                run_until_known(run, runner, 0, one);
                if (one.verdict == Verdict::unmeasured && look > 0) return;  // stopped: what the first look saw counts
                if (one.verdict != Verdict::measured) {
                    result = one;
                    return;
                }
                seconds.push_back(one.seconds), ratios.push_back(one.ratio);
                result.workspace_bytes = one.workspace_bytes;
                run.compares = false;  // it is the same program
            }
            const ConfidenceInterval interval = interval_of_processes(ratios, comparisons);
            result.verdict = Verdict::measured;
            result.seconds = median(seconds), result.ratio = interval.centre, result.lower = interval.lower, result.upper = interval.upper;
            if (!is_undecided(interval)) return;
        }
    }

    // Why the base fails on the runner too; nothing where it does not.
    std::optional<std::string> broken_by(const std::string &runner, const fs::path &log) const {
        constexpr int tries = 2;
        std::string why;
        for (int n = 0; n < tries; n++) {
            try {
                const Inputs inputs = random_inputs(base, all_extents(task.algorithm, task.extents), task.seed);
                WorkerClient worker(task, base, command_of(built->base(), runner), limits_of(runner), log);
                worker.compare(worker.run_on(inputs), inputs, task.seed);
                return std::nullopt;
            } catch (const Failed &failed) {
                why = failed.message;
                if (failed.verdict == Verdict::unmeasured) return std::nullopt;
            }
        }
        return why;
    }

    template <typename Work>
    static void start(Work work, std::vector<std::thread> &workers) {
        try {
            workers.emplace_back(work);
        } catch (const std::system_error &error) { exhausted("a thread that runs candidates", error.code().value()); }
    }

    bool has_runner() const {
        return std::any_of(options.runners.begin(), options.runners.end(), [](const std::string &runner) { return !runner.empty(); });
    }

    void run_all(const std::vector<TileProgram> &programs, double best, std::vector<Measurement> &results,
                 const std::function<void(size_t, const Measurement &)> &done) {
        std::deque<size_t> open;
        std::mutex one_at_a_time;
        std::exception_ptr failure;  // the first; of what measures or is told, not of a candidate
        std::string last_words;
        for (size_t i = 0; i < programs.size(); i++) open.push_back(i);
        auto next = [&]() -> std::optional<size_t> {
            const std::lock_guard<std::mutex> lock(one_at_a_time);
            if (failure || open.empty() || stopped()) return std::nullopt;
            const size_t i = open.front();
            open.pop_front();
            return i;
        };
        auto tell = [&](size_t i) {
            const std::lock_guard<std::mutex> lock(one_at_a_time);
            if (!failure && results[i].verdict != Verdict::unmeasured) done(i, results[i]);
        };
        auto give_up = [&](size_t runner, size_t i, const std::string &why) {
            const std::lock_guard<std::mutex> lock(one_at_a_time);
            broken.insert(runner);
            open.push_front(i);
            last_words =
                options.runners[runner].empty() ? "this machine: " + why : fmt::format("runner '{}': {}", options.runners[runner], why);
            if (options.warn && broken.size() < options.runners.size())
                options.warn(fmt::format("{}, with the schedule to beat too; it is given up, and {} of {} measure on", last_words,
                                         options.runners.size() - broken.size(), options.runners.size()));
        };
        auto work = [&](size_t runner) {
            while (const std::optional<size_t> i = next()) {
                Measurement &result = results[*i];
                if (result.verdict != Verdict::refused && result.verdict != Verdict::uncompiled) {
                    const Measurement before = result;
                    const Run run{programs[*i], built->candidate(*i), *i};
                    if (comparisons > 0) run_in_processes(run, options.runners[runner], comparisons, result);
                    else run_in_the_middle(run, options.runners[runner], best, result);
                    if (result.verdict == Verdict::crashed || result.verdict == Verdict::wrong)
                        if (const auto why = broken_by(options.runners[runner], built->candidate(*i).string() + ".base")) {
                            result = before;
                            return give_up(runner, *i, *why);
                        }
                    std::error_code stays;  // until the folder goes
                    fs::remove(built->candidate(*i), stays);
                }
                tell(*i);
            }
        };
        // An exception that left a thread would end the process.
        auto guarded = [&](const auto &part) {
            try {
                part();
            } catch (...) {
                const std::lock_guard<std::mutex> lock(one_at_a_time);
                if (!failure) failure = std::current_exception();
            }
        };
        while (!open.empty() && !failure && !stopped()) {
            if (broken.size() == options.runners.size())
                throw UserError(
                    "tune.runner",
                    fmt::format("{}: expected a runner that runs the schedule to beat; {}. {} and go on with --resume, or name another "
                                "with --runner.",
                                task.algorithm.name, last_words,
                                has_runner() ? "Fix it" : "Fix what it says, or give it longer with --run-limit-s, or a smaller shape,"));
            std::vector<size_t> whole;
            for (size_t r = 0; r < options.runners.size(); r++)
                if (!broken.count(r)) whole.push_back(r);
            std::vector<std::thread> workers;
            guarded([&] {
                for (size_t r : whole) start([&guarded, &work, r] { guarded([&] { work(r); }); }, workers);
            });
            for (std::thread &t : workers) t.join();
        }
        if (failure) std::rethrow_exception(failure);
    }
};

void stopped_before_the_base(const std::string &task) {
    throw UserError("tune.stopped",
                    task + ": stopped before the schedule to beat was measured; nothing is written. The same command begins again.");
}

Measurer::Measurer(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base)
    : state_(new State{task, options, base, {}, {}, {}, 0}) {
    auto check_stopped = [&] {
        if (state_->stopped()) stopped_before_the_base(task.algorithm.name);
    };
    try {
        state_->built = std::make_unique<Programs>(task, options, base, [state = state_.get()] { return state->stopped(); });
    } catch (const UserError &) {
        check_stopped();  // what Ctrl-C at a terminal ends with it
        throw;
    }
    check_stopped();
}

Measurer::~Measurer() = default;

void Measurer::measure(const std::vector<TileProgram> &programs, double best,
                       const std::function<void(size_t, const Measurement &)> &done) {
    std::vector<Measurement> results(programs.size());
    for (size_t i = 0; i < programs.size(); i++) {
        try {
            if (const std::vector<std::string> assumed = verify(programs[i]); !assumed.empty())
                throw UserError("schedule.unproved", assumed.front());
        } catch (const UserError &error) { results[i].verdict = Verdict::refused, results[i].message = error.what(); }
    }
    state_->built->build(programs, results);
    state_->run_all(programs, best, results, done);
}

void Measurer::end_at(std::chrono::steady_clock::time_point time) { state_->end = time; }

void Measurer::never_stop() {
    state_->options.stop = nullptr;
    state_->end.reset();
}

void Measurer::confirm(const std::vector<TileProgram> &programs, size_t comparisons,
                       const std::function<void(size_t, const Measurement &)> &done) {
    state_->comparisons = comparisons;
    measure(programs, 0, done);
    state_->comparisons = 0;
}

}  // namespace tessera
