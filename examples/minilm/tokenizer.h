// Text to the tokens of a BERT model, as the PyPI package `tokenizers` gives them for it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

class Tokenizer {
public:
    // `file` has a piece a line, whose number is its token: words, and "##" before what goes on inside a word. std::runtime_error where it
    // cannot be read or lacks [CLS], [SEP] or [UNK].
    explicit Tokenizer(const std::string &file);

    // [CLS], the tokens of the text, [SEP]; of a text that has more than max_tokens - 2 the first. UTF-8; what is none is left out. Small
    // letters without accents, words at white space and punctuation, then WordPiece. max_tokens >= 2.
    std::vector<int32_t> encode(std::string_view text, size_t max_tokens) const;

private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> tokens_;
    std::vector<std::pair<std::string, int32_t>> special_;  // which a text may name too, as in "[MASK]"
    size_t longest_ = 0;                                    // bytes of a piece
    int32_t begin_ = 0, end_ = 0, unknown_ = 0;

    int32_t special(const std::string &piece, const std::string &file) const;
    void add_words(std::string_view text, std::vector<int32_t> &to) const;
    void add_pieces(const std::u32string &word, std::vector<int32_t> &to) const;
};
