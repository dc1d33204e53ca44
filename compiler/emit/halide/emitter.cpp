#include "compiler/emit/emitter.h"

#include "compiler/emit/emit_library.h"

namespace tessera {

static void emit_limited(const Emission &emission, const EmitOptions &options) {
    run_limited(compiling(emission.name), emission.limits, [&] { emit_library(emission.targets, options); });
}

static std::string archive_name(const Emission &emission) { return "lib" + emission.name + ".a"; }

Emitter library_emitter() {
    Emitter library;
    library.name = "library", library.summary = "machine code, lib<name>.a", library.makes_objects = true;
    library.accepts = [](const Target &target) { return !target.is_gpu(); };
    library.emit = [](const Emission &emission, const OutputFolder &out) {
        EmitOptions options{out.staged(archive_name(emission)), {}};
        if (emission.assembly) options.assembly = out.staged(emission.name + ".s");
        emit_limited(emission, options);
        return std::vector{archive_name(emission)};
    };
    library.listing = [](const Emission &emission) {
        const TemporaryFolder folder;
        const std::filesystem::path assembly = folder.path() / (emission.name + ".s");
        emit_limited(emission, {folder.path() / archive_name(emission), assembly});
        return read_file(assembly);
    };
    library.load = [](const Emission &emission, const std::filesystem::path &folder) {
        const std::filesystem::path archive = folder / archive_name(emission);
        emit_limited(emission, {archive, {}});
        return archive;
    };
    return library;
}

}  // namespace tessera
