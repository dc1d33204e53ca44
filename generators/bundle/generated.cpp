#include "generators/bundle/generated.h"

#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

std::map<std::string, int64_t> numbers(const JsonReader &object) {
    std::map<std::string, int64_t> made;
    for (const auto &[name, value] : object.fields()) made[name] = value.integer();
    return made;
}

// What a kernel has on every target.
GeneratedKernel read_kernel(const JsonReader &k) {
    GeneratedKernel made;
    BundleKernel &kernel = made.kernel;
    kernel.name = k.at("kernel").text();
    const JsonReader algorithm = k.at("algorithm");
    kernel.algorithm = algorithm.at("name").text(), kernel.semantic = algorithm.at("semantic").text();
    kernel.surface = algorithm.at("surface").text(), kernel.numerics = k.at("numerics").text();
    kernel.options = numbers(k.at("options")), kernel.fixed = numbers(k.at("fixed"));
    if (!k.find("arguments"))
        k.fail("bundle.old", "expected the kernel's arguments; an earlier version of Tessera wrote this. Generate the library again.");
    for (const JsonReader &a : k.at("arguments").items())
        kernel.arguments.push_back({a.at("name").text(), a.at("role").text(), a.at("dtype").text(), a.at("dims").texts()});
    for (const JsonReader &p : k.at("parameters").items()) kernel.parameters.push_back({p.at("name").text(), p.at("dtype").text()});
    return made;
}

// What it has on one.
void read_code(GeneratedKernel &made, const JsonReader &t) {
    BundleCode code;
    code.target = t.at("name").text(), code.bits = t.at("bits").text();
    if (const JsonReader schedule = t.at("schedule"); !schedule.value().is_null()) code.schedule = schedule.at("name").text();
    for (const JsonReader &p : t.at("packings").items()) {
        code.packed.push_back({p.at("operand").text(), p.at("layout_hash").text(), p.at("function").text()});
        const BundlePacking &packing = code.packed.back();
        for (const BundleArgument &a : made.kernel.arguments)
            if (a.name == packing.argument) made.layouts[{packing.argument, packing.layout}] = {a.dims, p.at("layout").texts()};
    }
    made.kernel.code.push_back(std::move(code));
}

}  // namespace

std::vector<std::string> GeneratedLibrary::target_names() const {
    std::vector<std::string> names;
    for (const BundleTarget &t : targets) names.push_back(t.name);
    return names;
}

GeneratedLibrary read_generated(const std::string &text, const std::string &subject) {
    const nlohmann::json document = parse_json(text, subject);
    const JsonReader all(document, subject);
    if (all.at("format").text() != "tessera-manifest" || all.at("version").integer() != 1)
        all.fail("bundle.generated",
                 "expected the manifest of a library, format tessera-manifest, version 1. Name a folder that generate wrote.");
    const std::vector<JsonReader> targets = all.at("targets").items();
    const std::string arch = targets.empty() ? "" : targets[0].at("arch").text();
    if (arch == "opencl" || arch == "cuda")
        all.fail("bundle.generated",
                 "expected a library of machine code for processors, got a file of C for " +
                     std::string(arch == "cuda" ? "CUDA" : "OpenCL") +
                     ", which no loader runs. Generate the kernel for a processor, such as --target avx2, into a folder of "
                     "its own, and compile the file for the GPU into the application.");
    if (all.at("emit").text() != "library" || !all.find("halide"))
        all.fail("bundle.generated", "expected a library of machine code, got one with --emit " + all.at("emit").quotable() +
                                         ". Generate it with --emit library, for processors.");
    GeneratedLibrary library;
    library.tessera = all.at("tessera").text(), library.halide = all.at("halide").text();
    library.is_module = all.find("library").has_value();
    for (const JsonReader &t : targets) library.targets.push_back({t.at("name").text(), t.at("arch").text(), t.at("features").texts()});
    if (library.is_module) {
        library.name = all.at("library").text();
        for (const JsonReader &k : all.at("kernels").items()) {
            library.kernels.push_back(read_kernel(k));
            for (const JsonReader &t : k.at("targets").items()) read_code(library.kernels.back(), t);
        }
    } else {
        library.name = all.at("kernel").text();
        library.kernels.push_back(read_kernel(all));
        for (const JsonReader &t : targets) read_code(library.kernels.back(), t);
    }
    for (const JsonReader &l : all.at("licences").at("linked").items()) {
        library.linked.emplace_back(l.at("name").text(), l.at("licence").text());
        if (!l.at("text").value().is_null()) library.licence_texts[l.at("name").text()] = l.at("text").text();
    }
    for (const auto &[file, hash] : all.at("files").fields()) library.hashes[file] = hash.text();
    return library;
}

void check_generated_file(const GeneratedLibrary &library, const std::string &file, const std::string &text, const std::string &subject) {
    const auto hash = library.hashes.find(file);
    if (hash != library.hashes.end() && hash->second == sha256(text)) return;
    throw UserError("bundle.hash", subject + ": expected '" + file + "' as " + library.manifest() +
                                       " states its hash, got other bytes. Generate the library again.");
}

}  // namespace tessera
