// What BERT's normalisation makes of code points from U+0080 on. Each table is sorted. A code point that is in none stays as it is.
#pragma once
#include <vector>

struct CodeRange {
    char32_t first, last;
};
// first, first + step, … last become `to`, `to` + step, …
struct CodeRun {
    char32_t first, last, step, to;
};
struct CodePair {
    char32_t first, to;
};
// It becomes these, but for zeros at the end.
struct CodeParts {
    char32_t first, to[3];
};

extern const std::vector<CodeRange> dropped, spaces, alone, punctuation;
extern const std::vector<CodeRun> runs;
extern const std::vector<CodePair> pairs;
extern const std::vector<CodeParts> parts;
