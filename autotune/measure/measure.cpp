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
    bool stops = true;        // by options.stop

    bool stopped() const {
        return (stops && options.stop && options.stop->load()) || (options.abandon && options.abandon->load()) ||
               (end && Clock::now() >= *end);
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

    static constexpr size_t places = 3;  // of memory
    double seconds_of_place() const { return options.seconds / places; }

    // A program to run, with the name that its files have.
    struct Run {
        const TileProgram &program;
        std::filesystem::path path;
        size_t seed;
        bool compares = true;  // its results
    };

    // One process of a candidate, beside the base: all of its rounds, in one place of memory after the other.
    class Process {
    public:
        Process(const State &state, const Run &run, const std::string &runner)
            : state_(state),
              run_(run),
              extents_(all_extents(state.task.algorithm, state.task.extents)),
              inputs_(planned_inputs(run.program, extents_, seed(), state.task.inputs)),
              worker_(state.task, run.program, state.command_of(run.path, runner), state.limits_of(runner), run.path.string() + ".said") {
            if (state.options.cold) worker_.time_cold();
            worker_.give(inputs_);
            const WorkerClient::Ran first = worker_.run();
            workspace_bytes_ = first.workspace_bytes;
            own_calls_ = calls_for(first.seconds);
            auto [own, base] = worker_.time(own_calls_, 1);
            if (own + base < least()) std::tie(own, base) = worker_.time(calls_for(own), calls_for(base));
            own_calls_ = calls_for(own), base_calls_ = calls_for(base);
        }

        // Rounds for at most so many seconds, but for the fewest that tell anything. A candidate that is clearly slower than half of the
        // best is timed no longer; the others are compared with their tile program, unless that was done before.
        Measurement measure(Measurement result, size_t fewest, double seconds, double best) {
            constexpr size_t most = 400, first_look = 3, six = 6;  // rounds; after the first look, what is far behind is timed no longer
            const auto enough = LineProcess::after(seconds);
            std::vector<double> own, ratios;
            ConfidenceInterval ratio;
            for (size_t round = 0; round < most; round++) {
                const auto [a, b] = worker_.time(own_calls_, base_calls_);
                own.push_back(a), ratios.push_back(b / a);
                if (ratios.size() < first_look) continue;
                ratio = interval_of_ranks(ratios);
                if (ratios.size() == first_look && ratio.upper < 0.5 * best) break;
                if (ratios.size() < fewest) continue;
                const bool is_precise = ratios.size() >= six && ratio.spread() < state_.options.precision;
                if (is_precise || ratio.upper < 0.8 * best || Clock::now() > enough) break;
            }
            result.seconds = median(own), result.ratio = ratio.centre, result.lower = ratio.lower, result.upper = ratio.upper;
            result.workspace_bytes = workspace_bytes_;
            result.verdict = ratios.size() <= first_look ? Verdict::slow : Verdict::measured;
            return result;
        }

        // Results of two sets of data.
        void compare() {
            if (!run_.compares) return;
            worker_.run();
            worker_.compare(state_.task.seed + run_.seed);
            inputs_ = planned_inputs(run_.program, extents_, seed() + 1, state_.task.inputs);
            worker_.give(inputs_);
            worker_.run();
            worker_.compare(state_.task.seed + run_.seed + 1);
        }

        void place() { worker_.place(); }

    private:
        const State &state_;
        const Run &run_;
        Extents extents_;
        InputPlan inputs_;
        WorkerClient worker_;
        uint64_t workspace_bytes_ = 0;
        long own_calls_ = 1, base_calls_ = 1;

        uint64_t seed() const { return state_.task.seed + 2 * run_.seed; }
        // Seconds of calls in one round; to empty the caches takes milliseconds a call.
        double least() const { return state_.options.cold ? 2e-5 : 1e-3; }
        long calls_for(double seconds) const {
            return std::clamp<long>(static_cast<long>(std::ceil(least() / std::max(seconds, 1e-9))), 1, 1000000);
        }
    };
    static void fail(const Failed &why, Measurement &result) { result.verdict = why.verdict, result.message = why.message; }

    // In three places of memory, where it may be the best: what counts is the one in the middle, since where memory comes to lie changes
    // ratios by more than their spread in one place, and a search that goes by the luckiest finds luck. What is known badly is measured
    // again elsewhere, as far as time allows, and the closest counts.
    void run_in_places(const Run &run, const std::string &runner, double best, Measurement &result) const {
        constexpr size_t fewest_first = 6, fewest_then = 5, most_again = 2;
        const Measurement before = result;
        const auto start = Clock::now();
        auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
        auto width = [](const Measurement &m) { return m.upper - m.lower; };
        auto may_win = [&](const Measurement &m) { return m.upper >= 0.8 * best; };
        std::vector<Measurement> all;
        try {
            Process process(*this, run, runner);
            result = process.measure(before, fewest_first, seconds_of_place(), best);
            if (result.verdict == Verdict::slow) return;
            process.compare();
            all.push_back(result);  // from here on it counts, also where time runs out
            for (size_t n = 0; n < most_again && may_win(all[0]) && width(all[0]) / 2 > options.widest * all[0].ratio; n++) {
                if (spent() + seconds_of_place() > options.seconds) break;
                process.place();
                const Measurement again = process.measure(before, fewest_first, seconds_of_place(), 0);
                if (width(again) < width(all[0])) all[0] = again;
            }
            while (all.size() < places && may_win(all.back())) {
                process.place();
                all.push_back(process.measure(before, fewest_then, seconds_of_place(), 0));
            }
        } catch (const Failed &why) {
            const bool is_cut_short = why.verdict == Verdict::unmeasured || why.verdict == Verdict::timed_out;
            if (all.empty() || !is_cut_short) result = before, fail(why, result);
            if (all.empty() || !is_cut_short) return;
        }
        std::sort(all.begin(), all.end(), [](const Measurement &a, const Measurement &b) { return a.ratio < b.ratio; });
        result = all[(all.size() - 1) / 2];
    }

    // In processes of its own, for an interval that holds from one to the next: where a process's memory comes to lie, and what else runs
    // meanwhile, changes ratios by more than their spread within one. Where a gain may be none, as many processes decide once more.
    void run_in_processes(Run run, const std::string &runner, size_t comparisons, Measurement &result) const {
        constexpr size_t fewest = 6;
        const Measurement before = result;
        std::vector<double> seconds, ratios;
        for (size_t look = 0; look < looks; look++) {
            for (size_t n = 0; n < processes; n++) {
                Measurement one = before;
                try {
                    Process process(*this, run, runner);
                    one = process.measure(before, fewest, 2 * seconds_of_place(), 0);
                    process.compare();
                } catch (const Failed &why) { fail(why, one); }
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
                const InputPlan inputs = planned_inputs(base, all_extents(task.algorithm, task.extents), task.seed, task.inputs);
                WorkerClient worker(task, base, command_of(built->base(), runner), limits_of(runner), log);
                worker.give(inputs);
                worker.run();
                worker.compare(task.seed);
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
                    else run_in_places(run, options.runners[runner], best, result);
                    if (result.verdict == Verdict::crashed || result.verdict == Verdict::timed_out || result.verdict == Verdict::wrong)
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
    : state_(new State{task, options, base, {}, {}, {}, 0, true}) {
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

void Measurer::stops(bool stops) {
    state_->stops = stops;
    state_->end.reset();
}

void Measurer::confirm(const std::vector<TileProgram> &programs, size_t comparisons,
                       const std::function<void(size_t, const Measurement &)> &done) {
    state_->comparisons = comparisons;
    measure(programs, 0, done);
    state_->comparisons = 0;
}

}  // namespace tessera
