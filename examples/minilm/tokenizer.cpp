#include "tokenizer.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "text_tables.h"

// ---- UTF-8

// The code point at `at`, which moves behind it; U+FFFD for what is none.
static char32_t next_point(std::string_view text, size_t &at) {
    constexpr char32_t none = 0xfffd;
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const char32_t first = byte(at++);
    if (first < 0x80) return first;
    const int more = first >= 0xf8 ? -1 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : -1;
    if (more < 0) return none;
    char32_t point = first & (0x3fu >> more);
    for (int i = 0; i < more; i++) {
        if (at == text.size() || (byte(at) & 0xc0) != 0x80) return none;
        point = point << 6 | (byte(at++) & 0x3fu);
    }
    constexpr char32_t least[] = {0, 0x80, 0x800, 0x10000};
    return point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? none : point;
}

static void add_utf8(char32_t c, std::string &to) {
    const auto add = [&](char32_t byte) { to += static_cast<char>(byte); };
    if (c < 0x80) return add(c);
    if (c < 0x800) return add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
    if (c < 0x10000) add(0xe0 | c >> 12);
    if (c >= 0x10000) add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f));
    add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
}

// ---- normalisation

// The row of a sorted table whose first code point is the last one up to c, or null.
template <typename Row>
static const Row *row_of(const std::vector<Row> &table, char32_t c) {
    const auto after = std::upper_bound(table.begin(), table.end(), c, [](char32_t point, const Row &row) { return point < row.first; });
    return after == table.begin() ? nullptr : &*(after - 1);
}

static bool contains(const std::vector<CodeRange> &table, char32_t c) {
    const CodeRange *range = row_of(table, c);
    return range && c <= range->last;
}

static bool is_punctuation(char32_t c) {
    if (c < 0x80) return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    return contains(punctuation, c);
}

// A syllable of Hangul is its consonants and its vowel (Unicode 3.12).
static void add_syllable(char32_t c, std::u32string &to) {
    const char32_t syllable = c - 0xac00, last = syllable % 28;
    to += {0x1100 + syllable / 588, 0x1161 + syllable % 588 / 28};
    if (last) to += 0x11a7 + last;
}

// Adds what becomes of a code point: small letters without marks, a space for white space, nothing for what is dropped.
static void add_normalized(char32_t c, std::u32string &to) {
    if (c < 0x80) {
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') to += U' ';
        else if (c > ' ' && c < 0x7f) to += c >= 'A' && c <= 'Z' ? c + 0x20 : c;
        return;
    }
    if (contains(spaces, c)) return to.push_back(U' ');
    if (c == 0xfffd || contains(dropped, c)) return;
    if (c >= 0xac00 && c < 0xd7a4) return add_syllable(c, to);
    const bool apart = contains(alone, c);
    if (apart) to += U' ';
    const CodeRun *run = row_of(runs, c);
    const CodePair *pair = row_of(pairs, c);
    const CodeParts *several = row_of(parts, c);
    if (run && c <= run->last && (c - run->first) % run->step == 0) to += run->to + (c - run->first);
    else if (pair && c == pair->first) to += pair->to;
    else if (several && c == several->first) {
        for (char32_t part : several->to)
            if (part) to += part;
    } else {
        to += c;
    }
    if (apart) to += U' ';
}

// ---- pieces

Tokenizer::Tokenizer(const std::string &file) {
    std::ifstream lines(file);
    if (!lines) throw std::runtime_error("cannot read " + file);
    std::string line;
    for (int32_t token = 0; std::getline(lines, line); token++) {
        longest_ = std::max(longest_, line.size());
        tokens_.emplace(line, token);
    }
    begin_ = special("[CLS]", file), end_ = special("[SEP]", file), unknown_ = special("[UNK]", file);
    for (const char *piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
        if (const auto it = tokens_.find(piece); it != tokens_.end()) special_.emplace_back(*it);
}

int32_t Tokenizer::special(const std::string &piece, const std::string &file) const {
    const auto it = tokens_.find(piece);
    if (it == tokens_.end()) throw std::runtime_error(file + " has no line " + piece + ": it is no vocabulary of BERT");
    return it->second;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, size_t max_tokens) const {
    std::vector<int32_t> tokens = {begin_};
    // What names a special token stands for it, wherever it is.
    size_t open = 0;
    for (size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at)) {
        const auto it =
            std::find_if(special_.begin(), special_.end(), [&](const auto &s) { return text.substr(at, s.first.size()) == s.first; });
        if (it == special_.end()) {
            at++;
            continue;
        }
        add_words(text.substr(open, at - open), tokens);
        tokens.push_back(it->second);
        open = at += it->first.size();
    }
    add_words(text.substr(open), tokens);
    tokens.resize(std::min(tokens.size(), max_tokens - 1));
    tokens.push_back(end_);
    return tokens;
}

void Tokenizer::add_words(std::string_view text, std::vector<int32_t> &to) const {
    std::u32string normal, word;
    for (size_t at = 0; at < text.size();) add_normalized(next_point(text, at), normal);
    const auto end_word = [&] {
        if (!word.empty()) add_pieces(word, to);
        word.clear();
    };
    for (char32_t c : normal) {
        const bool by_itself = is_punctuation(c);
        if (by_itself || c == U' ') end_word();
        if (c != U' ') word += c;
        if (by_itself) end_word();
    }
    end_word();
}

// The longest piece first. A word of which a part has none, or of more than 100 letters, is unknown.
void Tokenizer::add_pieces(const std::u32string &word, std::vector<int32_t> &to) const {
    constexpr size_t max_letters = 100;
    std::string bytes = "##";
    for (char32_t c : word) add_utf8(c, bytes);
    const size_t before = to.size();
    bool known = word.size() <= max_letters;
    for (size_t start = 2; known && start < bytes.size();) {
        // "##" overwrites what was taken before, so that no piece is copied.
        if (start > 2) bytes[start - 2] = bytes[start - 1] = '#';
        const size_t from = start > 2 ? start - 2 : start;
        size_t size = std::min(bytes.size() - from, longest_);
        auto found = tokens_.end();
        for (; size > start - from; size--)
            if (found = tokens_.find(std::string_view(bytes).substr(from, size)); found != tokens_.end()) break;
        known = found != tokens_.end();
        if (known) to.push_back(found->second), start = from + size;
    }
    if (known) return;
    to.resize(before);
    to.push_back(unknown_);
}
