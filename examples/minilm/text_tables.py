"""Prints text_tables.cpp: what the PyPI package `tokenizers` makes of each code point in BERT's normalisation of text.

    python3 text_tables.py > text_tables.cpp
"""
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

normalizer, pre_tokenizer = BertNormalizer(), BertPreTokenizer()
COLUMNS = 140
# Syllables of Hangul come apart by arithmetic, and ideographs stand alone: tokenizer.cpp has these two.
HANGUL = range(0xAC00, 0xD7A4)


def ranges(points):
    found = []
    for c in points:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def folds(to):
    """Runs in which all points, or every second one, move by the same distance; and single points."""
    found = []
    for c in sorted(to):
        if found:
            first, last, step, moved = found[-1]
            if c - last in (1, 2) and moved == to[c] - c and step in (0, c - last):
                found[-1][1:3] = c, c - last
                continue
        found.append([c, c, 0, to[c] - c])
    rows = [[first, last, step or 1, first + moved] for first, last, step, moved in found]
    return [row for row in rows if row[0] < row[1]], [[row[0], row[3]] for row in rows if row[0] == row[1]]


def table(about, declaration, rows):
    print(f"\n// {about}\n{declaration} = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(f"0x{c:x}" for c in row) + "},"
        if len(line) + len(item) > COLUMNS:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


dropped, spaces, alone, punctuation, one, several = [], [], [], [], {}, {}
for c in range(0x80, 0x110000):
    if 0xD800 <= c < 0xE000:
        continue
    text = "a" + chr(c) + "b"
    made = normalizer.normalize_str(text)[1:-1]
    if len(pre_tokenizer.pre_tokenize_str(text)) == 3:
        punctuation.append(c)
    if len(made) > 1 and made[0] == made[-1] == " ":
        alone.append(c)
        made = made[1:-1]
    if made == "":
        dropped.append(c)
    elif made == " ":
        spaces.append(c)
    elif c in HANGUL or made == chr(c):
        pass
    elif len(made) == 1:
        one[c] = ord(made)
    else:
        several[c] = [ord(m) for m in made]

most = max(map(len, several.values()))
print("// Printed by text_tables.py from what the PyPI package `tokenizers` does.")
print('#include "text_tables.h"')
table("Control characters, what has no meaning, and marks of letters.", "const std::vector<CodeRange> dropped", ranges(dropped))
table("White space.", "const std::vector<CodeRange> spaces", ranges(spaces))
table("Ideographs.", "const std::vector<CodeRange> alone", ranges(alone))
table("Punctuation.", "const std::vector<CodeRange> punctuation", ranges(punctuation))
runs, pairs = folds(one)
table("Small letters of capital ones, letters without their marks.", "const std::vector<CodeRun> runs", runs)
table("The same one by one, and ideographs of other standards.", "const std::vector<CodePair> pairs", pairs)
table("Letters of several parts.", "const std::vector<CodeParts> parts",
      [[c] + several[c] + [0] * (most - len(several[c])) for c in sorted(several)])
assert most == 3
