"""Runs generated kernels through ctypes and compares them with NumPy and SciPy in double precision.

    oracle.py <generator> <libtessera_runtime.a> <scratch folder>
"""
import ctypes
import os
import subprocess
import sys

try:
    import numpy as np
    import scipy.special
except ImportError:
    print("NumPy and SciPy are not here; ./tessera test installs them")
    sys.exit(77)


class TensorDesc(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("extents", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("device", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Context(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64), ("pool", ctypes.c_void_p)]


DTYPES = {np.dtype("f4"): 1, np.dtype("f8"): 2, np.dtype("i4"): 7, np.dtype("i8"): 8}


def desc(array):
    assert array.flags.c_contiguous
    d = TensorDesc(data=array.ctypes.data, dtype=DTYPES[array.dtype], rank=array.ndim)
    for axis in range(array.ndim):
        d.extents[axis] = array.shape[axis]
        d.strides[axis] = array.strides[axis] // array.itemsize
    return d


class Kernel:
    def __init__(self, generator, runtime, folder, algorithm, target, options):
        name = "_".join([algorithm, target.replace("-", "_")] + [str(value) for value in options.values()])
        out = os.path.join(folder, name)
        subprocess.run([generator, "generate", algorithm, "--name", name, "--target", target, "--out", out, "--quiet"] +
                       ["--option"] * bool(options) + [f"{key}={value}" for key, value in options.items()], check=True)
        library = os.path.join(out, name + ".so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", library, "-Wl,--whole-archive",
                        os.path.join(out, f"lib{name}.a"), "-Wl,--no-whole-archive", runtime, "-lpthread", "-lm"], check=True)
        loaded = ctypes.CDLL(library)
        self.run, self.query = getattr(loaded, name), getattr(loaded, name + "_workspace")

    def __call__(self, tensors, parameters=()):
        args = [ctypes.byref(desc(t)) for t in tensors] + list(parameters)
        context, needed = Context(size=ctypes.sizeof(Context)), ctypes.c_uint64()
        assert self.query(*args, ctypes.byref(context), ctypes.byref(needed)) == 0
        memory = ctypes.create_string_buffer(needed.value + 64)
        context.workspace = (ctypes.addressof(memory) + 63) // 64 * 64
        context.workspace_bytes = needed.value
        status = self.run(*args, ctypes.byref(context))
        assert status == 0, f"status {status:#x}"


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
    """(algorithm, tensors with the output last, parameters, expected, shape of the output)"""
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
            options = rest[0] if rest else {}
            if target == "x86-64" and algorithm not in ("matmul", "softmax", "segmented_sum"):
                continue
            if options and target != targets[-1]:
                continue
            key = algorithm, target, tuple(options.values())
            if key not in kernels:
                kernels[key] = Kernel(generator, runtime, folder, algorithm, target, options)
            kernel = kernels[key]
            out = np.full(expected.shape, np.nan, "f4")
            kernel(inputs + [out], parameters)
            scale = 1 + np.abs(expected).max() if expected.size else 1
            error = np.abs(out - expected).max() / scale if expected.size else 0
            checked += 1
            if not error < 4e-6:
                failed += 1
                print(f"{algorithm} on {target}, output {expected.shape}: relative error {error:.2e}")
    print(f"{checked} results compared with NumPy and SciPy, {failed} wrong")
    sys.exit(1 if failed else 0)


main()
