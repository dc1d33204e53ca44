#!/usr/bin/env python3
"""Low-precision products, weights that are packed once, and convolutions beside PyTorch (oneDNN), in one process, taking
turns, on one thread: ./tessera peers pytorch [part...]

Both sides have their weights in the form that they like best, packed before the time begins. Of PyTorch each row takes the
fastest of its own ways: plain or channels-last tensors, and weights that oneDNN has reordered. A ratio above 1 means that
the generated kernel is faster; its interval is that of the median over rounds, at 95 %. GB/s counts the weights alone."""
import argparse
import os
import sys
import tempfile

from contest import contest, fastest
from generated import Library, dense

import torch
import torch.nn.functional as F

NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.int8: "i8", torch.uint8: "u8", torch.int32: "i32"}


def desc(tensor):
    assert tensor.is_contiguous()
    return dense(tensor.data_ptr(), NAMES[tensor.dtype], list(tensor.shape))


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.libraries = options, folder, {}

    def kernel(self, name, arguments):
        if name not in self.libraries:
            self.libraries[name] = Library(self.options.generator, self.options.runtime, self.folder, name, arguments)
        return self.libraries[name]

    def row(self, what, work, unit, ours, theirs, expected, result, tolerance):
        """`work` in units of 1e9 a call. What both compute is compared first."""
        ours()
        error = ((result().double() - expected.double()).abs().max() / expected.double().abs().max()).item()
        if not error <= tolerance:
            sys.exit(f"{what}: the two results differ by {error:.1e} of the largest; expected at most {tolerance:.0e}")
        name = fastest(theirs)
        a, b, low, high = contest(ours, theirs[name], self.options.rounds)
        print(f"{what:34} {work / a:8.1f} {unit:8} PyTorch {work / b:8.1f} ({name:15})  ratio {low:.3f}..{high:.3f}", flush=True)

    def product_bf16(self, m, n, k, unit="GFLOP/s"):
        x, w = torch.randn(m, k).bfloat16(), torch.randn(k, n).bfloat16()
        y = torch.empty(m, n, dtype=torch.bfloat16)
        lib = self.kernel("matmul_bf16", ["matmul", "--numerics", "bf16", "--target", "avx512_bf16", "--schedule", "matmul/bf16/prepacked_avx512_bf16"])
        packed = lib.packed("w", desc(w))
        rows = w.t().contiguous()
        reordered = torch.ops.mkldnn._reorder_linear_weight(rows, m)
        theirs = {"plain": lambda: torch.mm(x, w), "reordered": lambda: torch.ops.mkldnn._linear_pointwise(x, reordered, None, "none", [], "")}
        work = 2 * n * k * (m if unit == "GFLOP/s" else 1) / 1e9  # operations, or the bytes of the weights
        self.row(f"bf16 {m}x{n}x{k}", work, unit,
                 lib.run.bound([desc(x), packed, desc(y)]), theirs, x.double() @ w.double(), lambda: y, 2e-2)

    def product_u8s8(self, m, n, k):
        x, w = torch.randint(0, 255, (m, k), dtype=torch.uint8), torch.randint(-127, 127, (k, n), dtype=torch.int8)
        y = torch.empty(m, n, dtype=torch.int32)
        lib = self.kernel("matmul_u8s8", ["matmul_u8s8", "--target", "avx512_bf16", "--schedule", "matmul_u8s8/prepacked_avx512_bf16"])
        packed = lib.packed("w", desc(w))
        reordered = torch.ops.onednn.qlinear_prepack(w.t().contiguous(), [m, k])
        scale, zero = torch.ones(n), torch.zeros(n, dtype=torch.int32)

        def theirs():
            return torch.ops.onednn.qlinear_pointwise(x, 1.0, 0, reordered, scale, zero, None, 1.0, 0, torch.float32, "none", [], "")
        self.row(f"u8 by i8 {m}x{n}x{k}", 2 * m * n * k / 1e9, "Gop/s", lib.run.bound([desc(x), packed, desc(y)]),
                 {"reordered": theirs}, x.double() @ w.double(), lambda: y, 0)

    def convolution(self, c, hw, o, r, stride, padding):
        x, w = torch.randn(1, hw, hw, c), torch.randn(r, r, c, o)
        p = (hw + 2 * padding - r) // stride + 1
        y = torch.empty(1, p, p, o)
        schedule = "prepacked_small_avx512" if p < 8 and o >= 64 else "prepacked_avx512"
        lib = self.kernel(f"{schedule}_{stride}_{padding}", ["conv2d_nhwc", "--target", "avx512", "--schedule", f"conv2d_nhwc/{schedule}",
                                                             "--option", f"stride={stride}", f"padding={padding}"])
        packed = lib.packed("w", desc(w))
        nchw, oihw = x.permute(0, 3, 1, 2).contiguous(), w.permute(3, 2, 0, 1).contiguous()
        self.convolve(f"conv {r}x{r}/{stride} {c}->{o}, {hw}x{hw}", 2 * p * p * o * c * r * r / 1e9, lib.run.bound([desc(x), packed, desc(y)]),
                      nchw, oihw, stride, padding, 1, y)

    def depthwise(self, c, hw, r, stride, padding):
        x, w = torch.randn(1, hw, hw, c), torch.randn(r, r, c)
        p = (hw + 2 * padding - r) // stride + 1
        y = torch.empty(1, p, p, c)
        lib = self.kernel(f"depthwise_{stride}_{padding}", ["depthwise_conv2d_nhwc", "--target", "avx512", "--option", f"stride={stride}", f"padding={padding}"])
        nchw, oihw = x.permute(0, 3, 1, 2).contiguous(), w.permute(2, 0, 1).unsqueeze(1).contiguous()
        self.convolve(f"depthwise {r}x{r} {c}, {hw}x{hw}", 2 * p * p * c * r * r / 1e9, lib.run.bound([desc(x), desc(w), desc(y)]), nchw, oihw, stride, padding, c, y)

    def convolve(self, what, work, ours, nchw, oihw, stride, padding, groups, y):
        last, last_w = nchw.to(memory_format=torch.channels_last), oihw.to(memory_format=torch.channels_last)
        two = [padding, padding], [stride, stride], [1, 1]
        reordered = torch.ops.mkldnn._reorder_convolution_weight(oihw, *two, groups, list(nchw.shape))
        theirs = {"NCHW": lambda: F.conv2d(nchw, oihw, None, stride, padding, 1, groups),
                  "channels last": lambda: F.conv2d(last, last_w, None, stride, padding, 1, groups),
                  "reordered": lambda: torch.ops.mkldnn._convolution_pointwise(nchw, reordered, None, *two, groups, "none", [], ""),
                  "reordered, last": lambda: torch.ops.mkldnn._convolution_pointwise(last, reordered, None, *two, groups, "none", [], "")}
        expected = F.conv2d(nchw.double(), oihw.double(), None, stride, padding, 1, groups).permute(0, 2, 3, 1)
        self.row(what, work, "GFLOP/s", ours, theirs, expected, lambda: y, 1e-4)


def main():
    parts = {"bf16": lambda b: [b.product_bf16(*s) for s in [(1344, 1536, 1024), (512, 3072, 768), (128, 768, 768)]],
             "int8": lambda b: [b.product_u8s8(*s) for s in [(1344, 1536, 1024), (512, 3072, 768), (128, 768, 768)]],
             "decode": lambda b: [b.product_bf16(m, 4096, 4096, "GB/s") for m in (1, 8)],
             "convolution": lambda b: [b.convolution(*s) for s in [(64, 56, 64, 3, 1, 1), (128, 28, 128, 3, 1, 1), (256, 14, 256, 3, 1, 1), (512, 7, 512, 3, 1, 1),
                                                                   (3, 224, 64, 7, 2, 3), (64, 56, 256, 1, 1, 0), (512, 7, 2048, 1, 1, 0)]],
             "depthwise": lambda b: [b.depthwise(*s) for s in [(96, 112, 3, 1, 1), (384, 14, 3, 1, 1)]]}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="default: all")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--runtime", required=True, help="libtessera_runtime.a")
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        for part in options.parts or parts:
            parts[part](Bench(options, folder))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
