#include "generators/commands/generate.h"

#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/header.h"
#include "generators/commands/kernel_line.h"
#include "generators/kernel/emitted.h"
#include "generators/kernel/gpu_files.h"
#include "generators/kernel/manifest.h"
#include "schedules/target/target_file.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

// "declared with points=64": the options, which the names of dims and arguments do not tell.
static std::vector<std::string> declared_with(const PreparedKernel &p) {
    std::string text;
    for (const auto &[name, value] : p.options) text += fmt::format(" {}={}", name, value);
    if (text.empty()) return {};
    return {"Algorithm " + p.declared.name + ", declared with" + text + "."};
}

// As make reads it.
static std::string escaped(const std::string &path) {
    std::string text;
    for (char c : path) {
        if (c == ' ' || c == '#') text += '\\';
        if (c == '$') text += '$';
        text += c;
    }
    return text;
}

static std::string depfile_of(const Registry &registry, const std::string &target, const std::vector<PreparedKernel> &prepared,
                              const std::string &machines) {
    std::string text = escaped(target) + ":";
    std::istringstream words(machines);
    for (std::string machine; std::getline(words, machine, ',');)
        if (const auto file = registry.target_file(machine))
            text += " \\\n  " + escaped(std::filesystem::absolute(*file).lexically_normal().string());
    std::set<std::filesystem::path> seen;
    auto add = [&](const std::filesystem::path &file) {
        if (seen.insert(file).second) text += " \\\n  " + escaped(file.string());
    };
    for (const PreparedKernel &p : prepared) {
        for (const Schedule &s : p.ancestry)
            if (s.file()) add(*s.file());
        for (const std::filesystem::path &path : p.watched) add(path);
    }
    return text + "\n";
}

// Source instead of a library: the application's compiler and the device's make the rest.
static void generate_for_gpu(const Registry &registry, const std::vector<PreparedKernel> &prepared, const GenerateOptions &options,
                             const OutputFolder &out) {
    const PreparedKernel &p = prepared[0];
    const std::string name = p.kernel.name, host = name + ".c", header = name + ".h", manifest = name + ".manifest.json",
                      tiles = name + ".tiles.txt";
    std::map<std::string, std::string> files = gpu_files(p, options.limits);
    files[header] = header_of(name, kernels_of(prepared), Beside::c_file, declared_with(p));
    const std::string about = manifest_of(prepared, Emit::c, host, files);
    files[manifest] = about;
    if (options.emit_tiles) files[tiles] = tiles_text(prepared);
    for (const auto &[file, text] : files) out.write(file, text);
    const std::string depfile = name + ".d";
    std::vector<std::string> all;
    if (!options.depfile.empty()) {
        out.write(depfile, depfile_of(registry, options.out + "/" + host, prepared, options.kernel.target));
        all.push_back(depfile);
    }
    for (const auto &[file, text] : files)
        if (file != host) all.push_back(file);
    all.push_back(host);
    out.publish_together(all, {{depfile, options.depfile}});
}

// What cannot be, whatever the algorithm and its schedules are.
static void check_options(const Registry &registry, const GenerateOptions &options) {
    const std::vector<Target> targets =
        targets_named(options.kernel.target, [&](const std::string &named) { return registry.target(named); });
    const bool c = options.emit == Emit::c, gpu = targets[0].is_gpu();
    if (c && options.emit_assembly)
        throw UserError(
            "command.emit",
            "--emit-assembly: expected --emit library, since no machine code is made with --emit c; compile the C file with -S.");
    if (c && targets.size() > 1)
        throw UserError("command.emit",
                        fmt::format("--emit c: expected one target, got {}; generate a file for each, or a library with --emit library.",
                                    targets.size()));
    if (gpu && targets.size() > 1)
        throw UserError(
            "command.targets",
            "targets '" + options.kernel.target +
                "': a kernel for a GPU is made for one target; PTX of cuda-sm80 runs on every later GPU of NVIDIA's. Name one.");
    if (gpu && options.emit_assembly)
        throw UserError("command.assembly",
                        "target '" + targets[0].name +
                            "': there is no assembly, the kernels are source or PTX, which are written anyway; leave out --emit-assembly.");
}

void generate(const Registry &registry, const GenerateOptions &options) {
    check_options(registry, options);
    const std::vector<PreparedKernel> prepared =
        prepare_all(registry, options.kernel,
                    parse_schedules(options.schedules, [&](const std::string &named) { return registry.target(named); }), options.name);
    const bool c = options.emit == Emit::c;
    const std::string name = prepared[0].kernel.name, library = c ? name + ".c" : "lib" + name + ".a", header = name + ".h",
                      manifest = name + ".manifest.json";
    const std::string assembly = name + ".s", tiles = name + ".tiles.txt", depfile = name + ".d";
    const OutputFolder out(options.out);
    own_folder(out.staged("").parent_path(), ".tessera-");
    if (prepared[0].target.is_gpu()) return generate_for_gpu(registry, prepared, options, out);

    EmitOptions emit{out.staged(library), {}};
    if (options.emit_assembly) emit.assembly = out.staged(assembly);
    if (c) run_limited(compiling(name), options.limits, [&] { out.write(library, c_text(prepared[0])); });
    else emit_limited(prepared, emit, options.limits);
    out.write(header, header_of(name, kernels_of(prepared), c ? Beside::c_file : Beside::library, declared_with(prepared[0])));
    out.write(manifest, manifest_of(prepared, options.emit, library, {{library, out.read(library)}, {header, out.read(header)}}));
    if (options.emit_tiles) out.write(tiles, tiles_text(prepared));
    if (!options.depfile.empty()) out.write(depfile, depfile_of(registry, options.out + "/" + library, prepared, options.kernel.target));

    std::vector<std::string> all;
    if (!options.depfile.empty()) all.push_back(depfile);
    if (options.emit_assembly) all.push_back(assembly);
    if (options.emit_tiles) all.push_back(tiles);
    all.insert(all.end(), {header, manifest, library});
    out.publish_together(all, {{depfile, options.depfile}});
}

Command generate_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<GenerateOptions>();
    const CommandLine line = program.command("generate", "Write a kernel's static library, or its C, with a header and a manifest");
    add_algorithm_options(line, options->kernel);
    add_schedule_options(line, options->kernel);
    line.option("--schedule-for", options->schedules,
                "The schedule of one target of several, where --schedule or the default does not fit; may be repeated")
        .one_value_each()
        .takes("TARGET=NAME|FILE");
    line.option("--name", options->name, "The kernel's name in C; default: the algorithm's");
    line.option("--out", options->out, "The folder to write to").required().takes("DIR");
    line.option("--depfile", options->depfile, "Also write the schedule and target files that the library depends on, for make and ninja")
        .takes("FILE");
    line.choice("--emit", options->emit, {"library", "c"},
                "library: machine code, lib<name>.a; c: one file to read, check in and compile with gcc or clang, <name>.c")
        .shows_default("library")
        .takes("library|c");
    line.flag("--emit-assembly", options->emit_assembly, "Also write <name>.s");
    line.flag("--emit-tiles", options->emit_tiles, "Also write the tile programs, <name>.tiles.txt");
    line.seconds("--compile-limit-s", options->limits.seconds, "Most seconds that compiling may take");
    return {line, [=, &registry] {
                if (line.has("--name")) check_c_name(options->name);
                generate(registry, *options);
                return exit_ok;
            }};
}

}  // namespace tessera
