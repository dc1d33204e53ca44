"""Makes pytorch.npz, results of PyTorch with which oracle.py compares kernels, so that the tests need no PyTorch:

    ./tessera fixtures

Results are PyTorch's of the same inputs in double, rounded to the kernel's type; of bf16, bytes and integers PyTorch's own. What
PyTorch gives in the kernel's types is compared with them here, and the file is not written where its NaNs and infinities, or
more than the kernel's tolerance and as much again, are different.

Tolerances come from the numerics policy (storage f32 or bf16, sums in f32), with u = 2^-24, half a unit in the last place of 1:
- 0 where all is exact: integers, and floats that are small multiples of 1/16, of which no product or sum is rounded. Only what is
  stored is, once (bf16, the scales of int8), and of an exact value there is one rounding to nearest.
- A sum of K rounded terms: 2 sqrt(K) u times the sum of their magnitudes, since rounding errors add up like a random walk.
- An elementary function: the units in the last place that algorithms/functions/functions.h states.
- One more u for the rounding of what is stored here.

NaN and infinity are in rows of their own, and must come out where PyTorch has them. They are left out where it differs on purpose:
- gelu, gelu_tanh and silu of -inf are NaN in PyTorch (-inf times 0) and their limit 0 in Tessera.
- A key or value behind a causal mask still has weight 0 in PyTorch, and 0 times NaN or infinity is NaN; in Tessera nobody reads it.
- Which zero (0 or -0) is not compared."""
import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

U = 2.0 ** -24
NAN, INF = math.nan, math.inf


class Fixtures:
    def __init__(self):
        self.arrays, self.names, self.cases = {}, {}, []

    def kept(self, tensor):
        """The name of an array with these values, which many cases may share; bf16 is kept as its bits."""
        tensor = tensor.contiguous()
        array = tensor.view(torch.int16).numpy().view("u2") if tensor.dtype == torch.bfloat16 else tensor.numpy()
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.names:
            self.names[key] = f"a{len(self.arrays)}"
            self.arrays[self.names[key]] = array
        return self.names[key]

    def add(self, algorithm, inputs, expected, relative=0.0, absolute=0.0, own=None, parameters=(), numerics="f32", **options):
        """One result, `expected` in double or as it is stored; `own` is what PyTorch makes of the kernel's types."""
        if own is not None:
            check_near(algorithm, own.double(), expected.double(), 2 * relative + 2 * U, 2 * absolute)
        stored = expected.float() if expected.dtype == torch.float64 else expected
        self.cases.append({"algorithm": algorithm, "numerics": numerics, "options": options, "parameters": list(parameters),
                           "inputs": [self.kept(t) for t in inputs], "expected": self.kept(stored),
                           "relative": relative + U * (relative > 0), "absolute": absolute})

    def write(self, path):
        about = {"made_by": f"PyTorch {torch.__version__}, NumPy {np.__version__}: ./tessera fixtures", "cases": self.cases}
        text = json.dumps(about, indent=1).encode()
        np.savez_compressed(path, about=np.frombuffer(text, "u1"), **self.arrays)
        print(f"{len(self.cases)} results of PyTorch {torch.__version__} in {path}, {os.path.getsize(path)} bytes")


def check_near(what, own, expected, relative, absolute):
    both = torch.isfinite(own) & torch.isfinite(expected)
    same = (own == expected) | (own.isnan() & expected.isnan())
    near = (own - expected).abs() <= relative * expected.abs() + absolute
    wrong = torch.where(both, ~near, ~same)
    if wrong.any():
        first, other = own[wrong][:4].tolist(), expected[wrong][:4].tolist()
        raise SystemExit(f"{what}: PyTorch in the kernel's types gives {first} and in double {other}")


def sixteenths(*shape, most=4):
    """Multiples of 1/16 up to `most`: whatever is made of a few hundred of them by sums and products is exact in f32."""
    return torch.randint(-16 * most, 16 * most + 1, shape).float() / 16


def with_rows(x, *values):
    """x, of which a few of the last rows have one of `values` each."""
    x = x.clone()
    for i, value in enumerate(values):
        x[-1 - i].view(-1)[(7 * i + 3) % x[-1].numel()] = value
    return x


