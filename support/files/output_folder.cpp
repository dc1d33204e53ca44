#include "support/files/output_folder.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

static fs::path unique_folder(fs::path pattern) {
    std::string text = pattern.string() + "XXXXXX";
    if (!mkdtemp(text.data()))
        throw UserError("output.folder", "folder '" + pattern.parent_path().string() + "': expected one to write to; " +
                                             std::strerror(errno) + ". Choose another, or correct its permissions.");
    return text;
}

OutputFolder::OutputFolder(const fs::path &destination) : destination_(destination) {
    std::error_code error;
    fs::create_directories(destination, error);
    if (std::error_code unknown; error && !fs::is_directory(destination, unknown))
        throw UserError("output.folder", "folder '" + destination.string() + "': expected one to write to; " + error.message() +
                                             ". Choose another, or correct its permissions.");
    scratch_ = unique_folder(destination / ".tessera-");
}

OutputFolder::~OutputFolder() {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
}

static void refuse(const fs::path &file, const std::string &why) {
    throw UserError("output.write", "file '" + file.string() + "': expected to write it; " + why + ". Choose another place, or make room.");
}

void OutputFolder::write(const std::string &file, const std::string &text) const {
    std::ofstream out(staged(file), std::ios::binary);
    out << text;
    out.close();
    if (!out) refuse(destination_ / file, std::strerror(errno));
}

std::string OutputFolder::read(const std::string &file) const { return read_file(staged(file)); }

void OutputFolder::publish(const std::string &file) const { publish(file, destination_ / file); }

fs::path behind_links(fs::path place) {
    constexpr int max_links = 40;  // as Linux follows
    std::error_code error;
    for (int i = 0; i < max_links && fs::is_symlink(fs::symlink_status(place, error)); i++) {
        const fs::path next = fs::read_symlink(place, error);
        if (error) break;
        place = next.is_absolute() ? next : place.parent_path() / next;
    }
    return place;
}

void write_into(const fs::path &place, const std::string &text) {
    std::ofstream out(place, std::ios::binary);
    out << text;
    out.close();
    if (!out) refuse(place, std::strerror(errno));
}

static bool is_stream(const fs::path &place) {
    std::error_code error;
    const fs::file_type there = fs::status(place, error).type();
    return there == fs::file_type::character || there == fs::file_type::fifo;
}

// Where a file goes that is to be at `given`; what is there must be a file, a stream or nothing.
static fs::path checked_place(const fs::path &given) {
    const fs::path place = behind_links(given);
    std::error_code error;
    const fs::file_type there = fs::status(place, error).type();
    if (is_stream(place) || there == fs::file_type::regular || there == fs::file_type::not_found) return place;
    const std::string got = there == fs::file_type::directory ? "it is a folder"
                            : there == fs::file_type::block   ? "it is a block device"
                            : there == fs::file_type::socket  ? "it is a socket"
                            : error                           ? error.message()
                                                              : "it is something else";
    throw UserError("output.write", "file '" + given.string() + "': expected to write it, or a pipe or a character device to write to; " +
                                        got + ". Choose another place.");
}

void OutputFolder::publish_together(const std::vector<std::string> &files, const std::map<std::string, fs::path> &elsewhere) const {
    std::vector<fs::path> places;
    for (const std::string &file : files) {
        const auto it = elsewhere.find(file);
        places.push_back(it == elsewhere.end() ? destination_ / file : it->second);
        const fs::path place = checked_place(places.back()), parent = place.has_parent_path() ? place.parent_path() : ".";
        if (!is_stream(place) && access(parent.c_str(), W_OK | X_OK) != 0) refuse(places.back(), std::strerror(errno));
    }
    for (size_t i = 0; i < files.size(); i++) publish(files[i], places[i]);
}

void OutputFolder::publish(const std::string &file, const fs::path &given) const {
    const fs::path place = checked_place(given);
    // A name that other programs have open as a device or a pipe must not become a file.
    if (is_stream(place)) return write_into(place, read(file));
    std::error_code error;
    fs::rename(staged(file), place, error);
    if (error == std::errc::cross_device_link) {
        // A rename is atomic within one file system only: copy beside the place first.
        const fs::path beside = place.string() + ".tessera-new";
        fs::copy_file(staged(file), beside, fs::copy_options::overwrite_existing, error);
        if (!error) fs::rename(beside, place, error);
    }
    if (error) refuse(place, error.message());
}

// What TMPDIR names, or /tmp. Absolute: a path that begins with '-' would be an option of the programs that are given it.
static fs::path temporary_folder() {
    const char *named = std::getenv("TMPDIR");
    std::error_code error;
    fs::path folder = fs::absolute(named && *named ? named : "/tmp", error);
    if (error) folder = named;
    std::string text = (folder / "tessera-XXXXXX").string();
    if (!mkdtemp(text.data()))
        throw UserError("output.temporary", "folder '" + std::string(named && *named ? named : "/tmp") + "'" +
                                                (named && *named ? ", which TMPDIR names" : "") + ": expected one for temporary files; " +
                                                std::strerror(errno) + ". Set TMPDIR to a folder that can be written to.");
    return text;
}

TemporaryFolder::TemporaryFolder() : path_(temporary_folder()) {}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    require(static_cast<bool>(in), "a file that was just written can be read");
    return text.str();
}

}  // namespace tessera
