#include "support/files/gguf.h"

#include <algorithm>
#include <optional>
#include <set>

#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

constexpr uint64_t most_tensors = 1 << 20, most_values = 1 << 20, longest_key = 65535, longest_name = 1024;
constexpr uint32_t most_axes = 4, most_nested = 4;
constexpr uint64_t default_alignment = 32, most_alignment = 1 << 20;

constexpr GgufType gguf_types[] = {
    {0, "F32", 1, 4},        {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},     {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},    {10, "Q2_K", 256, 84},  {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},  {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210}, {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50}, {20, "IQ4_NL", 32, 18}, {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},  {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},       {25, "I16", 1, 2},      {26, "I32", 1, 4},
    {27, "I64", 1, 8},       {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56}, {30, "BF16", 1, 2},     {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},  {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},  {41, "Q1_0", 128, 18},
};

// The types of values by key, and the bytes of those that have always as many; 0 of texts and lists.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, truth, text, list, u64, i64, f64 };
constexpr uint64_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr const char *alignment_key = "general.alignment";

// Reads a file from its beginning on.
class GgufReader {
public:
    GgufReader(std::string_view content, const std::string &subject) : content_(content), subject_(subject) {}

    [[noreturn]] void refuse(const char *id, const std::string &why) const { throw UserError(id, "GGUF file '" + subject_ + "': " + why); }
    uint64_t at() const { return at_; }
    std::string_view bytes(uint64_t count, const std::string &what) {
        if (count > content_.size() - at_)
            refuse("gguf.cut", "expected " + std::to_string(count) + " bytes of " + what + " at byte " + std::to_string(at_) +
                                   ", and only " + std::to_string(content_.size() - at_) + " follow. Is it whole? Fetch it again.");
        const std::string_view found = content_.substr(at_, count);
        at_ += count;
        return found;
    }
    uint64_t number(uint64_t count, const std::string &what) {
        const std::string_view found = bytes(count, what);
        uint64_t value = 0;
        for (uint64_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(found[i]);
        return value;
    }
    uint32_t u32(const std::string &what) { return static_cast<uint32_t>(number(4, what)); }
    // A count of things that take `each` bytes at least.
    uint64_t count(const std::string &what, uint64_t most, uint64_t each) {
        const uint64_t found = number(8, "the number of " + what);
        if (found > most)
            refuse("gguf.value", "expected at most " + std::to_string(most) + " " + what + ", got " + std::to_string(found) + ".");
        if (found > (content_.size() - at_) / each)
            refuse("gguf.cut", "it should have " + std::to_string(found) + " " + what + ", for which the " +
                                   std::to_string(content_.size() - at_) + " bytes that follow are too few. Is it whole? Fetch it again.");
        return found;
    }
    std::string_view text(const std::string &what, uint64_t most = UINT64_MAX) {
        const uint64_t length = number(8, "the length of " + what);
        if (length > most)
            refuse("gguf.name", "expected " + what + " of at most " + std::to_string(most) + " bytes, got " + std::to_string(length) + ".");
        return bytes(length, what);
    }
    std::string name(const std::string &what, uint64_t most, std::set<std::string> &taken) {
        const std::string found(text(what, most));
        if (found.empty() || printable(found) != found)
            refuse("gguf.name", "expected " + what + " of printable characters, got '" + printable(found) + "'.");
        if (!taken.insert(found).second) refuse("gguf.name", "expected each name once, got " + what + " '" + found + "' again.");
        return found;
    }
    // Goes over a value; gives it where it is a number of whole bytes and no list.
    std::optional<uint64_t> value(const std::string &key) {
        const uint32_t type = u32("the type of value '" + key + "'");
        return value_of(type, key, 0);
    }

private:
    std::string_view content_;
    const std::string &subject_;
    uint64_t at_ = 0;

    std::optional<uint64_t> value_of(uint32_t type, const std::string &key, uint32_t depth) {
        if (type >= std::size(value_bytes))
            refuse("gguf.value", "value '" + key + "': expected one of the types 0 to 12, got " + std::to_string(type) + ".");
        if (value_bytes[type]) return number(value_bytes[type], "value '" + key + "'");
        if (static_cast<ValueType>(type) == ValueType::text) {
            text("value '" + key + "'");
            return std::nullopt;
        }
        if (depth == most_nested)
            refuse("gguf.value", "value '" + key + "': expected at most " + std::to_string(most_nested) + " lists within each other.");
        const uint32_t inner = u32("the type of list '" + key + "'");
        const uint64_t fixed = inner < std::size(value_bytes) ? value_bytes[inner] : 1;
        const uint64_t length = count("elements of list '" + key + "'", UINT64_MAX, fixed ? fixed : 8);
        if (fixed && inner < std::size(value_bytes)) bytes(fixed * length, "list '" + key + "'");
        else
            for (uint64_t i = 0; i < length; i++) value_of(inner, key, depth + 1);
        return std::nullopt;
    }
};

std::string shape_text(const std::vector<int64_t> &extents) {
    std::vector<std::string> parts;
    for (const int64_t extent : extents) parts.push_back(std::to_string(extent));
    return "[" + (parts.empty() ? "" : join(parts)) + "]";
}

// The bytes of a tensor.
uint64_t bytes_of_blocks(const GgufTensor &t, const GgufReader &reader) {
    const std::string what = "tensor '" + t.name + "' of " + t.type->name + shape_text(t.extents);
    const int64_t row = t.extents.empty() ? 1 : t.extents.back();
    if (row % t.type->elements)
        reader.refuse("gguf.shape", what + ": expected rows of a multiple of " + std::to_string(t.type->elements) + " elements.");
    uint64_t all = t.type->bytes;
    bool too_many = __builtin_mul_overflow(all, static_cast<uint64_t>(row / t.type->elements), &all);
    for (size_t axis = 0; axis + 1 < t.extents.size(); axis++)
        too_many |= __builtin_mul_overflow(all, static_cast<uint64_t>(t.extents[axis]), &all);
    if (too_many) reader.refuse("gguf.shape", what + ": it has more bytes than fit in 64 bits.");
    return all;
}

struct GgufPlace {
    GgufTensor tensor;
    uint64_t begin = 0, bytes = 0;  // from where the data begin
};

GgufPlace read_gguf_tensor(GgufReader &reader, std::set<std::string> &names, uint64_t alignment) {
    GgufPlace e;
    e.tensor.name = reader.name("a tensor's name", longest_name, names);
    const std::string what = "tensor '" + e.tensor.name + "'";
    const uint32_t axes = reader.u32("the axes of " + what);
    if (axes > most_axes)
        reader.refuse("gguf.shape", what + ": expected at most " + std::to_string(most_axes) + " axes, got " + std::to_string(axes) + ".");
    for (uint32_t i = 0; i < axes; i++) {
        const uint64_t extent = reader.number(8, "the extents of " + what);
        if (extent > INT64_MAX) reader.refuse("gguf.shape", what + ": its axis " + std::to_string(i) + " has more elements than 2^63 - 1.");
        e.tensor.extents.insert(e.tensor.extents.begin(), static_cast<int64_t>(extent));
    }
    const uint32_t id = reader.u32("the type of " + what);
    const auto *type = std::find_if(std::begin(gguf_types), std::end(gguf_types), [&](const GgufType &t) { return t.id == id; });
    if (type == std::end(gguf_types))
        reader.refuse("gguf.type", what + ": there is no element type " + std::to_string(id) + ", or it was taken out of the format.");
    e.tensor.type = type;
    e.begin = reader.number(8, "the offset of " + what);
    if (e.begin % alignment)
        reader.refuse("gguf.offset", what + ": expected a multiple of " + std::to_string(alignment) + " for its offset, got " +
                                         std::to_string(e.begin) + ".");
    e.bytes = bytes_of_blocks(e.tensor, reader);
    return e;
}

}  // namespace

