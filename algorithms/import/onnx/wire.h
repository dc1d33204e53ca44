// Protocol Buffers' wire format (https://protobuf.dev/programming-guides/encoding), as far as ONNX's files use it: a message is a sequence
// of fields, each with a number and one of four forms. Such files come from strangers.
#pragma once
#include <cstdint>
#include <string_view>

namespace tessera::onnx {

enum class WireForm : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
    uint32_t number = 0;
    WireForm form = WireForm::varint;
    uint64_t value = 0;      // varint, fixed64, fixed32: the bits
    std::string_view bytes;  // bytes: a text, a message or packed numbers

    int64_t integer() const { return static_cast<int64_t>(value); }
};

// The fields of a message, in their order in the file. `place` names the message in errors: "graph.node[3]".
// UserError onnx.wire where the bytes end within a field, a number is over 2^64, a form is none of these, or a field has the number 0.
class WireMessage {
public:
    WireMessage(std::string_view bytes, std::string_view place) : left_(bytes), place_(place) {}
    bool next(WireField &field);  // false at the end

private:
    std::string_view left_, place_;

    uint64_t varint();
    std::string_view take(uint64_t bytes);
    [[noreturn]] void refuse(const char *why) const;
};

// The numbers of a repeated field, which lie packed in one field or come one by one; both are legal (and mixed).
template <class Take>
void each_varint(const WireField &field, std::string_view place, Take take);
template <class Take>
void each_fixed32(const WireField &field, std::string_view place, Take take);
template <class Take>
void each_fixed64(const WireField &field, std::string_view place, Take take);

// A packed field's next number, which it takes from the front of `bytes`.
uint64_t take_varint(std::string_view &bytes, std::string_view place);
uint64_t take_fixed(std::string_view &bytes, size_t size, std::string_view place);

template <class Take>
void each_varint(const WireField &field, std::string_view place, Take take) {
    if (field.form == WireForm::varint) return take(field.value);
    for (std::string_view rest = field.bytes; !rest.empty();) take(take_varint(rest, place));
}
template <class Take>
void each_fixed32(const WireField &field, std::string_view place, Take take) {
    if (field.form == WireForm::fixed32) return take(static_cast<uint32_t>(field.value));
    for (std::string_view rest = field.bytes; !rest.empty();) take(static_cast<uint32_t>(take_fixed(rest, 4, place)));
}
template <class Take>
void each_fixed64(const WireField &field, std::string_view place, Take take) {
    if (field.form == WireForm::fixed64) return take(field.value);
    for (std::string_view rest = field.bytes; !rest.empty();) take(take_fixed(rest, 8, place));
}

}  // namespace tessera::onnx
