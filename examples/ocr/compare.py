#!/usr/bin/env python3
"""Draws lines of text and reads each with the application and with onnxruntime, in turns and on one thread.

    compare.py --application <ocr> --folder <model.safetensors and characters.txt> --onnx <ch_PP-OCRv4_rec_infer.onnx>
               [--lines 200] [--fixtures <folder to write a few of them to, with what onnxruntime gives>]

The characters have to be the same for every line. Probabilities are compared for those that are drawn at 48 rows, which neither side
resizes: within 1e-4 but for one line in fifty, and within 1e-3 for all, since on some lines the rounding of either side counts that much.
Prints one line for each that differs, then how many were read, the differences and the times."""
import argparse
import json
import random
import statistics
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

FONTS = sorted(Path("/usr/share/fonts/truetype/dejavu").glob("*.ttf"))
FIXTURES = 4  # as many lines, of 48 rows


def words(rng):
    letters = [string.ascii_lowercase, string.ascii_uppercase, string.digits, string.ascii_letters + string.digits + "-.:/"]
    return " ".join("".join(rng.choices(rng.choice(letters), k=rng.randint(2, 9))) for _ in range(rng.randint(1, 4)))


def draw(rng, rows):
    """A picture of random words, rows high: dark on light or light on dark, in one of Debian's fonts."""
    font = str(rng.choice(FONTS)) if FONTS else None
    size = int(rows * rng.uniform(0.5, 0.75))
    font = ImageFont.truetype(font, size) if font else ImageFont.load_default(size)
    text = words(rng)
    left, top, right, bottom = font.getbbox(text)
    paper, ink = [tuple(rng.randint(*span) for _ in range(3)) for span in rng.sample([(180, 255), (0, 80)], 2)]
    picture = Image.new("RGB", (right - left + rng.randint(8, 40), rows), paper)
    ImageDraw.Draw(picture).text((rng.randint(2, 8) - left, (rows - bottom + top) // 2 - top), text, ink, font)
    return picture


def prepared(picture):
    """What RapidOCR makes of a batch of one picture (blue, green, red): ch_ppocr_rec/text_recognize.py."""
    rows, columns = picture.shape[:2]
    width = int(48 * max(320 / 48, columns / rows))
    resized = cv2.resize(picture, (min(width, int(np.ceil(48 * (columns / float(rows))))), 48))
    batch = np.zeros((1, 3, 48, width), np.float32)
    batch[0, :, :, :resized.shape[1]] = (resized.astype(np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return batch


def decoded(probabilities, characters):
    best = probabilities.argmax(1)
    kept = (best != 0) & np.concatenate([[True], best[1:] != best[:-1]])
    chosen = probabilities.max(1)[kept]
    return "".join(characters[i - 1] for i in best[kept]), float(chosen.mean()) if len(chosen) else 0.0


def write_fixture(folder, name, picture, text, probabilities):
    """The picture, its text, and of each position the four likeliest characters."""
    picture.save(folder / f"{name}.ppm")
    top = np.argsort(-probabilities, axis=1, kind="stable")[:, :4]
    likeliest = [[[int(i), float(f"{p[i]:.7g}")] for i in row] for row, p in zip(top, probabilities)]
    (folder / f"{name}.json").write_text(json.dumps({"text": text, "likeliest": likeliest}) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["application", "folder", "onnx"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--fixtures", type=Path)
    arguments = parser.parse_args()

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.onnx, options, providers=["CPUExecutionProvider"])
    characters = (Path(arguments.folder) / "characters.txt").read_text(encoding="utf-8").split("\n")
    reader = subprocess.Popen([arguments.application, arguments.folder, "--raw", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, encoding="utf-8")

    def ours(name):
        print(name, file=reader.stdin, flush=True)
        answer = reader.stdout.readline().rstrip("\n").split("\t")
        if len(answer) != 3:
            sys.exit(f"error[ocr.application]: expected text, confidence and milliseconds, got {answer}")
        return answer[0], float(answer[1]), float(answer[2])

    def theirs(batch):
        begin = time.perf_counter()
        result = session.run(None, {session.get_inputs()[0].name: batch})[0][0]
        return result, 1e3 * (time.perf_counter() - begin)

    rng = random.Random(48)
    failed, written, differences, times = 0, 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.lines):
            rows = 48 if number % 2 == 0 else rng.randint(20, 90)
            picture = draw(rng, rows)
            name = f"{folder}/{number}.ppm"
            picture.save(name)
            batch = prepared(cv2.imread(name))
            for _ in range(2):  # the first warms up both
                text, confidence, milliseconds = ours(name)
                expected, their_milliseconds = theirs(batch)
            times.append((milliseconds, their_milliseconds))
            wanted, wanted_confidence = decoded(expected, characters)
            if rows == 48:
                got = np.fromfile(name + ".f32", np.float32).reshape(expected.shape)
                differences.append(float(np.abs(got - expected).max()))
            if text != wanted or abs(confidence - wanted_confidence) > 2e-2:
                failed += 1
                print(f"line {number}, {picture.width}x{rows}: expected {wanted!r} {wanted_confidence:.4f}, got {text!r} {confidence:.4f}")
            if arguments.fixtures and rows == 48 and written < FIXTURES and picture.width < 320:
                write_fixture(arguments.fixtures, f"line{written}", picture, wanted, expected)
                written += 1
    ratios = [b / a for a, b in times]
    near = sum(d < 1e-4 for d in differences)
    print(f"{arguments.lines} lines, {arguments.lines - failed} with the same characters; of {len(differences)} the probabilities differ by at "
          f"most {max(differences):.2g}, of {near} by less than 1e-4, median {statistics.median(differences):.2g}")
    print(f"median milliseconds a line: {statistics.median(a for a, _ in times):.2f}, onnxruntime {onnxruntime.__version__} "
          f"{statistics.median(b for _, b in times):.2f}; median ratio {statistics.median(ratios):.2f}, quartiles "
          f"{statistics.quantiles(ratios)[0]:.2f} to {statistics.quantiles(ratios)[2]:.2f}")
    return failed > 0 or near < 0.98 * len(differences) or max(differences) > 1e-3


if __name__ == "__main__":
    sys.exit(main())
