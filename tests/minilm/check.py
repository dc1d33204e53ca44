"""Compares the application of examples/minilm with what others make of the same text.

    check.py <minilm> <folder of the model>

Tokens: those of the PyPI package `tokenizers` (tokens.txt). Embeddings: those of PyTorch (embeddings.npz), and of NumPy in double, by
the largest difference in f32 and by the cosine in other types of weights. The bits do not depend on threads or on what is in a batch beside."""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
try:
    import numpy as np
    sys.path[:0] = [here, os.path.join(here, "..", "..", "bench", "peers")]
    import numpy_bert
    from bert import padded, read_safetensors
except ImportError:
    print("skipped: NumPy and SciPy are not here; ./tessera test installs them")
    sys.exit(77)

# The most and the median, over sentences: in f32 of the largest difference of an element of unit vectors, otherwise of 1 less the cosine.
# With one scale for a column, eight bits are too few for the outliers of this model where a text is one word, or letters of a script that
# the vocabulary has no words for.
MOST = {"f32": (1e-5, 1e-5), "bf16": (1e-3, 1e-3), "int8": (4e-3, 1e-3)}
CHECKED_IN_DOUBLE = 24


def lines_of(name):
    with open(os.path.join(here, name), encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def main():
    app, model = sys.argv[1:]

    def run(lines, *arguments):
        text = "".join(line + "\n" for line in lines).encode()
        return subprocess.run([app, *arguments], input=text, capture_output=True, check=True).stdout.decode()

    def vectors_of(lines, weights="f32", threads=1):
        text = run(lines, "--weights", weights, "--threads", str(threads), model, "embed")
        return np.array([[float(v) for v in line.split()] for line in text.splitlines()], "f4")

    problems = []
    sentences, tokens = lines_of("sentences.txt"), lines_of("tokens.txt")
    got = [line.rstrip() for line in run(sentences, model, "tokens").split("\n")[:-1]]
    wrong = [i for i, (a, b) in enumerate(zip(got, tokens)) if a != b]
    if len(got) != len(tokens) or wrong:
        problems.append(f"{len(got)} lines of tokens for {len(tokens)}; of {len(wrong)} they differ, the first is "
                        f"{sentences[wrong[0]]!r}" if wrong else "the numbers of lines differ")

    ids, keep = padded([[int(t) for t in line.split()] for line in tokens[:CHECKED_IN_DOUBLE]])
    in_double = numpy_bert.Bert(read_safetensors(os.path.join(model, "model.safetensors"))).embed(ids, keep)
    by_pytorch = np.load(os.path.join(here, "embeddings.npz"))["vectors"]
    for weights, most in MOST.items():
        made = vectors_of(sentences[:CHECKED_IN_DOUBLE], weights)
        for name, expected in (("NumPy in double", in_double), ("PyTorch", by_pytorch)):
            some = made[:len(expected)].astype("f8")
            errors = np.abs(some - expected).max(1) if weights == "f32" else 1 - (some * expected).sum(1)
            words = f"{weights} beside {name}: {errors.max():.1e}, median {np.median(errors):.1e} of {len(expected)} sentences"
            print(words)
            if not (errors.max() <= most[0] and np.median(errors) <= most[1]):
                problems.append(f"{words}, expected at most {most[0]:.0e} and {most[1]:.0e}")
        if vectors_of(sentences[:CHECKED_IN_DOUBLE], weights, threads=2).tobytes() != made.tobytes():
            problems.append(f"{weights}: two threads give other bits than one")

    for arguments, words in (([model, "sing"], "there is no 'sing'; there are demo, tokens, embed, time"),
                             (["--weights", "f8", model], "there are no weights f8; there are f32, bf16, int8"),
                             ([here], "cannot read"), (["--threads", "0", model], "usage: minilm")):
        run_wrong = subprocess.run([app, *arguments], input=b"", capture_output=True)
        if run_wrong.returncode == 0 or words not in run_wrong.stderr.decode():
            problems.append(f"{arguments}: expected '{words}', got {run_wrong.returncode} {run_wrong.stderr.decode()!r}")
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
