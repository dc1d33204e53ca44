// generate: the static library, C header and manifest of a kernel, or of several (module.h).
#pragma once
#include "generators/commands/command.h"
#include "generators/commands/manifest.h"
#include "generators/kernel/prepare.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct GenerateOptions {
    KernelOptions kernel;                // or what all kernels of a module have: target, folders, numerics of --kernel
    std::vector<std::string> kernels;    // "up=linear_gelu:N=1536,K=384"
    std::string module;                  // the file of a module, or ""
    std::string emit = "library";        // the name of an emitter (Registry::emitter)
    std::vector<std::string> schedules;  // "avx2=<schedule>", where several targets differ
    std::string name;                    // of the kernel, "" for the algorithm's; or of the library, "" for the one in the module's file
    std::string out;                     // folder
    std::string depfile;                 // "" for none
    bool emit_assembly = false, emit_tiles = false;
    bool sources = false;                                // writes <name>.sources.json too
    bool benchmark = false;                              // writes <name>.benchmark.cpp in place of all others
    std::vector<std::string> benchmark_at;               // "M=1,K=8": a shape
    std::optional<CertificateRequest> certificate = {};  // bounds of errors in the manifest
    Limits limits;                                       // of one kernel; several have the sum of their seconds
};

// For several targets, the library holds a body for each and runs the best one that the processor has.
// Writes what the emitter makes (lib<name>.a), <name>.h and <name>.manifest.json, and on request <name>.s, <name>.tiles.txt and
// <name>.sources.json (sources.h); each is renamed into place when it is whole, the library last. The depfile (make's format) lists the
// files of schedules, targets, algorithms and the module that lib<name>.a depends on and, where no schedule was named, the folders in which
// a better match would appear.
// Equal inputs give equal bytes, whatever the folder. Another emitter's file takes the library's place. Kernels of a module share callees
// that are emitted once, and constants, where they are equal. UserErrors of every
// step, output.*, command.benchmark, compile.limit, certificate.wrong, and those of Emitter::check.
void generate(const Registry &registry, const GenerateOptions &options);

// The files of a library of machine code by name, written to `out` and not published: the library and its header.
std::map<std::string, std::string> library_files(const Registry &registry, const PreparedLibrary &library, const Limits &limits,
                                                 const OutputFolder &out);

Command generate_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
