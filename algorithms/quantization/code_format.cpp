#include "algorithms/quantization/code_format.h"

#include <bit>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

namespace {

CodeFormat whole(const char *name, int bits, DType type, int lowest, int highest, int offset) {
    CodeFormat f;
    f.name = name, f.bits = bits, f.type = type, f.lowest = lowest, f.highest = highest, f.offset = offset;
    return f;
}

CodeFormat real(const char *name, int bits, DType type, const DTypeTraits &traits) {
    CodeFormat f;
    f.name = name, f.bits = bits, f.type = type, f.is_integer = false, f.real = traits;
    for (uint32_t code = 0; code < f.numbers.size(); code++) f.numbers[code] = static_cast<float>(decoded(traits, code));
    return f;
}

// OCP's format of 4 bits (Microscaling Formats 1.0): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, also of 0.
CodeFormat e2m1() {
    const DTypeTraits traits = {.type = DType::u8,
                                .name = "f4e2m1fn",
                                .bytes = 1,
                                .kind = DTypeKind::real,
                                .held = Held::u8,
                                .arithmetic = false,
                                .mantissa = 1,
                                .exponent = 2,
                                .bias = 1,
                                .specials = Specials::minus_zero};
    CodeFormat f = real("f4e2m1fn", 4, DType::u8, traits);
    f.numbers[sign_bit(traits)] = -0.0f;
    return f;
}

const std::vector<CodeFormat> &all() {
    static const std::vector<CodeFormat> formats = [] {
        std::vector<CodeFormat> made = {whole("int8", 8, DType::i8, -128, 127, 0), whole("uint8", 8, DType::u8, 0, 255, 0),
                                        whole("int4", 4, DType::u8, -8, 7, 8), e2m1()};
        for (DType type : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz})
            made.push_back(real(name_of(type), 8, type, traits_of(type)));
        return made;
    }();
    return formats;
}

}  // namespace

// A sum with 2^23 times the distance of the format's numbers there has no bits below that distance.
float CodeFormat::nearest_real(float quotient) const {
    const float magnitude = std::min(std::fabs(quotient), static_cast<float>(largest()));
    const uint32_t exponent = std::max(std::bit_cast<uint32_t>(magnitude) & 0x7f800000u, static_cast<uint32_t>(128 - real.bias) << 23);
    const auto coarse = std::bit_cast<float>(exponent + (static_cast<uint32_t>(23 - real.mantissa) << 23));
    return std::copysign((magnitude + coarse) - coarse, quotient);
}

uint8_t CodeFormat::code_of(float number, int zero) const {
    if (is_integer) return static_cast<uint8_t>(static_cast<int>(number) + zero + offset);
    const bool has_minus_zero = real.specials != Specials::minus_zero || bits == 4;
    return static_cast<uint8_t>(encoded(real, number == 0 && !has_minus_zero ? 0.0 : static_cast<double>(number)));
}

const CodeFormat &code_format(const std::string &name) {
    for (const CodeFormat &format : all())
        if (format.name == name) return format;
    throw UserError("quantization.format", "there is no format '" + name + "' of codes; there are " + join(code_format_names()) + "." +
                                               did_you_mean(name, code_format_names()));
}

std::vector<std::string> code_format_names() {
    std::vector<std::string> names;
    for (const CodeFormat &format : all()) names.push_back(format.name);
    return names;
}

}  // namespace tessera
