#include "autotune/measure.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "algorithms/error.h"
#include "autotune/line_process.h"
#include "autotune/sampled.h"
#include "bench/caller.h"
#include "bench/inputs.h"
#include "compiler/interpret.h"
#include "compiler/verify_tiles.h"

namespace tessera {

const std::map<std::string, std::string> &measuring_sources();

namespace fs = std::filesystem;
using Clock = LineProcess::Clock;

namespace {

constexpr std::pair<Verdict, const char *> verdict_names[] = {{Verdict::unmeasured, "unmeasured"}, {Verdict::measured, "measured"}, {Verdict::slow, "slow"},       {Verdict::refused, "refused"},
                                                              {Verdict::uncompiled, "uncompiled"}, {Verdict::crashed, "crashed"}, {Verdict::wrong, "wrong"}};
constexpr std::byte pattern{0xa5};
constexpr double most_steps = 3e8;  // of the interpreter: about a second

Clock::time_point after(double seconds) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)); }

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The median and its 95% interval, by ranks (normal approximation of the binomial).
struct Centre {
    double median = 0, lower = 0, upper = 0;
    double spread() const { return (upper - lower) / 2 / median; }
};

Centre centre_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size()), half = 0.98 * std::sqrt(n);
    auto at = [&](double rank) { return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))]; };
    return {at(std::floor(n / 2)), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half))};
}

// What a program said that it should not have said, or did not say.
struct Failed {
    Verdict verdict;
    std::string message;
};

}  // namespace

const char *name_of(Verdict verdict) {
    for (const auto &[v, name] : verdict_names)
        if (v == verdict) return name;
    throw InternalError("every verdict has a name");
}

Verdict verdict_named(const std::string &name) {
    for (const auto &[v, n] : verdict_names)
        if (n == name) return v;
    throw InternalError("there is no verdict '" + name + "'");
}

struct Measurer::State {
    Subject subject;
    MeasureOptions options;
    TemporaryFolder folder;

    std::vector<std::string> cc() const {
        std::vector<std::string> words;
        std::string word;
        for (char c : options.cc + " ") {
            if (c != ' ') word += c;
            else if (!word.empty()) words.push_back(std::exchange(word, ""));
        }
        return words;
    }

    void compile(const std::vector<std::string> &arguments) const {
        std::vector<std::string> all = cc();
        all.insert(all.end(), arguments.begin(), arguments.end());
        run_cc(all, folder.path() / ("cc" + std::to_string(getpid()) + ".log"));
    }

    // Sources and objects that every candidate's program shares.
    void prepare(const TileProgram &base) {
        std::vector<std::string> sources;
        for (const auto &[name, text] : measuring_sources()) {
            fs::create_directories((folder.path() / name).parent_path());
            std::ofstream(folder.path() / name, std::ios::binary) << text;
            if (name.ends_with(".c")) sources.push_back((folder.path() / name).string());
        }
        const Kernel candidate{"tessera_candidate", {{{}, base}}}, other{"tessera_base", {{{}, base}}};
        std::ofstream(folder.path() / "calls.c") << caller_source("call_candidate", candidate) << caller_source("call_base", other)
                                                 << fmt::format("const int measured_arguments = {}, measured_parameters = {};\n", base.arguments.size(), base.parameters.size())
                                                 << "int measured_call(int which, const void *const *t, const void *p, const void *c, uint64_t *bytes) {\n"
                                                    "    return which ? call_base(t, p, c, bytes, bytes != 0) : call_candidate(t, p, c, bytes, bytes != 0);\n}\n";
        sources.push_back((folder.path() / "calls.c").string());
        std::vector<std::string> objects;
        for (const std::string &source : sources) {
            objects.push_back(source + ".o");
            compile({"-std=gnu99", "-O1", "-I", folder.path().string(), "-I", (folder.path() / "runtime").string(), "-c", source, "-o", objects.back()});
        }
        run_limited(compiling(subject.algorithm.name), options.compile, [&] { emit_library({other}, subject.target, {folder.path() / "libbase.a", {}}); });
        shared_objects = objects;
    }
    std::vector<std::string> shared_objects;

    fs::path program_path(size_t i) const { return folder.path() / ("candidate" + std::to_string(i)); }

