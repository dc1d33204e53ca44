#include "generators/oci/artifact.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "costmodel/model/examples.h"
#include "generators/bundle/bundle.h"
#include "generators/registry/algorithm_file.h"
#include "schedules/artifact/artifact.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

using Annotations = std::map<std::string, std::string>;

constexpr const char *member_type = "application/vnd.tessera.bundle.member.v1", *file_layer_type = "application/vnd.tessera.file.layer.v1";
constexpr int max_levels = 8;

std::string hash_of(const RegularFile &file) {
    Sha256 hash;
    file.each(0, file.bytes(), [&](std::string_view part) { hash.add(part); });
    return hash.text();
}

// "a,b" without repetition.
void add_word(std::string &list, const std::string &word) {
    const std::string all = "," + list + ",";
    if (!word.empty() && all.find("," + word + ",") == std::string::npos) list += (list.empty() ? "" : ",") + word;
}

Annotations about_bundle(const BundleManifest &m, const RegularFile &file) {
    std::string algorithms, shapes, targets, policies;
    for (const BundleKernel &k : m.kernels) {
        add_word(algorithms, k.algorithm), add_word(policies, k.numerics);
        std::string shape;
        for (const auto &[dim, extent] : k.fixed) shape += (shape.empty() ? "" : " ") + dim + "=" + std::to_string(extent);
        if (!shape.empty()) shapes += (shapes.empty() ? "" : "; ") + k.name + ": " + shape;
    }
    for (const BundleTarget &t : m.targets) add_word(targets, t.name);
    return {{oci_algorithm, algorithms}, {oci_shape, shapes},      {oci_target, targets},
            {oci_policy, policies},      {oci_version, m.tessera}, {oci_sha256, hash_of(file)}};
}

Annotations about_schedule(const Schedule &schedule, const RegularFile &file) {
    const nlohmann::json &document = schedule.document();
    Annotations about = {{oci_sha256, hash_of(file)}};
    if (const auto algorithm = document.find("algorithm");
        algorithm != document.end() && algorithm->is_object() && algorithm->contains("name"))
        about[oci_algorithm] = (*algorithm)["name"].get<std::string>();
    // Names of families end in the target they are for: matmul/avx2, matmul/f32/avx2.
    const std::string name = schedule.name();
    if (const size_t slash = name.rfind('/'); slash != std::string::npos) about[oci_target] = name.substr(slash + 1);
    return about;
}

OciManifest manifest_of_bundle(OciLayout &layout, const fs::path &file) {
    const Bundle bundle(file);
    const StoredZip &zip = bundle.zip();
    for (const BundleMember &m : bundle.manifest().members) bundle.check_hash(m);
    OciManifest made{oci_bundle_type, {}, {}, about_bundle(bundle.manifest(), *zip.file())};
    for (const ZipMember &m : zip.members()) {
        made.layers.push_back(layout.add(member_type, [&](const std::function<void(std::string_view)> &take) { zip.each(m, take); }));
        made.layers.back().annotations[oci_title] = m.path;
    }
    return made;
}

Annotations about_program(const Algorithm &algorithm, const RegularFile &file) {
    std::string shape;
    for (const Dim &dim : algorithm.dims)
        if (dim.kind == DimKind::fixed) shape += (shape.empty() ? "" : " ") + dim.name + "=" + std::to_string(dim.value);
    return {{oci_algorithm, algorithm.name}, {oci_shape, shape}, {oci_policy, algorithm.numerics.name}, {oci_sha256, hash_of(file)}};
}

