"""Compares the application's tokens with those of the PyPI package `tokenizers`, on real text that this machine has and on every code
point: ./tessera peers minilm tokens

    tokens.py <minilm> <folder of the model> [<sentences>]
    tokens.py --fixture <folder of the model>                writes tokens.txt, what the package makes of the lines of sentences.txt

Real text: lines of translations (*.mo) of all languages, of licences and changelogs, and of manual pages, in equal parts, drawn by a fixed seed."""
import gettext
import glob
import gzip
import os
import random
import subprocess
import sys

from tokenizers import Tokenizer


def lines_of(text):
    """Lines of some length; what splitlines takes for the end of a line would be one for us only at \\n."""
    return [line for line in text.split("\n") if len(line) > 20]


def content(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def from_translations():
    """By language."""
    by_language = {}
    for path in sorted(glob.glob("/usr/share/locale/*/LC_MESSAGES/*.mo")):
        try:
            with open(path, "rb") as file:
                entries = gettext.GNUTranslations(file)._catalog.values()
        except (OSError, UnicodeDecodeError, ValueError, LookupError):
            continue
        language = path.split("/")[-3]
        by_language.setdefault(language, []).extend(line for text in entries for line in lines_of(text))
    return by_language


def some_of(rng, lines, count):
    lines = sorted(set(lines))
    return rng.sample(lines, min(count, len(lines)))


def real_text(count):
    rng = random.Random(1)
    languages = from_translations()
    made = [line for name in sorted(languages) for line in some_of(rng, languages[name], max(1, count // (2 * len(languages))))]
    made = made[:count // 2]
    for patterns in (["/usr/share/doc/*/copyright", "/usr/share/doc/*/changelog*"], ["/usr/share/man/man*/*.gz", "/usr/share/man/*/man*/*.gz"]):
        files = sorted(f for pattern in patterns for f in glob.glob(pattern) if os.path.isfile(f))
        files = some_of(rng, files, 400)
        made += some_of(rng, [line for f in files for line in lines_of(content(f))], count // 4)
    extra = [line for lines in languages.values() for line in lines]
    made += some_of(rng, extra, count - len(made)) if len(made) < count else []
    return made, len(languages)


def code_points():
    """Each in the middle of a word, some in a line, of all that UTF-8 has; lines end at \\n."""
    points = [c for c in range(1, 0x110000) if c != 10 and not 0xD800 <= c < 0xE000]
    return ["".join(f"a{chr(c)}b " for c in points[i:i + 64]) for i in range(0, len(points), 64)]


def reference_of(model):
    reference = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    return reference


def write_fixture(model):
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "sentences.txt"), encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")[:-1]
    with open(os.path.join(folder, "tokens.txt"), "w", encoding="ascii") as file:
        for encoding in reference_of(model).encode_batch(lines):
            print(*encoding.ids, file=file)


def main():
    if sys.argv[1] == "--fixture":
        return write_fixture(sys.argv[2])
    app, model, count = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    reference = reference_of(model)
    real, languages = real_text(count)
    failed = 0
    for what, lines in ((f"lines of real text, {languages} languages", real), ("lines of all code points", code_points())):
        text = "".join(line + "\n" for line in lines).encode()
        got = subprocess.run([app, model, "tokens"], input=text, capture_output=True, check=True).stdout.decode().splitlines()
        expected = [encoding.ids for encoding in reference.encode_batch(lines)]
        assert len(got) == len(expected), f"{len(got)} lines of tokens for {len(expected)}"
        wrong = [i for i, (a, b) in enumerate(zip(got, expected)) if [int(t) for t in a.split()] != b]
        print(f"{len(lines)} {what}, {sum(map(len, expected))} tokens: {len(lines) - len(wrong)} equal")
        for i in wrong[:5]:
            print(f"  {lines[i]!r}\n    got      {got[i]}\n    expected {' '.join(map(str, expected[i]))}")
        failed += len(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
