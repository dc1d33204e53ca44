"""Runs generated kernels through ctypes and compares them with NumPy and SciPy in double precision, and with what PyTorch gave
when pytorch_fixtures.py made pytorch.npz.

    oracle.py <generator> <libtessera_runtime.a> <libtessera_load.a> <scratch folder>
"""
import ctypes
import json
import os
import sys
from dataclasses import dataclass, field

try:
    import numpy as np
    import scipy.special
except ImportError:
    print("NumPy and SciPy are not here; ./tessera test installs them")
    sys.exit(77)


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
from generated import Library, dense, host_features, targets_for  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accuracy import Accuracy  # noqa: E402
from both_ways import BothWays  # noqa: E402

# NumPy has no bf16: u2 holds its bits.
DTYPES = {"f2": "f16", "f4": "f32", "f8": "f64", "i4": "i32", "i8": "i64", "i1": "i8", "u1": "u8", "u2": "bf16",
          "b1": "bool"}
STORED_RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch.npz")
LOW_PRECISION = ("u2", "i1", "u1")
ACTIVATIONS = ("gelu", "gelu_tanh", "silu")
EVERYWHERE = ("matmul", "softmax", "segmented_sum")
# Each kernel on all of its targets; the suite takes another for each, since what they compute is the same by other tests.
IS_THOROUGH = os.environ.get("TESSERA_THOROUGH", "0") != "0" or "TESSERA_ACCURACY" in os.environ


@dataclass
class Case:
    algorithm: str
    inputs: list
    expected: np.ndarray
    parameters: list = field(default_factory=list)  # f32
    options: dict = field(default_factory=dict)
    numerics: str = "f32"
    type: str = "f4"  # of the result
    relative: float = 0.0  # most error of an element, in parts of it
    absolute: float = 0.0  # and beside that
    norm: float = 0.0      # where not 0, instead: most error in the root of the mean square

    def targets(self, all_of):
        """Those of all targets that this is worth compiling for."""
        if any(t.dtype.str[1:] in LOW_PRECISION for t in self.inputs):
            return [t for t in all_of if t != "x86-64"]
        plain = [t for t in all_of if t not in ("znver4", "znver5", "sapphirerapids")]
        if self.options or self.algorithm in ACTIVATIONS:
            return plain[-1:]
        return plain if self.algorithm in EVERYWHERE else [t for t in plain if t != "x86-64"]

    def error(self, out):
        """"" or how the result is wrong."""
        if self.norm:
            error = np.linalg.norm(out - self.expected) / np.linalg.norm(self.expected)
            return "" if error < self.norm else f"relative error {error:.2e}, expected at most {self.norm:.2e}"
        return wrong_elements(as_float(out), as_float(self.expected), self.relative, self.absolute)


def wrong_elements(out, expected, relative, absolute):
    """"" or which elements are further from what is expected than both tolerances together allow."""
    same = (out == expected) | (np.isnan(out) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        excess = np.abs(out - expected) - (absolute + relative * np.abs(expected))
    wrong = ~same & ~(np.isfinite(expected) & (excess <= 0))
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0])
    return (f"{wrong.sum()} elements are wrong; the first, at {tuple(map(int, at))}, is {out[at]:.9g}, expected {expected[at]:.9g} "
            f"within {absolute:.1e} + {relative:.1e} of it")


def as_float(array):
    """In double, in which all that is compared is exact."""
    return (array.astype("u4") << 16).view("f4").astype("f8") if array.dtype == "u2" else array.astype("f8")


def coded(array, type, last=None):
    """Bytes that are codes of a type that NumPy has not; two codes each of a type of four bits, `last` of them in a row where that is odd."""
    return array.view(np.dtype("u1", metadata={"type": type, "last": last}))