// A document of JSON; what its format says of it is checked.
void describe_document(OciManifest &made, const fs::path &file, const RegularFile &content) {
    static const std::vector<std::string> formats = {"tessera-schedule", "tessera-algorithm", "tessera-module",   "tessera-campaign",
                                                     "tessera-numerics", "tessera-target",    "tessera-manifest", "tessera-sources",
                                                     "tessera-replay",   "tessera-import"};
    const nlohmann::json document = parse_json(content.read(0, content.bytes()), file.string());
    const auto said = document.is_object() ? document.find("format") : document.end();
    if (said == document.end() || !said->is_string()) return;
    const std::string format = said->get<std::string>();
    if (format == "tessera-schedule") {
        made.artifact_type = oci_schedule_type, made.annotations = about_schedule(Schedule::from_json(document, file.string()), content);
    } else if (format == "tessera-algorithm") {
        made.artifact_type = oci_program_type, made.annotations = about_program(read_algorithm(file), content);
    } else if (format.starts_with("tessera-") && std::find(formats.begin(), formats.end(), format) == formats.end()) {
        throw UserError("registry.document", "file '" + file.string() + "': there is no format '" + quotable(format) +
                                                 "' of JSON; there are " + join(formats) + "." + did_you_mean(format, formats));
    }
}

OciManifest manifest_of_file(OciLayout &layout, const fs::path &file) {
    const RegularFile content(file, {"registry", "file", "Make several.", size_t{1} << 40});
    OciManifest made{oci_file_type, {}, {}, {{oci_sha256, hash_of(content)}}};
    if (file.extension() == ".json" && content.bytes() <= json_max_bytes) describe_document(made, file, content);
    if (file.extension() == ".tsv" && content.bytes() <= bundle_max_archive) {
        std::istringstream lines(content.read(0, content.bytes()));
        read_examples(lines, file.string());
    }
    made.layers.push_back(
        layout.add(file_layer_type, [&](const std::function<void(std::string_view)> &take) { content.each(0, content.bytes(), take); }));
    made.layers.back().annotations[oci_title] = printable(file.filename().string());
    return made;
}

[[noreturn]] void refuse(const OciLayout &layout, const char *id, const std::string &why) {
    throw UserError(id, "registry '" + layout.folder().string() + "': " + why);
}

[[noreturn]] void refuse_missing(const OciLayout &layout, const std::string &reference) {
    std::vector<std::string> names;
    for (const OciDescriptor &d : layout.entries())
        if (const auto it = d.annotations.find(oci_ref_name); it != d.annotations.end()) names.push_back(printable(it->second));
    refuse(layout, "registry.missing",
           "there is no '" + reference + "' among its " + std::to_string(names.size()) + "." + did_you_mean(reference, names));
}

// One layer for each member of the bundle's own manifest, with its hash and size.
void check_bundle_layers(const OciLayout &layout, const OciManifest &m, const std::string &subject) {
    const auto wrong = [&](const std::string &why) {
        throw UserError("registry.document", subject + ": " + why + " It is no bundle that was added here.");
    };
    const auto title = [&](size_t i) {
        const auto it = m.layers[i].annotations.find(oci_title);
        return it == m.layers[i].annotations.end() ? "" : it->second;
    };
    if (m.layers.empty() || title(0) != bundle_manifest_member) wrong("expected manifest.json as its first layer.");
    const BundleManifest bundle =
        parse_bundle_manifest(layout.read(m.layers[0], bundle_max_manifest), subject + ": " + bundle_manifest_member);
    const size_t members = bundle.members.size(), layers = m.layers.size() - 1;
    if (layers != members && !(layers == members + 1 && title(layers) == bundle_signature_member))
        wrong("it has other layers than its manifest has members.");
    for (size_t i = 0; i < members; i++)
        if (const BundleMember &member = bundle.members[i];
            title(i + 1) != member.path || m.layers[i + 1].digest != member.sha256 || m.layers[i + 1].size != member.bytes)
            wrong("layer " + std::to_string(i + 1) + " is not member '" + member.path + "'.");
}

// All blobs that a document names, itself first. A document that is no manifest and no index names none.
class Reached {
public:
    explicit Reached(const OciLayout &layout) : layout_(layout) {}
    void add(const OciDescriptor &d, int level = 0) {
        if (!all.emplace(d.digest, d).second) return;
        if (d.media_type.find("manifest") == std::string::npos && d.media_type.find("index") == std::string::npos) return;
        if (level == max_levels)
            refuse(layout_, "registry.document", "blob " + d.digest + ": expected at most 8 documents within each other.");
        const nlohmann::json document = parse_json(layout_.read(d, oci_max_document), d.digest);
        collect(document, level + 1);
    }
    std::map<std::string, OciDescriptor> all;

private:
    const OciLayout &layout_;

