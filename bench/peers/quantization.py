"""What post-training quantisation of examples/minilm's weights costs in accuracy, in size and in time to make.

    quantization.py <generator> <minilm> <folder of the model> <file of sentences> [--only REGEX]

For each scheme, `quantize --simulate` writes the model with what its codes stand for, and the application's f32 program embeds every sentence
with it. Cosines are to the vectors of the model as it is; `English` are texts of five words or more in ASCII. Sizes are those of the matrices of the six layers, with scales and zero points."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

LAYERS = ["--tensors", "encoder.*.weight", "--keep", "*LayerNorm*"]
CHANNEL, G32, G128 = ["--per", "channel"], ["--per", "group", "--group", "32"], ["--per", "group", "--group", "128"]
SCHEMES = {
    "int8 per tensor, minmax": ["--format", "int8", "--per", "tensor"],
    "int8 per channel, minmax": ["--format", "int8", *CHANNEL],
    "int8 per channel, percentile 99.9": ["--format", "int8", *CHANNEL, "--scale", "percentile"],
    "int8 per channel, mse": ["--format", "int8", *CHANNEL, "--scale", "mse"],
    "int8 per channel, zero points": ["--format", "int8", *CHANNEL, "--zero-points"],
    "int8 group 128, minmax": ["--format", "int8", *G128],
    "int8 group 32, minmax": ["--format", "int8", *G32],
    "int8 group 32, mse": ["--format", "int8", *G32, "--scale", "mse"],
    "int4 per channel, mse": ["--format", "int4", *CHANNEL, "--scale", "mse"],
    "int4 group 128, mse": ["--format", "int4", *G128, "--scale", "mse"],
    "int4 group 32, minmax": ["--format", "int4", *G32],
    "int4 group 32, mse": ["--format", "int4", *G32, "--scale", "mse"],
    "int4 group 32, mse, f16 scales": ["--format", "int4", *G32, "--scale", "mse", "--scales", "f16"],
    "int4 group 32, mse, zero points": ["--format", "int4", *G32, "--scale", "mse", "--zero-points"],
    "f8e4m3fn per channel, minmax": ["--format", "f8e4m3fn", *CHANNEL],
    "f8e4m3fn per channel, mse": ["--format", "f8e4m3fn", *CHANNEL, "--scale", "mse"],
    "f8e4m3fn group 32, mse": ["--format", "f8e4m3fn", *G32, "--scale", "mse"],
    "f8e5m2 per channel, minmax": ["--format", "f8e5m2", *CHANNEL],
    "mxfp8, minmax": ["--format", "mxfp8"],
    "mxfp4, mse": ["--format", "mxfp4", "--scale", "mse"],
    "nvfp4, mse": ["--format", "nvfp4", "--scale", "mse"],
}


def main():
    parser = argparse.ArgumentParser()
    for name in ("generator", "app", "model", "sentences"):
        parser.add_argument(name)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with open(options.sentences, "rb") as file:
        text = file.read()

    def vectors(folder):
        made = subprocess.run([options.app, folder, "embed"], input=text, capture_output=True, check=True).stdout
        rows = np.array([line.split() for line in made.decode().splitlines()], "f8")
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    expected = vectors(options.model)
    english = np.array([line.isascii() and len(line.split()) >= 5 for line in text.split(b"\n")[:-1]])
    print(f"{len(expected)} texts, {english.sum()} English; cosine to f32" + " " * 14 + "least    median  under 0.999  English least    median      MB  SQNR dB  seconds")
    for name, words in SCHEMES.items():
        if not re.search(options.only, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.abspath(os.path.join(options.model, "vocab.txt")), os.path.join(folder, "vocab.txt"))
            start = time.perf_counter()
            made = subprocess.run([options.generator, "quantize", os.path.join(options.model, "model.safetensors"), *LAYERS, *words,
                                   "--simulate", "--json", "--out", os.path.join(folder, "model.safetensors")], capture_output=True, text=True)
            if made.returncode:
                sys.exit(made.stderr)
            seconds = time.perf_counter() - start
            about = json.loads(made.stdout)
            cosines = (vectors(folder) * expected).sum(1)
        print(f"{name:36}{cosines.min():10.5f}{np.median(cosines):10.5f}{(cosines < 0.999).sum():13}"
              f"{cosines[english].min():15.5f}{np.median(cosines[english]):10.5f}"
              f"{about['bytes_after'] / 1e6:8.2f}{min(t['sqnr_db'] for t in about['tensors']):9.1f}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
