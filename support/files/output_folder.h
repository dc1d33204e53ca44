// Files that appear whole or not at all: they are made in a folder inside the destination and renamed into place.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tessera {

class OutputFolder {
public:
    // Makes the destination if need be. UserError output.folder when that fails.
    explicit OutputFolder(const std::filesystem::path &destination);
    ~OutputFolder();  // removes what was not published
    OutputFolder(const OutputFolder &) = delete;
    OutputFolder &operator=(const OutputFolder &) = delete;

    // Where to make a file of this name.
    std::filesystem::path staged(const std::string &file) const { return scratch_ / file; }
    void write(const std::string &file, const std::string &text) const;  // UserError output.write
    std::string read(const std::string &file) const;
    // Renames the staged file to its place, which may be another folder's. Links are followed; a pipe or a character device, such
    // as /dev/null, is written to. UserError output.write, also where something else stands there, such as a folder.
    void publish(const std::string &file) const;
    void publish(const std::string &file, const std::filesystem::path &place) const;
    // Publishes files that belong together, in this order. `elsewhere` gives the places that are not in the destination. All places
    // are checked before the first file is renamed: if one of them cannot be written, none changes.
    void publish_together(const std::vector<std::string> &files, const std::map<std::string, std::filesystem::path> &elsewhere = {}) const;

private:
    std::filesystem::path destination_, scratch_;
};

// A folder that is removed, with its content, at the end of the object's life.
class TemporaryFolder {
public:
    TemporaryFolder();  // in $TMPDIR or /tmp; UserError output.temporary
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    const std::filesystem::path &path() const { return path_; }

private:
    std::filesystem::path path_;
};

// Writes the text in place: to a file, a pipe or a device. UserError output.write.
void write_into(const std::filesystem::path &place, const std::string &text);

// The end of a chain of links; it need not exist.
std::filesystem::path behind_links(std::filesystem::path place);

std::string read_file(const std::filesystem::path &file);  // InternalError when it cannot be read

}  // namespace tessera
