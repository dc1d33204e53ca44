#include "generators/bundle/bundle_command.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/bundle/check.h"
#include "generators/bundle/make.h"
#include "generators/bundle/signature.h"
#include "generators/commands/error_form.h"
#include "generators/commands/notes.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

struct BundleLine {
    std::string what, file;
    std::vector<std::string> from, weights, bindings, licences, records, assets;
    std::string replay, name, key, key_name, public_key, floats;
    bool rebuild = false, json = false;
    Limits limits;
};

int make(const BundleLine &o) {
    BundleRequest request;
    request.file = o.file, request.name = o.name;
    request.folders.assign(o.from.begin(), o.from.end());
    request.bindings = o.bindings;
    request.records.assign(o.records.begin(), o.records.end()), request.licences.assign(o.licences.begin(), o.licences.end());
    request.weights = o.weights;
    if (!o.floats.empty()) request.floats = dtype_named(o.floats);
    request.assets.assign(o.assets.begin(), o.assets.end());
    if (!o.replay.empty()) request.replay = o.replay;
    if (!o.key.empty()) {
        const KeyBytes secret = read_secret_key(o.key);
        const std::string name = o.key_name.empty() ? std::filesystem::path(o.key).stem().string() : o.key_name;
        request.sign = [=](const std::string &manifest) { return signature_text(manifest, secret, name); };
    }
    const MadeBundle made = make_bundle(request);
    for (const std::string &words : made.notes) note(words);
    std::cout << fmt::format("wrote {}: {} kernels, {} libraries, {} tensors, {} packed, {} members, {:.1f} MB\n", printable(o.file),
                             made.manifest.kernels.size(), made.manifest.libraries.size(), made.manifest.tensors.size(),
                             made.manifest.packed.size(), made.manifest.members.size(), static_cast<double>(made.manifest.end) / 1e6);
    return exit_ok;
}

std::string signed_by(const Bundle &bundle) {
    if (!bundle.signature_text()) return "no";
    try {
        return "by key '" + check_signature(*bundle.signature_text(), bundle.manifest_text(), {}, bundle.subject()).key + "'";
    } catch (const UserError &) { return "wrongly: the signature is not of this manifest"; }
}

int list(const BundleLine &o) {
    const Bundle bundle(o.file);
    const BundleManifest &m = bundle.manifest();
    if (o.json) {
        std::cout << bundle.manifest_text();
        return exit_ok;
    }
    std::cout << fmt::format("{}: made by Tessera {}, Halide {}; signed: {}\n", m.name, m.tessera, m.halide, signed_by(bundle));
    for (const BundleKernel &k : m.kernels) {
        std::string fixed, targets;
        for (const auto &[dim, extent] : k.fixed) fixed += fmt::format(" {}={}", printable(dim), extent);
        for (const BundleCode &c : k.code) targets += " " + c.target;
        std::cout << fmt::format("kernel {}: {}, {}{}; for{}\n", k.name, k.algorithm, k.numerics, fixed, targets);
        for (const BundleArgument &a : k.arguments) {
            std::string weight;
            for (const BundleWeight &w : k.weights)
                if (w.argument == a.name) weight = " = tensor " + printable(m.tensors[w.tensor].name);
            std::cout << fmt::format("  {:6} {} {}[{}]{}\n", a.role, printable(a.name), a.dtype, printable(join(a.dims)), weight);
        }
    }
    for (const BundleMember &mem : m.members) std::cout << fmt::format("{:12} {:12} {}\n", mem.offset, mem.bytes, mem.path);
    return exit_ok;
}

