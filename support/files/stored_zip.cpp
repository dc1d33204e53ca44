#include "support/files/stored_zip.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "support/files/crc32.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

constexpr uint64_t max32 = 0xffffffff, max16 = 0xffff;
constexpr size_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20;
constexpr uint16_t zip64_id = 1, alignment_id = 0xd935;
constexpr uint16_t version_plain = 10, version_zip64 = 45, made_by = 0x031e, first_date = 0x0021;
constexpr uint32_t attributes = 0x81a40000;

void put(std::string &text, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) text += static_cast<char>(value >> (8 * i));
}

uint64_t get(std::string_view bytes, size_t at, size_t count) {
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
}

// The extra field of ZIP64 in a local header, which has both sizes or none.
std::string local_zip64(uint64_t bytes) {
    std::string text;
    if (bytes < max32) return text;
    put(text, zip64_id, 2), put(text, 16, 2), put(text, bytes, 8), put(text, bytes, 8);
    return text;
}

// A local header at `at`, whose data begin at a multiple of 64.
std::string local_header(const std::string &path, uint64_t bytes, uint32_t crc, uint64_t at) {
    std::string extra = local_zip64(bytes);
    const uint64_t shortest = at + local_bytes + path.size() + extra.size() + 6;
    const uint64_t zeros = (zip_alignment - shortest % zip_alignment) % zip_alignment;
    put(extra, alignment_id, 2), put(extra, 2 + zeros, 2), put(extra, zip_alignment, 2);
    extra.append(zeros, '\0');
    std::string text = "PK\3\4";
    put(text, bytes < max32 ? version_plain : version_zip64, 2);
    put(text, 0, 2), put(text, 0, 2), put(text, 0, 2), put(text, first_date, 2), put(text, crc, 4);
    put(text, std::min(bytes, max32), 4), put(text, std::min(bytes, max32), 4);
    put(text, path.size(), 2), put(text, extra.size(), 2);
    return text + path + extra;
}

// An entry of the directory for the member whose local header is at `local`.
std::string entry(const ZipMember &m, uint64_t local) {
    std::string wide;  // what does not fit in 32 bits
    if (m.bytes >= max32) put(wide, m.bytes, 8), put(wide, m.bytes, 8);
    if (local >= max32) put(wide, local, 8);
    std::string extra;
    if (!wide.empty()) put(extra, zip64_id, 2), put(extra, wide.size(), 2), extra += wide;
    std::string text = "PK\1\2";
    put(text, made_by, 2), put(text, wide.empty() ? version_plain : version_zip64, 2);
    put(text, 0, 2), put(text, 0, 2), put(text, 0, 2), put(text, first_date, 2), put(text, m.crc, 4);
    put(text, std::min(m.bytes, max32), 4), put(text, std::min(m.bytes, max32), 4);
    put(text, m.path.size(), 2), put(text, extra.size(), 2), put(text, 0, 2), put(text, 0, 2), put(text, 0, 2);
    put(text, attributes, 4), put(text, std::min(local, max32), 4);
    return text + m.path + extra;
}

// The directory of members that are in their places, with its end; it begins where the last data end.
std::string directory_text(const std::vector<ZipMember> &members) {
    std::string text;
    uint64_t end = 0;
    for (const ZipMember &m : members) text += entry(m, end), end = m.offset + m.bytes;
    const uint64_t bytes = text.size(), count = members.size();
    if (count >= max16 || bytes >= max32 || end >= max32) {
        text += "PK\6\6";
        put(text, end64_bytes - 12, 8), put(text, made_by, 2), put(text, version_zip64, 2), put(text, 0, 4), put(text, 0, 4);
        put(text, count, 8), put(text, count, 8), put(text, bytes, 8), put(text, end, 8);
        text += "PK\6\7";
        put(text, 0, 4), put(text, end + bytes, 8), put(text, 1, 4);
    }
    text += "PK\5\6";
    put(text, 0, 2), put(text, 0, 2), put(text, std::min(count, max16), 2), put(text, std::min(count, max16), 2);
    put(text, std::min(bytes, max32), 4), put(text, std::min(end, max32), 4), put(text, 0, 2);
    return text;
}

std::string lower(std::string text) {
    for (char &c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// "" where all paths can be.
std::string paths_problem(const std::vector<std::string> &paths) {
    std::set<std::string> seen;
    for (const std::string &path : paths) {
        const std::string problem = zip_path_problem(path);
        if (!problem.empty()) return "member '" + printable(path.substr(0, zip_max_path)) + "': " + problem;
        if (!seen.insert(lower(path)).second)
            return "member '" + path + "': expected paths that differ in more than upper and lower case, got this one twice.";
    }
    return "";
}

}  // namespace

std::string zip_path_problem(std::string_view path) {
    constexpr const char *expected = "expected 1 to 255 letters, digits and '.', '_', '+', ',', '-' in parts between '/'; ";
    if (path.empty() || path.size() > zip_max_path) return expected + ("its path has " + std::to_string(path.size()) + " bytes.");
    for (char c : path)
        if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("._+,-/").find(c) == std::string_view::npos)
            return expected + ("got '" + printable(std::string(1, c)) + "'.");
    for (size_t from = 0; from <= path.size();) {
        const size_t to = std::min(path.find('/', from), path.size());
        const std::string_view part = path.substr(from, to - from);
        if (part.empty() || part == "." || part == "..") return expected + ("got '" + std::string(part) + "' as a part.");
        from = to + 1;
    }
    return "";
}

