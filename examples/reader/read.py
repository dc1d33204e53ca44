"""What read.c does, by NumPy and tessera.Bundle: read.py LIBRARY BUNDLE PAGE. LIBRARY is page.c as a shared library, so pixels and boxes
are the same, and so are all bits of the result."""
import ctypes
import hashlib
import re
import sys

import numpy as np


class Box(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("x0", "y0", "x1", "y1")]


class Page(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("rows", "columns", "channels")] + [("pixels", ctypes.c_char_p)]


def alphabet_of(bundle):
    """Characters by class; class 0 is none."""
    return ["", *bundle.asset("alphabet.txt").decode().split("\n"), " "]


def networks_of(bundle):
    """The bundle's kernels as functions of a picture [1, 3, rows, columns] that give an array of NumPy."""
    def recognized(picture):
        steps, classes = (picture.shape[3] + 3) // 8, len(alphabet_of(bundle))
        return np.from_dlpack(bundle["rec"](picture, out=np.empty((1, steps, classes), np.float32)))
    return {"det": lambda x: np.from_dlpack(bundle["det"](x)), "cls": lambda x: np.from_dlpack(bundle["cls"](x)), "rec": recognized}


def read(library, path, networks, alphabet):
    """The lines that read.c prints. `networks` are det, cls and rec as networks_of gives them."""
    library = ctypes.CDLL(library)
    library.find_boxes.restype = ctypes.POINTER(Box)
    with open(path, "rb") as file:
        kind, columns, rows, pixels = re.fullmatch(rb"P(5|6)\s+(\d+)\s+(\d+)\s+255\s(.*)", file.read(), re.DOTALL).groups()
    page = Page(int(rows), int(columns), 3 if kind == b"6" else 1, pixels)

    def run(name, box, turned, rows, columns, filled):
        picture = np.empty((1, 3, rows, columns), np.float32)
        library.cut(ctypes.byref(page), box, turned, rows, columns, filled, picture.ctypes.data_as(ctypes.c_void_p))
        return networks[name](picture)

    height, width, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.detection_size(ctypes.byref(page), ctypes.byref(height), ctypes.byref(width))
    found = run("det", Box(0, 0, page.columns, page.rows), 0, height.value, width.value, width.value)
    boxes = library.find_boxes(found.ctypes.data_as(ctypes.c_void_p), height, width, ctypes.byref(page), ctypes.byref(count))
    sha = hashlib.sha256()
    for box in boxes[:count.value]:
        filled = library.line_columns(box)
        turned = run("cls", box, 0, 48, 192, min(filled, 192))[0, 1] > 0.9
        likely = run("rec", box, int(turned), 48, max(filled, 320), filled)[0]
        sha.update(likely)
        best = likely.argmax(axis=1)
        text = "".join(alphabet[b] for b, before in zip(best, [0, *best]) if b != before)
        yield f"{box.x0} {box.y0} {box.x1} {box.y1} {'turned' if turned else 'upright'} {text}"
    yield f"sha256 {sha.hexdigest()}"


if __name__ == "__main__":
    import tessera

    bundle = tessera.Bundle(sys.argv[2])
    print(*read(sys.argv[1], sys.argv[3], networks_of(bundle), alphabet_of(bundle)), sep="\n")
