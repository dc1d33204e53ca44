#include "autotune/measure.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "algorithms/error.h"
#include "autotune/conversation.h"
#include "autotune/interval.h"
#include "autotune/owned_folder.h"
#include "autotune/packing_programs.h"
#include "bench/caller.h"
#include "bench/inputs.h"
#include "bench/output_folder.h"
#include "bench/shell_words.h"
#include "compiler/c_names.h"
#include "compiler/emit_gpu.h"
#include "compiler/object_file.h"
#include "compiler/verify_tiles.h"

namespace tessera {

const std::map<std::string, std::string> &measuring_sources();

namespace fs = std::filesystem;
using Clock = LineProcess::Clock;

namespace {

constexpr const char *gpu_runtime = "runtime/opencl.c";

}  // namespace

struct Measurer::State {
    Subject subject;
    MeasureOptions options;
    TileProgram base;
    OwnedFolder folder;
    std::optional<Clock::time_point> end;
    std::set<size_t> broken;  // runners
    size_t comparisons = 0;   // that are believed together; 0 while one process tells

    bool stopped() const {
        return (options.stop && options.stop->load()) || (options.abandon && options.abandon->load()) || (end && Clock::now() >= *end);
    }

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

    // Sources and objects that every candidate's program shares; and a program in which the base stands on both sides, which tells a
    // runner that fails from a candidate that does.
    void prepare() {
        std::vector<std::string> sources;
        for (const auto &[name, text] : measuring_sources()) {
            fs::create_directories((folder.path() / name).parent_path());
            write_into(folder.path() / name, text);
            if (name.ends_with(".c") && (subject.target.is_gpu() || name != gpu_runtime)) sources.push_back((folder.path() / name).string());
        }
        const Kernel candidate{"tessera_candidate", {{{}, base}}};
        write_into(folder.path() / "calls.c",
                   caller_source("call_candidate", candidate) + caller_source("call_base", {"tessera_base", {{{}, base}}}) + packs_source() +
                       fmt::format("const int measured_arguments = {}, measured_parameters = {};\n", base.arguments.size(), base.parameters.size()) +
                       "int measured_call(int which, const void *const *t, const void *p, const void *c, uint64_t *bytes) {\n"
                       "    return which ? call_base(t, p, c, bytes, bytes != 0) : call_candidate(t, p, c, bytes, bytes != 0);\n}\n");
        sources.push_back((folder.path() / "calls.c").string());
        for (const std::string &source : sources) {
            shared_objects.push_back(source + ".o");
            compile({"-std=gnu99", "-O1", "-I", folder.path().string(), "-I", (folder.path() / "runtime").string(), "-c", source, "-o", shared_objects.back()});
        }
        LimitedProcess process(compiling(subject.algorithm.name), options.compile, [&] {
            keep_temporaries();
            make_code(kernels_of("tessera_base", base), base_code());
            std::vector<std::string> both = {"", "_workspace"};
            for (const std::string &suffix : packs_of(base)) both.insert(both.end(), {suffix, suffix + "_size"});
            std::string same = "-Wl";
            for (const std::string &suffix : both) same += fmt::format(",--defsym=tessera_candidate{0}=tessera_base{0}", suffix);
            link(base_path(), {same});
        });
        if (LimitedProcess::wait_for_any({&process}, [this] { return stopped(); })) process.finish();
    }
    std::vector<std::string> shared_objects;

    fs::path base_path() const { return folder.path() / "base"; }
    fs::path base_code() const { return folder.path() / "base.code"; }

    // The caller's tensor, whether the program takes it as it is or packed.
    static const Tensor &operand_of(const Argument &a) { return a.packed ? a.packed->operand : a.tensor; }

    static std::vector<std::string> packs_of(const TileProgram &program) {
        std::vector<std::string> all;
        for (const Argument &a : program.arguments)
            if (a.packed) all.push_back(c_packing_suffix(operand_of(a).name));
        return all;
    }

