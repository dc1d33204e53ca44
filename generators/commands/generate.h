// generate: a kernel's static library, C header and manifest.
#pragma once
#include "generators/commands/command.h"
#include "generators/kernel/manifest.h"
#include "generators/kernel/prepare.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct GenerateOptions {
    KernelOptions kernel;
    Emit emit = Emit::library;
    std::vector<std::string> schedules;  // "avx2=<schedule>", where several targets differ
    std::string name;                    // of the kernel; "" for the algorithm's
    std::string out;                     // folder
    std::string depfile;                 // "" for none
    bool emit_assembly = false, emit_tiles = false;
    Limits limits;
};

// Of several targets, the library holds a body for each and runs the best one that the processor has.
// Writes lib<name>.a (for a GPU the files of gpu_files.h), <name>.h and <name>.manifest.json, and on request <name>.s and
// <name>.tiles.txt; each is renamed into
// place when it is whole, the library last. The depfile (make's format) lists the schedule files of lib<name>.a and, where no
// schedule was named, the folders in which a better match would appear.
// Equal inputs give equal bytes, whatever the folder. With Emit::c, <name>.c takes the library's place. UserErrors of every
// step, output.*, compile.limit, and command.emit for what is not there in C: assembly and several targets.
void generate(const Registry &registry, const GenerateOptions &options);

Command generate_command(ProgramLine &program, const Registry &registry);

}  // namespace tessera
