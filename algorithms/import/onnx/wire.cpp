#include "algorithms/import/onnx/wire.h"

#include <string>

#include "support/text/error.h"

namespace tessera::onnx {

[[noreturn]] static void refuse_at(std::string_view place, const char *why) {
    throw UserError("onnx.wire", "the model, at " + std::string(place) + ": " + why +
                                     "; expected a file in ONNX's format (Protocol Buffers), whole. Fetch or export it again.");
}

void WireMessage::refuse(const char *why) const { refuse_at(place_, why); }

uint64_t take_varint(std::string_view &bytes, std::string_view place) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size() && i < 10; i++) {
        const auto byte = static_cast<uint8_t>(bytes[i]);
        if (i == 9 && byte > 1) break;
        value |= uint64_t{byte & 0x7fU} << (7 * i);
        if (byte < 0x80) return bytes.remove_prefix(i + 1), value;
    }
    refuse_at(place, bytes.size() < 10 ? "the file ends within a number" : "a number has over 64 bits");
}

uint64_t take_fixed(std::string_view &bytes, size_t size, std::string_view place) {
    if (bytes.size() < size) refuse_at(place, "the file ends within a number");
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    bytes.remove_prefix(size);
    return value;
}

std::string_view WireMessage::take(uint64_t bytes) {
    if (bytes > left_.size()) refuse("a field is longer than what is left of the file");
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
}

bool WireMessage::next(WireField &field) {
    if (left_.empty()) return false;
    const uint64_t key = take_varint(left_, place_);
    if (key >> 3 == 0 || key >> 3 > UINT32_MAX) refuse("a field has an impossible number");
    field = {static_cast<uint32_t>(key >> 3), static_cast<WireForm>(key & 7), 0, {}};
    switch (field.form) {
    case WireForm::varint: field.value = take_varint(left_, place_); return true;
    case WireForm::fixed64: field.value = take_fixed(left_, 8, place_); return true;
    case WireForm::fixed32: field.value = take_fixed(left_, 4, place_); return true;
    case WireForm::bytes: field.bytes = take(take_varint(left_, place_)); return true;
    }
    refuse("a field has a form that the format does not have");
}

}  // namespace tessera::onnx
