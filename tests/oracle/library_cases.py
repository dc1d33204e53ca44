"""Arguments of the standard library's kernels and what NumPy and SciPy make of them in double: odd sizes, ties, infinities, NaN, and
numbers near the ends of f32's range. oracle_library.py compares them."""
from dataclasses import dataclass, field

import numpy as np
import scipy.ndimage
import scipy.sparse
import scipy.special

from oracle import coded

HUGE = 3.0e38
NAN, INF = np.nan, np.inf


@dataclass
class Case:
    algorithm: str
    inputs: list
    expected: list  # for each output, in double or whole numbers; of states that inputs[:n] are, before them
    parameters: list = field(default_factory=list)  # (type, value)
    options: dict = field(default_factory=dict)
    numerics: str = "f32"
    types: list = field(default_factory=list)  # of outputs, where they are not the storage type
    states: int = 0                            # how many of the first inputs are updated
    relative: float = 0.0                      # most error of an element, in parts of it
    absolute: float = 0.0                      # and beside that


def quiet(function):
    def run(*args):
        with np.errstate(all="ignore"):
            return function(*args)
    return run


def wide(*arrays):
    return [a.astype("f8") for a in arrays]


def near(*expected, factor=4e-6):
    """An absolute tolerance for results of this size: of sums of a few hundred terms of it."""
    finite = [np.abs(e[np.isfinite(e)]).max(initial=0) for e in expected]
    return factor * (1 + max(finite))


ACTIVATIONS = [lambda x: x, lambda x: np.maximum(x, 0), lambda x: x * scipy.special.ndtr(x),
               lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))), lambda x: x * scipy.special.expit(x),
               lambda x: np.clip(x, 0, 6)]


def products(f, rng):
    for m, n, k, options in [(7, 33, 5, {}), (65, 17, 130, {"transpose_w": 1, "bias": 1, "activation": 2, "residual": 1, "scale": 2}),
                             (3, 64, 31, {"transpose_x": 1, "scale": 1, "activation": 5}),
                             (9, 40, 21, {"transpose_x": 1, "transpose_w": 1, "bias": 1, "activation": 1})]:
        for batch in [(), (3,)]:
            x, w, scale, b, r = f(*batch, m, k), f(*batch, k, n), f(n), f(n), f(*batch, m, n)
            y = x.astype("f8") @ w.astype("f8")
            stored = [np.ascontiguousarray(t.swapaxes(-1, -2)) if options.get(o) else t for t, o in [(x, "transpose_x"), (w, "transpose_w")]]
            parameters = []
            if options.get("scale") == 1:
                parameters, y = [("f4", 0.3)], y * np.float64(np.float32(0.3))
            if options.get("scale") == 2:
                stored, y = stored + [scale], y * scale
            if options.get("bias"):
                stored, y = stored + [b], y + b
            if options.get("residual"):
                stored, y = stored + [r], y + r
            y = ACTIVATIONS[options.get("activation", 0)](y)
            yield Case("batched_gemm" if batch else "gemm", stored, [y], parameters, options, absolute=near(y))
    for numerics, unit in [("bf16", 2.0 ** -8), ("f16", 2.0 ** -11)]:
        x, w, b = rounded(f(5, 48), numerics), rounded(f(48, 40), numerics), rounded(f(40), numerics)
        y = np.maximum(value(x, numerics) @ value(w, numerics) + value(b, numerics), 0)
        yield Case("gemm", [x, w, b], [y], [], {"bias": 1, "activation": 1}, numerics, relative=unit, absolute=near(y))
    x, w, v = f(6, 37), f(37, 50), f(37, 50)
    y = ACTIVATIONS[4](x.astype("f8") @ w) * (x.astype("f8") @ v)
    yield Case("linear_swiglu", [x, w, v], [y], absolute=near(y))