    // In a process with limits: the library, then the program.
    void build(const TileProgram &program, size_t i) const {
        const fs::path archive = folder.path() / fmt::format("libcandidate{}.a", i);
        emit_library({Kernel{"tessera_candidate", {{{}, program}}}}, subject.target, {archive, {}});
        std::vector<std::string> arguments = {"-o", program_path(i).string()};
        arguments.insert(arguments.end(), shared_objects.begin(), shared_objects.end());
        arguments.insert(arguments.end(), {archive.string(), (folder.path() / "libbase.a").string(), "-lpthread", "-lm"});
        compile(arguments);
        std::ofstream(folder.path() / fmt::format("bytes{}", i)) << fs::file_size(archive);
        fs::remove(archive);
    }

    void build_all(const std::vector<TileProgram> &programs, std::vector<Measurement> &results) const {
        struct Running {
            size_t program;
            Clock::time_point start;
            std::unique_ptr<LimitedProcess> process;
        };
        std::vector<Running> running;
        size_t next = 0;
        while (next < programs.size() || !running.empty()) {
            for (; next < programs.size() && running.size() < static_cast<size_t>(std::max(options.jobs, 1)); next++) {
                if (results[next].verdict == Verdict::refused) continue;
                running.push_back({next, Clock::now(), std::make_unique<LimitedProcess>(compiling(subject.algorithm.name), options.compile, [this, &programs, next] { build(programs[next], next); })});
            }
            if (running.empty()) break;
            std::vector<LimitedProcess *> processes;
            for (Running &r : running) processes.push_back(r.process.get());
            const size_t done = LimitedProcess::wait_for_any(processes);
            Measurement &result = results[running[done].program];
            try {
                running[done].process->finish();
                result.compile_s = std::chrono::duration<double>(Clock::now() - running[done].start).count();
                std::ifstream(folder.path() / fmt::format("bytes{}", running[done].program)) >> result.code_bytes;
            } catch (const std::exception &error) {
                result.verdict = Verdict::uncompiled, result.message = error.what();
            }
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(done));
        }
    }

    // One candidate's program while it runs.
    struct Talk {
        const State &state;
        const TileProgram &program;
        DimExtents extents;
        LineProcess process;
        Clock::time_point end;

        Talk(const State &s, const TileProgram &p, size_t i, const std::string &runner)
            : state(s),
              program(p),
              extents(all_extents(s.subject.algorithm, s.subject.extents)),
              process((runner.empty() ? "" : runner + " ") + "'" + s.program_path(i).string() + "'", runner.empty() ? s.options.run_memory_bytes : 0, s.folder.path() / fmt::format("said{}", i)),
              end(after(s.options.run_limit_s)) {}

        [[noreturn]] void fail(const std::string &why) {
            const std::string how = process.ended();
            throw Failed{Verdict::crashed, why.empty() ? how : why + "; " + how};
        }
        void say(const std::string &text) {
            if (!process.write(text, end)) fail("");
        }
        std::string hear() {
            const std::optional<std::string> text = process.line(end);
            if (!text) fail("");
            return *text;
        }

        void begin() {
            say(fmt::format("limit {}\nthreads {}\n", static_cast<int>(std::ceil(state.options.run_limit_s)) + 1, state.subject.threads));
            for (size_t i = 0; i < program.arguments.size(); i++) {
                const Argument &a = program.arguments[i];
                const std::vector<int64_t> shape = shape_of(a.tensor, extents);
                std::string line = fmt::format("shape {} {} {} {}", i, abi_dtype(a.tensor.dtype), a.written ? 1 : 0, shape.size());
                for (int64_t n : shape) line += fmt::format(" {}", n);
                say(line + "\n");
            }
        }

        Array held_before(const Argument &a, const Inputs &inputs) const {
            if (a.read) return inputs.tensors.at(a.tensor.name);
            Array array(a.tensor.dtype, shape_of(a.tensor, extents));
            std::fill(array.data.begin(), array.data.end(), pattern);
            return array;
        }

        void send(const Inputs &inputs) {
            const std::vector<int64_t> words = parameter_words(program, inputs.parameters);
            for (size_t i = 0; i < words.size(); i++) say(fmt::format("parameter {} {}\n", i, words[i]));
            for (size_t i = 0; i < program.arguments.size(); i++) {
                const Array array = held_before(program.arguments[i], inputs);
                say(fmt::format("tensor {} {}\n", i, array.data.size()));
                say(std::string(reinterpret_cast<const char *>(array.data.data()), array.data.size()));
            }
        }

        struct Ran {
            double seconds = 0;
            uint64_t workspace_bytes = 0;
            std::map<size_t, Array> written;
        };
        Ran run(int which = 0) {
            say(fmt::format("run {}\n", which));
            const std::string said = hear();
            Ran ran;
            int status = 0;
            unsigned long long bytes = 0;
            if (std::sscanf(said.c_str(), "ran %d %lf %llu", &status, &ran.seconds, &bytes) != 3 || !(ran.seconds >= 0)) fail("it answered '" + said.substr(0, 80) + "'");
            ran.workspace_bytes = bytes;
            if (status == -1000) throw Failed{Verdict::wrong, "it wrote outside of its arguments"};
            if (status != 0) throw Failed{Verdict::crashed, fmt::format("it refuses its arguments with status {}", status)};
            for (size_t i = 0; i < program.arguments.size(); i++) {
                if (!program.arguments[i].written) continue;
                Array array(program.arguments[i].tensor.dtype, shape_of(program.arguments[i].tensor, extents));
                if (hear() != fmt::format("tensor {} {}", i, array.data.size())) fail("it did not give its results");
                if (!process.read(array.data.data(), array.data.size(), end)) fail("");
                ran.written.emplace(i, std::move(array));
            }
            return ran;
        }

        std::pair<double, double> time(long calls, long base_calls) {
            say(fmt::format("time {} {}\n", calls, base_calls));
            const std::string said = hear();
            double own = 0, other = 0;
            if (std::sscanf(said.c_str(), "took %lf %lf", &own, &other) != 2 || !(own > 0) || !(other > 0)) fail("it answered '" + said.substr(0, 80) + "'");
            return {own / static_cast<double>(calls), other / static_cast<double>(base_calls)};
        }

        // What is too long to interpret is compared with the base's results, within what another order of additions may change.
        void compare(const Ran &ran, const Inputs &inputs, uint64_t seed) {
            const TileProgram blocks = sampled(program, extents, seed);
            if (steps_of(blocks, extents) <= most_steps) compare_bits(blocks, ran, inputs);
            else compare_nearly(ran, run(1));
        }

        void compare_nearly(const Ran &ran, const Ran &base) const {
            for (const auto &[i, got] : ran.written) {
                const double near = size_of(got.dtype) < 4 && is_float(got.dtype) ? 3e-2 : 1e-3;
                const std::vector<double> values = got.values(), expected = base.written.at(i).values();
                double largest = 0;
                for (double e : expected)
                    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
                for (size_t at = 0; at < values.size(); at++)
                    if (!(std::abs(values[at] - expected[at]) <= near * largest) && !(std::isnan(values[at]) && std::isnan(expected[at])) && values[at] != expected[at])
                        throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; the base gives {:.9g}", at, program.arguments[i].tensor.name, values[at], expected[at])};
            }
        }

        void compare_bits(const TileProgram &blocks, const Ran &ran, const Inputs &inputs) const {
            std::map<std::string, Array> arrays;
            std::map<std::string, TensorView> views;
            for (const Argument &a : program.arguments) arrays.emplace(a.tensor.name, held_before(a, inputs));
            for (auto &[name, array] : arrays) views[name] = array.view(name);
            InterpretOptions unchecked;
            unchecked.checked = false;
            interpret(blocks, views, extents, inputs.parameters, unchecked);
            for (const auto &[i, got] : ran.written) {
                const Argument &a = program.arguments[i];
                const Array &expected = arrays.at(a.tensor.name);
                const size_t size = static_cast<size_t>(size_of(a.tensor.dtype));
                const std::vector<std::byte> untouched(size, pattern);
                for (size_t at = 0; at < expected.data.size(); at += size) {
                    if (!a.read && std::memcmp(&expected.data[at], untouched.data(), size) == 0) continue;
                    if (std::memcmp(&expected.data[at], &got.data[at], size) == 0) continue;
                    const Scalar e = load_scalar(a.tensor.dtype, &expected.data[at]), g = load_scalar(a.tensor.dtype, &got.data[at]);
                    if (is_float(e.type) && std::isnan(e.real) && std::isnan(g.real)) continue;
                    throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; its tile program gives {:.9g}", at / size, a.tensor.name, is_float(g.type) ? g.real : static_cast<double>(g.integer),
                                                             is_float(e.type) ? e.real : static_cast<double>(e.integer))};
                }
            }
        }
    };

    void run_one(const TileProgram &program, size_t i, const std::string &runner, double best, Measurement &result) const {
        constexpr double least = 1e-3;  // seconds of calls in one round
        constexpr size_t fewest = 6, most = 400;
        Talk talk(*this, program, i, runner);
        Inputs inputs = random_inputs(program, talk.extents, subject.seed + 2 * i);
        talk.begin();
        talk.send(inputs);
        const Talk::Ran first = talk.run();
        result.workspace_bytes = first.workspace_bytes;
        std::vector<double> own, ratios;
        auto calls_for = [&](double seconds) { return std::clamp(std::lround(least / std::max(seconds, 1e-8)), 1L, 100000L); };
        auto [own_s, base_s] = talk.time(calls_for(first.seconds), 1);
        std::tie(own_s, base_s) = talk.time(calls_for(own_s), calls_for(base_s));
        const long own_calls = calls_for(own_s), base_calls = calls_for(base_s);
        const auto enough = after(options.seconds);
        Centre ratio;
        bool checked = false;
        for (size_t round = 0; round < most; round++) {
            const auto [a, b] = talk.time(own_calls, base_calls);
            own.push_back(a), ratios.push_back(b / a);
            if (ratios.size() < std::min<size_t>(fewest, 3)) continue;
            ratio = centre_of(ratios);
            if (!checked && ratio.upper < 0.5 * best) break;
            if (!checked) {
                talk.compare(first, inputs, subject.seed + i);
                checked = true;
                continue;
            }
            if (ratios.size() < fewest) continue;
            if (ratio.spread() < options.precision || ratio.upper < 0.8 * best || Clock::now() > enough) break;
        }
        result.seconds = median(own), result.ratio = ratio.median, result.lower = ratio.lower, result.upper = ratio.upper;
        result.verdict = Verdict::slow;
        if (!checked) return;
        inputs = random_inputs(program, talk.extents, subject.seed + 2 * i + 1);
        talk.send(inputs);
        talk.compare(talk.run(), inputs, subject.seed + i + 1);
        result.verdict = Verdict::measured;
    }

    void run_all(const std::vector<TileProgram> &programs, double best, std::vector<Measurement> &results, const std::function<void(size_t, const Measurement &)> &done) {
        std::atomic<size_t> next{0};
        std::mutex one_at_a_time;
        std::exception_ptr failed_to_tell;
        std::atomic<bool> failed{false};
        auto tell = [&](size_t i) {
            const std::lock_guard<std::mutex> lock(one_at_a_time);
            if (failed) return;
            try {
                done(i, results[i]);
            } catch (...) {
                failed_to_tell = std::current_exception();
                failed = true;
            }
        };
        auto work = [&](size_t runner) {
            for (size_t i; (i = next++) < programs.size();) {
                Measurement &result = results[i];
                if (failed || (options.stop && options.stop->load())) continue;
                if (result.verdict == Verdict::refused || result.verdict == Verdict::uncompiled) {
                    tell(i);
                    continue;
                }
                try {
                    run_one(programs[i], i, options.runners[runner], best, result);
                } catch (const Failed &why) {
                    result.verdict = why.verdict, result.message = why.message;
                } catch (const std::exception &error) {
                    result.verdict = Verdict::crashed, result.message = error.what();
                }
                fs::remove(program_path(i));
                tell(i);
            }
        };
        std::vector<std::thread> others;
        for (size_t r = 1; r < options.runners.size(); r++) others.emplace_back(work, r);
        work(0);
        for (std::thread &t : others) t.join();
        if (failed_to_tell) std::rethrow_exception(failed_to_tell);
    }
};

Measurer::Measurer(const Subject &subject, const MeasureOptions &options, const TileProgram &base) : state_(new State{subject, options, {}, {}}) { state_->prepare(base); }

Measurer::~Measurer() = default;

void Measurer::measure(const std::vector<TileProgram> &programs, double best, const std::function<void(size_t, const Measurement &)> &done) {
    std::vector<Measurement> results(programs.size());
    for (size_t i = 0; i < programs.size(); i++) {
        try {
            if (const std::vector<std::string> assumed = verify(programs[i]); !assumed.empty()) throw UserError("schedule.unproved", assumed.front());
        } catch (const UserError &error) {
            results[i].verdict = Verdict::refused, results[i].message = error.what();
        }
    }
    state_->build_all(programs, results);
    state_->run_all(programs, best, results, done);
}

void Measurer::confirm() {
    state_->options.seconds *= 3;
    state_->options.precision /= 3;
    state_->options.stop = nullptr;
}

}  // namespace tessera
