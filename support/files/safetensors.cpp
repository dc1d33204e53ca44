#include "support/files/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr const char *metadata_name = "__metadata__";

struct ElementType {
    std::string_view name;
    int bits;
};
constexpr ElementType element_types[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},     {"F8_E4M3FNUZ", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},        {"I64", 64},        {"U64", 64},
    {"F64", 64}, {"C64", 64}, {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E5M2FNUZ", 8},
};

std::vector<std::string> type_names() {
    std::vector<std::string> names;
    for (const ElementType &type : element_types) names.emplace_back(type.name);
    return names;
}

// The bytes that type and extents ask for; nothing where there are more than a file can have, axes without elements aside, or no whole
// number.
std::optional<uint64_t> bytes_of(int bits, const std::vector<int64_t> &extents) {
    uint64_t all = static_cast<uint64_t>(bits);
    bool too_many = false, is_empty = false;
    for (int64_t extent : extents) {
        if (extent == 0) is_empty = true;
        else too_many |= __builtin_mul_overflow(all, static_cast<uint64_t>(extent), &all);
    }
    if (too_many) return std::nullopt;
    if (is_empty) return 0;
    return all % 8 ? std::nullopt : std::optional(all / 8);
}

std::string text_of(const std::vector<int64_t> &extents) {
    std::vector<std::string> parts;
    for (int64_t extent : extents) parts.push_back(std::to_string(extent));
    return "[" + (parts.empty() ? "" : join(parts)) + "]";
}

// An entry of the header, whose bytes are a range of the data.
SafeTensor read_entry(const std::string &name, const JsonReader &entry, std::string_view data, size_t &begin) {
    for (const char *field : {"dtype", "shape", "data_offsets"})
        if (!entry.find(field))
            entry.fail("safetensors.field", std::string("expected dtype, shape and data_offsets; there is no ") + field + ".");
    entry.only({"dtype", "shape", "data_offsets"});
    SafeTensor made{name, entry.at("dtype").text(), {}, {}};
    const int bits = safetensors_bits(made.type);
    if (!bits)
        entry.fail("safetensors.type",
                   "there is no element type '" + entry.at("dtype").quotable() + "'; the types are " + join(type_names()) + ".");
    for (const JsonReader &extent : entry.at("shape").items()) made.extents.push_back(extent.integer(0));
    const std::vector<JsonReader> range = entry.at("data_offsets").items();
    if (range.size() != 2) entry.fail("safetensors.offsets", "expected where bytes begin and where they end, got another list.");
    const auto from = static_cast<uint64_t>(range[0].integer(0)), to = static_cast<uint64_t>(range[1].integer(0));
    if (from > to || to > data.size())
        entry.fail("safetensors.offsets", "expected bytes within the " + std::to_string(data.size()) +
                                              " of the file behind its header, got " + std::to_string(from) + " to " + std::to_string(to) +
                                              ".");
    const std::optional<uint64_t> wanted = bytes_of(bits, made.extents);
    if (!wanted) entry.fail("safetensors.shape", made.type + text_of(made.extents) + " is no whole number of bytes that fits in 64 bits.");
    if (*wanted != to - from)
        entry.fail("safetensors.offsets", made.type + text_of(made.extents) + " has " + std::to_string(*wanted) +
                                              " bytes, and the offsets " + std::to_string(from) + " to " + std::to_string(to) +
                                              " give it " + std::to_string(to - from) + ".");
    begin = from;
    made.bytes = data.substr(from, to - from);
    return made;
}

}  // namespace

int safetensors_bits(std::string_view type) {
    for (const ElementType &known : element_types)
        if (known.name == type) return known.bits;
    return 0;
}

Safetensors::Safetensors(const std::filesystem::path &file)
    : content_(read_regular(file, {"safetensors", "file of tensors", "Cut the model into several files.", size_t{1} << 40})),
      subject_(file.string()) {
    read();
}

Safetensors::Safetensors(std::string content, const std::string &subject) : content_(std::move(content)), subject_(subject) { read(); }

