#include "generators/generate.h"

#include <CLI/CLI.hpp>

#include <memory>

#include "compiler/header.h"
#include "generators/manifest.h"
#include "generators/output_folder.h"

namespace tessera {

void emit_limited(const PreparedKernel &p, const EmitOptions &options, const Limits &limits) {
    run_limited(compiling(p.kernel.name), limits, [&] { emit_library({p.kernel}, p.target, options); });
}

std::string tiles_text(const Kernel &kernel) {
    if (kernel.variants.size() == 1) return to_text(kernel.variants[0].program);
    std::string text;
    for (const KernelVariant &variant : kernel.variants) text += "# " + condition_text(variant.when) + "\n" + to_text(variant.program);
    return text;
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

static std::string depfile_of(const std::string &target, const std::vector<Schedule> &ancestry, const std::string &machine) {
    std::string text = escaped(target) + ":";
    if (machine.ends_with(".json")) text += " \\\n  " + escaped(std::filesystem::absolute(machine).lexically_normal().string());
    for (const Schedule &s : ancestry)
        if (s.file()) text += " \\\n  " + escaped(s.file()->string());
    return text + "\n";
}

void generate(const Registry &registry, const GenerateOptions &options) {
    const PreparedKernel prepared = prepare(registry, options.kernel, options.name);
    const std::string name = prepared.kernel.name, library = "lib" + name + ".a", header = name + ".h", manifest = name + ".manifest.json";
    const std::string assembly = name + ".s", tiles = name + ".tiles.txt", depfile = name + ".d";
    const OutputFolder out(options.out);

    EmitOptions emit{out.staged(library), {}};
    if (options.emit_assembly) emit.assembly = out.staged(assembly);
    emit_limited(prepared, emit, options.limits);
    out.write(header, header_of(name, {prepared.kernel}));
    out.write(manifest, manifest_of(prepared, {{library, out.read(library)}, {header, out.read(header)}}));
    if (options.emit_tiles) out.write(tiles, tiles_text(prepared.kernel));
    if (!options.depfile.empty()) out.write(depfile, depfile_of(options.out + "/" + library, prepared.ancestry, options.kernel.target));

    if (options.emit_assembly) out.publish(assembly);
    if (options.emit_tiles) out.publish(tiles);
    if (!options.depfile.empty()) out.publish(depfile, options.depfile);
    out.publish(header);
    out.publish(manifest);
    out.publish(library);
}

Command generate_command(CLI::App &app, const Registry &registry) {
    auto options = std::make_shared<GenerateOptions>();
    CLI::App *line = app.add_subcommand("generate", "Write a kernel's static library, C header and manifest");
    add_algorithm_options(*line, options->kernel);
    add_schedule_options(*line, options->kernel);
    line->add_option("--name", options->name, "The kernel's name in C; default: the algorithm's");
    line->add_option("--out", options->out, "The folder to write to")->required()->type_name("DIR");
    line->add_option("--depfile", options->depfile, "Also write the schedule and target files that the library depends on, for make and ninja")->type_name("FILE");
    line->add_flag("--emit-assembly", options->emit_assembly, "Also write <name>.s");
    line->add_flag("--emit-tiles", options->emit_tiles, "Also write the tile programs, <name>.tiles.txt");
    line->add_option("--compile-limit-s", options->limits.seconds, "Most seconds that compiling may take")->check(CLI::PositiveNumber)->capture_default_str();
    return {line, [=, &registry] {
                generate(registry, *options);
                return exit_ok;
            }};
}

}  // namespace tessera
