#include "autotune/measure/worker_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "compiler/abi/archive.h"
#include "compiler/abi/object_file.h"
#include "compiler/emit/emit_gpu.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/processes/run_program.h"
#include "support/text/error.h"

// What the build made of worker.c with the loader of kernels.
asm(".pushsection .rodata\n"
    "tessera_worker_begin: .incbin \"" TESSERA_WORKER
    "\"\n"
    "tessera_worker_end: .popsection\n");
extern "C" __attribute__((visibility("hidden"))) const char tessera_worker_begin[], tessera_worker_end[];

namespace tessera {

const std::map<std::string, std::string> &worker_sources();

namespace fs = std::filesystem;

namespace {

constexpr const char *linked_sources[] = {"runtime/gpu/gpu.c", "runtime/gpu/opencl.c", "autotune/measure/opencl_memory.c",
                                          "autotune/measure/linked_kernels.c"};

bool is_source(const std::string &name, bool links) {
    const bool is_of_linked = std::find(std::begin(linked_sources), std::end(linked_sources), name) != std::end(linked_sources);
    const bool is_of_loaded = name.starts_with("runtime/load/") || name == "autotune/measure/loaded_kernels.c";
    return name.ends_with(".c") && !(links ? is_of_loaded : is_of_linked);
}

// What `complete` makes of the worker's sources in a folder, for each compiler: it lasts as long as this process, so that a campaign of
// many tasks compiles them once. One at a time: what another has begun is waited for.
bool kept_objects(const std::string &cc, bool links, const std::function<bool(const fs::path &folder)> &complete) {
    static std::mutex one_at_a_time;
    static std::map<std::pair<std::string, bool>, std::unique_ptr<OwnedFolder>> kept;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    std::unique_ptr<OwnedFolder> &folder = kept[{cc, links}];
    if (!folder || !fs::exists(folder->path())) folder = std::make_unique<OwnedFolder>();
    return complete(folder->path());
}

// Runs a C compiler, whose messages go to `log`. `arguments` begins with its name. Whether it came to its end: it does not once `stopped`
// is true.
bool run_cc(const std::vector<std::string> &arguments, const fs::path &log, const Limits &limits, const std::function<bool()> &stopped) {
    constexpr int unrunnable = 126, none = 127;
    const std::string compiler = "the C compiler '" + arguments[0] + "'";
    const Activity compiling{compiler, "compiling", "compile.limit", "Find out what it waits for", "--compile-limit-s"};
    const std::optional<int> status = run_program(compiling, limits, arguments, log, stopped);
    if (!status || succeeded(*status)) return status.has_value();
    const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0;
    if (code == none || code == unrunnable)
        throw UserError("command.cc", compiler + ": expected to find it on the path, to make the program that measures; " +
                                          std::string(std::strerror(code == none ? ENOENT : EACCES)) + ". Install one.");
    const std::string said = read_file(log).substr(0, 2000);
    throw UserError("command.cc", compiler + ": expected it to make the program that measures; it ends with " + ended_text(*status) +
                                      (said.empty() ? " and says nothing. Name a C compiler that works here." : " and says: " + said));
}

std::string eight_bytes(uint64_t number) {
    std::string bytes;
    for (int i = 0; i < 8; i++) bytes += static_cast<char>(number >> (8 * i) & 0xff);
    return bytes;
}

}  // namespace

WorkerProgram::WorkerProgram(const Target &target, const MeasureOptions &options, const fs::path &folder, std::function<bool()> stopped)
    : target_(target), options_(options), folder_(folder), stopped_(std::move(stopped)) {
    if (!target.is_gpu() && target.arch == host_arch() && options.cc.empty()) {
        built_ = std::string(tessera_worker_begin, tessera_worker_end);
        return;
    }
    if (compiler().empty())
        throw UserError("command.cc", "--cc '" + options.cc +
                                          "': expected the name of a C compiler, with its options. Leave --cc out for the program that "
                                          "measures on this kind of processor, and for 'cc' elsewhere.");
    is_whole_ = compile_sources();
    if (!is_whole_ || target.is_gpu()) return;
    const fs::path program = folder / "worker";
    link(program, {});
    built_ = read_file(program);
}

std::vector<std::string> WorkerProgram::compiler() const {
    std::vector<std::string> words;
    std::string word;
    for (char c : (options_.cc.empty() ? "cc" : options_.cc) + " ") {
        if (c != ' ') word += c;
        else if (!word.empty()) words.push_back(std::exchange(word, ""));
    }
    return words;
}

// Whether it came to its end. Where this is a child with limits of its own, its parent asks whether to stop.
bool WorkerProgram::compile(const std::vector<std::string> &arguments, const std::function<bool()> &asked) const {
    std::vector<std::string> all = compiler();
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cc(all, folder_ / ("cc" + std::to_string(getpid()) + ".log"), options_.compile, asked);
}

// False where it was stopped before.
bool WorkerProgram::compile_sources() {
    std::vector<fs::path> sources;
    for (const auto &[name, text] : worker_sources()) {
        fs::create_directories((folder_ / name).parent_path());
        write_into(folder_ / name, text);
        if (is_source(name, target_.is_gpu())) sources.push_back(folder_ / name);
    }
    return kept_objects(options_.cc, target_.is_gpu(), [&](const fs::path &kept) {
        for (const fs::path &source : sources) {
            const fs::path object = kept / fmt::format("{}.o", objects_.size()), begun = kept / "begun.o";
            objects_.push_back(object.string());
            if (fs::exists(object)) continue;
            if (!compile({"-std=gnu99", "-O2", target_.is_gpu() ? "-DTESSERA_OPENCL=1" : "-DTESSERA_HOST=1", "-I", folder_.string(), "-I",
                          (folder_ / "runtime/abi").string(), "-c", source.string(), "-o", begun.string()},
                         stopped_))
                return false;
            fs::rename(begun, object);
        }
        return true;
    });
}

void WorkerProgram::make_code(const std::vector<Kernel> &kernels, const fs::path &code) const {
    if (!target_.is_gpu()) return emit_library(kernels, target_, {code, {}});
    const GpuSource source = kernels_of(kernels, target_);
    const fs::path host = code.string() + ".c";
    write_into(host, host_of(kernels, target_, source.kernels, source.uses_double));
    compile(
        {"-std=c99", "-O1", "-I", folder_.string(), "-I", (folder_ / "runtime/abi").string(), "-c", host.string(), "-o", code.string()});
    fs::remove(host);
}

void WorkerProgram::link(const fs::path &program, const std::vector<fs::path> &codes) const {
    std::vector<std::string> arguments = {"-o", program.string()};
    arguments.insert(arguments.end(), objects_.begin(), objects_.end());
    arguments.insert(arguments.end(), codes.begin(), codes.end());
    arguments.insert(arguments.end(), {"-lpthread", "-lm"});
    if (target_.is_gpu()) arguments.push_back("-lOpenCL");
    compile(arguments);
}

void WorkerProgram::complete(const fs::path &program, const std::vector<fs::path> &codes) const {
    if (target_.is_gpu()) return link(program, codes);
    std::string all = built_, sizes;
    for (const fs::path &code : codes) {
        const std::string bytes = read_file(code);
        all += bytes, sizes += eight_bytes(bytes.size());
    }
    if (codes.size() == 1) sizes += eight_bytes(0);
    write_into(program, all + sizes + "kernels:");
    fs::permissions(program, fs::perms::owner_all);
}

uint64_t WorkerProgram::code_bytes(const fs::path &code) const {
    const std::string bytes = read_file(code);
    if (target_.is_gpu()) return loaded_bytes(bytes);
    uint64_t all = 0;
    for (const auto &[name, object] : members_of(bytes))
        if (!name.ends_with(".entry.o")) all += loaded_bytes(object);
    return all;
}

}  // namespace tessera