std::vector<ZipPlace> zip_places(const std::vector<std::pair<std::string, uint64_t>> &members) {
    std::vector<ZipPlace> places;
    uint64_t end = 0;
    for (const auto &[path, bytes] : members) {
        const uint64_t begin = end + local_header(path, bytes, 0, end).size();
        if (bytes > zip_max_bytes || begin > zip_max_bytes - bytes)
            throw UserError("zip.too-large", "member '" + path + "': expected at most 2^62 bytes in all; got more. Make several files.");
        places.push_back({begin, bytes});
        end = begin + bytes;
    }
    return places;
}

void ZipContent::each(const std::function<void(std::string_view)> &take) const {
    if (file) file->each(offset, count, take);
    else take(text);
}

void write_stored_zip(const std::filesystem::path &file, const std::vector<ZipContent> &contents) {
    std::vector<std::string> paths;
    std::vector<std::pair<std::string, uint64_t>> sizes;
    for (const ZipContent &c : contents) paths.push_back(c.path), sizes.emplace_back(c.path, c.bytes());
    if (const std::string problem = paths_problem(paths); !problem.empty())
        throw UserError("zip.path", "'" + file.string() + "': " + problem);
    if (contents.size() > zip_max_members)
        throw UserError("zip.members", "'" + file.string() + "': expected at most " + std::to_string(zip_max_members) + " members, got " +
                                           std::to_string(contents.size()) + ". Make several files.");
    const std::vector<ZipPlace> places = zip_places(sizes);

    const std::string name = file.filename().string();
    const OutputFolder folder(file.has_parent_path() ? file.parent_path() : ".");
    std::ofstream out(folder.staged(name), std::ios::binary);
    errno = 0;
    std::vector<ZipMember> members;
    uint64_t end = 0;
    for (size_t i = 0; i < contents.size(); i++) {
        ZipMember m{contents[i].path, places[i].offset, places[i].bytes, 0};
        // The checksum stands before the data, so these are read twice; a file that changes meanwhile is found.
        contents[i].each([&](std::string_view part) { m.crc = crc32_of(part, m.crc); });
        out << local_header(m.path, m.bytes, m.crc, end);
        uint32_t written = 0;
        contents[i].each([&](std::string_view part) {
            written = crc32_of(part, written);
            out.write(part.data(), static_cast<std::streamsize>(part.size()));
        });
        if (written != m.crc)
            throw UserError("zip.changed", "member '" + m.path + "' of '" + file.string() +
                                               "': its file has changed while it was read. Leave it alone meanwhile.");
        end = m.offset + m.bytes;
        members.push_back(std::move(m));
    }
    out << directory_text(members);
    out.close();
    if (!out)
        throw UserError("output.write", "file '" + file.string() + "': expected to write all of it; " +
                                            (errno ? std::strerror(errno) : "writing failed") + ". Free some space, or send it elsewhere.");
    folder.publish(name);
}

void StoredZip::refuse(const char *id, const std::string &why) const { throw UserError(id, "'" + subject_ + "': " + why); }

StoredZip::StoredZip(const std::filesystem::path &file)
    : file_(std::make_shared<RegularFile>(file, Handed{"zip", "zip", "Make several files.", size_t{zip_max_bytes}})),
      subject_(file.string()) {
    uint64_t begin = 0;
    members_ = directory(begin);
    std::vector<std::string> paths;
    std::vector<std::pair<std::string, uint64_t>> sizes;
    for (const ZipMember &m : members_) paths.push_back(m.path), sizes.emplace_back(m.path, m.bytes);
    if (const std::string problem = paths_problem(paths); !problem.empty()) refuse("zip.path", problem);
    const std::vector<ZipPlace> places = zip_places(sizes);
    uint64_t end = 0;
    for (size_t i = 0; i < members_.size(); i++) {
        ZipMember &m = members_[i];
        m.offset = places[i].offset;
        compare(end, local_header(m.path, m.bytes, m.crc, end), "the header of member '" + m.path + "'");
        if (m.offset > begin || m.bytes > begin - m.offset)
            refuse("zip.end", "member '" + m.path + "' should have " + std::to_string(m.bytes) + " bytes from " + std::to_string(m.offset) +
                                  " on, where the directory is. Is the file whole?");
        end = m.offset + m.bytes;
    }
    const std::string rest = directory_text(members_);
    if (begin != end || file_->bytes() - begin != rest.size())
        refuse("zip.form", "expected its directory at byte " + std::to_string(end) + " and " + std::to_string(rest.size()) +
                               " bytes to the end, got it at " + std::to_string(begin) + " and " + std::to_string(file_->bytes() - begin) +
                               ". Another program has written it; make it again.");
    compare(begin, rest, "its directory");
}

