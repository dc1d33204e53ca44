// The part of model.h that reads a tensor's elements.
#include <bit>
#include <charconv>
#include <cstring>

#include "algorithms/import/onnx/model.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera::onnx {

namespace {

// TensorProto.DataType.
struct TypeRow {
    int32_t number;
    const char *name;
    std::optional<DType> type;
};
constexpr TypeRow types[] = {
    {1, "float", DType::f32},
    {2, "uint8", DType::u8},
    {3, "int8", DType::i8},
    {4, "uint16", {}},
    {5, "int16", {}},
    {6, "int32", DType::i32},
    {7, "int64", DType::i64},
    {8, "string", {}},
    {9, "bool", DType::boolean},
    {10, "float16", DType::f16},
    {11, "double", DType::f64},
    {12, "uint32", {}},
    {13, "uint64", {}},
    {14, "complex64", {}},
    {15, "complex128", {}},
    {16, "bfloat16", DType::bf16},
    {17, "float8e4m3fn", DType::f8e4m3fn},
    {18, "float8e4m3fnuz", DType::f8e4m3fnuz},
    {19, "float8e5m2", DType::f8e5m2},
    {20, "float8e5m2fnuz", DType::f8e5m2fnuz},
    {21, "uint4", DType::u4},
    {22, "int4", DType::i4},
    {23, "float4e2m1", DType::f4e2m1fn},
    {24, "float8e8m0", DType::f8e8m0fnu},
    {25, "uint2", {}},
    {26, "int2", {}},
};

int64_t number_of(const std::map<std::string, std::string> &entries, const std::string &key, const std::string &subject,
                  int64_t otherwise) {
    const auto it = entries.find(key);
    if (it == entries.end()) return otherwise;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), value);
    if (error != std::errc() || end != it->second.data() + it->second.size() || value < 0)
        throw UserError("onnx.external",
                        subject + ": its " + key + " in external data is '" + it->second + "'; expected a number of bytes.");
    return value;
}

std::string external_bytes(const TensorData &tensor, const Model &model, const std::string &subject) {
    const auto location = tensor.external.find("location");
    if (location == tensor.external.end()) throw UserError("onnx.external", subject + ": its external data names no file ('location').");
    const std::filesystem::path path(location->second);
    bool leaves = path.is_absolute() || path.empty() || location->second.find('\0') != std::string::npos;
    for (const auto &part : path) leaves |= part == "..";
    if (leaves)
        throw UserError("onnx.external", subject + ": its external data is in '" + printable(location->second) +
                                             "'; expected a file beside the model, below its folder.");
    std::string all = read_beneath(model.folder.empty() ? "." : model.folder, path, location->second,
                                   {"onnx", "external data of an ONNX model", "Split it.", size_t{1} << 34});
    const auto offset = static_cast<uint64_t>(number_of(tensor.external, "offset", subject, 0));
    if (offset > all.size())
        throw UserError("onnx.external", subject + ": its external data begins behind the end of '" + location->second + "'.");
    const auto length = static_cast<uint64_t>(number_of(tensor.external, "length", subject, static_cast<int64_t>(all.size() - offset)));
    if (length > all.size() - offset)
        throw UserError("onnx.external", subject + ": its external data ends behind the end of '" + location->second + "'.");
    return all.substr(offset, length);
}

}  // namespace

std::optional<DType> dtype_of(int32_t type) {
    for (const TypeRow &row : types)
        if (row.number == type) return row.type;
    return std::nullopt;
}
std::string type_name(int32_t type) {
    for (const TypeRow &row : types)
        if (row.number == type) return row.name;
    return "type " + std::to_string(type);
}
int32_t type_number(DType type) {
    for (const TypeRow &row : types)
        if (row.type == type) return row.number;
    broken("an element type that ONNX does not have");
}

Array elements(const TensorData &tensor, const Model &model) {
    const std::string subject = "tensor '" + tensor.name + "'";
    const std::optional<DType> type = dtype_of(tensor.type);
    if (!type || tensor.has_strings)
        throw UserError("onnx.type", subject + ": its elements are of " + type_name(tensor.type) +
                                         ", which Tessera does not have. Cast it in the model to one of float, double, float16, bfloat16, "
                                         "int8, uint8, int32, int64 or bool.");
    int64_t count = 1;
    for (int64_t e : tensor.extents)
        if (e < 0 || __builtin_mul_overflow(count, e, &count) || count > (int64_t{1} << 33))
            throw UserError("onnx.tensor", subject + ": its shape is impossible or has over 2^33 elements.");
    const bool halves = traits_of(*type).in_half_bytes;
    auto expect = [&](size_t got, int64_t wanted, const char *what) {
        if (got != static_cast<size_t>(wanted))
            throw UserError("onnx.tensor", subject + ": expected " + std::to_string(wanted) + " " + what + " for its shape, got " +
                                               std::to_string(got) + ". The file is damaged.");
    };
    const int64_t bytes = halves ? (count + 1) / 2 : count * traits_of(*type).bytes;
    std::string external;
    std::string_view raw = tensor.raw;
    if (!tensor.external.empty()) external = external_bytes(tensor, model, subject), raw = external;
    const bool as_numbers = raw.empty() && (!tensor.floats.empty() || !tensor.doubles.empty() || !tensor.integers.empty());
    if (!as_numbers) expect(raw.size(), bytes, "bytes");
    Array array(*type, tensor.extents);
    if (!as_numbers && !halves) {
        if (bytes) std::memcpy(array.data.data(), raw.data(), static_cast<size_t>(bytes));
        if (*type == DType::boolean)
            for (std::byte &b : array.data) b = std::byte{b != std::byte{0}};
        return array;
    }
    const DTypeTraits &traits = traits_of(*type);
    auto code_at = [&](int64_t i, uint64_t word) {
        const auto code = static_cast<uint32_t>(word >> (i % 2 ? 4 : 0) & 15);
        if (traits.kind == DTypeKind::real) return Scalar::of_real(*type, decoded(traits, code));
        return Scalar::of_integer(*type, *type == DType::i4 && code > 7 ? int64_t{code} - 16 : int64_t{code});
    };
    if (halves) {
        expect(as_numbers ? tensor.integers.size() : raw.size(), (count + 1) / 2, as_numbers ? "int32_data" : "bytes");
        for (int64_t i = 0; i < count; i++)
            array.set(i, code_at(i, as_numbers ? static_cast<uint64_t>(tensor.integers[i / 2]) : static_cast<uint8_t>(raw[i / 2])));
        return array;
    }
    if (*type == DType::f32) {
        expect(tensor.floats.size(), count, "float_data");
        if (count) std::memcpy(array.data.data(), tensor.floats.data(), static_cast<size_t>(bytes));
    } else if (*type == DType::f64) {
        expect(tensor.doubles.size(), count, "double_data");
        if (count) std::memcpy(array.data.data(), tensor.doubles.data(), static_cast<size_t>(bytes));
    } else {
        expect(tensor.integers.size(), count, "integers");
        // Floats of 16 and 8 bits lie there as their codes.
        for (int64_t i = 0; i < count; i++) {
            const int64_t v = tensor.integers[i];
            if (traits.kind != DTypeKind::real) array.set(i, Scalar::of_integer(*type, v));
            else std::memcpy(array.data.data() + i * traits.bytes, &v, static_cast<size_t>(traits.bytes));
        }
    }
    return array;
}

}  // namespace tessera::onnx
