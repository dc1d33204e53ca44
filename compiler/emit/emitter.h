// The forms in which kernels come out, each a value. Whoever writes, shows or loads kernels looks one up by its name and a target, and asks
// it; a generator may register more (Registry::add_emitter).
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/tile/kernel.h"
#include "support/files/output_folder.h"
#include "support/processes/limited_process.h"

namespace tessera {

// What is emitted together.
struct Emission {
    std::string name;                     // of the files
    std::vector<TargetKernels> targets;   // best first; each has the same kernels
    std::vector<std::string> about = {};  // lines for the comment at the top of what people read
    bool assembly = false;                // <name>.s beside it
    Limits limits = {};
};

// A library that an application links beside the files and Tessera's runtime.
struct LinkedLibrary {
    std::string name, licence;
    std::optional<std::string> text;  // the licence's file in Tessera's folder of documents
};

// Two emitters may have one name where no target is accepted by both.
struct Emitter {
    std::string name;     // what --emit takes
    std::string summary;  // what comes out
    std::function<bool(const Target &)> accepts;
    // Makes the files in the folder, and gives their names but for the assembly's; the last is the one that says that all are there. It is
    // a C file, unless `makes_objects`. UserErrors emit.* for what it cannot do, compile.limit, output.write.
    std::function<std::vector<std::string>(const Emission &, const OutputFolder &)> emit;

    // The others may be missing. `check` throws a UserError for what it cannot do, before anything is lowered.
    std::function<void(const std::vector<Target> &targets, bool assembly)> check = {};
    std::function<std::string(const Emission &)> listing = {};  // what a person reads of the code
    // Makes a static library in the folder that runtime/load can load into this process, and gives its path.
    std::function<std::filesystem::path(const Emission &, const std::filesystem::path &folder)> load = {};
    bool makes_objects = false;  // the last file is an archive of objects, whose symbols and sizes a manifest lists
    std::vector<LinkedLibrary> links = {};
};

Emitter library_emitter();  // machine code (made in emit/halide)
Emitter c_emitter();        // one file of C (made in emit/c)
Emitter opencl_emitter();   // kernels as source, with a host file in C (made in emit/gpu)
Emitter cuda_emitter();     // the same, with the PTX that nvcc makes of it; UserError command.nvcc when it is missing or refuses

}  // namespace tessera