    void collect(const nlohmann::json &value, int level) {
        if (value.is_array())
            for (const nlohmann::json &item : value) collect(item, level);
        if (!value.is_object()) return;
        const auto digest = value.find("digest"), size = value.find("size"), type = value.find("mediaType");
        if (digest != value.end() && digest->is_string() && is_oci_digest(digest->get<std::string>())) {
            const int64_t bytes = size != value.end() && size->is_number_integer() ? size->get<int64_t>() : 0;
            add({type != value.end() && type->is_string() ? type->get<std::string>() : "", digest->get<std::string>(),
                 static_cast<uint64_t>(std::max<int64_t>(bytes, 0))},
                level);
        }
        for (const auto &[key, item] : value.items())
            if (key != "annotations") collect(item, level);
    }
};

}  // namespace

std::string oci_reference(const std::string &name) {
    const auto bad = [&](const char *why) {
        throw UserError("registry.name", "name '" + printable(name) +
                                             "': expected <name>[:<tag>] of letters, digits and '.', '_', '-', and '/' between parts of "
                                             "the name, such as layers/encoder:1.2; " +
                                             why);
    };
    const size_t colon = name.find(':');
    const std::string path = name.substr(0, colon), tag = colon == std::string::npos ? "latest" : name.substr(colon + 1);
    const auto is_word = [](std::string_view word, size_t most) {
        return !word.empty() && word.size() <= most && std::isalnum(static_cast<unsigned char>(word[0])) &&
               std::all_of(word.begin(), word.end(),
                           [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '+'; });
    };
    if (path.size() > 200) bad("it is longer than 200.");
    for (size_t from = 0; from <= path.size();) {
        const size_t to = std::min(path.find('/', from), path.size());
        if (!is_word(std::string_view(path).substr(from, to - from), 200)) bad("a part of the name is another.");
        from = to + 1;
    }
    if (!is_word(tag, 128)) bad("the tag is another.");
    return path + ":" + tag;
}

OciDescriptor add_artifact(OciLayout &layout, const fs::path &file, const std::string &reference, bool replace) {
    OciManifest manifest = file.extension() == ".tess" ? manifest_of_bundle(layout, file) : manifest_of_file(layout, file);
    manifest.config = layout.add(oci_empty_type, "{}");
    OciDescriptor made = layout.add(oci_manifest_type, text_of(manifest));
    made.artifact_type = manifest.artifact_type, made.annotations = manifest.annotations;
    made.annotations[oci_ref_name] = reference;
    std::vector<OciDescriptor> entries = layout.entries();
    if (const OciDescriptor *known = layout.find(reference)) {
        if (known->digest == made.digest) return made;
        if (!replace)
            refuse(layout, "registry.taken",
                   "'" + reference + "' is " + known->digest + " and would become " + made.digest +
                       ". Add it by another tag, or with --replace.");
        entries.erase(entries.begin() + (known - layout.entries().data()));
    }
    const auto name = [](const OciDescriptor &d) {
        const auto it = d.annotations.find(oci_ref_name);
        return it == d.annotations.end() ? "" : it->second;
    };
    entries.insert(std::upper_bound(entries.begin(), entries.end(), made,
                                    [&](const OciDescriptor &a, const OciDescriptor &b) { return name(a) < name(b); }),
                   made);
    layout.set_entries(std::move(entries));
    return made;
}

