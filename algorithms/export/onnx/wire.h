// The writer of Protocol Buffers' wire format, the inverse of algorithms/import/onnx/wire.h: a message is its fields, one after another.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/import/onnx/wire.h"

namespace tessera::onnx {

// Appends fields to a message. Fields are written in the order of the calls; callers use that of their numbers, as others do, so that equal
// messages are equal bytes.
class WireWriter {
public:
    void integer(uint32_t number, int64_t value);                        // a varint, also of 0
    void real(uint32_t number, float value);                             // fixed32
    void bytes(uint32_t number, std::string_view content);               // a text or a message
    void integers(uint32_t number, const std::vector<int64_t> &values);  // packed; nothing where there are none
    void reals(uint32_t number, const std::vector<float> &values);
    void reals(uint32_t number, const std::vector<double> &values);
    const std::string &content() const { return content_; }

private:
    std::string content_;

    void key(uint32_t number, WireForm form);
    void varint(uint64_t value);
};

}  // namespace tessera::onnx