def products(f):
    for m, n, k in [(1, 1, 1), (7, 17, 5), (13, 48, 64)]:
        x, w, b = sixteenths(m, k), sixteenths(k, n, most=2), sixteenths(n)
        x = with_rows(x, NAN, INF, -INF) if m > 3 else x
        f.add("matmul", [x, w], x.double() @ w.double(), own=x @ w)
        f.add("linear", [x, w, b], F.linear(x.double(), w.double().T, b.double()), own=F.linear(x, w.T, b))
        y = torch.mm(x.bfloat16(), w.bfloat16())
        f.add("matmul", [x.bfloat16(), w.bfloat16()], y, own=(x.double() @ w.double()).bfloat16(), numerics="bf16")
        f.add("matmul_wide", [x.bfloat16(), w.bfloat16()], x.double() @ w.double(), numerics="bf16")
        q, scale = torch.randint(-128, 128, (k, n), dtype=torch.int8), torch.rand(n) / 64
        y = (x.double() @ q.double()) * scale.double()
        if k % 32 == 0:  # PyTorch's kernel reads beyond other arrays; it multiplies by the scale before it adds
            own = torch._weight_int8pack_mm(x, q.T.contiguous(), scale)
            most = (x.nan_to_num(0, 0, 0).abs() @ q.float().abs() * scale).max().item()
            check_near("matmul in int8", own.double(), y, U, 2 * math.sqrt(k) * U * most)
        f.add("matmul", [x, q, scale], y, numerics="int8")
        x, w, b = torch.randn(m, k), torch.randn(k, n), torch.randn(n)
        most = 2 * math.sqrt(k) * U * (x.abs() @ w.abs() + b.abs()).max().item() + 2 * U
        f.add("linear", [x, w, b], F.linear(x.double(), w.double().T, b.double()), U, most, own=F.linear(x, w.T, b))
        x, w = x.bfloat16(), w.bfloat16()  # a sum beside the middle of two bf16 may be rounded to either
        f.add("matmul", [x, w], torch.mm(x, w), 2 ** -7, most, own=x.double() @ w.double(), numerics="bf16")
    for m, n, k in [(1, 1, 1), (7, 17, 5), (13, 36, 70)]:
        u8 = torch.randint(0, 256, (m, k), dtype=torch.uint8)
        s8 = torch.randint(-128, 128, (m, k), dtype=torch.int8)
        w = torch.randint(-128, 128, (k, n), dtype=torch.int8)
        u8[0], s8[0], w[:, 0], w[:, -1] = 255, -128, -128, 127  # pairs that would saturate 16 bits
        f.add("matmul_u8s8", [u8, w], torch.mm(u8.int(), w.int()))
        f.add("matmul_s8s8", [s8, w], torch._int_mm(s8, w), own=torch.mm(s8.int(), w.int()))


