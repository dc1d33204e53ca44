#include "autotune/measure/programs.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "autotune/measure/packing_programs.h"
#include "bench/measure/caller.h"
#include "compiler/abi/archive.h"
#include "compiler/abi/c_names.h"
#include "compiler/abi/object_file.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/tile/arguments.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

const std::map<std::string, std::string> &worker_sources();

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char *gpu_sources[] = {"runtime/gpu/gpu.c", "runtime/gpu/opencl.c", "autotune/measure/opencl_memory.c"};

// What `complete` makes of the worker's sources in a folder, for each compiler: it lasts as long as this process, so that a campaign of
// many tasks compiles them once. One at a time: what another has begun is waited for.
bool worker_objects(const std::string &cc, bool is_gpu, const std::function<bool(const fs::path &folder)> &complete) {
    static std::mutex one_at_a_time;
    static std::map<std::pair<std::string, bool>, std::unique_ptr<OwnedFolder>> kept;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    std::unique_ptr<OwnedFolder> &folder = kept[{cc, is_gpu}];
    if (!folder || !fs::exists(folder->path())) folder = std::make_unique<OwnedFolder>();
    return complete(folder->path());
}

}  // namespace

struct Programs::State {
    MeasurementTask task;
    MeasureOptions options;
    TileProgram base;
    std::function<bool()> stopped;
    OwnedFolder folder;

    std::vector<std::string> cc() const {
        std::vector<std::string> words;
        std::string word;
        for (char c : options.cc + " ") {
            if (c != ' ') word += c;
            else if (!word.empty()) words.push_back(std::exchange(word, ""));
        }
        return words;
    }

    // Whether it came to its end. Where this is a child with limits of its own, its parent asks whether to stop.
    bool compile(const std::vector<std::string> &arguments, const std::function<bool()> &asked = {}) const {
        std::vector<std::string> all = cc();
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run_cc(all, folder.path() / ("cc" + std::to_string(getpid()) + ".log"), options.compile, asked);
    }

    // False where it was stopped before.
    bool compile_source(const fs::path &source, const fs::path &object) const {
        return compile({"-std=gnu99", "-O2", task.target.is_gpu() ? "-DTESSERA_OPENCL=1" : "-DTESSERA_HOST=1", "-I", folder.path().string(),
                        "-I", (folder.path() / "runtime/abi").string(), "-c", source.string(), "-o", object.string()},
                       stopped);
    }