    // A kernel, and what packs for it.
    std::vector<Kernel> kernels_of(const std::string &name, const TileProgram &program) const {
        std::vector<Kernel> all = {{name, {{{}, program}}}};
        for (const auto &[i, packing] : packings_of(subject.algorithm, program, subject.target))
            all.push_back({name + c_packing_suffix(operand_of(program.arguments[i]).name), {{{}, packing}}});
        return all;
    }

    // The linker finds what packs an argument where a kernel has that.
    std::string packs_source() const {
        std::string declared, cases;
        for (size_t i = 0; i < base.arguments.size(); i++)
            for (int which = 0; which < 2 && !base.arguments[i].written; which++) {
                const std::string name = (which ? "tessera_base" : "tessera_candidate") + c_packing_suffix(operand_of(base.arguments[i]).name);
                declared += fmt::format("extern int {0}(const void *, const void *, const void *) __attribute__((weak));\n"
                                        "extern int {0}_size(const void *, const void *, uint64_t *) __attribute__((weak));\n",
                                        name);
                cases += fmt::format("    if (i == {0} && which == {1} && {2}) return bytes ? {2}_size(operand, c, bytes) : {2}(operand, packed, c);\n", i, which, name);
            }
        return declared + "int measured_pack(int which, int i, const void *operand, const void *packed, const void *c, uint64_t *bytes) {\n" + cases +
               "    (void)which, (void)i, (void)operand, (void)packed, (void)c, (void)bytes;\n    return 0;\n}\n";
    }

    // What is linked of a kernel: a library, or an object whose functions give a device its kernels as source.
    void make_code(const std::vector<Kernel> &kernels, const fs::path &code) const {
        if (!subject.target.is_gpu()) return emit_library(kernels, subject.target, {code, {}});
        const GpuSource source = tessera::kernels_of(kernels, subject.target);
        const fs::path host = code.string() + ".c";
        write_into(host, host_of(kernels, subject.target, source.kernels, source.uses_double));
        compile({"-std=c99", "-O1", "-I", folder.path().string(), "-I", (folder.path() / "runtime").string(), "-c", host.string(), "-o", code.string()});
        fs::remove(host);
    }

    // A compiler that is killed leaves its temporary files behind: in the folder, which goes with this object.
    void keep_temporaries() const { setenv("TMPDIR", folder.path().c_str(), 1); }

    void link(const fs::path &program, const std::vector<std::string> &more) const {
        std::vector<std::string> arguments = {"-o", program.string()};
        arguments.insert(arguments.end(), shared_objects.begin(), shared_objects.end());
        arguments.insert(arguments.end(), more.begin(), more.end());
        for (const std::string &suffix : packs_of(base)) arguments.push_back("-Wl,-u,tessera_base" + suffix);
        arguments.insert(arguments.end(), {base_code().string(), "-lpthread", "-lm"});
        if (subject.target.is_gpu()) arguments.push_back("-lOpenCL");
        compile(arguments);
    }

    // What a program that links it loads, but for what every kernel has alike: the check of its arguments.
    uint64_t code_bytes(const fs::path &code) const {
        const std::string bytes = read_file(code);
        if (subject.target.is_gpu()) return loaded_bytes(bytes);
        uint64_t all = 0;
        for (const auto &[name, object] : members_of(bytes))
            if (!name.ends_with(".entry.o")) all += loaded_bytes(object);
        return all;
    }

    fs::path program_path(size_t i) const { return folder.path() / ("candidate" + std::to_string(i)); }
    fs::path bytes_path(size_t i) const { return folder.path() / ("bytes" + std::to_string(i)); }

