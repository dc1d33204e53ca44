#include "generators/commands/generate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "compiler/abi/c_names.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/header.h"
#include "generators/commands/kernel_line.h"
#include "generators/commands/manifest.h"
#include "generators/commands/notes.h"
#include "generators/commands/sources.h"
#include "generators/kernel/prepared_library.h"
#include "generators/output/benchmark_source.h"
#include "generators/output/emitted.h"
#include "generators/registry/algorithm_file.h"
#include "generators/registry/module.h"
#include "schedules/target/target_file.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

// "declared with points=64": the options, which the names of dims and arguments do not tell.
static std::vector<std::string> declared_with(const PreparedLibrary &library) {
    std::vector<std::string> lines;
    for (const std::vector<PreparedKernel> &targets : library.kernels) {
        const PreparedKernel &p = targets[0];
        std::string text;
        for (const auto &[name, value] : p.request.options) text += fmt::format(" {}={}", name, value);
        if (!text.empty())
            lines.push_back(fmt::format("{}{}lgorithm {}, declared with{}.", line_start(library, p), library.is_module ? 'a' : 'A',
                                        p.request.declared.name, text));
    }
    return lines;
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

static std::string depfile_of(const Registry &registry, const std::string &target, const PreparedLibrary &library, const Module &module,
                              const GenerateOptions &options) {
    std::string text = escaped(target) + ":";
    std::set<std::filesystem::path> seen;
    auto add = [&](const std::filesystem::path &file) {
        if (seen.insert(file).second) text += " \\\n  " + escaped(file.string());
    };
    auto add_named = [&](const std::filesystem::path &file) { add(std::filesystem::absolute(file).lexically_normal()); };
    std::istringstream words(options.kernel.target);
    for (std::string machine; std::getline(words, machine, ',');)
        if (const auto file = registry.target_file(machine)) add_named(*file);
    if (!options.module.empty()) add_named(options.module);
    for (const ModuleKernel &kernel : module.kernels)
        for (const std::string &file : {kernel.options.algorithm, kernel.options.numerics, kernel.options.made_of})
            if (file.ends_with(".json")) add_named(file);
    for (const ModuleKernel &kernel : module.kernels)
        for (const std::string &file : kernel.options.transform_files) add_named(file);
    for (const std::vector<PreparedKernel> &targets : library.kernels)
        for (const PreparedKernel &p : targets) {
            for (const Schedule &s : p.choice.applied.ancestry)
                if (s.file()) add(*s.file());
            for (const std::filesystem::path &path : p.choice.watched) add(path);
        }
    return text + "\n";
}

// What cannot be, whatever the algorithm and its schedules are.
static void check_options(const Registry &registry, const GenerateOptions &options) {
    const std::vector<Target> targets =
        targets_named(options.kernel.target, [&](const std::string &named) { return registry.target(named); });
    const Emitter emitter = registry.emitter(options.emit, targets[0]);
    if (emitter.check) emitter.check(targets, options.emit_assembly);
    if (options.emit_assembly && !emitter.makes_objects)
        throw UserError("command.emit", "--emit-assembly: expected a form with machine code, got '" + emitter.name + "'. Leave it out.");
}

// What the command line asks for: one kernel, or a module.
static Module module_of(const GenerateOptions &options) {
    if (!options.module.empty()) {
        Module module = read_module(options.module, options.kernel);
        if (!options.name.empty()) module.name = options.name;
        return module;
    }
    if (options.kernels.empty()) return {"", {{options.name, options.kernel, options.schedules}}};
    Module module{options.name, {}};
    for (const std::string &word : options.kernels) module.kernels.push_back(parse_kernel(word, options.kernel));
    return module;
}

// What the emitter makes of a library, and its header; `archive` is the file of these that says that all are there.
static std::map<std::string, std::string> emitted_files(const PreparedLibrary &library, const Emitter &emitter,
                                                        const GenerateOptions &options, const OutputFolder &out, std::string &archive) {
    const std::string &name = library.name;
    Emission emission{name, kernels_of(library), about(library), options.emit_assembly, options.limits};
    emission.limits.seconds = std::min(1e9, emission.limits.seconds * static_cast<double>(library.kernels.size()));
    std::map<std::string, std::string> files;
    for (const std::string &file : emitter.emit(emission, out)) files[file] = out.read(file), archive = file;
    files[name + ".h"] =
        header_of(name, emission.targets, emitter.makes_objects ? Beside::library : Beside::c_file, declared_with(library));
    return files;
}

std::map<std::string, std::string> library_files(const Registry &registry, const PreparedLibrary &library, const Limits &limits,
                                                 const OutputFolder &out) {
    GenerateOptions options;
    options.limits = limits;
    std::string archive;
    return emitted_files(library, registry.emitter(options.emit, library.first()[0].request.target), options, out, archive);
}

// The files of a library, the one that says that all are there last; and the depfile.
static std::vector<std::string> write_files(const Registry &registry, const PreparedLibrary &library, const Module &module,
                                            const GenerateOptions &options, const OutputFolder &out) {
    const std::string &name = library.name;
    const Emitter emitter = registry.emitter(options.emit, library.first()[0].request.target);
    std::string archive;
    std::map<std::string, std::string> files = emitted_files(library, emitter, options, out, archive);
    const auto add = [&](const std::string &file, const std::string &text) { files[file] = text, out.write(file, text); };
    out.write(name + ".h", files.at(name + ".h"));
    if (options.sources) add(name + ".sources.json", sources_of(registry, library, module));
    add(name + ".manifest.json", manifest_of(library, emitter, archive, files, options.certificate ? &*options.certificate : nullptr));
    if (options.emit_tiles) add(name + ".tiles.txt", tiles_text(library));
    std::vector<std::string> all;
    if (options.emit_assembly) all.push_back(name + ".s");
    for (const auto &[file, text] : files)
        if (file != archive) all.push_back(file);
    all.push_back(archive);
    return all;
}

// "M=1,N=768": the extents of a shape.
static Extents shape_in(const std::string &words) {
    std::vector<std::string> pairs;
    std::istringstream in(words);
    for (std::string pair; std::getline(in, pair, ',');) pairs.push_back(pair);
    return parse_shape(pairs, "--benchmark-at");
}

static std::vector<std::string> write_benchmark(const PreparedLibrary &library, const GenerateOptions &options, const OutputFolder &out) {
    std::vector<Extents> shapes;
    for (const std::string &words : options.benchmark_at) shapes.push_back(shape_in(words));
    if (shapes.empty()) shapes.emplace_back();  // every dim is fixed
    const std::string file = library.name + ".benchmark.cpp";
    out.write(file, benchmark_source(library.first(), shapes));
    return {file};
}

void generate(const Registry &registry, const GenerateOptions &options) {
    check_options(registry, options);
    const Module module = module_of(options);
    const PreparedLibrary library = prepare_library(registry, module, printing_notes(options.kernel));
    const OutputFolder out(options.out);
    own_folder(out.staged("").parent_path(), ".tessera-");
    std::vector<std::string> all =
        options.benchmark ? write_benchmark(library, options, out) : write_files(registry, library, module, options, out);
    const std::string depfile = library.name + ".d";
    if (!options.depfile.empty()) {
        out.write(depfile, depfile_of(registry, options.out + "/" + all.back(), library, module, options));
        all.insert(all.begin(), depfile);
    }
    out.publish_together(all, {{depfile, options.depfile}});
}

// For one kernel, a module says it with that kernel.
static void check_arguments(const CommandLine &line, const GenerateOptions &options) {
    const bool is_module = !options.module.empty() || !options.kernels.empty();
    const char *how = options.module.empty() ? "--kernel" : "--module";
    if (!is_module && options.kernel.algorithm.empty())
        throw UserError("command.arguments",
                        "generate: expected an algorithm, --kernel or --module, got none; 'list' shows the algorithms.");
    if (is_module && options.benchmark)
        throw UserError("command.benchmark",
                        fmt::format("generate: --benchmark is of one kernel, and with {0} there may be several. Name an algorithm in place "
                                    "of {0}.",
                                    how));
    if (!is_module) {
        if (line.has("--name")) check_c_name(options.name);
        return;
    }
    std::vector<std::string> of_one = {"algorithm",    "--option",  "--shape", "--schedule", "--schedule-for",
                                       "--derive-for", "--extents", "--range", "--inherit",  "--made-of"};
    for (const std::string &option : transform_options()) of_one.push_back(option);
    if (!options.module.empty()) of_one.emplace_back("--numerics");
    for (const std::string &option : of_one)
        if (line.has(option))
            throw UserError("command.arguments",
                            fmt::format("generate: {} is of one kernel, and with {} there may be several. State it {}.", option, how,
                                        options.module.empty() ? "with each, in a file for --module" : "in the file of the module"));
    if (options.module.empty() && options.name.empty())
        throw UserError("command.arguments", "generate: with --kernel, expected the library's name, got none. Say --name.");
}

Command generate_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<GenerateOptions>();
    const CommandLine line =
        program.command("generate", "Write a static library of a kernel or of several, or their C, with a header and a manifest");
    add_algorithm_options(line, options->kernel);
    line.added("algorithm").required(false);
    const CommandOption kernels =
        line.option("--kernel", options->kernels, "One of several kernels that one library exports; may be repeated")
            .one_value_each()
            .takes("[NAME=]ALGORITHM[:DIM=EXTENT,...]");
    line.option("--module", options->module, "A file that lists the kernels of one library (tessera-module.schema.json)")
        .takes("FILE")
        .excludes(kernels);
    add_schedule_options(line, options->kernel);
    line.option("--schedule-for", options->schedules,
                "The schedule of one target of several, where --schedule or the default does not fit; may be repeated")
        .one_value_each()
        .takes("TARGET=NAME|FILE");
    line.option("--name", options->name, "The kernel's name in C, default: the algorithm's; or of several kernels the library's");
    line.option("--out", options->out, "The folder to write to").required().takes("DIR");
    line.option("--depfile", options->depfile,
                "Also write the files that the library depends on, of schedules, targets, algorithms and the module, for make and ninja")
        .takes("FILE");
    line.option("--emit", options->emit, join(registry.emitter_meanings(), "; "))
        .one_of(registry.emitter_names())
        .shows_default("library")
        .takes(join(registry.emitter_names(), "|"));
    line.flag("--emit-assembly", options->emit_assembly, "Also write <name>.s");
    line.flag("--emit-tiles", options->emit_tiles, "Also write the tile programs, <name>.tiles.txt");
    line.flag("--sources", options->sources, "Also write algorithms and schedules, <name>.sources.json, from which bundles are rebuilt");
    const CommandOption benchmark = line.flag("--benchmark", options->benchmark,
                                              "Write a Google Benchmark program of the kernel, <name>.benchmark.cpp, and nothing else");
    line.option("--benchmark-at", options->benchmark_at, "A shape to time, of the dynamic dims; may be repeated")
        .one_value_each()
        .takes("DIM=EXTENT,...")
        .needs(benchmark);
    auto request = std::make_shared<CertificateRequest>();
    auto certify = std::make_shared<bool>(false);
    const CommandOption certificate = line.flag(
        "--certificate", *certify, "Also put bounds on the rounding errors of the results into the manifest, beside what is measured");
    line.option("--extents", request->extents, "Certify at this shape of the dynamic dims instead of awkward ones")
        .takes("DIM=EXTENT")
        .needs(certificate);
    line.option("--range", request->ranges,
                "Also bound ranges and errors for all float inputs and parameters in this range; without a name, of all others")
        .takes("NAME=LOWEST,HIGHEST")
        .needs(certificate);
    line.seconds("--compile-limit-s", options->limits.seconds, "Most seconds that compiling may take; of several kernels, for each");
    return {line, [=, &registry] {
                check_arguments(line, *options);
                if (*certify) options->certificate = *request;
                generate(registry, *options);
                return exit_ok;
            }};
}

}  // namespace tessera
