#include "algorithms/import/weights/gguf_blocks.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "algorithms/expr/scalar.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Byte = unsigned char;

float half_at(const Byte *at) { return static_cast<float>(decoded(traits_of(DType::f16), static_cast<uint32_t>(at[0] | at[1] << 8))); }

// The 16 bytes of 32 codes of 4 bits, of which byte j has codes j and j + 16, as bytes of two neighbours.
void append_neighbours(std::string &made, const Byte *halves) {
    for (int j = 0; j < 32; j += 2) {
        const int shift = j < 16 ? 0 : 4;
        const int first = halves[j % 16] >> shift & 15, second = halves[j % 16 + 1] >> shift & 15;
        made += static_cast<char>(first | second << 4);
    }
}

// ---- 32 numbers, one scale; those of 5 bits have their highest bits in a word

void numbers_of_q4_0(const Byte *b, float *y) {
    const float scale = half_at(b);
    for (int j = 0; j < 16; j++) {
        y[j] = scale * static_cast<float>((b[2 + j] & 15) - 8);
        y[j + 16] = scale * static_cast<float>((b[2 + j] >> 4) - 8);
    }
}

void numbers_of_q4_1(const Byte *b, float *y) {
    const float scale = half_at(b), least = half_at(b + 2);
    for (int j = 0; j < 16; j++) {
        y[j] = scale * static_cast<float>(b[4 + j] & 15) + least;
        y[j + 16] = scale * static_cast<float>(b[4 + j] >> 4) + least;
    }
}

int fifth_bit(const Byte *word, int j) { return (word[j / 8] >> j % 8 & 1) << 4; }

void numbers_of_q5_0(const Byte *b, float *y) {
    const float scale = half_at(b);
    for (int j = 0; j < 16; j++) {
        y[j] = scale * static_cast<float>(((b[6 + j] & 15) | fifth_bit(b + 2, j)) - 16);
        y[j + 16] = scale * static_cast<float>((b[6 + j] >> 4 | fifth_bit(b + 2, j + 16)) - 16);
    }
}

void numbers_of_q5_1(const Byte *b, float *y) {
    const float scale = half_at(b), least = half_at(b + 2);
    for (int j = 0; j < 16; j++) {
        y[j] = scale * static_cast<float>((b[8 + j] & 15) | fifth_bit(b + 4, j)) + least;
        y[j + 16] = scale * static_cast<float>(b[8 + j] >> 4 | fifth_bit(b + 4, j + 16)) + least;
    }
}

void numbers_of_q8_0(const Byte *b, float *y) {
    const float scale = half_at(b);
    for (int j = 0; j < 32; j++) y[j] = scale * static_cast<float>(static_cast<signed char>(b[2 + j]));
}

void numbers_of_mxfp4(const Byte *b, float *y) {
    constexpr float numbers[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const float scale = std::ldexp(1.0F, b[0] - 127);
    const auto number = [&](int code) { return (code & 8 ? -1.0F : 1.0F) * numbers[code & 7] * scale; };
    for (int j = 0; j < 16; j++) y[j] = number(b[1 + j] & 15), y[j + 16] = number(b[1 + j] >> 4);
}

// ---- 256 numbers: scales of parts have few bits themselves

// Scale and minimum of part `j` of 8, 6 bits each in 12 bytes.
void scale_and_least(const Byte *packed, int j, int &scale, int &least) {
    if (j < 4) {
        scale = packed[j] & 63, least = packed[j + 4] & 63;
    } else {
        scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
        least = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
    }
}

// Q4_K and, where there are `high` bits, Q5_K: 8 parts of 32, of which two share the bytes of `low`.
void numbers_of_parts(const Byte *b, const Byte *low, const Byte *high, float *y) {
    const float scale = half_at(b), least = half_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int s = 0, m = 0;
        scale_and_least(b + 4, part, s, m);
        const float d = scale * static_cast<float>(s), from = least * static_cast<float>(m);
        for (int l = 0; l < 32; l++) {
            const int code = low[part / 2 * 32 + l] >> part % 2 * 4 & 15, fifth = high ? (high[l] >> part & 1) << 4 : 0;
            y[part * 32 + l] = d * static_cast<float>(code + fifth) - from;
        }
    }
}

