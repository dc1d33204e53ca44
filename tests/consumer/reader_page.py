"""Composes a page of the lines of examples/ocr, the second upside down: reader_page.py PAGE LINE.ppm..."""
import sys

import numpy as np


def picture(path):
    """A PPM file as [rows, columns, 3]."""
    with open(path, "rb") as file:
        kind, extents, shades = (file.readline().split() for _ in range(3))
        assert (kind, shades) == ([b"P6"], [b"255"]), path
        return np.frombuffer(file.read(), np.uint8).reshape(int(extents[1]), int(extents[0]), 3)


lines = [picture(path) for path in sys.argv[2:]]
page = np.full((32 + 64 * len(lines), 320, 3), np.median(lines[0][0], axis=0), np.uint8)
for number, line in enumerate(lines):
    rows, columns = line.shape[:2]
    page[24 + 64 * number:, 32:][:rows, :columns] = line[::-1, ::-1] if number == 1 else line
with open(sys.argv[1], "wb") as file:
    file.write(b"P6\n%d %d\n255\n" % (page.shape[1], page.shape[0]) + page.tobytes())