    // Sources and objects that every candidate's program shares; and a program in which the base stands on both sides, which tells a
    // runner that fails from a candidate that does.
    void prepare() {
        std::vector<fs::path> sources;
        for (const auto &[name, text] : worker_sources()) {
            fs::create_directories((folder.path() / name).parent_path());
            write_into(folder.path() / name, text);
            const bool for_gpu = std::find(std::begin(gpu_sources), std::end(gpu_sources), name) != std::end(gpu_sources);
            if (name.ends_with(".c") && (task.target.is_gpu() || !for_gpu)) sources.push_back(folder.path() / name);
        }
        const bool is_whole = worker_objects(options.cc, task.target.is_gpu(), [&](const fs::path &kept) {
            shared_objects.clear();
            for (const fs::path &source : sources) {
                const fs::path object = kept / fmt::format("{}.o", shared_objects.size()), begun = kept / "begun.o";
                shared_objects.push_back(object.string());
                if (fs::exists(object)) continue;
                if (!compile_source(source, begun)) return false;
                fs::rename(begun, object);
            }
            return true;
        });
        if (!is_whole) return;
        const Kernel candidate{"tessera_candidate", {{{}, base}}};
        const fs::path calls = folder.path() / "calls.c";
        write_into(calls,
                   caller_source("call_candidate", candidate) + caller_source("call_base", {"tessera_base", {{{}, base}}}) +
                       packs_source() +
                       fmt::format("const int measured_arguments = {}, measured_parameters = {};\n", base.arguments.size(),
                                   base.parameters.size()) +
                       "int measured_call(int which, const void *const *t, const void *p, const void *c, uint64_t *bytes) {\n"
                       "    return which ? call_base(t, p, c, bytes, bytes != 0) : call_candidate(t, p, c, bytes, bytes != 0);\n}\n");
        shared_objects.push_back(calls.string() + ".o");
        if (!compile_source(calls, shared_objects.back())) return;
        LimitedProcess process(compiling(task.algorithm.name), options.compile, [&] {
            keep_temporaries();
            make_code(kernels_of("tessera_base", base), base_code());
            std::vector<std::string> both = {"_table", "_workspace"};
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

    static std::vector<std::string> packs_of(const TileProgram &program) {
        std::vector<std::string> all;
        for (const Argument &a : program.arguments)
            if (a.packed) all.push_back(c_packing_suffix(declared_tensor(a).name));
        return all;
    }

    // A kernel, and what packs for it.
    std::vector<Kernel> kernels_of(const std::string &name, const TileProgram &program) const {
        std::vector<Kernel> all = {{name, {{{}, program}}}};
        for (const auto &[i, packing] : packings_of(task.algorithm, program, task.target))
            all.push_back({name + c_packing_suffix(declared_tensor(program.arguments[i]).name), {{{}, packing}}});
        return all;
    }

    // The linker finds what packs an argument where a kernel has that.
    std::string packs_source() const {
        std::string declared, cases;
        for (size_t i = 0; i < base.arguments.size(); i++)
            for (int which = 0; which < 2 && !base.arguments[i].written; which++) {
                const std::string name =
                    (which ? "tessera_base" : "tessera_candidate") + c_packing_suffix(declared_tensor(base.arguments[i]).name);
                declared += fmt::format(
                    "extern int32_t {0}(const void *, const void *, const void *) __attribute__((weak));\n"
                    "extern int32_t {0}_size(const void *, const void *, uint64_t *) __attribute__((weak));\n",
                    name);
                cases += fmt::format(
                    "    if (i == {0} && which == {1} && {2}) return bytes ? {2}_size(operand, c, bytes) : {2}(operand, packed, c);\n", i,
                    which, name);
            }
        return declared +
               "int measured_pack(int which, int i, const void *operand, const void *packed, const void *c, uint64_t *bytes) {\n" + cases +
               "    (void)which, (void)i, (void)operand, (void)packed, (void)c, (void)bytes;\n    return 0;\n}\n";
    }

    // What is linked of a kernel: a library, or an object whose functions give a device its kernels as source.
    void make_code(const std::vector<Kernel> &kernels, const fs::path &code) const {
        if (!task.target.is_gpu()) return emit_library(kernels, task.target, {code, {}});
        const GpuSource source = tessera::kernels_of(kernels, task.target);
        const fs::path host = code.string() + ".c";
        write_into(host, host_of(kernels, task.target, source.kernels, source.uses_double));
        compile({"-std=c99", "-O1", "-I", folder.path().string(), "-I", (folder.path() / "runtime/abi").string(), "-c", host.string(), "-o",
                 code.string()});
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
        if (task.target.is_gpu()) arguments.push_back("-lOpenCL");
        compile(arguments);
    }

    // What a program that links it loads, but for what every kernel has alike: the check of its arguments.
    uint64_t code_bytes(const fs::path &code) const {
        const std::string bytes = read_file(code);
        if (task.target.is_gpu()) return loaded_bytes(bytes);
        uint64_t all = 0;
        for (const auto &[name, object] : members_of(bytes))
            if (!name.ends_with(".entry.o")) all += loaded_bytes(object);
        return all;
    }

    fs::path candidate_path(size_t i) const { return folder.path() / ("candidate" + std::to_string(i)); }
    fs::path bytes_path(size_t i) const { return folder.path() / ("bytes" + std::to_string(i)); }

    // In a process with limits: the library, then the program.
    void build(const TileProgram &program, size_t i) const {
        keep_temporaries();
        const fs::path code = folder.path() / fmt::format("candidate{}.code", i);
        make_code(kernels_of("tessera_candidate", program), code);
        std::vector<std::string> more;
        for (const std::string &suffix : packs_of(program)) more.push_back("-Wl,-u,tessera_candidate" + suffix);
        more.push_back(code.string());
        link(candidate_path(i), more);
        write_into(bytes_path(i), std::to_string(code_bytes(code)));
        fs::remove(code);
    }

    uint64_t bytes_built(size_t i) const {
        uint64_t bytes = 0;
        if (!(std::ifstream(bytes_path(i)) >> bytes))
            throw UserError(
                "output.temporary",
                fmt::format(
                    "file '{}': expected the size of a candidate's code, which was just written to it; it cannot be read. "
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
                running.push_back({next, Clock::now(),
                                   std::make_unique<LimitedProcess>(compiling(task.algorithm.name), options.compile,
                                                                    [this, &programs, next] { build(programs[next], next); })});
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
            } catch (const InternalError &error) { result.verdict = Verdict::uncompiled, result.message = error.what(); }
            if (result.verdict != Verdict::uncompiled) result.code_bytes = bytes_built(running[*done].program);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(*done));
        }
    }
};

Programs::Programs(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base, std::function<bool()> stopped)
    : state_(new State{task, options, base, std::move(stopped), {}, {}}) {
    if (state_->cc().empty())
        throw UserError("command.cc",
                        "--cc '" + options.cc + "': expected the name of a C compiler, with its options. Leave --cc out for 'cc'.");
    state_->prepare();
}

Programs::~Programs() = default;

void Programs::build(const std::vector<TileProgram> &programs, std::vector<Measurement> &results) const {
    state_->build_all(programs, results);
}
fs::path Programs::folder() const { return state_->folder.path(); }
fs::path Programs::base() const { return state_->base_path(); }
fs::path Programs::candidate(size_t i) const { return state_->candidate_path(i); }

}  // namespace tessera
