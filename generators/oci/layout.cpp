#include "generators/oci/layout.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char *marker = "oci-layout", *index_file = "index.json", *blobs = "blobs/sha256", *scratch = ".tessera-";
constexpr const char *marker_text = "{\"imageLayoutVersion\":\"1.0.0\"}\n";
constexpr size_t digest_digits = 64;

bool is_digits(std::string_view text) {
    return text.size() == digest_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ordered_json json_of(const OciDescriptor &d) {
    ordered_json made = {{"mediaType", d.media_type}};
    if (!d.artifact_type.empty()) made["artifactType"] = d.artifact_type;
    made["digest"] = d.digest, made["size"] = d.size;
    if (!d.annotations.empty()) made["annotations"] = d.annotations;
    return made;
}

ordered_json list_of(const std::vector<OciDescriptor> &all) {
    ordered_json list = ordered_json::array();
    for (const OciDescriptor &d : all) list.push_back(json_of(d));
    return list;
}

std::map<std::string, std::string> annotations(const JsonReader &object) {
    std::map<std::string, std::string> made;
    if (const auto found = object.find("annotations"))
        for (const auto &[key, value] : found->fields()) made[key] = value.text();
    return made;
}

OciDescriptor descriptor(const JsonReader &d) {
    OciDescriptor made{d.at("mediaType").text(),
                       d.at("digest").text(),
                       static_cast<uint64_t>(d.at("size").integer(0, int64_t{1} << 62)),
                       {},
                       annotations(d)};
    if (const auto type = d.find("artifactType")) made.artifact_type = type->text();
    if (!is_oci_digest(made.digest))
        d.at("digest").fail("registry.document",
                            "expected sha256: and 64 lower-case hexadecimal digits, got '" + d.at("digest").quotable() + "'.");
    return made;
}

std::vector<OciDescriptor> descriptors(const JsonReader &list) {
    std::vector<OciDescriptor> made;
    const std::vector<JsonReader> items = list.items();
    if (items.size() > oci_max_entries)
        list.fail("registry.document",
                  "expected at most " + std::to_string(oci_max_entries) + " entries, got " + std::to_string(items.size()) + ".");
    for (const JsonReader &item : items) made.push_back(descriptor(item));
    return made;
}

void check_schema(const JsonReader &all) {
    if (all.at("schemaVersion").integer() != 2) all.at("schemaVersion").fail("registry.document", "expected 2, OCI's image specification.");
}

Handed handed(uint64_t most) { return {"registry", "file of a registry", "Is it one of this registry?", most}; }

// A folder itself, and no link to one.
bool is_own_folder(const fs::path &path) {
    std::error_code error;
    return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

}  // namespace

bool is_oci_digest(std::string_view text) { return text.starts_with("sha256:") && is_digits(text.substr(7)); }

std::string text_of(const OciManifest &m) {
    ordered_json document = {
        {"schemaVersion", 2}, {"mediaType", oci_manifest_type}, {"artifactType", m.artifact_type}, {"config", json_of(m.config)}};
    document["layers"] = list_of(m.layers);
    if (!m.annotations.empty()) document["annotations"] = m.annotations;
    return json_text(document) + "\n";
}

OciManifest parse_oci_manifest(const std::string &text, const std::string &subject) {
    const nlohmann::json document = parse_json(text, subject);
    const JsonReader all(document, subject);
    check_schema(all);
    OciManifest made;
    if (const auto type = all.find("artifactType")) made.artifact_type = type->text();
    made.config = descriptor(all.at("config"));
    made.layers = descriptors(all.at("layers"));
    made.annotations = annotations(all);
    return made;
}

void OciLayout::refuse(const char *id, const std::string &why) const { throw UserError(id, "registry '" + folder_.string() + "': " + why); }

OciLayout::OciLayout(const fs::path &folder, For purpose) : folder_(folder) {
    if (purpose == For::writing) begin();
    lock_ = open((folder_ / marker).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock_ < 0)
        refuse("registry.folder", std::string("expected a folder in OCI's image layout, with a file ") + marker + "; " +
                                      std::strerror(errno) + ". 'registry add' begins one in a new folder.");
    while (flock(lock_, purpose == For::writing ? LOCK_EX : LOCK_SH) != 0)
        if (errno != EINTR) {
            close(lock_);
            refuse("registry.folder",
                   std::string("its lock cannot be taken: ") + std::strerror(errno) + ". Is its file system one with locks?");
        }
    try {
        const std::string subject = (folder_ / marker).string(), text = read_beneath(folder_, marker, subject, handed(4096));
        const nlohmann::json document = parse_json(text, subject);
        if (const JsonReader version = JsonReader(document, subject).at("imageLayoutVersion"); version.text() != "1.0.0")
            version.fail("registry.document", "expected 1.0.0, got '" + version.quotable() + "'.");
        std::error_code error;
        for (const char *part : {"blobs", blobs})
            if (fs::exists(fs::symlink_status(folder_ / part, error)) && !is_own_folder(folder_ / part))
                refuse("registry.folder",
                       std::string("expected '") + part + "' to be a folder of its own; it is a link or a file. Do not use it.");
        if (purpose == For::writing) fs::create_directories(folder_ / blobs);
        read_index();
    } catch (...) {
        close(lock_);
        throw;
    }
}

OciLayout::~OciLayout() { close(lock_); }

// Makes the marker where the folder is new: by a link, which never replaces what another process has made meanwhile.
void OciLayout::begin() {
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder_ / marker, error))) return;
    if (fs::is_directory(folder_, error))
        for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error))
            if (!it->path().filename().string().starts_with(scratch) && !fs::exists(fs::symlink_status(folder_ / marker)))
                refuse("registry.folder", "expected a registry, a new folder or an empty one; it has '" +
                                              printable(it->path().filename().string()) + "' and no " + marker + ". Name another.");
    const OutputFolder out(folder_);
    own_folder(out.staged("").parent_path(), scratch);
    out.write(marker, marker_text);
    if (link(out.staged(marker).c_str(), (folder_ / marker).c_str()) != 0 && errno != EEXIST)
        refuse("registry.folder", std::string("cannot begin it: ") + std::strerror(errno) + ". Choose a folder that can be written to.");
}

