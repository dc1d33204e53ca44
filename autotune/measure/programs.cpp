#include "autotune/measure/programs.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "autotune/measure/measured_kernels.h"
#include "autotune/measure/packing_programs.h"
#include "autotune/measure/worker_program.h"
#include "compiler/abi/c_names.h"
#include "compiler/tile/arguments.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Programs::State {
    MeasurementTask task;
    MeasureOptions options;
    TileProgram base;
    std::function<bool()> stopped;
    OwnedFolder folder;
    WorkerProgram worker;

    State(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base, const std::function<bool()> &stopped)
        : task(task), options(options), base(base), stopped(stopped), worker(task.target, options, folder.path(), stopped) {
        if (worker.is_whole()) prepare();
    }

    // A program in which the base stands on both sides, which tells a runner that fails from a candidate that does.
    void prepare() const {
        LimitedProcess process(compiling(task.algorithm.name), options.compile, [&] {
            keep_temporaries();
            worker.make_code(kernels_of(BASE_NAME, base), base_code());
            worker.complete(base_path(), {base_code()});
        });
        if (LimitedProcess::wait_for_any({&process}, [this] { return stopped(); })) process.finish();
    }

    fs::path base_path() const { return folder.path() / "base"; }
    fs::path base_code() const { return folder.path() / "base.code"; }

    // A kernel, and what packs for it.
    std::vector<Kernel> kernels_of(const std::string &name, const TileProgram &program) const {
        std::vector<Kernel> all = {{name, {{{}, program}}}};
        for (const auto &[i, packing] : packings_of(task.algorithm, program, task.target))
            all.push_back({name + c_packing_suffix(declared_tensor(program.arguments[i]).name), {{{}, packing}}});
        return all;
    }

    // A compiler that is killed leaves its temporary files behind: in the folder, which goes with this object.
    void keep_temporaries() const { setenv("TMPDIR", folder.path().c_str(), 1); }

    fs::path candidate_path(size_t i) const { return folder.path() / ("candidate" + std::to_string(i)); }
    fs::path bytes_path(size_t i) const { return folder.path() / ("bytes" + std::to_string(i)); }

    // In a process with limits: the kernel's code, then the program. A library's members are named after its file, which has one name for
    // all, so that a candidate's bytes do not depend on its place in a batch.
    void build(const TileProgram &program, size_t i) const {
        keep_temporaries();
        const fs::path alone = folder.path() / fmt::format("code{}", i), code = alone / "candidate.code";
        fs::create_directory(alone);
        worker.make_code(kernels_of(CANDIDATE_NAME, program), code);
        worker.complete(candidate_path(i), {base_code(), code});
        write_into(bytes_path(i), std::to_string(worker.code_bytes(code)));
        fs::remove_all(alone);
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

Programs::Programs(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base,
                   const std::function<bool()> &stopped)
    : state_(new State(task, options, base, stopped)) {}

Programs::~Programs() = default;

void Programs::build(const std::vector<TileProgram> &programs, std::vector<Measurement> &results) const {
    state_->build_all(programs, results);
}
fs::path Programs::folder() const { return state_->folder.path(); }
fs::path Programs::base() const { return state_->base_path(); }
fs::path Programs::candidate(size_t i) const { return state_->candidate_path(i); }

}  // namespace tessera
