#include "support/files/npz.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "support/files/crc32.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

constexpr size_t max_arrays = 4096, max_header = 4096, max_rank = 32;

uint64_t little_endian(std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

// The header of an array: a dictionary as Python writes it, of descr, fortran_order and shape.
struct Header {
    std::optional<std::string> type;
    std::optional<bool> is_column_major;
    std::optional<std::vector<int64_t>> extents;
};

class HeaderReader {
public:
    explicit HeaderReader(std::string_view text) : rest_(text) {}

    // Nothing where it is no such dictionary.
    std::optional<Header> read() {
        Header header;
        if (!take('{')) return {};
        while (!take('}')) {
            const std::optional<std::string> key = quoted();
            if (!key || !take(':')) return {};
            if (*key == "descr" && !header.type) header.type = quoted();
            else if (*key == "fortran_order" && !header.is_column_major) header.is_column_major = truth();
            else if (*key == "shape" && !header.extents) header.extents = tuple();
            else return {};
            if (!take(',') && (skip(), rest_.empty() || rest_[0] != '}')) return {};
        }
        skip();
        if (!rest_.empty() || !header.type || !header.is_column_major || !header.extents) return {};
        return header;
    }

private:
    std::string_view rest_;

    void skip() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
    }
    bool take(char c) {
        skip();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::optional<std::string> quoted() {
        if (!take('\'')) return {};
        const size_t end = rest_.find('\'');
        if (end == std::string_view::npos) return {};
        std::string text(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
        return text;
    }
    std::optional<bool> truth() {
        skip();
        for (const auto &[word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
            if (rest_.starts_with(word)) {
                rest_.remove_prefix(word.size());
                return value;
            }
        return {};
    }
    std::optional<std::vector<int64_t>> tuple() {
        std::vector<int64_t> numbers;
        if (!take('(')) return {};
        while (!take(')')) {
            skip();
            int64_t value = 0;
            size_t digits = 0;
            for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; digits++)
                if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, rest_[digits] - '0', &value)) return {};
            if (digits == 0 || numbers.size() == max_rank) return {};
            rest_.remove_prefix(digits);
            numbers.push_back(value);
            if (!take(',') && (rest_.empty() || rest_[0] != ')')) return {};
        }
        return numbers;
    }
};

// Bytes of an element of a type such as "<f4"; 0 of one that is no plain number in this byte order.
uint64_t element_bytes(const std::string &type) {
    if (type.size() != 3 || (type[0] != '<' && type[0] != '|')) return 0;
    const uint64_t bytes = static_cast<uint64_t>(type[2] - '0');
    const bool is_known =
        (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && std::string_view("fiubV").find(type[1]) != std::string_view::npos;
    return is_known && (type[0] == '<' || bytes == 1 || type[1] == 'V') ? bytes : 0;
}

// What a file of one array holds. Throws what is wrong with it, a text.
NpyArray array_in(std::string_view content) {
    const auto bad = [](const std::string &why) { throw why; };
    constexpr std::string_view magic = "\x93NUMPY";
    const bool is_old = content.size() > 7 && content[6] == 1;
    const size_t before = is_old ? 10 : 12;
    if (!content.starts_with(magic) || content.size() < before || (!is_old && content[6] != 2 && content[6] != 3))
        bad("expected an array of NumPy's format 1 to 3.");
    const uint64_t header_bytes = little_endian(content.substr(8, before - 8));
    if (header_bytes > max_header || header_bytes > content.size() - before) bad("its header is cut, or too long.");
    const std::optional<Header> header = HeaderReader(content.substr(before, header_bytes)).read();
    if (!header) throw std::string("its header is none of an array of plain numbers. Save numbers, without fields and objects.");
    const uint64_t element = element_bytes(*header->type);
    if (!element) bad("its type is '" + printable(header->type->substr(0, 32)) + "'; expected floats, integers or bool, little-endian.");
    if (*header->is_column_major && header->extents->size() > 1) bad("it is in column-major order; save numpy.ascontiguousarray of it.");
    uint64_t wanted = element;
    bool too_many = false;
    for (int64_t extent : *header->extents) too_many |= __builtin_mul_overflow(wanted, static_cast<uint64_t>(extent), &wanted);
    const std::string_view data = content.substr(before + header_bytes);
    if (too_many || wanted != data.size())
        bad("type and shape ask for " + (too_many ? "more bytes than fit in 64 bits" : std::to_string(wanted) + " bytes") + "; it has " +
            std::to_string(data.size()) + ".");
    return {"", *header->type, *header->extents, data};
}

}  // namespace

void Npz::refuse(const char *id, const std::string &why) const { throw UserError(id, "file of arrays '" + subject_ + "': " + why); }

Npz::Npz(const std::filesystem::path &file)
    : content_(read_regular(file, {"npz", "file of arrays", "Save fewer or smaller arrays.", size_t{0xffffffff}})),
      subject_(file.string()) {
    read();
}

Npz::Npz(std::string content, const std::string &subject) : content_(std::move(content)), subject_(subject) { read(); }

void Npz::read() {
    const std::string_view all = content_;
    const auto wrong = [&](const std::string &why) { refuse("npz.zip", why + " Is it a file of numpy.savez, and whole?"); };
    constexpr size_t end_bytes = 22, entry_bytes = 46, local_bytes = 30, most_comment = 0xffff;
    // The end of the directory, behind which there is a comment only.
    size_t end = all.size() < end_bytes ? std::string_view::npos : all.rfind("PK\5\6", all.size() - end_bytes);
    if (end == std::string_view::npos || all.size() - end > end_bytes + most_comment)
        wrong("expected a zip; it has no end of a directory.");
    const auto number = [&](size_t at, size_t bytes) { return little_endian(all.substr(at, bytes)); };
    const uint64_t count = number(end + 10, 2), size = number(end + 12, 4), first = number(end + 16, 4);
    if (number(end + 4, 4) != 0 || number(end + 8, 2) != count || first > end || size > end - first)
        wrong("its directory lies outside of it.");
    if (count > max_arrays)
        refuse("npz.zip", "expected at most " + std::to_string(max_arrays) + " arrays, got " + std::to_string(count) + ".");
    std::vector<std::pair<uint64_t, uint64_t>> taken;  // bytes of parts
    size_t at = first;
    for (uint64_t i = 0; i < count; i++) {
        if (at > end || end - at < entry_bytes || all.substr(at, 4) != "PK\1\2") wrong("its directory is cut.");
        const uint64_t flags = number(at + 8, 2), method = number(at + 10, 2), crc = number(at + 16, 4), bytes = number(at + 24, 4);
        const uint64_t name_bytes = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2),
                       local = number(at + 42, 4);
        if (name_bytes + extra + comment > end - at - entry_bytes) wrong("its directory is cut.");
        const std::string_view file = all.substr(at + entry_bytes, name_bytes);
        const std::string shown = "'" + printable(std::string(file.substr(0, 64))) + "'";
        if (method != 0 || (flags & 1))
            refuse("npz.compressed",
                   shown + " is compressed or encrypted; expected bytes as they are. Save with numpy.savez, not savez_compressed.");
        if (number(at + 20, 4) != bytes) wrong(shown + " has two sizes.");
        if (local > first || first - local < local_bytes || all.substr(local, 4) != "PK\3\4") wrong(shown + " lies outside of it.");
        const uint64_t begin = local + local_bytes + number(local + 26, 2) + number(local + 28, 2);
        if (begin > first || bytes > first - begin) wrong(shown + " lies outside of it.");
        if (all.substr(local + local_bytes, number(local + 26, 2)) != file) wrong(shown + " has two names.");
        taken.emplace_back(local, begin + bytes);
        at += entry_bytes + name_bytes + extra + comment;
        const std::string_view content = all.substr(begin, bytes);
        if (crc32_of(content) != crc) refuse("npz.checksum", shown + " does not have its checksum; the file is damaged. Save it again.");
        try {
            arrays_.push_back(array_in(content));
        } catch (const std::string &why) { refuse("npz.array", shown + ": " + why); }
        if (!file.ends_with(".npy") || file.size() == 4) refuse("npz.array", shown + ": expected a name that ends in .npy.");
        arrays_.back().name = file.substr(0, file.size() - 4);
    }
    std::sort(taken.begin(), taken.end());
    for (size_t i = 1; i < taken.size(); i++)
        if (taken[i].first < taken[i - 1].second) wrong("two of its parts share bytes.");
    std::sort(arrays_.begin(), arrays_.end(), [](const NpyArray &a, const NpyArray &b) { return a.name < b.name; });
    for (size_t i = 1; i < arrays_.size(); i++)
        if (arrays_[i].name == arrays_[i - 1].name)
            refuse("npz.repeated", "expected each name once, got '" + printable(arrays_[i].name) + "' again.");
}

}  // namespace tessera