void OciLayout::read_index() {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(folder_ / index_file, error))) return;  // begun, and nothing was added
    const std::string subject = (folder_ / index_file).string(),
                      text = read_beneath(folder_, index_file, subject, handed(oci_max_document));
    const nlohmann::json document = parse_json(text, subject);
    const JsonReader all(document, subject);
    check_schema(all);
    entries_ = descriptors(all.at("manifests"));
}

const OciDescriptor *OciLayout::find(const std::string &name) const {
    for (const OciDescriptor &d : entries_)
        if (const auto it = d.annotations.find(oci_ref_name); it != d.annotations.end() && it->second == name) return &d;
    return nullptr;
}

std::shared_ptr<const RegularFile> OciLayout::file(const OciDescriptor &d) const {
    const fs::path relative = fs::path(blobs) / d.digest.substr(7);
    try {
        auto file = std::make_shared<RegularFile>(folder_, relative, (folder_ / relative).string(), handed(uint64_t{1} << 62));
        if (file->bytes() != d.size)
            refuse("registry.blob", "blob " + d.digest + ": expected " + std::to_string(d.size) + " bytes, got " +
                                        std::to_string(file->bytes()) + ". Add it again.");
        return file;
    } catch (const UserError &error) {
        if (error.id() == "registry.blob") throw;
        refuse("registry.blob", "blob " + d.digest + ": " + error.message());
    }
}

std::string OciLayout::read(const OciDescriptor &d, uint64_t most) const {
    if (d.size > most)
        refuse("registry.blob",
               "blob " + d.digest + ": expected at most " + std::to_string(most) + " bytes, got " + std::to_string(d.size) + ".");
    std::string text = file(d)->read(0, d.size);
    if (sha256(text) != d.digest)
        refuse("registry.blob", "blob " + d.digest + " has other bytes than its name says. It is damaged; remove it and add it again.");
    return text;
}

