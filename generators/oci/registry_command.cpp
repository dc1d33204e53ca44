#include "generators/oci/registry_command.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generators/bundle/bundle.h"
#include "generators/commands/notes.h"
#include "generators/oci/artifact.h"
#include "support/files/json_text.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

struct RegistryLine {
    std::string what, folder;
    std::vector<std::string> names;
    std::string out, name, algorithm, target, policy;
    bool replace = false, json = false;
};

// A name without a tag is that of the bundle or file.
std::string default_name(const std::filesystem::path &file) {
    if (file.extension() == ".tess") return Bundle(file).manifest().name;
    return file.stem().string();
}

int add(const RegistryLine &o) {
    if (!o.name.empty() && o.names.size() != 1)
        throw UserError("command.arguments",
                        "registry add: --name is for one file, got " + std::to_string(o.names.size()) + ". Add each by itself.");
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string &file : o.names) all.emplace_back(file, oci_reference(o.name.empty() ? default_name(file) : o.name));
    OciLayout layout(o.folder, OciLayout::For::writing);
    for (const auto &[file, reference] : all) {
        const OciDescriptor made = add_artifact(layout, file, reference, o.replace);
        std::cout << fmt::format("{} {}\n", reference, made.digest);
    }
    return exit_ok;
}

std::string annotation(const OciDescriptor &d, const char *key) {
    const auto it = d.annotations.find(key);
    return it == d.annotations.end() ? "" : it->second;
}

// Whether a list "a,b" has the word; "" is all.
bool has_word(const std::string &list, const std::string &word) {
    return word.empty() || ("," + list + ",").find("," + word + ",") != std::string::npos;
}

int list(const RegistryLine &o) {
    const OciLayout layout(o.folder, OciLayout::For::reading);
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const OciDescriptor &d : layout.entries()) {
        if (!has_word(annotation(d, oci_algorithm), o.algorithm) || !has_word(annotation(d, oci_target), o.target) ||
            !has_word(annotation(d, oci_policy), o.policy))
            continue;
        const std::string kind = d.artifact_type == oci_bundle_type     ? "bundle"
                                 : d.artifact_type == oci_schedule_type ? "schedule"
                                 : d.artifact_type == oci_program_type  ? "program"
                                                                        : "file";
        all.push_back({{"name", annotation(d, oci_ref_name)},
                       {"kind", kind},
                       {"digest", d.digest},
                       {"algorithm", annotation(d, oci_algorithm)},
                       {"shape", annotation(d, oci_shape)},
                       {"target", annotation(d, oci_target)},
                       {"policy", annotation(d, oci_policy)},
                       {"sha256", annotation(d, oci_sha256)}});
        if (o.json) continue;
        const auto word = [&](const char *key) { return printable(all.back()[key].get<std::string>()); };
        std::cout << fmt::format("{:32} {:8} {} {} {} {}\n", word("name"), kind, d.digest.substr(7, 12), word("algorithm"), word("target"),
                                 word("policy"));
    }
    if (o.json) std::cout << lossy_json_text(nlohmann::ordered_json{{"format", "tessera-registry-list"}, {"entries", all}}, 2) << "\n";
    return exit_ok;
}

int get(const RegistryLine &o) {
    if (o.names.size() != 1 || o.out.empty())
        throw UserError("command.arguments", "registry get: expected one name and --out <file>, got " + std::to_string(o.names.size()) +
                                                 " names" + (o.out.empty() ? " and no --out" : "") + ".");
    const auto inside = std::filesystem::weakly_canonical(o.out).lexically_relative(std::filesystem::weakly_canonical(o.folder));
    if (!inside.empty() && *inside.begin() != "..")
        throw UserError("command.arguments", "registry get: --out " + o.out + ": expected a file outside of the registry '" + o.folder +
                                                 "', whose own files it would write over. Name another place.");
    const OciLayout layout(o.folder, OciLayout::For::reading);
    get_artifact(layout, oci_reference(o.names[0]), o.out);
    return exit_ok;
}

int verify(const RegistryLine &o) {
    OciCheck done;
    try {
        const OciLayout layout(o.folder, OciLayout::For::reading);
        done = verify_layout(layout);
    } catch (const UserError &error) {
        if (error.id() == "registry.folder") throw;  // there is nothing to verify
        done.problems.emplace_back(error.what());
    }
    for (const std::string &line : done.notes) note(line);
    for (const std::string &line : done.problems) std::cout << printable(line) << "\n";
    if (!done.problems.empty()) return exit_check_failed;
    std::cout << fmt::format("ok: {} bundles, {} blobs\n", done.manifests, done.blobs);
    return exit_ok;
}

int prune(const RegistryLine &o) {
    std::vector<std::string> references;
    for (const std::string &name : o.names) references.push_back(oci_reference(name));
    { const OciLayout is_one(o.folder, OciLayout::For::reading); }  // none is begun
    OciLayout layout(o.folder, OciLayout::For::writing);
    const OciPruned done = prune_layout(layout, references);
    std::cout << fmt::format("removed {} blobs, {:.1f} MB\n", done.blobs, static_cast<double>(done.bytes) / 1e6);
    return exit_ok;
}

// Options that belong to another command of the five.
void check_options(const CommandLine &line, const RegistryLine &o) {
    const std::vector<std::pair<const char *, std::string>> of = {{"--out", "get"},    {"--name", "add"},       {"--replace", "add"},
                                                                  {"--json", "list"},  {"--algorithm", "list"}, {"--target", "list"},
                                                                  {"--policy", "list"}};
    for (const auto &[option, verb] : of)
        if (line.has(option) && o.what != verb)
            throw UserError("command.arguments", fmt::format("registry {}: {} is for registry {}. Leave it out.", o.what, option, verb));
    if ((o.what == "list" || o.what == "verify") && !o.names.empty())
        throw UserError("command.arguments", fmt::format("registry {}: expected a folder alone, got '{}' after it. Leave it out.", o.what,
                                                         printable(o.names[0])));
    if (o.what == "add" && o.names.empty())
        throw UserError("command.arguments", "registry add: expected files to add after the folder, got none.");
}

}  // namespace

Command registry_command(ProgramLine &program) {
    auto o = std::make_shared<RegistryLine>();
    const CommandLine line =
        program.command("registry", "Keep bundles, schedules and records in a folder of OCI's image layout, by names and tags");
    line.option("what", o->what,
                "add (files); list; get (one); verify (all hashes); prune (what nothing names; names after the folder are taken out first)")
        .required()
        .one_of({"add", "list", "get", "verify", "prune"});
    line.option("folder", o->folder, "The registry's folder; add begins one").required();
    line.option("names", o->names, "Files to add; names to get or to prune");
    line.option("--name", o->name, "Name and tag for add. Default: the bundle's or file's, with the tag latest").takes("NAME[:TAG]");
    line.flag("--replace", o->replace, "Give a name that is taken to what is added");
    line.option("--out", o->out, "The file that get writes").takes("FILE");
    line.option("--algorithm", o->algorithm, "List what has this algorithm").takes("NAME");
    line.option("--target", o->target, "List what has code or schedules for this target").takes("NAME");
    line.option("--policy", o->policy, "List what has kernels of this numerics policy").takes("NAME");
    line.flag("--json", o->json, "Print the list as JSON");
    return {line, [=] {
                check_options(line, *o);
                return o->what == "add"      ? add(*o)
                       : o->what == "list"   ? list(*o)
                       : o->what == "get"    ? get(*o)
                       : o->what == "verify" ? verify(*o)
                                             : prune(*o);
            }};
}

}  // namespace tessera