def convolutions(f):
    for stride, padding, dilation in [(1, 0, 1), (2, 3, 1), (1, 2, 2)]:
        window = {"stride": stride, "padding": padding, "dilation": dilation}
        x, w, b = sixteenths(2, 5, 9, 10), sixteenths(19, 5, 3, 2, most=2), sixteenths(19)  # NCHW, OIHW
        x[1, 2, 4, 4], x[1, 0, 0, 0], x[1, 1, 5, 6] = NAN, INF, -INF
        y, own = F.conv2d(x.double(), w.double(), **window), F.conv2d(x, w, **window)
        f.add("conv2d_nchw", [x, w], y, own=own, **window)
        nhwc, hwio = x.permute(0, 2, 3, 1), w.permute(2, 3, 1, 0)
        f.add("conv2d_nhwc", [nhwc, hwio], y.permute(0, 2, 3, 1), **window)
        y, own = F.relu(F.conv2d(x.double(), w.double(), b.double(), **window)), F.relu(F.conv2d(x, w, b, **window))
        f.add("conv2d_bias_relu_nhwc", [nhwc, hwio, b], y.permute(0, 2, 3, 1), own=own.permute(0, 2, 3, 1), **window)
        w = sixteenths(5, 1, 3, 2, most=2)
        y, own = F.conv2d(x.double(), w.double(), groups=5, **window), F.conv2d(x, w, groups=5, **window)
        f.add("depthwise_conv2d_nhwc", [nhwc, w[:, 0].permute(1, 2, 0)], y.permute(0, 2, 3, 1), own=own.permute(0, 2, 3, 1), **window)
        x, w = sixteenths(2, 12, 9, 10), sixteenths(21, 4, 3, 2, most=2)  # 3 groups of 4 channels to 7
        x[1, 2, 4, 4], x[1, 6, 1, 0] = NAN, INF
        y = F.conv2d(x.double(), w.double(), groups=3, **window)
        own = F.conv2d(x, w, groups=3, **window)
        by_group = [t.unflatten(1, (3, -1)).permute(0, 3, 4, 1, 2) for t in (x, y, own)]
        f.add("grouped_conv2d_nhwc", [by_group[0], w.unflatten(0, (3, 7)).permute(3, 4, 0, 2, 1)], by_group[1], own=by_group[2], **window)
        x, w = sixteenths(2, 5, 14), sixteenths(19, 5, 3, most=2)
        x[1, 2, 4], x[1, 0, 13] = NAN, INF
        y, own = F.conv1d(x.double(), w.double(), **window), F.conv1d(x, w, **window)
        f.add("conv1d", [x.permute(0, 2, 1), w.permute(2, 1, 0)], y.permute(0, 2, 1), own=own.permute(0, 2, 1), **window)
        # PyTorch's windows see at least half of their pixels, and its averages have no dilation.
        pool = {"stride": stride, "padding": min(padding, 1), "dilation": dilation, "size": 3}
        x = sixteenths(2, 5, 9, 10)
        x[1, 2, 4, 4], x[1, 0, 0, 0], x[1, 3], x[1, 4, 8, 8] = INF, -INF, -INF, NAN
        y = F.max_pool2d(x.double(), 3, stride, pool["padding"], dilation)
        own = F.max_pool2d(x, 3, stride, pool["padding"], dilation)
        f.add("max_pool2d_nhwc", [x.permute(0, 2, 3, 1)], y.permute(0, 2, 3, 1), own=own.permute(0, 2, 3, 1), **pool)
        if dilation == 1:
            y, own = F.avg_pool2d(x.double(), 3, stride, pool["padding"]), F.avg_pool2d(x, 3, stride, pool["padding"])
            f.add("average_pool2d_nhwc", [x.permute(0, 2, 3, 1)], y.permute(0, 2, 3, 1), U, own=own.permute(0, 2, 3, 1), **pool)


def attention(f):
    attend = F.scaled_dot_product_attention
    for h, s, t, d, e in [(1, 1, 1, 1, 1), (2, 17, 17, 8, 8), (1, 9, 40, 24, 16), (1, 40, 9, 16, 24), (1, 66, 66, 32, 20)]:
        finite = torch.randn(h, s, d), torch.randn(h, t, d), torch.randn(h, t, e)
        for causal in (False, True):
            q, k, v = (x.clone() for x in finite)
            size = q.abs().double() @ k.abs().double().transpose(1, 2) / math.sqrt(d)
            scores = q.double() @ k.double().transpose(1, 2) / math.sqrt(d)
            weights = F.softmax(torch.where(torch.ones(s, t).tril().bool(), scores, -INF) if causal else scores, 2)
            # The error of a score is one of its weight, and sums of weights and of values are two more.
            error = (2 * math.sqrt(d) + 4) * size + 4 * math.sqrt(t) + 8
            absolute = U * (weights * error @ v.abs().double()).max().item()
            if s == 17:
                q[0, 5, 2], q[1, 16, 0], v[0, 0, 3] = NAN, NAN, INF
            if s == 17 and not causal:
                k[1, 3, 3] = NAN
            y, own = attend(q.double(), k.double(), v.double(), is_causal=causal), attend(q, k, v, is_causal=causal)
            f.add("attention_causal" if causal else "attention", [q, k, v], y, U, absolute, own=own)


