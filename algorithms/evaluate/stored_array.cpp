#include "algorithms/evaluate/stored_array.h"

#include <cstring>

#include "support/text/error.h"

namespace tessera {

namespace {

struct StoredType {
    DType type;
    const char *name;
};
constexpr StoredType stored_types[] = {
    {DType::f32, "F32"},
    {DType::f64, "F64"},
    {DType::f16, "F16"},
    {DType::bf16, "BF16"},
    {DType::i8, "I8"},
    {DType::u8, "U8"},
    {DType::i32, "I32"},
    {DType::i64, "I64"},
    {DType::boolean, "BOOL"},
    {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"},
    {DType::f8e4m3fnuz, "F8_E4M3FNUZ"},
    {DType::f8e5m2fnuz, "F8_E5M2FNUZ"},
    {DType::f8e8m0fnu, "F8_E8M0"},
};

}  // namespace

std::optional<std::string> safetensors_type(DType type) {
    for (const StoredType &t : stored_types)
        if (t.type == type) return t.name;
    return std::nullopt;
}

std::optional<DType> dtype_of_safetensors(const std::string &type) {
    for (const StoredType &t : stored_types)
        if (type == t.name) return t.type;
    return std::nullopt;
}

SafeTensor safe_tensor(const std::string &name, const Array &array) {
    const std::optional<std::string> type = safetensors_type(array.dtype);
    if (!type)
        throw UserError("safetensors.type", "tensor '" + name + "': its elements are of " + name_of(array.dtype) +
                                                ", which safetensors does not have. Keep it as bytes (u8).");
    return {name, *type, array.extents, {reinterpret_cast<const char *>(array.data.data()), array.data.size()}};
}

Array array_of(const SafeTensor &tensor) {
    const std::optional<DType> type = dtype_of_safetensors(tensor.type);
    if (!type)
        throw UserError("safetensors.type", "tensor '" + tensor.name + "': its elements are of " + tensor.type +
                                                ", which Tessera does not have. Convert it before.");
    Array array(*type, tensor.extents);
    if (!tensor.bytes.empty()) std::memcpy(array.data.data(), tensor.bytes.data(), tensor.bytes.size());
    return array;
}

}  // namespace tessera
