// Codes of few bits, and the number that each stands for before a scale multiplies it.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "algorithms/expr/scalar.h"

namespace tessera {

// An integer code stands for itself less `offset`, and less a zero point where there are any; a float's, for its number. Values beyond the
// range become its ends.
struct CodeFormat {
    std::string name;        // "int8", "f8e4m3fn", …
    int bits = 8;            // of 4 bits, two are in a byte, the first in the low half
    DType type = DType::u8;  // of the bytes
    bool is_integer = true;
    int lowest = 0, highest = 0;     // integers: of what a code stands for
    int offset = 0;                  // integers: so much more is stored, of codes and of zero points
    DTypeTraits real = {};           // floats: the format
    std::array<float, 256> numbers;  // by code; NaN where a code is no number

    double largest() const { return is_integer ? highest : static_cast<double>(numbers[first_special(real) - 1]); }
    // What is nearest to `quotient`, of two that are as near the one whose last bit is 0; less `zero`, which only integers have. No NaN.
    float nearest(float quotient, int zero = 0) const {
        if (is_integer) {
            const float clamped = std::min(std::max(quotient, static_cast<float>(lowest - zero)), static_cast<float>(highest - zero));
            return (clamped + 0x1.8p23f) - 0x1.8p23f;  // rounds to an integer, since a float has 24 bits
        }
        return nearest_real(quotient);
    }
    // The code of what `nearest` gave for the same zero point.
    uint8_t code_of(float number, int zero = 0) const;
    float number_of(uint8_t code, int zero = 0) const {
        return is_integer ? static_cast<float>((type == DType::i8 ? static_cast<int8_t>(code) : static_cast<int>(code)) - offset - zero)
                          : numbers[code];
    }

private:
    float nearest_real(float quotient) const;
};

// UserError quantization.format, with the names that there are: int8, uint8, int4, f4e2m1fn and the floats of one byte with a sign.
const CodeFormat &code_format(const std::string &name);
std::vector<std::string> code_format_names();

}  // namespace tessera