void OciLayout::check_hash(const OciDescriptor &d) const {
    Sha256 hash;
    file(d)->each(0, d.size, [&](std::string_view part) { hash.add(part); });
    if (hash.text() != d.digest)
        refuse("registry.blob", "blob " + d.digest + " has other bytes than its name says. It is damaged; remove it and add it again.");
}

OciDescriptor OciLayout::add(const std::string &media_type,
                             const std::function<void(const std::function<void(std::string_view)> &)> &each) {
    OciDescriptor made{media_type, "", 0};
    Sha256 hash;
    each([&](std::string_view part) { hash.add(part), made.size += part.size(); });
    made.digest = hash.text();
    const fs::path place = folder_ / blobs / made.digest.substr(7);
    std::error_code error;
    if (fs::exists(fs::symlink_status(place, error))) {
        try {
            check_hash(made);
            return made;
        } catch (const UserError &) { fs::remove_all(place, error); }  // it is not what its name says
    }
    const OutputFolder out(folder_);
    own_folder(out.staged("").parent_path(), scratch);
    std::ofstream stream(out.staged("blob"), std::ios::binary);
    Sha256 written;
    errno = 0;
    each([&](std::string_view part) { written.add(part), stream.write(part.data(), static_cast<std::streamsize>(part.size())); });
    stream.close();
    if (!stream)
        refuse("registry.write", std::string("expected to write a blob of ") + std::to_string(made.size) + " bytes; " +
                                     (errno ? std::strerror(errno) : "writing failed") + ". Make room.");
    if (written.text() != made.digest) refuse("registry.write", "what is added has changed while it was read. Leave it alone meanwhile.");
    fs::rename(out.staged("blob"), place, error);
    if (error) refuse("registry.write", "expected to write blob " + made.digest + "; " + error.message() + ".");
    return made;
}

OciDescriptor OciLayout::add(const std::string &media_type, const std::string &text) {
    return add(media_type, [&](const std::function<void(std::string_view)> &take) { take(text); });
}

void OciLayout::set_entries(std::vector<OciDescriptor> entries) {
    ordered_json document = {{"schemaVersion", 2}, {"mediaType", oci_index_type}, {"manifests", list_of(entries)}};
    const std::string text = json_text(document, 1) + "\n";
    if (text.size() > oci_max_document || entries.size() > oci_max_entries)
        refuse("registry.write", "expected an index of at most 16 MiB. Begin another registry.");
    const OutputFolder out(folder_);
    own_folder(out.staged("").parent_path(), scratch);
    out.write(index_file, text);
    std::error_code error;
    fs::rename(out.staged(index_file), folder_ / index_file, error);
    if (error) refuse("registry.write", std::string("expected to write ") + index_file + "; " + error.message() + ".");
    entries_ = std::move(entries);
}

std::vector<OciLayout::Stray> OciLayout::stored() const {
    std::vector<Stray> all;
    std::error_code error;
    for (fs::directory_iterator it(folder_ / blobs, error), end; !error && it != end; it.increment(error)) {
        Stray s{it->path().filename().string(), false, 0};
        struct stat status {};
        if (lstat(it->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
            s.is_blob = is_digits(s.name), s.bytes = static_cast<uint64_t>(status.st_size);
        all.push_back(std::move(s));
    }
    std::sort(all.begin(), all.end(), [](const Stray &a, const Stray &b) { return a.name < b.name; });
    return all;
}

void OciLayout::remove(const std::string &digits) {
    require(is_digits(digits), "what is removed is a blob");
    std::error_code error;
    fs::remove(folder_ / blobs / digits, error);
    if (error) refuse("registry.write", "expected to remove blob " + digits + "; " + error.message() + ".");
}

void OciLayout::remove_abandoned() {
    const OutputFolder out(folder_);
    own_folder(out.staged("").parent_path(), scratch);
}

}  // namespace tessera