def desc(array):
    about = array.dtype.metadata or {}
    type = about.get("type") or DTYPES[array.dtype.str[1:]]
    codes = 2 if type in ("i4", "u4", "f4e2m1fn") else 1  # in a byte
    d = dense(array.ctypes.data, type, (*array.shape[:-1], about.get("last") or array.shape[-1] * codes) if array.ndim else ())
    if not array.flags.c_contiguous:
        strides = [s // array.itemsize * codes for s in array.strides]
        d.kept_strides = (ctypes.c_int64 * array.ndim)(*strides[:-1], strides[-1] // codes)
        d.strides = ctypes.cast(d.kept_strides, ctypes.POINTER(ctypes.c_int64))
    return d


def stored_cases(path):
    """What PyTorch gave."""
    stored = np.load(path)
    about = json.loads(bytes(stored["about"]))
    print(f"{len(about['cases'])} stored results are of {about['made_by']}")
    for case in about["cases"]:
        inputs, expected = [stored[name] for name in case.pop("inputs")], stored[case.pop("expected")]
        yield Case(inputs=inputs, expected=expected, type=expected.dtype.str[1:], **case)


def attention(q, k, v, causal):
    scores = np.einsum("hsd,htd->hst", q, k) / np.sqrt(q.shape[2])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    return np.einsum("hst,hte->hse", scipy.special.softmax(scores, axis=2), v)


def layernorm(x, gamma, beta, epsilon):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon) * gamma + beta


def gelu(x):
    return x * scipy.special.ndtr(x)


def numpy_cases(rng):
    """What NumPy and SciPy give now."""
    for algorithm, inputs, parameters, expected, *rest in results(rng):
        options, norm, numerics = (*rest, *({}, 0.0, "f32")[len(rest):])
        absolute = 4e-6 * (1 + np.abs(expected).max())
        yield Case(algorithm, inputs, expected, list(parameters), options, numerics, absolute=absolute, norm=norm)


def results(rng):
    """(algorithm, inputs, parameters, expected, options, most error in the root of the mean square, numerics)"""
    def f(*shape):
        return rng.standard_normal(shape).astype("f4")

    for m, n, k in [(1, 1, 1), (7, 5, 3), (48, 96, 64), (65, 97, 33), (3, 64, 0), (31, 128, 70)]:
        x, w, b = f(m, k), f(k, n), f(n)
        product = x.astype("f8") @ w.astype("f8")
        yield "matmul", [x, w], (), product
        yield "linear", [x, w, b], (), product + b
        yield "linear_gelu", [x, w, b], (), gelu(product + b)
        q, scale = rng.integers(-128, 128, (k, n), "i1"), rng.uniform(0, 2 / 128, n).astype("f4")
        product = x.astype("f8") @ q * scale.astype("f8")
        yield "linear", [x, q, scale, b], (), product + b, {}, 0.0, "int8"
        yield "linear_gelu", [x, q, scale, b], (), gelu(product + b), {}, 0.0, "int8"
    for m, k in [(1, 1), (5, 200), (17, 63)]:
        a, x = f(m, k), f(k)
        yield "gemv", [a, x], (), a.astype("f8") @ x
    for m, n in [(1, 1), (3, 17), (4, 64), (5, 1000)]:
        x, g, b = f(m, n), f(n), f(n)
        wide = x.astype("f8")
        yield "softmax", [x], (), scipy.special.softmax(wide, axis=1)
        yield "layernorm", [x, g, b], (1e-5,), layernorm(wide, g, b, 1e-5)
        yield "rmsnorm", [x, g], (), wide / np.sqrt((wide ** 2).mean(1, keepdims=True) + 1e-6) * g
        yield "column_sum", [x], (), wide.sum(0)
        yield "cumulative_sum", [x], (), wide.cumsum(1)
        yield "reverse_cumulative_sum", [x], (), wide[:, ::-1].cumsum(1)[:, ::-1]
        segment = np.sort(rng.integers(0, 5, n)).astype("i4")
        pieces = np.split(wide, np.flatnonzero(np.diff(segment)) + 1, axis=1)
        yield "segmented_cumulative_sum", [x, segment], (), np.concatenate([p.cumsum(1) for p in pieces], axis=1)
    for h, s, d in [(1, 1, 1), (2, 17, 8), (2, 130, 64), (1, 97, 80)]:
        q, k, v = f(h, s, d), f(h, s, d), f(h, s, d)
        for name, causal in [("attention", False), ("attention_causal", True)]:
            yield name, [q, k, v], (), attention(q.astype("f8"), k.astype("f8"), v.astype("f8"), causal)
    for stride, padding, dilation in [(1, 0, 1), (2, 3, 1), (1, 2, 2)]:
        options = {"stride": stride, "padding": padding, "dilation": dilation}
        x, w, b = f(2, 9, 10, 5), f(3, 2, 5, 19), f(19)
        y = conv2d(x, w, **options)
        yield "conv2d_nhwc", [x, w], (), y, options
        yield "conv2d_bias_relu_nhwc", [x, w, b], (), np.maximum(y + b, 0), options
        nchw = [np.ascontiguousarray(x.transpose(0, 3, 1, 2)), np.ascontiguousarray(w.transpose(3, 2, 0, 1))]
        yield "conv2d_nchw", nchw, (), y.transpose(0, 3, 1, 2), options
        yield "conv1d", [x[:, :, 0].copy(), w[:, 0].copy()], (), conv2d(x[:, :, :1], w[:, :1], stride, (padding, 0), dilation)[:, :, 0], options
        w = f(3, 2, 5)
        yield "depthwise_conv2d_nhwc", [x, w], (), np.concatenate([conv2d(x[..., c:c + 1], w[..., c, None, None], **options) for c in range(5)], -1), options
        g, w = f(2, 9, 10, 3, 4), f(3, 2, 3, 4, 7)
        yield "grouped_conv2d_nhwc", [g, w], (), np.stack([conv2d(g[..., i, :], w[:, :, i], **options) for i in range(3)], -2), options
        edge = min(padding, 1)  # a wider one has windows that see no pixel
        pool = options | {"padding": edge, "size": 3}
        yield "max_pool2d_nhwc", [x], (), patches(x, 3, 3, stride, (edge, edge), dilation, -np.inf).max((-2, -1)), pool
        yield "average_pool2d_nhwc", [x], (), patches(x, 3, 3, stride, (edge, edge), dilation, 0).mean((-2, -1)), pool
    for points in [1, 7, 15, 64, 97, 1000, 1009, 4096, 4099]:
        x, r = f(3, points, 2), f(3, points)
        spectrum, limit = np.fft.fft(x.astype("f8").view("c16")[..., 0]), 5e-8 * (1 + np.log2(points))
        if points in (7, 97, 1009, 4099):
            limit *= 2  # a convolution: two transforms
        yield "fft", [x.reshape(3, -1)], (), spectrum.view("f8"), {"points": points}, limit
        if points not in (15, 97, 1000):
            continue
        pairs = spectrum.astype("c8")
        yield "ifft", [pairs.view("f4")], (), np.fft.ifft(pairs.astype("c16")).view("f8"), {"points": points}, limit
        half = np.fft.rfft(r.astype("f8"))
        yield "rfft", [r], (), half.view("f8"), {"points": points}, limit
        some = f(*half.shape, 2)  # imaginary parts that no real signal has count as 0
        yield "irfft", [some.reshape(3, -1)], (), np.fft.irfft(some.astype("f8").view("c16")[..., 0], points), {"points": points}, limit
    offsets = np.array([0, 0, 3, 3, 20, 21], "i8")
    x = f(21, 37)
    sums = np.stack([x[a:b].astype("f8").sum(0) for a, b in zip(offsets[:-1], offsets[1:])])
    yield "segmented_sum", [x, offsets], (), sums


def patches(x, r, s, stride, padding, dilation, outside):
    """(N, P, Q, C, R, S) of x[N, H, W, C] in double."""
    wide = np.pad(x.astype("f8"), [(0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)], constant_values=outside)
    seen = np.lib.stride_tricks.sliding_window_view(wide, (dilation * (r - 1) + 1, dilation * (s - 1) + 1), (1, 2))
    return seen[:, ::stride, ::stride, :, ::dilation, ::dilation]


def conv2d(x, w, stride, padding, dilation):
    padding = padding if isinstance(padding, tuple) else (padding, padding)
    return np.einsum("npqcrs,rsco->npqo", patches(x, *w.shape[:2], stride, padding, dilation, 0), w.astype("f8"))


def main():
    generator, runtime, load, folder = sys.argv[1:]
    both = BothWays(runtime, load, folder)
    targets = targets_for(host_features())[::-1]
    kernels, turns, checked, failed, accuracy = {}, {}, 0, 0, Accuracy()
    for case in [*numpy_cases(np.random.default_rng(1)), *stored_cases(STORED_RESULTS)]:
        chosen = case.targets(targets)
        if not IS_THOROUGH and case.algorithm not in EVERYWHERE:
            turn = turns.setdefault((case.algorithm, case.numerics, *case.options.values()), len(turns))
            chosen = [chosen[turn % len(chosen)]] if chosen else []
        for target in chosen:
            key = case.algorithm, case.numerics, target, *case.options.values()
            if key not in kernels:
                name = "_".join(str(part).replace("-", "_") for part in key)
                options = ["--option"] * bool(case.options) + [f"{k}={value}" for k, value in case.options.items()]
                kernels[key] = Library(generator, runtime, folder, name,
                                       [case.algorithm, "--numerics", case.numerics, "--target", target, *options])
            out = np.full(case.expected.shape, 0x7fc0 if case.type == "u2" else np.nan if case.type == "f4" else -1, case.type)
            is_same = both.run(kernels[key], desc, case.inputs + [out], [ctypes.c_float(p) for p in case.parameters])
            wrong = case.error(out) if is_same else "its bits differ when runtime/load loads it"
            accuracy.add(case.algorithm, case.numerics, case.type, as_float(out), as_float(case.expected), case.absolute)
            checked += 1
            if wrong:
                failed += 1
                what = f"{case.algorithm} in {case.numerics} on {target}, {case.options or 'no options'}, output {case.expected.shape}"
                print(f"{what}: {wrong}")
    accuracy.write()
    print(f"{checked} results compared with NumPy, SciPy and PyTorch, {failed} wrong")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
