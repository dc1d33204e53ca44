"""The largest error of every kernel that the oracle compares, as the table of docs/accuracy.md: in units in the last place of the largest
finite result of its row, against double precision. `TESSERA_ACCURACY=<file>` makes oracle.py and oracle_library.py add their errors there;

    accuracy.py <file>

prints the table."""
import json
import os
import sys

import numpy as np

DIGITS = {"f4": 24, "f2": 11, "u2": 8, "f8": 53}  # of NumPy's types; u2 are bits of bf16


class Accuracy:
    """The largest error of each algorithm and policy."""

    def __init__(self):
        self.worst, self.cases = {}, {}

    def add(self, algorithm, numerics, type, out, expected, absolute):
        """Results as numbers in double, and the absolute error that the case allows. Rows whose results are not far above that say nothing."""
        key = f"{algorithm} {numerics}"
        self.cases[key] = self.cases.get(key, 0) + 1
        same = (out == expected) | (np.isnan(out) & np.isnan(expected))
        largest = np.where(np.isfinite(expected), np.abs(expected), 0)
        largest = np.broadcast_to(largest.max(-1, keepdims=True, initial=0) if expected.ndim else largest, expected.shape)
        finite = np.isfinite(out) & np.isfinite(expected) & ~same & (largest > 1e3 * absolute)
        if not finite.any():
            self.worst.setdefault(key, 0.0)
            return
        digits, least = DIGITS.get(type, 53), 2.0 ** -126
        unit = 2.0 ** (np.floor(np.log2(np.maximum(largest, least))) - (digits - 1))
        self.worst[key] = max(self.worst.get(key, 0.0), float((np.abs(out[finite] - expected[finite]) / unit[finite]).max()))

    def write(self):
        path = os.environ.get("TESSERA_ACCURACY")
        if not path:
            return
        known = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
        for key, error in self.worst.items():
            before = known.get(key, {"error": 0.0, "results": 0})
            known[key] = {"error": max(error, before["error"]), "results": before["results"] + self.cases[key]}
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(known, stream, indent=1)


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        known = json.load(stream)
    print("| algorithm | numerics | largest error, ULP | results |\n|---|---|---|---|")
    for key in sorted(known):
        algorithm, numerics = key.split()
        error = known[key]["error"]
        print(f"| `{algorithm}` | {numerics} | {'exact' if error == 0 else f'{error:.2g}'} | {known[key]['results']} |")


if __name__ == "__main__":
    main()
