// The program that measures (worker.c), to which the kernels are added. For this machine's kind of processor it is inside this program, and
// kernels are put behind it, so that no C compiler is needed. For another kind a C compiler makes it once. For a device a C compiler makes
// what starts the kernels too, and links all of it.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "autotune/measure/measurement.h"
#include "compiler/tile/kernel.h"
#include "schedules/target/target.h"

namespace tessera {

class WorkerProgram {
public:
    // It keeps files in `folder`. What was compiled is kept as long as this process, for the next one. UserError command.cc; compile.limit.
    WorkerProgram(const Target &target, const MeasureOptions &options, const std::filesystem::path &folder, std::function<bool()> stopped);
    bool is_whole() const { return is_whole_; }  // not where it was stopped before

    // What is added to it: a static library, or an object. UserErrors as emit_library, command.cc.
    void make_code(const std::vector<Kernel> &kernels, const std::filesystem::path &code) const;
    // The program with the code of the base and, where there is one, of a candidate.
    void complete(const std::filesystem::path &program, const std::vector<std::filesystem::path> &codes) const;
    // What a program that has this code loads, but for what every kernel has alike: the check of its arguments.
    uint64_t code_bytes(const std::filesystem::path &code) const;

private:
    Target target_;
    MeasureOptions options_;
    std::filesystem::path folder_;
    std::function<bool()> stopped_;
    std::vector<std::string> objects_;  // where a C compiler made them
    std::string built_;                 // what codes are put behind
    bool is_whole_ = true;

    std::vector<std::string> compiler() const;
    bool compile(const std::vector<std::string> &arguments, const std::function<bool()> &asked = {}) const;
    bool compile_sources();
    void link(const std::filesystem::path &program, const std::vector<std::filesystem::path> &codes) const;
};

}  // namespace tessera