void get_artifact(const OciLayout &layout, const std::string &reference, const fs::path &file) {
    const OciDescriptor *entry = layout.find(reference);
    if (!entry) refuse_missing(layout, reference);
    const std::string subject = "registry '" + layout.folder().string() + "': " + reference;
    const OciManifest manifest = parse_oci_manifest(layout.read(*entry, oci_max_document), subject);
    const auto whole = manifest.annotations.find(oci_sha256);
    if (whole == manifest.annotations.end() || manifest.layers.empty())
        throw UserError(
            "registry.document",
            subject + ": expected what 'registry add' wrote, with the hash of the whole; it is of another tool. Get it with that one.");
    std::vector<ZipContent> contents;
    for (const OciDescriptor &layer : manifest.layers) {
        layout.check_hash(layer);
        const auto title = layer.annotations.find(oci_title);
        contents.push_back({title == layer.annotations.end() ? "" : title->second, {}, layout.file(layer), 0, layer.size});
    }
    const std::string name = file.filename().string();
    const OutputFolder out(file.has_parent_path() ? file.parent_path() : ".");
    if (manifest.artifact_type == oci_bundle_type) {
        check_bundle_layers(layout, manifest, subject);
        write_stored_zip(out.staged(name), contents);
    } else {
        if (contents.size() != 1)
            throw UserError("registry.document",
                            subject + ": expected a bundle, or one file, got " + std::to_string(contents.size()) + ".");
        std::ofstream stream(out.staged(name), std::ios::binary);
        contents[0].each([&](std::string_view part) { stream.write(part.data(), static_cast<std::streamsize>(part.size())); });
        stream.close();
        if (!stream)
            throw UserError("output.write",
                            "file '" + file.string() + "': expected to write all of it. Free some space, or send it elsewhere.");
    }
    if (hash_of(RegularFile(out.staged(name), {"registry", "file", "", size_t{1} << 62})) != whole->second)
        throw UserError("registry.blob", subject + ": its parts make other bytes than were added. The registry was changed; add it again.");
    out.publish(name);
}

OciCheck verify_layout(const OciLayout &layout) {
    OciCheck done;
    const auto attempt = [&](auto run) {
        try {
            run();
        } catch (const UserError &error) { done.problems.emplace_back(error.what()); }
    };
    Reached reached(layout);
    std::set<std::string> names;
    for (const OciDescriptor &entry : layout.entries()) {
        attempt([&] { reached.add(entry); });
        const auto name = entry.annotations.find(oci_ref_name);
        if (name != entry.annotations.end() && !names.insert(name->second).second)
            done.problems.emplace_back(UserError("registry.document", "registry '" + layout.folder().string() + "': '" +
                                                                          printable(name->second) + "' is in its index twice.")
                                           .what());
        if (entry.media_type != oci_manifest_type || entry.artifact_type != oci_bundle_type) continue;
        attempt([&] {
            const std::string subject = "registry '" + layout.folder().string() +
                                        "': " + (name == entry.annotations.end() ? entry.digest : printable(name->second));
            check_bundle_layers(layout, parse_oci_manifest(layout.read(entry, oci_max_document), subject), subject);
        });
        done.manifests++;
    }
    for (const auto &[digest, d] : reached.all) {
        attempt([&] { layout.check_hash(d); });
        done.blobs++;
    }
    size_t unnamed = 0;
    for (const OciLayout::Stray &s : layout.stored()) {
        if (!s.is_blob)
            done.problems.emplace_back(
                UserError("registry.blob", "registry '" + layout.folder().string() + "': '" + printable(s.name) +
                                               "' in blobs/sha256 is no blob: a link, a folder, or another name. Remove it.")
                    .what());
        else if (!reached.all.count("sha256:" + s.name)) unnamed++;
    }
    if (unnamed) done.notes.push_back(std::to_string(unnamed) + " blobs are named by nothing; 'registry prune' removes them");
    return done;
}

OciPruned prune_layout(OciLayout &layout, const std::vector<std::string> &references) {
    std::vector<OciDescriptor> entries = layout.entries();
    for (const std::string &reference : references) {
        const OciDescriptor *entry = layout.find(reference);
        if (!entry) refuse_missing(layout, reference);
        entries.erase(std::remove(entries.begin(), entries.end(), *entry), entries.end());
    }
    Reached reached(layout);
    for (const OciDescriptor &entry : entries) reached.add(entry);  // what cannot be read may name anything: then nothing is removed
    if (entries.size() != layout.entries().size()) layout.set_entries(entries);
    OciPruned done;
    for (const OciLayout::Stray &s : layout.stored())
        if (s.is_blob && !reached.all.count("sha256:" + s.name)) layout.remove(s.name), done.blobs++, done.bytes += s.bytes;
    layout.remove_abandoned();
    return done;
}

}  // namespace tessera