@quiet
def dynamic_product(x, q, scale):
    """The product of rows that are rounded to i8 in f32 as matmul_dynamic_qint4 does, and what a step of each group is."""
    largest = np.abs(x).max(-1, initial=0)
    inverse = np.where(largest < 2.0 ** -120, 0, np.float32(127) / largest).astype("f4")
    steps = (largest / np.float32(127)).astype("f8")
    y = (np.einsum("mgk,ngk->mgn", np.rint(x * inverse[..., None]).astype("f8"), q) * steps[..., None] * scale.T).sum(1)
    return np.where(np.isfinite(largest).all(1)[:, None], y, NAN), steps


def dynamic_channels(f, rng):
    """Rows of one scale each by weights of 8 bits with a scale for each column."""
    for m, n, k in [(1, 70, 64), (7, 33, 37), (16, 48, 256), (3, 5, 0)]:
        q, scale, b, x = rng.integers(-128, 128, (k, n), "i1"), f(n) / 64, f(n), f(m, k)
        w = q.astype("f8") * scale
        # Ordinary rows with one of zeros, tiny and huge ones, one with a NaN and one with an inf.
        x[m // 2] = 0
        spoilt = np.concatenate([x, x[:1], x[:1]])
        if k:
            spoilt[-1, 1], spoilt[-2, -1] = NAN, INF
        for part in (x, x * np.float32(1e-43), x * np.float32(1e30), spoilt):
            y, _ = dynamic_product(part[:, None], q.T[:, None].astype("f8"), scale[:, None].astype("f8"))
            yield Case("matmul_dynamic_qint8", [part, q, scale], [y], relative=1e-6, absolute=1e-42)
            yield Case("linear_dynamic_qint8", [part, q, scale, b], [y + b], relative=1e-6, absolute=near(y))
        for numerics, unit in [("bf16", 2.0 ** -8), ("f16", 2.0 ** -11)]:
            low, bias = rounded(x, numerics), rounded(b, numerics)
            y, _ = dynamic_product(value(low, numerics).astype("f4")[:, None], q.T[:, None].astype("f8"), scale[:, None].astype("f8"))
            yield Case("matmul_dynamic_qint8", [low, q, scale], [y], numerics=numerics, relative=unit, absolute=1e-6)
            yield Case("linear_dynamic_qint8", [low, q, scale, bias], [y + value(bias, numerics)], numerics=numerics, relative=unit,
                       absolute=near(y))
        # Half a step of each element off the product of what x was.
        y, step = x.astype("f8") @ w, np.abs(x).max(-1, initial=0)[:, None].astype("f8") / 254
        worst = (step * np.abs(w).sum(0)).max(initial=0)
        yield Case("matmul_dynamic_qint8", [x, q, scale], [y], absolute=1.001 * worst + near(y))


def low_bits(f, rng):
    for m, n, group, groups, half in [(1, 70, 32, 3, 1), (7, 33, 32, 2, 0), (4, 16, 128, 2, 0), (5, 9, 6, 5, 1), (3, 5, 32, 0, 0)]:
        k, options = group * groups, {"group": group, "half_scale": half}
        codes, scale = rng.integers(0, 256, (n, k // 2), "u1"), (f(n, groups) / 64).astype("f2" if half else "f4")
        q = np.stack([codes & 15, codes >> 4], -1).reshape(n, groups, group).astype("f8") - 8
        w = (q * scale.astype("f8")[..., None]).reshape(n, k)
        x, codes = f(m, k), coded(codes, "u4")
        y = x.astype("f8") @ w.T
        yield Case("matmul_qint4", [x, codes, scale], [y], options=options, absolute=near(y))
        zeros = rng.integers(0, 256, (n, (groups + 1) // 2), "u1")
        zero = np.stack([zeros & 15, zeros >> 4], -1).reshape(n, -1)[:, :groups, None].astype("f8")
        moved = ((q + 8 - zero) * scale.astype("f8")[..., None]).reshape(n, k)
        yield Case("matmul_qint4", [x, codes, scale, coded(zeros, "u4", groups)], [x @ moved.T], options={**options, "zeros": 1},
                   absolute=2 * near(x @ moved.T))
        b = rounded(x, "bf16")
        y = value(b, "bf16") @ w.T
        yield Case("matmul_qint4", [b, codes, scale], [y], options=options, numerics="bf16", types=["f4"], absolute=near(y))
        # Ordinary rows with a group of zeros, tiny and huge ones, one with a NaN and one with an inf.
        x[0, :group] = 0
        spoilt = np.concatenate([x, x[:2]])
        if k:
            spoilt[-1, 1], spoilt[-2, -1] = NAN, INF
        for part in (x, x * np.float32(1e-43), x * np.float32(1e30), spoilt):
            y, _ = dynamic_product(part.reshape(len(part), groups, group), q, scale.astype("f8"))
            yield Case("matmul_dynamic_qint4", [part, codes, scale], [y], options=options, relative=1e-5, absolute=near(y))
        # Half a step of each element.
        _, d = dynamic_product(x.reshape(m, groups, group), q, scale.astype("f8"))
        step = np.einsum("mg,ng->mn", d / 2, np.abs(q).sum(-1) * np.abs(scale.astype("f8"))).max(initial=0)
        y = x.astype("f8") @ w.T
        yield Case("matmul_dynamic_qint4", [x, codes, scale], [y], options=options, absolute=1.001 * step + near(y))


def decoded(codes, exponent, mantissa, bias, nan):
    """Numbers of codes with a sign, in double; `nan` are the magnitudes that are none."""
    magnitude = codes & (1 << (exponent + mantissa)) - 1
    e, m = (magnitude >> mantissa).astype("i4"), (magnitude & (1 << mantissa) - 1) / 2.0 ** mantissa
    number = np.where(e == 0, np.ldexp(m, 1 - bias), np.ldexp(1 + m, e - bias))
    number = np.where(np.isin(magnitude, nan), NAN, number)
    return np.where(codes >> (exponent + mantissa) & 1, -number, number)


def powers(codes):
    """Numbers of f8e8m0fnu."""
    return np.where(codes == 255, NAN, np.ldexp(1.0, codes.astype("i4") - 127))


@quiet
def block_floats(f, rng):
    for m, n, blocks in [(1, 70, 3), (7, 33, 2), (4, 16, 1), (3, 5, 0)]:
        for algorithm, block in [("matmul_mxfp8", 32), ("matmul_mxfp4", 32), ("matmul_nvfp4", 16)]:
            k = block * blocks
            x, powers_of = f(m, k), rng.integers(120, 134, (n, blocks), "u1")
            for e5m2 in (0, 1) if algorithm == "matmul_mxfp8" else (0,):
                scale, kept, options, parameters = powers(powers_of), coded(powers_of, "f8e8m0fnu"), {}, []
                if algorithm == "matmul_mxfp8":
                    options = {"e5m2": e5m2}
                    # Few rows have a NaN, and none an infinity.
                    codes = rng.integers(0, 124, (n, k), "u1") | rng.integers(0, 2, (n, k), "u1") << 7
                    codes[rng.random((n, k)) < 0.002] = 127
                    numbers = decoded(codes, 5, 2, 15, [127]) if e5m2 else decoded(codes, 4, 3, 7, [127])
                    codes = coded(codes, "f8e5m2" if e5m2 else "f8e4m3fn")
                else:
                    codes = rng.integers(0, 256, (n, k // 2), "u1")
                    numbers = decoded(np.stack([codes & 15, codes >> 4], -1).reshape(n, k), 2, 1, 1, [])
                    codes = coded(codes, "f4e2m1fn")
                if algorithm == "matmul_nvfp4":
                    bits = rng.integers(0, 127, (n, blocks), "u1")
                    scale, kept, parameters = decoded(bits, 4, 3, 7, [127]) * np.float32(0.01), coded(bits, "f8e4m3fn"), [("f4", 0.01)]
                w = (numbers.reshape(n, blocks, block) * scale[..., None]).reshape(n, k)
                y = x.astype("f8") @ w.T
                yield Case(algorithm, [x, codes, kept], [y], parameters, options, absolute=near(y))


def rounded(x, numerics):
    """As the policy stores it; bf16 as its bits."""
    if numerics == "f16":
        return x.astype("f2")
    bits = x.view("u4")
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype("u2")


def value(x, numerics):
    return x.astype("f8") if numerics == "f16" else (x.astype("u4") << 16).view("f4").astype("f8")


@quiet
def rmsnorm(x, gamma):
    return x / np.sqrt((x ** 2).mean(1, keepdims=True) + 1e-6) * gamma


def hard_rows(f, n):
    """Rows of n of ordinary numbers, then of what overflows, vanishes and spoils."""
    scales = [1, 1e-3, 1e-25, 1e19, 1e25, HUGE / 10, 1]
    x = np.clip(np.stack([f(n) * np.float32(s) for s in scales]), -HUGE, HUGE).astype("f4")
    x[4, 0], x[5, n // 2], x[6] = 1, HUGE, np.resize(np.float32([HUGE, -HUGE, HUGE]), n)
    spoilt = np.stack([f(n)] * 4)
    spoilt[0, n // 2], spoilt[1, 0], spoilt[2, -1], spoilt[3] = INF, -INF, NAN, 0
    return np.concatenate([x, spoilt])


def normalizations(f, rng):
    for n in (1, 33, 1000):
        x, g = hard_rows(f, n), f(n)
        y = rmsnorm(x.astype("f8"), g.astype("f8"))
        yield Case("rmsnorm", [x, g], [y], relative=2e-5, absolute=1e-30)  # a thousand equal squares, added up in a row
        r = np.zeros_like(x)
        yield Case("residual_rmsnorm", [x, r, g], [x, y], relative=2e-5, absolute=1e-30)
    epsilon = [("f4", 1e-5)]
    for n, p, groups, c in [(1, 1, 1, 1), (2, 35, 3, 5), (1, 64, 2, 16)]:
        x, g, b = f(n, p, groups, c), f(groups, c), f(groups, c)
        v = x.astype("f8")
        y = (v - v.mean((1, 3), keepdims=True)) / np.sqrt(v.var((1, 3), keepdims=True) + np.float32(1e-5)) * g + b
        yield Case("group_norm_nhwc", [x, g, b], [y], epsilon, absolute=near(y))
        last = [np.ascontiguousarray(t.transpose(0, 2, 3, 1)) for t in (x, y)]
        yield Case("group_norm_nchw", [last[0], g, b], [last[1]], epsilon, absolute=near(y))
    x, w, b, g, beta, mean, variance = f(9, 35), f(27, 35), f(35), f(35), f(35), f(35), np.abs(f(35)) + np.float32(0.1)
    scale = g / np.sqrt(variance.astype("f8") + np.float32(1e-5))
    y, folded = (x - mean.astype("f8")) * scale + beta, (b - mean.astype("f8")) * scale + beta
    yield Case("batch_norm", [x, g, beta, mean, variance], [y], epsilon, absolute=near(y))
    yield Case("fold_batch_norm", [w, b, g, beta, mean, variance], [w * scale, folded], epsilon, absolute=near(y))
    for n in (1, 17, 1001):
        x = np.concatenate([hard_rows(f, n), np.float32([[-INF] * n, [INF] * n, [-INF] * (n - 1) + [1], [HUGE] * n])])
        with np.errstate(all="ignore"):
            y = scipy.special.logsumexp(x.astype("f8"), axis=1)
        yield Case("logsumexp", [x], [y], relative=2.0 ** -22, absolute=1e-6)
        x = np.concatenate([f(5, n), f(2, n) * 80])
        ids = np.int32([0, n - 1, n // 2, -1, n, 0, n - 1])
        y = np.array([scipy.special.logsumexp(row) - row[i] if 0 <= i < n else 0.0 for row, i in zip(x.astype("f8"), ids)])
        yield Case("cross_entropy", [x, ids], [y], absolute=near(y, factor=4e-7))
    x, up = np.concatenate([f(3, 41) * 4, np.resize(np.float32([-90, 90, -20, 20]), (1, 41))]), f(4, 41)
    for number, name in [(2, "gelu"), (3, "gelu_tanh"), (4, "silu")]:
        with np.errstate(all="ignore"):
            yield Case(name, [x], [ACTIVATIONS[number](x.astype("f8"))], relative=3e-7, absolute=3e-8)
    yield Case("swiglu", [x, up], [ACTIVATIONS[4](x.astype("f8")) * up], relative=4e-7)


def segments(f, rng):
    def made(offsets, rows):
        return np.maximum.accumulate(np.clip(offsets.astype(object), 0, rows)).astype("i8")

    def each(offsets, rows):
        m = made(offsets, rows)
        return enumerate(zip(m[:-1], m[1:]))

    big = 1 << 62
    for offsets in ([0, 21], [2, 2, 9, 5, 21], [0, 4, 4, 19], [-5, 7, 3, 40, 1], [big, 0], [-big, 3, big]):
        offsets = np.array(offsets, "i8")
        b, t, k, n = len(offsets) - 1, 21, 13, 19
        x, w = f(t, k), f(b, k, n)
        y = np.zeros((t, n))
        for i, (first, end) in each(offsets, t):
            y[first:end] = x[first:end].astype("f8") @ w[i].astype("f8")
        yield Case("grouped_matmul", [x, offsets, w], [y], absolute=near(y))
        x = f(t, n)
        share, mean, most = np.zeros((t, n)), np.zeros((b, n)), np.full((b, n), -INF)
        for i, (first, end) in each(offsets, t):
            rows = x[first:end].astype("f8")
            share[first:end] = scipy.special.softmax(rows, axis=0) if end > first else rows
            mean[i], most[i] = rows.sum(0) / max(end - first, 1), rows.max(0, initial=-INF)
        yield Case("segmented_softmax", [x, offsets], [share], absolute=near(share))
        yield Case("segmented_mean", [x, offsets], [mean], absolute=near(mean))
        yield Case("segmented_max", [x, offsets], [most])
        ids, table = rng.integers(-2, 9, t).astype("i4"), f(7, n)
        known = np.where(((ids >= 0) & (ids < 7))[:, None], table[np.clip(ids, 0, 6)].astype("f8"), 0)
        bags = np.stack([known[first:end].sum(0) for _, (first, end) in each(offsets, t)])
        yield Case("embedding_bag", [ids, table, offsets], [bags], absolute=near(bags))
        # The same rows as columns of a sparse matrix: one column twice in a row adds up, and one outside is none.
        m, inside, values, x = made(offsets, t), (ids >= 0) & (ids < 7), f(t), f(7, n)
        sparse = scipy.sparse.csr_matrix((np.where(inside, values, 0).astype("f8")[m[0]:m[-1]], np.clip(ids, 0, 6)[m[0]:m[-1]], m - m[0]),
                                         shape=(b, 7))
        yield Case("spmm", [values, ids, offsets, x], [sparse @ x.astype("f8")], absolute=near(sparse @ x))
        yield Case("spmv", [values, ids, offsets, x[:, 0].copy()], [sparse @ x[:, 0].astype("f8")], absolute=near(sparse @ x))
        s, h, d, e = 17, 2, 8, 7
        queries = np.array([rng.integers(-2, s + 3) for _ in range(b + 1)], "i8")
        q, key, v = f(s, h, d), f(t, h, d), f(t, h, e)
        for causal in (0, 1):
            o = np.zeros((s, h, e))
            for (_, (first, end)), (_, (left, right)) in zip(each(queries, s), each(offsets, t)):
                scores = np.einsum("shd,thd->hst", *wide(q[first:end], key[left:right])) / np.sqrt(d)
                i, j = np.arange(end - first)[:, None], np.arange(right - left)[None]
                seen = (j - (right - left) <= i - (end - first)) if causal else np.ones((1, 1), bool)
                p = np.where(seen, np.exp(scores), 0)
                total = p.sum(-1, keepdims=True)
                o[first:end] = np.einsum("hst,the->she", p / np.where(total == 0, 1, total), v[left:right].astype("f8"))
            yield Case("attention_segments", [q, key, v, queries, offsets], [o], [], {"causal": causal}, absolute=near(o))


def attention(f, rng):
    def weighted(q, k, v, added, seen):
        """q[H, G, S, D]; added and seen [S, T]."""
        scores = np.einsum("hgsd,htd->hgst", *wide(q, k)) / np.sqrt(q.shape[-1]) + added
        scores = np.where(seen, scores, -INF)
        top = scores.max(-1, keepdims=True, initial=-INF)
        p = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = p.sum(-1, keepdims=True)
        return np.einsum("hgst,hte->hgse", p / np.where(total == 0, 1, total), v.astype("f8"))

    for h, g, s, t, d, e in [(1, 1, 1, 1, 1, 1), (2, 3, 5, 19, 8, 7), (1, 2, 33, 70, 16, 24)]:
        q, k, v = f(h, g, s, d), f(h, t, d), f(h, t, e)
        i, j = np.arange(s)[:, None], np.arange(t)[None]
        for position, window in [(0, 0), (t - s, 0), (3, 5), (t + 9, 4)]:  # the last sees nothing
            seen = (j <= position + i) & ((j > position + i - window) if window else True)
            o = weighted(q, k, v, 0.0, seen)
            yield Case("attention_grouped", [q, k, v], [o], [("i4", position)], {"causal": 1, "window": window}, absolute=near(o))
        mask = np.where(rng.random((s, t)) < 0.5, f(s, t), np.float32(-INF)).astype("f4")
        mask[0] = -INF
        o = weighted(q, k, v, mask.astype("f8"), True)
        yield Case("attention_grouped", [q, k, v, mask], [o], [], {"mask": 1}, absolute=near(o))
        o = weighted(q, k, v, 0.0, True)
        yield Case("attention_grouped", [q, k, v], [o], [], {"causal": 0}, absolute=near(o))
        for length in (0, 1, t):
            cache = [c[:, :length] for c in (k, v)]  # views, where there is room for more
            o = weighted(q[:, :, :1], *cache, 0.0, True)[:, :, 0]
            yield Case("attention_decode", [q[:, :, 0].copy(), *cache], [o], absolute=near(o))
        keep = rng.random(t) < 0.5
        for kept in (keep, np.zeros_like(keep)):
            o = weighted(q, k, v, 0.0, kept)[:, 0]
            yield Case("attention_kept", [q[:, 0].copy(), k, v, kept], [o], absolute=near(o))


def convolutions(f, rng):
    from oracle import conv2d
    options = {"stride": 2, "padding": 1, "dilation": 1, "bias": 1, "residual": 1, "activation": 1}
    x, w, b = f(2, 9, 10, 5), f(3, 3, 5, 19), f(19)
    y = conv2d(x, w, 2, 1, 1)
    r = f(*y.shape)
    yield Case("conv2d_fused_nhwc", [x, w, b, r], [np.maximum(y + b + r, 0)], [], options, absolute=near(y))
    options = {"stride": 1, "padding": 1, "dilation": 1, "scale": 2, "bias": 1, "activation": 5}
    w, scale, b = f(3, 3, 5), f(5), f(5)
    y = np.concatenate([conv2d(x[..., c:c + 1], w[..., c, None, None], 1, 1, 1) for c in range(5)], -1)
    yield Case("depthwise_conv2d_fused_nhwc", [x, w, scale, b], [np.clip(y * scale + b, 0, 6)], [], options, absolute=near(y))
    for size, stride, padding, end in [(1, 1, 0, 0), (3, 1, 1, 0), (3, 2, 1, 1), (2, 2, 0, 0), (2, 3, 0, 2)]:
        x, w = f(2, 5, 4, 3), f(size, size, 3, 9)
        y = np.zeros((2, 4 * stride + size + end, 3 * stride + size + end, 9))
        for r in range(size):
            for s in range(size):
                y[:, r:r + 4 * stride + 1:stride, s:s + 3 * stride + 1:stride] += x.astype("f8") @ w[r, s].astype("f8")
        y = y[:, padding:y.shape[1] - padding, padding:y.shape[2] - padding]
        yield Case("transposed_conv2d_nhwc", [x, w], [y], [], {"stride": stride, "padding": padding, "end": end}, absolute=near(y))
    x = f(2, 7, 5, 13)
    yield Case("global_average_pool_nhwc", [x], [x.astype("f8").mean((1, 2))], absolute=4e-7)
    for p, q in [(7, 5), (1, 1), (14, 10), (3, 11), (20, 2)]:
        nearest = x[:, [i * 7 // p for i in range(p)]][:, :, [i * 5 // q for i in range(q)]]
        yield Case("resize_nearest_nhwc", [x], [nearest])
        for corners in (0, 1):
            def at(n, m):
                return np.arange(m) * (n - 1) / max(m - 1, 1) if corners else np.maximum((np.arange(m) + 0.5) * n / m - 0.5, 0)
            grid = np.meshgrid(at(7, p), at(5, q), indexing="ij")
            y = np.stack([[scipy.ndimage.map_coordinates(x[i, ..., c].astype("f8"), grid, order=1, mode="nearest") for c in range(13)]
                          for i in range(2)]).transpose(0, 2, 3, 1)
            yield Case("resize_bilinear_nhwc", [x], [y], [], {"align_corners": corners}, absolute=near(y, factor=4e-7))
            rows, columns = keys_rows(7, at(7, p) if corners else None, p), keys_rows(5, at(5, q) if corners else None, q)
            y = np.einsum("ph,qw,nhwc->npqc", rows, columns, x.astype("f8"))
            yield Case("resize_bicubic_nhwc", [x], [y], [], {"align_corners": corners}, absolute=near(y, factor=8e-7))
        for name, reach, kernel in [("resize_bilinear_nhwc", 1, lambda d: 1 - d), ("resize_bicubic_nhwc", 2, lambda d: keys(d, -0.5))]:
            rows, columns = widened_rows(7, p, reach, kernel), widened_rows(5, q, reach, kernel)
            y = np.einsum("ph,qw,nhwc->npqc", rows, columns, x.astype("f8"))
            yield Case(name, [x], [y], [], {"align_corners": 0, "antialias": 1}, absolute=near(y, factor=8e-7))
    x, w = f(2, 5, 7, 6, 3), f(2, 3, 2, 3, 9)
    for stride, padding, dilation in [(1, 0, 1), (2, 3, 1), (1, 2, 2)]:
        padded = np.pad(x.astype("f8"), [(0, 0)] + [(padding, padding)] * 3 + [(0, 0)])
        reach = [dilation * (n - 1) + 1 for n in w.shape[:3]]
        seen = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2, 3))
        seen = seen[:, ::stride, ::stride, ::stride, :, ::dilation, ::dilation, ::dilation]
        y = np.einsum("nupqctrs,trsco->nupqo", seen, w.astype("f8"))
        yield Case("conv3d_ndhwc", [x, w], [y], [], {"stride": stride, "padding": padding, "dilation": dilation}, absolute=near(y))


def keys(distance, a):
    """Keys's cubic kernel."""
    d = np.abs(distance)
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0))


def keys_rows(n, places, m):
    """The (m, n) matrix that resizes n elements to m between the four nearest, which are clamped."""
    places = (np.arange(m) + 0.5) * n / m - 0.5 if places is None else places
    rows = np.zeros((m, n))
    for i, place in enumerate(places):
        for tap in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
            rows[i, min(max(tap, 0), n - 1)] += keys(place - tap, -0.75)
    return rows


def widened_rows(n, m, reach, kernel):
    """That of Pillow, whose kernel reaches as far as the elements of the result lie apart."""
    scale = max(n / m, 1)
    distance = np.abs((np.arange(n)[None] + 0.5 - (np.arange(m)[:, None] + 0.5) * n / m) / scale)
    rows = np.where(distance < reach, kernel(distance), 0)
    return rows / rows.sum(1, keepdims=True)


def tokens(f, rng):
    table, ids = f(11, 19), np.int32([0, 10, 3, -1, 11, 3, -2 ** 31, 2 ** 31 - 1])
    yield Case("embedding", [ids, table], [np.where(((ids >= 0) & (ids < 11))[:, None], table[np.clip(ids, 0, 10)], 0)])
    for interleaved, tables, position in [(0, 0, 0), (1, 0, 100000), (0, 0, 2 ** 33), (0, 1, 5), (1, 1, 5)]:
        t, h, c = 5, 3, 20
        x, base = f(t, h, 2, c), 10000
        angle = (position + np.arange(t))[:, None].astype("f8") * np.float64(base) ** -(np.arange(c) / c)
        a, b, cos, sin = *wide(x[:, :, 0], x[:, :, 1]), np.cos(angle)[:, None], np.sin(angle)[:, None]
        y = np.stack([a * cos - b * sin, b * cos + a * sin], 2)
        given = [np.float32(z[:, 0]) for z in (cos, sin)] if tables else []
        if interleaved:
            x, y = (np.ascontiguousarray(z.swapaxes(2, 3)) for z in (x, y))
        yield Case("rotary", [x, *given], [y], [] if tables else [("i8", position)],
                   {"interleaved": interleaved, "tables": tables, "base": base}, absolute=near(y, factor=4e-7))


def selections(f, rng):
    for n in (1, 7, 64, 250):
        x = np.concatenate([f(2, n), rng.integers(-2, 3, (3, n)).astype("f4"), np.full((3, n), -INF, "f4")])
        x[4, ::3], x[5, -1], x[6, n // 2:], x[7, ::2] = -0.0, NAN, INF, NAN
        yield Case("argmax", [x], [x.argmax(1)], types=["i4"])
        for k in {1, 4, 13} & set(range(1, n + 1)):
            order = np.array([sorted(range(n), key=lambda i: (not np.isnan(row[i]), -row[i] if row[i] == row[i] else 0, i))[:k] for row in x])
            yield Case("top_k", [x], [np.take_along_axis(x, order, 1), order], [], {"k": k}, types=["f4", "i4"])
        if n < 250:
            order = x.argsort(1, kind="stable")
            yield Case("sort", [x], [np.take_along_axis(x, order, 1), order], [], {"length": n}, types=["f4", "i4"])


def rearrangements(f, rng):
    for m, n in [(1, 1), (5, 17), (33, 64)]:
        x, z = f(m, n), f(m, 9)
        x[0, 0] = NAN
        yield Case("transpose", [x], [x.T])
        yield Case("concat", [x, z], [np.concatenate([x, z], 1)])
        for begin, step, length in [(0, 1, n), (2, 1, n), (-3, 3, 12)]:
            at = begin + step * np.arange(length)
            yield Case("slice", [x], [np.where((at >= 0) & (at < n), x[:, np.clip(at, 0, n - 1)], 0)], [("i4", begin)], {"step": step})


TOPICS = [products, low_bits, dynamic_channels, block_floats, normalizations, attention, segments, convolutions, tokens, selections, rearrangements]