    // In a process with limits: the library, then the program.
    void build(const TileProgram &program, size_t i) const {
        keep_temporaries();
        const fs::path code = folder.path() / fmt::format("candidate{}.code", i);
        make_code(kernels_of("tessera_candidate", program), code);
        std::vector<std::string> more;
        for (const std::string &suffix : packs_of(program)) more.push_back("-Wl,-u,tessera_candidate" + suffix);
        more.push_back(code.string());
        link(program_path(i), more);
        write_into(bytes_path(i), std::to_string(code_bytes(code)));
        fs::remove(code);
    }

    uint64_t bytes_built(size_t i) const {
        uint64_t bytes = 0;
        if (!(std::ifstream(bytes_path(i)) >> bytes))
            throw UserError("output.temporary", fmt::format("file '{}': expected the size of a candidate's code, which was just written to it; it cannot be read. "
                                                            "Leave the folder of temporary files alone, or raise the limit on open files (ulimit -n), and go on with --resume.",
                                                            bytes_path(i).string()));
        return bytes;
    }

    // A full disk and a machine that has no more processes or files are no fault of a candidate's. A C compiler says what it lacks in words
    // of its own, so the folder is asked whether it has room for a program.
    void check_is_of_candidate(const UserError &error) const {
        if (error.id().starts_with("output.") || error.id() == "machine.exhausted") throw error;
        if (error.id() != "command.cc") return;
        const fs::path room = folder.path() / "room";
        std::error_code unknown;
        const uint64_t size = fs::file_size(base_path(), unknown);
        if (!unknown) write_into(room, std::string(size, 'x'));
        fs::remove(room, unknown);
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
            const std::optional<size_t> done = LimitedProcess::wait_for_any(processes, [this] { return stopped(); });
            if (!done) return;
            Measurement &result = results[running[*done].program];
            try {
                running[*done].process->finish();
                result.compile_s = std::chrono::duration<double>(Clock::now() - running[*done].start).count();
            } catch (const UserError &error) {
                check_is_of_candidate(error);
                result.verdict = Verdict::uncompiled, result.message = error.what();
            } catch (const InternalError &error) {
                result.verdict = Verdict::uncompiled, result.message = error.what();
            }
            if (result.verdict != Verdict::uncompiled) result.code_bytes = bytes_built(running[*done].program);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(*done));
        }
    }

    // Drivers keep what they compiled: here among what goes with this object.
    std::string command_of(const fs::path &program, const std::string &runner) const {
        const bool is_driven_here = subject.target.is_gpu() && runner.empty();
        const std::string cache = is_driven_here ? "env " + shell_word("POCL_CACHE_DIR=" + (folder.path() / "driver").string()) + " " : "";
        return cache + (runner.empty() ? "" : runner + " ") + shell_word(program.string());
    }
    ConversationLimits limits_of(const std::string &runner) const {
        const bool limited = runner.empty() && !subject.target.is_gpu();  // drivers reserve address space by the terabyte
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
        const DimExtents extents = all_extents(subject.algorithm, subject.extents);
        Inputs inputs = random_inputs(run.program, extents, subject.seed + 2 * run.seed);
        Conversation talk(subject, run.program, command_of(run.path, runner), limits_of(runner), run.path.string() + ".said");
        if (options.cold) talk.time_cold();
        const Conversation::Ran first = talk.run_on(inputs);
        result.workspace_bytes = first.workspace_bytes;
        std::vector<double> own, ratios;
        auto calls_for = [least](double seconds) { return std::clamp<long>(static_cast<long>(std::ceil(least / std::max(seconds, 1e-9))), 1, 1000000); };
        auto [own_s, base_s] = talk.time(calls_for(first.seconds), 1);
        std::tie(own_s, base_s) = talk.time(calls_for(own_s), calls_for(base_s));
        const long own_calls = calls_for(own_s), base_calls = calls_for(base_s);
        const auto enough = LineProcess::after(options.seconds);
        ConfidenceInterval ratio;
        bool checked = false;
        for (size_t round = 0; round < most; round++) {
            const auto [a, b] = talk.time(own_calls, base_calls);
            own.push_back(a), ratios.push_back(b / a);
            if (ratios.size() < first_look) continue;
            ratio = interval_of_ranks(ratios);
            if (!checked && ratio.upper < 0.5 * best) break;
            if (!checked) {
                if (run.compares) talk.compare(first, inputs, subject.seed + run.seed);
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
        talk.aside([&] { inputs = random_inputs(run.program, extents, subject.seed + 2 * run.seed + 1); });
        talk.compare(talk.run_on(inputs), inputs, subject.seed + run.seed + 1);
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
            if (result.verdict != Verdict::measured || width(result) / 2 <= options.widest * result.ratio || result.upper < 0.8 * best) return;
        }
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
                const Inputs inputs = random_inputs(base, all_extents(subject.algorithm, subject.extents), subject.seed);
                Conversation talk(subject, base, command_of(base_path(), runner), limits_of(runner), log);
                talk.compare(talk.run_on(inputs), inputs, subject.seed);
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
        } catch (const std::system_error &error) {
            exhausted("a thread that runs candidates", error.code().value());
        }
    }

    void run_all(const std::vector<TileProgram> &programs, double best, std::vector<Measurement> &results, const std::function<void(size_t, const Measurement &)> &done) {
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
            last_words = fmt::format("runner '{}': {}", options.runners[runner], why);
            if (options.warn && broken.size() < options.runners.size())
                options.warn(fmt::format("{}, with the schedule to beat too; it is given up, and {} of {} measure on", last_words, options.runners.size() - broken.size(), options.runners.size()));
        };
        auto work = [&](size_t runner) {
            while (const std::optional<size_t> i = next()) {
                Measurement &result = results[*i];
                if (result.verdict != Verdict::refused && result.verdict != Verdict::uncompiled) {
                    const Measurement before = result;
                    const Run run{programs[*i], program_path(*i), *i};
                    if (comparisons > 0) run_in_processes(run, options.runners[runner], comparisons, result);
                    else run_until_known(run, options.runners[runner], best, result);
                    if (result.verdict == Verdict::crashed || result.verdict == Verdict::wrong)
                        if (const auto why = broken_by(options.runners[runner], program_path(*i).string() + ".base")) {
                            result = before;
                            return give_up(runner, *i, *why);
                        }
                    std::error_code stays;  // until the folder goes
                    fs::remove(program_path(*i), stays);
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
                throw UserError("tune.runner", fmt::format("{}: expected a runner that runs the schedule to beat; {}. Mend it and go on with --resume, or name another with --runner.", subject.algorithm.name, last_words));
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
    throw UserError("tune.stopped", task + ": stopped before the schedule to beat was measured; nothing is written. The same command begins again.");
}

Measurer::Measurer(const Subject &subject, const MeasureOptions &options, const TileProgram &base) : state_(new State{subject, options, base, {}, {}, {}, 0, {}}) {
    if (state_->cc().empty()) throw UserError("command.cc", "--cc '" + options.cc + "': expected the name of a C compiler, with its options. Leave --cc out for 'cc'.");
    auto check_stopped = [&] {
        if (state_->stopped()) stopped_before_the_base(subject.algorithm.name);
    };
    try {
        state_->prepare();
    } catch (const UserError &) {
        check_stopped();  // what Ctrl-C at a terminal ends with it
        throw;
    }
    check_stopped();
}

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

void Measurer::end_at(std::chrono::steady_clock::time_point time) { state_->end = time; }

void Measurer::never_stop() {
    state_->options.stop = nullptr;
    state_->end.reset();
}

void Measurer::confirm(const std::vector<TileProgram> &programs, size_t comparisons, const std::function<void(size_t, const Measurement &)> &done) {
    state_->comparisons = comparisons;
    measure(programs, 0, done);
    state_->comparisons = 0;
}

}  // namespace tessera
