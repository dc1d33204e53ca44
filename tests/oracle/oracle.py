"""Runs generated kernels through ctypes and compares them with NumPy and SciPy in double precision.

    oracle.py <generator> <libtessera_runtime.a> <scratch folder>
"""
import ctypes
import os
import sys

try:
    import numpy as np
    import scipy.special
except ImportError:
    print("NumPy and SciPy are not here; ./tessera test installs them")
    sys.exit(77)


sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from generated import Library, dense  # noqa: E402

DTYPES = {np.dtype("f4"): "f32", np.dtype("f8"): "f64", np.dtype("i4"): "i32", np.dtype("i8"): "i64"}


def desc(array):
    assert array.flags.c_contiguous
    return dense(array.ctypes.data, DTYPES[array.dtype], array.shape)


def attention(q, k, v, causal):
    scores = np.einsum("hsd,htd->hst", q, k) / np.sqrt(q.shape[2])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    return np.einsum("hst,hte->hse", scipy.special.softmax(scores, axis=2), v)


def layernorm(x, gamma, beta, epsilon):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon) * gamma + beta


def gelu(x):
    return x * scipy.special.ndtr(x)


def cases(rng):
    """(algorithm, inputs, parameters, expected, options, most error in the root of the mean square)"""
    def f(*shape):
        return rng.standard_normal(shape).astype("f4")

    for m, n, k in [(1, 1, 1), (7, 5, 3), (48, 96, 64), (65, 97, 33), (3, 64, 0), (31, 128, 70)]:
        x, w, b = f(m, k), f(k, n), f(n)
        product = x.astype("f8") @ w.astype("f8")
        yield "matmul", [x, w], (), product
        yield "linear", [x, w, b], (), product + b
        yield "linear_gelu", [x, w, b], (), gelu(product + b)
    for m, k in [(1, 1), (5, 200), (17, 63)]:
        a, x = f(m, k), f(k)
        yield "gemv", [a, x], (), a.astype("f8") @ x
    for m, n in [(1, 1), (3, 17), (4, 64), (5, 1000)]:
        x, g, b = f(m, n), f(n), f(n)
        wide = x.astype("f8")
        yield "softmax", [x], (), scipy.special.softmax(wide, axis=1)
        yield "layernorm", [x, g, b], (ctypes.c_float(1e-5),), layernorm(wide, g, b, 1e-5)
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
    for points in [1, 15, 64, 1000, 4096]:
        x, r = f(3, points, 2), f(3, points)
        spectrum, limit = np.fft.fft(x.astype("f8").view("c16")[..., 0]), 5e-8 * (1 + np.log2(points))
        yield "fft", [x.reshape(3, -1)], (), spectrum.view("f8"), {"points": points}, limit
        if points not in (15, 1000):
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
    generator, runtime, folder = sys.argv[1:]
    features = open("/proc/cpuinfo").read()
    targets = ["x86-64"] + ["avx2"] * (" avx2" in features) + ["avx512"] * (" avx512vl" in features)
    kernels, checked, failed = {}, 0, 0
    for target in targets:
        for algorithm, inputs, parameters, expected, *rest in cases(np.random.default_rng(1)):
            options, limit = rest[0] if rest else {}, rest[1] if len(rest) > 1 else None
            if target == "x86-64" and algorithm not in ("matmul", "softmax", "segmented_sum"):
                continue
            if options and target != targets[-1]:
                continue
            key = algorithm, target, tuple(options.values())
            if key not in kernels:
                name = "_".join([algorithm, target.replace("-", "_")] + [str(value) for value in options.values()])
                chosen = ["--option"] * bool(options) + [f"{k}={value}" for k, value in options.items()]
                kernels[key] = Library(generator, runtime, folder, name, [algorithm, "--target", target, *chosen])
            kernel = kernels[key]
            out = np.full(expected.shape, np.nan, "f4")
            kernel.run([desc(t) for t in inputs + [out]], parameters)
            scale = 1 + np.abs(expected).max() if expected.size else 1
            error = np.abs(out - expected).max() / scale if expected.size else 0
            if limit:
                error = np.linalg.norm(out - expected) / np.linalg.norm(expected)
            checked += 1
            if not error < (limit or 4e-6):
                failed += 1
                print(f"{algorithm} on {target}, output {expected.shape}: relative error {error:.2e}")
    print(f"{checked} results compared with NumPy and SciPy, {failed} wrong")
    sys.exit(1 if failed else 0)


main()
