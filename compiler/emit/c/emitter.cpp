#include "compiler/emit/emitter.h"

#include <fmt/format.h>

#include "compiler/emit/emit_source.h"
#include "support/text/error.h"

namespace tessera {

static std::string source_of(const Emission &emission) {
    return source_of(emission.targets.at(0).kernels, emission.targets[0].target, emission.about);
}

static void check_c(const std::vector<Target> &targets, bool assembly) {
    if (assembly)
        throw UserError(
            "command.emit",
            "--emit-assembly: expected --emit library, since no machine code is made with --emit c; compile the C file with -S.");
    if (targets.size() > 1)
        throw UserError("command.emit",
                        fmt::format("--emit c: expected one target, got {}; generate a file for each, or a library with --emit library.",
                                    targets.size()));
}

Emitter c_emitter() {
    Emitter c;
    c.name = "c", c.summary = "one file to read, check in and compile with gcc or clang, <name>.c";
    c.accepts = [](const Target &target) { return !target.is_gpu(); };
    c.emit = [](const Emission &emission, const OutputFolder &out) {
        const std::string file = emission.name + ".c";
        run_limited(compiling(emission.name), emission.limits, [&] { out.write(file, source_of(emission)); });
        return std::vector{file};
    };
    c.check = check_c;
    c.listing = [](const Emission &emission) { return source_of(emission); };
    return c;
}

}  // namespace tessera
