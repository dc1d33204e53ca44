#include "algorithms/import/weights/weights_file.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "algorithms/evaluate/stored_array.h"
#include "algorithms/expr/scalar.h"
#include "algorithms/import/weights/gguf_blocks.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"

namespace tessera {

namespace {

bool is_wide_float(DType type) { return is_float(type) && size_of(type) > 1; }

// Numbers in another type, each the nearest.
template <class Number>
std::string stored(size_t count, DType type, Number number) {
    const auto size = static_cast<size_t>(size_of(type));
    std::string bytes(count * size, '\0');
    for (size_t i = 0; i < count; i++) {
        const double value = number(i);
        const Scalar wide = Scalar::of_real(DType::f64, value);
        store_scalar(bytes.data() + i * size, type == DType::f64 ? wide : convert(type, Rounding::nearest_even, false, wide));
    }
    return bytes;
}

bool begins_as_gguf(const std::filesystem::path &file) {
    const RegularFile opened(file, {"weights", "file of weights", "Cut the model into several files.", size_t{1} << 40});
    return Gguf::is_one(opened.read(0, std::min<uint64_t>(opened.bytes(), 4)));
}

}  // namespace

WeightsFile::WeightsFile(const std::filesystem::path &file, std::optional<DType> floats) {
    if (floats && !is_wide_float(*floats))
        throw UserError("safetensors.type", "file of tensors '" + file.string() +
                                                "': expected one of f32, f64, f16 and bf16 for its floats, got " + name_of(*floats) + ".");
    if (begins_as_gguf(file)) {
        gguf_ = std::make_unique<Gguf>(file);
        for (const GgufTensor &t : gguf_->tensors()) take_gguf(t, floats);
        std::sort(tensors_.begin(), tensors_.end(), [](const SafeTensor &a, const SafeTensor &b) { return a.name < b.name; });
        for (size_t i = 1; i < tensors_.size(); i++)
            if (tensors_[i].name == tensors_[i - 1].name)
                throw UserError("gguf.name", "GGUF file '" + gguf_->subject() + "': the name '" + tensors_[i].name +
                                                 "' is that of a tensor and of the scales of another. Rename one of them.");
    } else {
        safetensors_ = std::make_unique<Safetensors>(file);
        for (const SafeTensor &t : safetensors_->tensors()) take_float(t, floats);
        is_stored_ = made_.empty();
    }
}

const std::map<std::string, std::string> &WeightsFile::metadata() const {
    static const std::map<std::string, std::string> none;
    return safetensors_ ? safetensors_->metadata() : none;
}

// As it is, or with floats of the type that was asked for.
void WeightsFile::take_float(const SafeTensor &t, std::optional<DType> floats) {
    const std::optional<DType> type = dtype_of_safetensors(t.type);
    if (!floats || !type || !is_wide_float(*type) || *type == *floats) return tensors_.push_back(t);
    const auto size = static_cast<size_t>(size_of(*type));
    const auto number = [&](size_t i) { return load_scalar(*type, t.bytes.data() + i * size).real; };
    tensors_.push_back({t.name, *safetensors_type(*floats), t.extents, keep(stored(t.bytes.size() / size, *floats, number))});
}

void WeightsFile::take_gguf(const GgufTensor &t, std::optional<DType> floats) {
    if (t.type->elements == 1) return take_float({t.name, t.type->name, t.extents, t.bytes}, floats);
    if (!has_known_numbers(*t.type))
        throw UserError("gguf.type", "GGUF file '" + gguf_->subject() + "': tensor '" + t.name +
                                         "': expected one of the types F32, F64, F16, BF16, "
                                         "I8 to I64, " +
                                         join(types_with_known_numbers()) + ", got " + t.type->name +
                                         ". Quantise the model to one of them, such as Q8_0.");
    if (!floats) {
        if (std::optional<CodesAndScales> apart = codes_and_scales(t)) {
            std::vector<int64_t> codes = t.extents, scales = t.extents;
            codes.back() /= apart->codes_in_a_byte, scales.back() /= apart->block;
            tensors_.push_back({t.name, apart->codes_type, codes, keep(std::move(apart->codes))});
            tensors_.push_back({t.name + "_scales", apart->scales_type, scales, keep(std::move(apart->scales))});
            return;
        }
        notes_.push_back("tensor '" + t.name + "' of " + t.type->name + " became bf16, rounded to the nearest");
    }
    const DType type = floats.value_or(DType::bf16);
    const std::vector<float> numbers = numbers_of(t);
    tensors_.push_back({t.name, *safetensors_type(type), t.extents,
                        keep(stored(numbers.size(), type, [&](size_t i) { return static_cast<double>(numbers[i]); }))});
}

}  // namespace tessera