void Safetensors::read() {
    const auto refuse = [&](const char *id, const std::string &why) { throw UserError(id, "file of tensors '" + subject_ + "': " + why); };
    if (content_.size() < 8)
        refuse("safetensors.cut", "expected eight bytes that say how long the header is; the file has " + std::to_string(content_.size()) +
                                      ". Is it a safetensors file?");
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) header = header << 8 | static_cast<unsigned char>(content_[static_cast<size_t>(i)]);
    if (header > content_.size() - 8)
        refuse("safetensors.cut", "its header should have " + std::to_string(header) + " bytes, and only " +
                                      std::to_string(content_.size() - 8) + " follow. Is it a safetensors file, and whole?");
    if (header > json_max_bytes)
        refuse("safetensors.header", "expected a header of at most " + std::to_string(json_max_bytes) + " bytes, got " +
                                         std::to_string(header) + ". Cut the model into several files.");
    const std::string_view all = content_, text = all.substr(8, header), data = all.substr(8 + header);
    if (text.empty() || text[0] != '{') refuse("safetensors.header", "expected a header that begins with '{'. Is it a safetensors file?");
    const nlohmann::json document = parse_json(text, subject_);
    const JsonReader reader(document, subject_);

    std::vector<std::pair<size_t, size_t>> begins;  // of what has bytes, and its place in tensors_
    for (const auto &[name, entry] : reader.fields()) {
        if (name == metadata_name) {
            for (const auto &[key, value] : entry.fields()) {
                if (!value.is_text()) value.fail("safetensors.metadata", "expected a text: metadata are texts by name.");
                metadata_[key] = value.text();
            }
            continue;
        }
        size_t begin = 0;
        tensors_.push_back(read_entry(name, entry, data, begin));
        if (!tensors_.back().bytes.empty()) begins.emplace_back(begin, tensors_.size() - 1);
    }
    std::sort(begins.begin(), begins.end());
    size_t end = 0;
    for (const auto &[begin, which] : begins) {
        const SafeTensor &tensor = tensors_[which];
        if (begin < end)
            refuse("safetensors.offsets", "the bytes of tensor '" + tensor.name + "' begin at " + std::to_string(begin) +
                                              ", within those of another tensor, which end at " + std::to_string(end) + ".");
        if (begin > end)
            refuse("safetensors.offsets",
                   "bytes " + std::to_string(end) + " to " + std::to_string(begin) + " belong to no tensor, and no byte may be so.");
        end = begin + tensor.bytes.size();
    }
    if (end != data.size())
        refuse("safetensors.offsets",
               "bytes " + std::to_string(end) + " to " + std::to_string(data.size()) + " belong to no tensor, and no byte may be so.");
    std::sort(tensors_.begin(), tensors_.end(), [](const SafeTensor &a, const SafeTensor &b) { return a.name < b.name; });
}

const SafeTensor &Safetensors::tensor(const std::string &name) const {
    const auto it =
        std::lower_bound(tensors_.begin(), tensors_.end(), name, [](const SafeTensor &t, const std::string &n) { return t.name < n; });
    if (it != tensors_.end() && it->name == name) return *it;
    std::vector<std::string> names;
    for (const SafeTensor &t : tensors_) names.push_back(t.name);
    throw UserError("safetensors.missing", "file of tensors '" + subject_ + "': there is no tensor '" + name + "' among its " +
                                               std::to_string(names.size()) + "." + did_you_mean(name, names));
}

void write_safetensors(const std::filesystem::path &file, std::vector<SafeTensor> tensors,
                       const std::map<std::string, std::string> &metadata) {
    std::sort(tensors.begin(), tensors.end(), [](const SafeTensor &a, const SafeTensor &b) {
        return std::pair(-safetensors_bits(a.type), std::string_view(a.name)) <
               std::pair(-safetensors_bits(b.type), std::string_view(b.name));
    });
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header[metadata_name] = metadata;
    std::set<std::string_view> names = {metadata_name};
    uint64_t end = 0;
    for (const SafeTensor &t : tensors) {
        if (!names.insert(t.name).second)
            throw UserError("safetensors.repeated", "file of tensors '" + file.string() + "': expected each name once, got '" + t.name +
                                                        "' again. Give the tensor another name.");
        require(safetensors_bits(t.type) && bytes_of(safetensors_bits(t.type), t.extents) == t.bytes.size(),
                "a tensor's bytes fit its shape");
        header[t.name] = {{"dtype", t.type}, {"shape", t.extents}, {"data_offsets", {end, end + t.bytes.size()}}};
        end += t.bytes.size();
    }
    std::string text = json_text(header);
    text.append((8 - text.size() % 8) % 8, ' ');
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; i++) length[i] = static_cast<char>(text.size() >> (8 * i));

    const std::string name = file.filename().string();
    const OutputFolder folder(file.has_parent_path() ? file.parent_path() : ".");
    std::ofstream stream(folder.staged(name), std::ios::binary);
    errno = 0;
    stream << length << text;
    for (const SafeTensor &t : tensors) stream.write(t.bytes.data(), static_cast<std::streamsize>(t.bytes.size()));
    stream.close();
    if (!stream)
        throw UserError("output.write", "file of tensors '" + file.string() + "': expected to write all of it; " +
                                            (errno ? std::strerror(errno) : "writing failed") + ". Free some space, or send it elsewhere.");
    folder.publish(name);
}

}  // namespace tessera
