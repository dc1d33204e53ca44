#include "compiler/abi/archive.h"

#include <cctype>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "compiler/abi/object_file.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr std::string_view magic = "!<arch>\n";
constexpr size_t header_bytes = 60, name_bytes = 16, size_offset = 48, max_short_name = 15;

std::string text_before(const std::string &bytes, size_t offset, char end) {
    const size_t stop = bytes.find(end, offset);
    require(stop != std::string::npos, "a name in a static library ends");
    return bytes.substr(offset, stop - offset);
}

// The header of a member that is of no time and nobody's.
std::string header_of(const std::string &name, int permissions, size_t size) {
    return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8o}{:<10}`\n", name, 0, 0, 0, permissions, size);
}

std::string big_endian(size_t value) {
    require(value <= UINT32_MAX, "a static library has at most 4 GiB");
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
}

// Members begin at even bytes.
void pad(std::string &text, char with) {
    if (text.size() % 2) text += with;
}

}  // namespace

std::map<std::string, std::string> members_of(const std::string &archive) {
    require(archive.starts_with(magic), "a static library begins as one");
    std::map<std::string, std::string> members;
    std::string long_names;
    for (size_t offset = magic.size(); offset + header_bytes <= archive.size();) {
        std::string name = archive.substr(offset, name_bytes);
        const size_t size = std::strtoull(archive.substr(offset + size_offset, 10).c_str(), nullptr, 10);
        require(size <= archive.size() - offset - header_bytes, "a member of a static library is whole");
        const std::string content = archive.substr(offset + header_bytes, size);
        if (name.starts_with("//")) long_names = content;
        else if (name[0] == '/' && std::isdigit(static_cast<unsigned char>(name[1])))
            members[text_before(long_names, std::strtoull(name.c_str() + 1, nullptr, 10), '/')] = content;
        else if (name[0] != '/') members[text_before(name, 0, '/')] = content;
        offset += header_bytes + size + size % 2;
    }
    return members;
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>> &members) {
    std::string long_names, symbol_names, content;
    std::vector<size_t> defined_at;  // where in `content` the member of each symbol begins
    for (const auto &[name, bytes] : members) {
        require(name.find('/') == std::string::npos, "a member of a static library has a name without '/'");
        for (const ObjectSymbol &symbol : symbols_of(bytes)) {
            if (!symbol.defined || !symbol.global) continue;
            symbol_names += symbol.name + '\0';
            defined_at.push_back(content.size());
        }
        const bool is_long = name.size() > max_short_name;
        content += header_of(is_long ? "/" + std::to_string(long_names.size()) : name + "/", 0644, bytes.size()) + bytes;
        pad(content, '\n');
        if (is_long) long_names += name + "/\n";
    }
    pad(long_names, '\n');
    const size_t index_bytes = 4 + 4 * defined_at.size() + symbol_names.size();
    const size_t before =
        magic.size() + header_bytes + index_bytes + index_bytes % 2 + (long_names.empty() ? 0 : header_bytes + long_names.size());
    std::string index = big_endian(defined_at.size());
    for (size_t position : defined_at) index += big_endian(before + position);
    index += symbol_names;
    pad(index, '\0');
    std::string archive = std::string(magic) + header_of("/", 0, index.size()) + index;
    // The table of names has a size and nothing else.
    if (!long_names.empty()) archive += fmt::format("{:<48}{:<10}`\n", "//", long_names.size()) + long_names;
    return archive + content;
}

}  // namespace tessera
