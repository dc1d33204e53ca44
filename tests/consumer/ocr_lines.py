"""Reads the lines of a folder with examples/ocr and compares texts and probabilities with what onnxruntime gave for them.

    ocr_lines.py <ocr> <model> <folder of line*.ppm and line*.json, as compare.py writes them>"""
import array
import json
import subprocess
import sys
from pathlib import Path

CLASSES = 6625


def main(application, model, folder):
    lines = sorted(Path(folder).glob("*.ppm"))
    assert lines, f"no pictures in {folder}"
    output = subprocess.run([application, model, "--raw", *map(str, lines)], check=True, capture_output=True, encoding="utf-8").stdout
    for line, answer in zip(lines, output.splitlines(), strict=True):
        expected = json.loads(line.with_suffix(".json").read_text(encoding="utf-8"))
        text = answer.split("\t")[0]
        assert text == expected["text"], f"{line}: expected {expected['text']!r}, got {text!r}"
        probabilities = array.array("f", Path(f"{line}.f32").read_bytes())
        assert len(probabilities) == CLASSES * len(expected["likeliest"]), f"{line}: got {len(probabilities)} probabilities"
        for position, likeliest in enumerate(expected["likeliest"]):
            row = probabilities[position * CLASSES:(position + 1) * CLASSES]
            assert abs(sum(row) - 1) < 1e-4, f"{line}: position {position} sums to {sum(row)}"
            for character, wanted in likeliest:
                assert abs(row[character] - wanted) <= 1e-4 * max(wanted, 1e-2), (
                    f"{line}: position {position}, character {character}: expected {wanted}, got {row[character]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
