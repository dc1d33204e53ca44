#include "algorithms/export/onnx/wire.h"

#include <bit>

namespace tessera::onnx {

namespace {

void put_varint(std::string &to, uint64_t value) {
    for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
    to += static_cast<char>(value);
}

template <class Bits>
void put_fixed(std::string &to, Bits bits) {
    for (size_t i = 0; i < sizeof bits; i++) to += static_cast<char>(bits >> (8 * i));
}

}  // namespace

void WireWriter::varint(uint64_t value) { put_varint(content_, value); }

void WireWriter::key(uint32_t number, WireForm form) { varint(uint64_t{number} << 3 | static_cast<uint64_t>(form)); }

void WireWriter::integer(uint32_t number, int64_t value) {
    key(number, WireForm::varint);
    varint(static_cast<uint64_t>(value));
}

void WireWriter::real(uint32_t number, float value) {
    key(number, WireForm::fixed32);
    put_fixed(content_, std::bit_cast<uint32_t>(value));
}

void WireWriter::bytes(uint32_t number, std::string_view content) {
    key(number, WireForm::bytes);
    varint(content.size());
    content_ += content;
}

void WireWriter::integers(uint32_t number, const std::vector<int64_t> &values) {
    if (values.empty()) return;
    std::string packed;
    for (const int64_t v : values) put_varint(packed, static_cast<uint64_t>(v));
    bytes(number, packed);
}

void WireWriter::reals(uint32_t number, const std::vector<float> &values) {
    if (values.empty()) return;
    std::string packed;
    for (const float v : values) put_fixed(packed, std::bit_cast<uint32_t>(v));
    bytes(number, packed);
}

void WireWriter::reals(uint32_t number, const std::vector<double> &values) {
    if (values.empty()) return;
    std::string packed;
    for (const double v : values) put_fixed(packed, std::bit_cast<uint64_t>(v));
    bytes(number, packed);
}

}  // namespace tessera::onnx
