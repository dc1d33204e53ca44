"""Measures the largest error of the standard library's normalizations, softmax, attention and the like against double precision, and
prints the table of algorithms/library/README.md:

    .tessera/python/bin/python3 tests/oracle/errors.py build/generators/tessera-generator build/runtime/libtessera_runtime.a /tmp/errors

Each is compiled for this machine under the schedule that it gets when nobody names one. `random` are 64 rows of 1000 normal numbers (in
attention 4 heads, 64 queries, 500 keys, 64 wide); `adversarial` what the column of that name says, made of these:

    scaled   rows times 1e-30, 1e-10, 1e10 and 1e16 (scaled far: and 1e25 and 3e37)
    offset   rows plus 1e4
    peaked   rows times 50, of which softmax leaves a few
    equal    rows of one number
    one      rows of zeros but for one element

An error is the largest |result - exact| in units in the last place of the exact result, or of the largest exact result of its row (`of row`)
where results cancel. Results under 2^-126 count by their absolute error, those of softmax, which flushes them, not at all."""
import ctypes
import os
import sys

import numpy as np
import scipy.special

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from oracle import attention, desc, Library  # noqa: E402

RNG = np.random.default_rng(7)
ROWS, WIDTH = 64, 1000


def f(*shape):
    return RNG.standard_normal(shape).astype("f4")


def scaled(*factors):
    return np.concatenate([f(8, WIDTH) * np.float32(s) for s in factors])


def offset():
    return f(ROWS, WIDTH) + np.float32(1e4)


def peaked():
    return f(ROWS, WIDTH) * 50


def equal():
    return np.repeat(f(ROWS, 1) * 100, WIDTH, axis=1)


def one():
    x = np.zeros((ROWS, WIDTH), "f4")
    x[np.arange(ROWS), RNG.integers(0, WIDTH, ROWS)] = f(ROWS) * 100
    return x


MODEST = (1e-30, 1e-10, 1e10, 1e16)
FAR = MODEST + (1e25, 3e37)
SETS = {"random": lambda: f(ROWS, WIDTH), "scaled": lambda: scaled(*MODEST), "scaled far": lambda: scaled(*FAR), "offset": offset,
        "peaked": peaked, "equal": equal, "one": one}


def rms(x):
    return np.sqrt((x ** 2).mean(1, keepdims=True) + np.float32(1e-6).astype("f8"))


def normalized(x, epsilon):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(epsilon).astype("f8"))


def losses(x, ids):
    return scipy.special.logsumexp(x, axis=1) - x[np.arange(len(x)), ids]


def of_rows(function, *others):
    """Inputs after x and the exact result, of x in double."""
    return lambda x: ([x, *others], function(x.astype("f8"), *(o.astype("f8") if o.dtype.kind == "f" else o for o in others)))


def attended(x, causal=False):
    q, k, v = x[:, :256].reshape(4, 64, 64), f(4, 500, 64), f(4, 500, 64)
    return [q, k, v], attention(*(t.astype("f8") for t in (q, k, v)), causal)


GAMMA, BETA, IDS = f(WIDTH), f(WIDTH), RNG.integers(0, WIDTH, ROWS).astype("i4")
MEAN, VARIANCE = f(WIDTH), np.abs(f(WIDTH)) + np.float32(0.1)
EPSILON = [ctypes.c_float(1e-5)]

OF = {"element": "result", "normal": "result", "row": "largest of row", "shift": "largest of row of x"}
# algorithm, parameters, of x the inputs and the exact result, sets beside random, what errors are of
KERNELS = [
    ("softmax", [], of_rows(lambda x: scipy.special.softmax(x, axis=1)), ["offset", "peaked", "equal", "one"], "normal"),
    ("logsumexp", [], of_rows(lambda x: scipy.special.logsumexp(x, axis=1)), ["scaled far", "offset", "peaked", "equal", "one"], "element"),
    ("cross_entropy", [], of_rows(losses, IDS), ["offset", "peaked", "equal", "one"], "shift"),
    ("layernorm", EPSILON, of_rows(lambda x, g, b: normalized(x, 1e-5) * g + b, GAMMA, BETA), ["scaled", "offset", "one"], "row"),
    ("residual_layernorm", [], of_rows(lambda x, r, g, b: normalized(x + r, 1e-12) * g + b, np.zeros((ROWS, WIDTH), "f4"), GAMMA, BETA),
     ["scaled", "offset", "one"], "row"),
    ("rmsnorm", [], of_rows(lambda x, g: x / rms(x) * g, GAMMA), ["scaled far", "offset", "equal", "one"], "element"),
    ("group_norm_nhwc", EPSILON, lambda x: grouped(x), ["scaled", "offset", "one"], "row"),
    ("batch_norm", EPSILON, of_rows(lambda x, g, b, m, v: (x - m) / np.sqrt(v + np.float32(1e-5).astype("f8")) * g + b, GAMMA, BETA, MEAN,
                                    VARIANCE), ["scaled", "offset", "one"], "row"),
    ("swiglu", [], of_rows(lambda x, u: x * scipy.special.expit(x) * u, f(ROWS, WIDTH)), ["scaled", "peaked"], "element"),
    ("attention", [], lambda x: attended(x), ["peaked"], "row"),
    ("attention_causal", [], lambda x: attended(x, True), ["peaked"], "row"),
]


def grouped(x):
    """N = 8 images of P = 20 positions, 10 groups of 5 channels for each 8 rows."""
    t = x[:ROWS - ROWS % 8].reshape(8, -1, 10, 5)
    g, b = f(10, 5), f(10, 5)
    w = t.astype("f8")
    y = (w - w.mean((1, 3), keepdims=True)) / np.sqrt(w.var((1, 3), keepdims=True) + np.float32(1e-5).astype("f8")) * g + b
    return [t.copy(), g, b], y


def error(out, exact, x, of):
    """In units in the last place."""
    scale = np.abs(exact)
    if of == "shift":
        scale = np.maximum(scale, np.abs(x).max(1))
    elif of == "row":
        scale = np.broadcast_to(scale.max(tuple(range(1, scale.ndim)) if scale.ndim < 3 else -1, keepdims=True), scale.shape)
    unit = np.spacing(np.maximum(scale, np.finfo("f4").tiny).astype("f4")).astype("f8")
    return float((np.abs(out.astype("f8") - exact) / unit)[(np.abs(exact) >= np.finfo("f4").tiny) | (of != "normal")].max())


def main():
    generator, runtime, folder = sys.argv[1:]
    print("| algorithm | error of | random | adversarial: largest of each set |\n|---|---|---|---|")
    for name, parameters, made, sets, of in KERNELS:
        kernel = Library(generator, runtime, folder, f"measured_{name}", [name])
        found = {}
        for which in ["random", *sets]:
            x = SETS[which]()
            inputs, exact = made(x[:ROWS] if len(x) >= ROWS else np.concatenate([x] * 8)[:ROWS])
            out = np.full(exact.shape, np.nan, "f4")
            kernel.run([desc(np.ascontiguousarray(t)) for t in inputs + [out]], parameters)
            found[which] = error(out, exact, inputs[0], of)
        others = ", ".join(f"{which} {e:.2g}" for which, e in found.items() if which != "random")
        print(f"| `{name}` | {OF[of]} | {found['random']:.2g} | {others} |")


main()