void numbers_of_q4_k(const Byte *b, float *y) { numbers_of_parts(b, b + 16, nullptr, y); }
void numbers_of_q5_k(const Byte *b, float *y) { numbers_of_parts(b, b + 48, b + 16, y); }

void numbers_of_q6_k(const Byte *b, float *y) {
    const Byte *low = b, *high = b + 128, *scales = b + 192;
    const float scale = half_at(b + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
        const int code = (low[half * 64 + quarter % 2 * 32 + l] >> quarter / 2 * 4 & 15) | (high[half * 32 + l] >> quarter * 2 & 3) << 4;
        y[i] = scale * static_cast<float>(static_cast<signed char>(scales[i / 16])) * static_cast<float>(code - 32);
    }
}

struct Known {
    const char *type;
    void (*numbers)(const Byte *block, float *y);
};
constexpr Known known[] = {
    {"Q4_0", numbers_of_q4_0},   {"Q4_1", numbers_of_q4_1}, {"Q5_0", numbers_of_q5_0}, {"Q5_1", numbers_of_q5_1}, {"Q8_0", numbers_of_q8_0},
    {"MXFP4", numbers_of_mxfp4}, {"Q4_K", numbers_of_q4_k}, {"Q5_K", numbers_of_q5_k}, {"Q6_K", numbers_of_q6_k},
};

const Known *find_known(std::string_view type) {
    const auto *found = std::find_if(std::begin(known), std::end(known), [&](const Known &k) { return type == k.type; });
    return found == std::end(known) ? nullptr : found;
}

template <class Take>
void each_block(const GgufTensor &tensor, Take take) {
    for (size_t at = 0; at < tensor.bytes.size(); at += tensor.type->bytes) take(reinterpret_cast<const Byte *>(tensor.bytes.data() + at));
}

}  // namespace

std::optional<CodesAndScales> codes_and_scales(const GgufTensor &tensor) {
    const std::string_view type = tensor.type->name;
    if (type == "Q8_0") {
        CodesAndScales made{"I8", "F16", 1, 32, {}, {}};
        each_block(tensor, [&](const Byte *b) {
            made.scales.append(reinterpret_cast<const char *>(b), 2);
            made.codes.append(reinterpret_cast<const char *>(b + 2), 32);
        });
        return made;
    }
    if (type != "Q4_0" && type != "MXFP4") return std::nullopt;
    const size_t scale_bytes = type == "Q4_0" ? 2 : 1;
    CodesAndScales made{"U8", type == "Q4_0" ? "F16" : "F8_E8M0", 2, 32, {}, {}};
    each_block(tensor, [&](const Byte *b) {
        made.scales.append(reinterpret_cast<const char *>(b), scale_bytes);
        append_neighbours(made.codes, b + scale_bytes);
    });
    return made;
}

bool has_known_numbers(const GgufType &type) { return find_known(type.name); }

std::vector<std::string> types_with_known_numbers() {
    std::vector<std::string> names;
    for (const Known &k : known) names.emplace_back(k.type);
    return names;
}

std::vector<float> numbers_of(const GgufTensor &tensor) {
    const Known *how = find_known(tensor.type->name);
    require(how != nullptr, "the type of a tensor is known");
    const auto elements = static_cast<size_t>(tensor.type->elements);
    std::vector<float> made(tensor.bytes.size() / tensor.type->bytes * elements);
    float *y = made.data();
    each_block(tensor, [&](const Byte *b) {
        how->numbers(b, y);
        y += elements;
    });
    return made;
}

}  // namespace tessera
