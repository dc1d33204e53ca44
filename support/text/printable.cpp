#include "support/text/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tessera {

namespace {

struct Character {
    uint32_t code = 0;
    size_t bytes = 0;  // 0: the bytes here are not UTF-8
};

Character first_of(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1};
    const size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
    if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return {};
    uint32_t code = byte(0) & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3F);
    }
    constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least[bytes] || code > 0x10FFFF || is_surrogate ? Character{} : Character{code, bytes};
}

// Unicode's categories Cc and Cf, control and format characters, and Zl and Zp, separators of lines.
bool does_more_than_stand(uint32_t code) {
    constexpr struct {
        uint32_t first, last;
    } ranges[] = {{0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
                  {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},
                  {0x2060, 0x2064},   {0x2066, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
                  {0x13430, 0x13438}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F}};
    return std::any_of(std::begin(ranges), std::end(ranges), [&](const auto &r) { return code >= r.first && code <= r.last; });
}

}  // namespace

std::string printable(std::string_view text, bool keep_lines) {
    std::string shown;
    while (!text.empty()) {
        const Character c = first_of(text);
        if (c.bytes == 0) shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
        else if (!does_more_than_stand(c.code) || (keep_lines && (c.code == '\n' || c.code == '\t'))) shown += text.substr(0, c.bytes);
        else shown += c.code > 0xFFFF ? fmt::format("\\U{:08x}", c.code) : fmt::format("\\u{:04x}", c.code);
        text.remove_prefix(std::max<size_t>(c.bytes, 1));
    }
    return shown;
}

}  // namespace tessera