def normalizations(f):
    for m, n in [(1, 1), (5, 17), (6, 64), (7, 200)]:
        x, g, b = torch.randn(m, n) * 3, torch.randn(n), torch.randn(n)
        spread = (x.max(1)[0] - x.min(1)[0]).max().item()
        walk = 2 * math.sqrt(n)
        rows = with_rows(x, NAN, INF, -INF) if m > 3 else x
        if m > 3:
            rows[0] = 1000  # a row of one value, whose mean it is
        wide = rows.double()
        # -inf among numbers has weight 0; NaN, inf, or nothing but -inf make a row of NaN.
        scores = rows.clone()
        if m > 5:
            scores[1] = -INF
        f.add("softmax", [scores], F.softmax(scores.double(), 1), (spread + walk + 6) * U, 2.0 ** -126, own=F.softmax(scores, 1))
        epsilon = float(np.float32(1e-5))
        scale = 1 / torch.sqrt(x.var(1, correction=0) + epsilon)
        most = ((x.abs() * scale[:, None]).max() * g.abs().max() + b.abs().max()).item()
        absolute = (walk + 8) * U * most
        y, own = (F.layer_norm(t, [n], a, c, epsilon) for t, a, c in [(wide, g.double(), b.double()), (rows, g, b)])
        f.add("layernorm", [rows, g, b], y, U, absolute, own=own, parameters=[1e-5])
        y, own = (F.rms_norm(t, [n], a, float(np.float32(1e-6))) for t, a in [(wide, g.double()), (rows, g)])
        f.add("rmsnorm", [rows, g], y, (walk + 6) * U, own=own)


def activations(f):
    x = torch.cat([torch.linspace(-14, 14, 173), torch.randn(120) * 3, torch.tensor([0.0, 1e-30, -1e-30, 1e38, 100, NAN, INF])])
    x = x.view(6, 50)
    # PyTorch's own in f32 is far from its result in double in the tail below 0, where 1 + erf cancels, and its gelu of inf is NaN.
    gelu = F.gelu(x.double())
    check_near("gelu", F.gelu(x)[~x.isinf()].double(), gelu[~x.isinf()], 4 * U, 14 * 2 * U)
    f.add("gelu", [x], gelu, 2 * 2.571 * U, 2e-8)
    tanh = F.gelu(x.double(), approximate="tanh")
    check_near("gelu_tanh", F.gelu(x, approximate="tanh").double(), tanh, 8 * U, 14 * 2 * U)
    near = x.clamp(-5, INF)  # below, PyTorch's formula cancels in double too
    near[x.isnan()] = NAN
    f.add("gelu_tanh", [near], F.gelu(near.double(), approximate="tanh"), 2 * 2.313 * U, 2.0 ** -148)
    f.add("silu", [x], F.silu(x.double()), 2 * 2.394 * U, 2.0 ** -148, own=F.silu(x))
    one, bias = torch.ones(1, 1), torch.zeros(1)  # gelu as the end of a product
    f.add("linear_gelu", [x.reshape(-1, 1), one, bias], gelu.reshape(-1, 1), 2 * 2.571 * U, 2e-8)


def transforms(f):
    for points in (15, 64, 1000):
        rows = 3 if points < 100 else 1
        x, r, half = torch.randn(rows, points, 2), torch.randn(rows, points), torch.randn(rows, points // 2 + 1, 2)
        wide = torch.view_as_complex(x.double())

        def add(algorithm, given, y, own):
            y, own = (torch.view_as_real(t).flatten(1) if t.is_complex() else t for t in (y, own))
            # Butterflies in log2(points) levels round values of the size of the result.
            absolute = 4 * U * (1 + math.log2(points)) * y.pow(2).mean().sqrt().item()
            f.add(algorithm, [given.flatten(1)], y, U, absolute, own=own, points=points)
        add("fft", x, torch.fft.fft(wide), torch.fft.fft(torch.view_as_complex(x)))
        if points == 64:
            continue
        add("ifft", x, torch.fft.ifft(wide), torch.fft.ifft(torch.view_as_complex(x)))
        add("rfft", r, torch.fft.rfft(r.double()), torch.fft.rfft(r))
        half[:, 0, 1] = 0  # what no real signal has
        if points % 2 == 0:
            half[:, -1, 1] = 0
        y, own = (torch.fft.irfft(torch.view_as_complex(t), points) for t in (half.double(), half))
        add("irfft", half, y, own)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    fixtures = Fixtures()
    with torch.inference_mode():
        for part in (products, convolutions, attention, normalizations, activations, transforms):
            part(fixtures)
    fixtures.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch.npz"))


main()