int check(const Registry &registry, const BundleLine &o) {
    std::optional<KeyBytes> wanted;
    if (!o.public_key.empty()) wanted = read_public_key(o.public_key);
    BundleCheck done;
    try {
        const Bundle bundle(o.file);
        done = check_bundle(bundle, wanted);
        if (o.rebuild && done.problems.empty()) {
            const BundleCheck again = rebuild_bundle(registry, bundle, o.limits);
            done.passed.insert(done.passed.end(), again.passed.begin(), again.passed.end());
            done.problems = again.problems;
        }
    } catch (const UserError &error) {
        if (error.id() == "zip.file") throw;  // there is nothing to check
        done.problems.emplace_back(error.what());
    }
    if (o.json) {
        std::cout << nlohmann::ordered_json{{"format", "tessera-bundle-check"}, {"passed", done.passed}, {"problems", done.problems}}.dump(
                         2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                  << "\n";
    } else {
        for (const std::string &line : done.passed) std::cout << "ok: " << printable(line) << "\n";
        for (const std::string &line : done.problems) std::cout << printable(line) << "\n";
    }
    return done.problems.empty() ? exit_ok : exit_check_failed;
}

// Options that belong to another of the three.
void check_options(const CommandLine &line, const BundleLine &o) {
    const std::vector<std::pair<const char *, const char *>> of = {
        {"--from", "make"},        {"--weights", "make"},         {"--weight", "make"},
        {"--floats", "make"},      {"--licence", "make"},         {"--asset", "make"},
        {"--records", "make"},     {"--replay", "make"},          {"--name", "make"},
        {"--key", "make"},         {"--key-name", "make"},        {"--rebuild", "check"},
        {"--public-key", "check"}, {"--compile-limit-s", "check"}};
    for (const auto &[option, verb] : of)
        if (line.has(option) && o.what != verb)
            throw UserError("command.arguments", fmt::format("bundle {}: {} is for bundle {}. Leave it out.", o.what, option, verb));
    if (o.what == "make" && std::filesystem::path(o.file).extension() != ".tess")
        throw UserError("command.arguments", "bundle make: " + o.file +
                                                 ": expected the name of a bundle, which ends in .tess, so that nothing else is written "
                                                 "over. Name it so.");
    if (o.what == "make" && line.has("--json"))
        throw UserError("command.arguments", "bundle make: --json is for bundle list and check. Leave it out.");
}

}  // namespace

Command bundle_command(ProgramLine &program, const Registry &registry) {
    auto o = std::make_shared<BundleLine>();
    const CommandLine line =
        program.command("bundle", "Make one file of libraries for several targets, weights and sources; list or check one");
    line.option("what", o->what, "make; list; check (hashes, places, names; with --rebuild, the code)")
        .required()
        .one_of({"make", "list", "check"});
    line.option("file", o->file, "The bundle, NAME.tess").required();
    line.option("--from", o->from, "A folder that generate wrote to; once for each").takes("DIR");
    line.option("--weights", o->weights,
                "A safetensors or GGUF file; may be repeated. A tensor <kernel>.<argument> or <argument> is that argument; those of "
                "KERNEL=FILE are called <kernel>.<tensor>")
        .takes("[KERNEL=]FILE");
    line.option("--weight", o->bindings, "The tensor of an argument, where their names differ").takes("[KERNEL.]ARGUMENT=TENSOR");
    line.option("--floats", o->floats,
                "Convert floats of weights, and what codes of GGUF files stand for, to this type. Default: as stored")
        .one_of({"f32", "f64", "f16", "bf16"});
    line.option("--licence", o->licences, "A licence's text to take along; may be repeated").takes("FILE");
    line.option("--asset", o->assets, "A file of the application's own to take along, as assets/<its name>; may be repeated").takes("FILE");
    line.option("--records", o->records, "Records of tuning to take along, as records export writes them; may be repeated").takes("FILE");
    line.option("--replay", o->replay, "A folder with expected.json and inputs.safetensors: runs to compare with").takes("DIR");
    line.option("--name", o->name, "Name of the bundle. Default: that of the file").takes("NAME");
    const CommandOption key =
        line.option("--key", o->key, "Sign with this key, as openssl genpkey -algorithm ed25519 writes it").takes("FILE");
    line.option("--key-name", o->key_name, "Name of the key, for people. Default: that of its file").takes("NAME").needs(key);
    line.option("--public-key", o->public_key, "Demand a signature by this key").takes("FILE");
    line.flag("--rebuild", o->rebuild, "Generate all code again from programs and schedules, and compare bytes");
    line.seconds("--compile-limit-s", o->limits.seconds, "Most seconds that compiling a kernel may take");
    line.flag("--json", o->json, "Print JSON: of list the manifest");
    return {line, [=, &registry] {
                check_options(line, *o);
                return o->what == "make" ? make(*o) : o->what == "list" ? list(*o) : check(registry, *o);
            }};
}

}  // namespace tessera
