#include "support/text/shortened.h"

#include <algorithm>

#include <fmt/format.h>

namespace tessera {

static constexpr size_t max_word = 1000, word_head = 200, word_tail = 100;
static constexpr size_t max_text = 32768, text_head = 16384, text_tail = 8192;

// The first position from `at` on where a character begins.
static size_t boundary(const std::string &text, size_t at) {
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) at++;
    return at;
}

static std::string without_middle(const std::string &text, size_t head, size_t tail) {
    const size_t from = boundary(text, head), to = boundary(text, text.size() - tail);
    return text.substr(0, from) + fmt::format(" … {} bytes left out … ", to - from) + text.substr(to);
}

std::string first_of(const std::vector<std::string> &names, size_t most) {
    if (names.empty()) return "none";
    const size_t shown = std::min(most, names.size()), more = names.size() - shown;
    const std::string first = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    return more ? fmt::format("{} and {} more", first, more) : first;
}

std::string shortened(const std::string &text) {
    static const char *const separators = " \n\t";
    std::string result;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of(separators, at), text.size()),
                     next = std::min(text.find_first_not_of(separators, end), text.size());
        const std::string word = text.substr(at, end - at);
        result += (word.size() > max_word ? without_middle(word, word_head, word_tail) : word) + text.substr(end, next - end);
        at = next;
    }
    return result.size() > max_text ? without_middle(result, text_head, text_tail) : result;
}

}  // namespace tessera