void StoredZip::compare(uint64_t at, const std::string &expected, const std::string &what) const {
    const std::string got = file_->read(at, std::min<uint64_t>(expected.size(), file_->bytes() - at));
    if (got == expected) return;
    const auto differ = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
    refuse("zip.form", what + " has another byte at " + std::to_string(at + static_cast<uint64_t>(differ.first - got.begin())) +
                           " than it must have. Another program has written it, or it is damaged; make it again.");
}

// Paths, sizes and checksums as the directory has them; `at` is where it begins. Whatever else is in it, the caller compares.
std::vector<ZipMember> StoredZip::directory(uint64_t &at) const {
    const uint64_t all = file_->bytes();
    const auto no_end = [&] { refuse("zip.end", "expected a zip without a comment; it has no end of a directory. Is the file whole?"); };
    if (all < end_bytes) no_end();
    const std::string end = file_->read(all - end_bytes, end_bytes);
    if (!end.starts_with("PK\5\6")) no_end();
    uint64_t count = get(end, 10, 2), bytes = get(end, 12, 4), begin = get(end, 16, 4), after = all - end_bytes;
    if (count == max16 || bytes == max32 || begin == max32) {
        if (after < locator_bytes + end64_bytes) no_end();
        after -= locator_bytes + end64_bytes;
        const std::string end64 = file_->read(after, end64_bytes);
        if (!end64.starts_with("PK\6\6")) no_end();
        count = get(end64, 32, 8), bytes = get(end64, 40, 8), begin = get(end64, 48, 8);
    }
    if (count > zip_max_members)
        refuse("zip.members", "expected at most " + std::to_string(zip_max_members) + " members, got " + std::to_string(count) + ".");
    if (begin > after || bytes != after - begin) refuse("zip.end", "its directory lies outside of it. Is the file whole?");
    if (bytes > count * (entry_bytes + zip_max_path + 4 + 24))
        refuse("zip.form", "its directory has " + std::to_string(bytes) + " bytes, more than " + std::to_string(count) +
                               " members can have. Another program has written it; make it again.");
    at = begin;
    const std::string text = file_->read(begin, bytes);
    std::vector<ZipMember> members;
    for (size_t from = 0; members.size() < count;) {
        const std::string_view rest = std::string_view(text).substr(from);
        if (rest.size() < entry_bytes || !rest.starts_with("PK\1\2")) refuse("zip.end", "its directory is cut.");
        const size_t path = get(rest, 28, 2), extra = get(rest, 30, 2), comment = get(rest, 32, 2);
        if (path + extra + comment > rest.size() - entry_bytes) refuse("zip.end", "its directory is cut.");
        ZipMember m{std::string(rest.substr(entry_bytes, path)), 0, get(rest, 24, 4), static_cast<uint32_t>(get(rest, 16, 4))};
        if (get(rest, 10, 2) != 0 || (get(rest, 8, 2) & 1))
            refuse("zip.compressed", "member '" + printable(m.path.substr(0, zip_max_path)) +
                                         "' is compressed or encrypted; expected bytes as they are. Make the file again.");
        if (m.bytes == max32) {
            if (extra < 12) refuse("zip.form", "member '" + printable(m.path.substr(0, zip_max_path)) + "' has no size.");
            m.bytes = get(rest, entry_bytes + path + 4, 8);
            if (m.bytes > all) refuse("zip.end", "member '" + printable(m.path.substr(0, zip_max_path)) + "' lies outside of it.");
        }
        members.push_back(std::move(m));
        from += entry_bytes + path + extra + comment;
    }
    return members;
}

const ZipMember *StoredZip::find(std::string_view path) const {
    const auto it = std::find_if(members_.begin(), members_.end(), [&](const ZipMember &m) { return m.path == path; });
    return it == members_.end() ? nullptr : &*it;
}

void StoredZip::each(const ZipMember &member, const std::function<void(std::string_view)> &take) const {
    uint32_t crc = 0;
    file_->each(member.offset, member.bytes, [&](std::string_view part) { crc = crc32_of(part, crc), take(part); });
    if (crc != member.crc) refuse("zip.checksum", "member '" + member.path + "' does not have its checksum; the file is damaged.");
}

std::string StoredZip::read(const ZipMember &member, uint64_t most) const {
    require(member.bytes <= most, "members are as large as their reader takes");
    std::string text;
    text.reserve(member.bytes);
    each(member, [&](std::string_view part) { text += part; });
    return text;
}

}  // namespace tessera