Gguf::Gguf(const std::filesystem::path &file)
    : content_(read_regular(file, {"gguf", "GGUF file", "Cut the model into several files.", size_t{1} << 40})), subject_(file.string()) {
    read();
}

Gguf::Gguf(std::string content, const std::string &subject) : content_(std::move(content)), subject_(subject) { read(); }

void Gguf::read() {
    GgufReader reader(content_, subject_);
    if (!is_one(content_)) reader.refuse("gguf.format", "expected the bytes GGUF at its beginning. Is it a GGUF file?");
    reader.bytes(4, "the format's name");
    const uint32_t version = reader.u32("the version");
    if (version != 2 && version != 3)
        reader.refuse("gguf.format", (version & 0xffff) == 0 && version != 0
                                         ? "it is big-endian, and only files of little-endian machines are read. Convert it there."
                                         : "expected version 2 or 3 of the format, got " + std::to_string(version) + ". Convert it again.");
    // A tensor takes 24 bytes and its name, a value 13 and its key.
    const uint64_t tensors = reader.count("tensors", most_tensors, 25), values = reader.count("values", most_values, 14);
    std::set<std::string> keys, names;
    uint64_t alignment = default_alignment;
    for (uint64_t i = 0; i < values; i++) {
        const std::string key = reader.name("a value's key", longest_key, keys);
        const std::optional<uint64_t> number = reader.value(key);
        if (key != alignment_key) continue;
        if (!number || *number == 0 || *number > most_alignment || (*number & (*number - 1)))
            reader.refuse("gguf.value", std::string("value '") + alignment_key + "': expected a power of two up to 2^20.");
        alignment = *number;
    }
    std::vector<GgufPlace> entries;
    for (uint64_t i = 0; i < tensors; i++) entries.push_back(read_gguf_tensor(reader, names, alignment));

    const uint64_t begin = std::min<uint64_t>((reader.at() + alignment - 1) / alignment * alignment, content_.size());
    const std::string_view data = std::string_view(content_).substr(begin);
    std::sort(entries.begin(), entries.end(), [](const GgufPlace &a, const GgufPlace &b) { return a.begin < b.begin; });
    uint64_t end = 0;
    std::string before;
    for (GgufPlace &e : entries) {
        if (e.bytes > data.size() || e.begin > data.size() - e.bytes)
            reader.refuse("gguf.cut", "tensor '" + e.tensor.name + "' should have " + std::to_string(e.bytes) + " bytes at byte " +
                                          std::to_string(e.begin) + " of the data, of which there are " + std::to_string(data.size()) +
                                          ". Is it whole? Fetch it again.");
        if (e.bytes && e.begin < end)
            reader.refuse("gguf.offset", "tensors '" + before + "' and '" + e.tensor.name + "' have bytes in common.");
        e.tensor.bytes = data.substr(e.begin, e.bytes);
        if (e.bytes) end = e.begin + e.bytes, before = e.tensor.name;
        tensors_.push_back(std::move(e.tensor));
    }
    std::sort(tensors_.begin(), tensors_.end(), [](const GgufTensor &a, const GgufTensor &b) { return a.name < b.name; });
}

}  // namespace tessera
