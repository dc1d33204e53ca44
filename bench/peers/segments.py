"""The library's kernels over segments beside SciPy and PyTorch: ./tessera peers segments [--rounds N] [--threads N]

CSR products, softmax over rows of segments and embedding bags under the schedules that are derived for them; grouped products and attention
over sequences of their own lengths beside one call of PyTorch for each segment. In turns, f32; results must lie within 1e-3 of each other.
One thread is timed by its own clock, several by the wall's."""
import argparse
import os
import sys
import time

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contest import median_with_interval, turns  # noqa: E402
from generated import Library, Pools, dense  # noqa: E402

NAMES = {"float32": "f32", "int32": "i32", "int64": "i64"}
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.standard_normal(shape).astype("f4")


def desc(array):
    made = dense(array.ctypes.data, NAMES[str(array.dtype)], list(array.shape))
    made.array = array
    return made


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("i8")


def lengths_about(mean, segments):
    return RNG.integers(mean // 2, mean * 3 // 2 + 1, segments)


def csr(rows, columns, each, width):
    """A product of a sparse matrix: the arguments, the result's shape, and the peers' calls."""
    offsets = offsets_of(lengths_about(each, rows))
    t = int(offsets[-1])
    values, at = f(t), RNG.integers(0, columns, t).astype("i4")
    x = f(columns, width) if width else f(columns)
    a = scipy.sparse.csr_matrix((values, at, offsets.astype("i4")), shape=(rows, columns))
    mine = torch.sparse_csr_tensor(torch.from_numpy(offsets.astype("i4")), torch.from_numpy(at), torch.from_numpy(values), (rows, columns))
    theirs = torch.from_numpy(x)
    return [values, at, offsets, x], (rows, width) if width else (rows,), {"SciPy": lambda: a @ x, "PyTorch": lambda: mine @ theirs}


def grouped(segments, mean, k, n):
    offsets = offsets_of(lengths_about(mean, segments))
    x, w = f(int(offsets[-1]), k), f(segments, k, n) / np.float32(k ** 0.5)
    mine, weights = torch.from_numpy(x), torch.from_numpy(w)

    def loop():
        return torch.cat([mine[a:b] @ weights[i] for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:]))])
    return [x, offsets, w], (len(x), n), {"PyTorch": loop}


def softmax(segments, mean, n):
    offsets = offsets_of(lengths_about(mean, segments))
    x = f(int(offsets[-1]), n)
    mine = torch.from_numpy(x)

    def loop():
        return torch.cat([torch.softmax(mine[a:b], 0) for a, b in zip(offsets[:-1], offsets[1:])])
    return [x, offsets], x.shape, {"PyTorch": loop}


def bags(segments, mean, rows, width):
    offsets = offsets_of(lengths_about(mean, segments))
    ids, table = RNG.integers(0, rows, int(offsets[-1])).astype("i4"), f(rows, width)
    at, starts, mine = torch.from_numpy(ids).long(), torch.from_numpy(offsets), torch.from_numpy(table)
    return [ids, table, offsets], (segments, width), {
        "PyTorch": lambda: F.embedding_bag(at, mine, starts, mode="sum", include_last_offset=True)}


def attention(segments, mean, heads, width):
    offsets = offsets_of(lengths_about(mean, segments))
    t = int(offsets[-1])
    q, k, v = f(t, heads, width), f(t, heads, width), f(t, heads, width)
    mine = [torch.from_numpy(x).transpose(0, 1) for x in (q, k, v)]

    def loop():
        return torch.cat([F.scaled_dot_product_attention(*(x[None, :, a:b] for x in mine))[0].transpose(0, 1)
                          for a, b in zip(offsets[:-1], offsets[1:])])
    return [q, k, v, offsets, offsets], (t, heads, width), {"PyTorch": loop}


CASES = {
    "spmv 20000 x 20000, 10 a row": ("spmv", lambda: csr(20000, 20000, 10, 0)),
    "spmv 4000 x 4000, 200 a row": ("spmv", lambda: csr(4000, 4000, 200, 0)),
    "spmm 20000 x 20000, 10 a row, N=64": ("spmm", lambda: csr(20000, 20000, 10, 64)),
    "spmm 4000 x 4000, 100 a row, N=16": ("spmm", lambda: csr(4000, 4000, 100, 16)),
    "grouped product, 8 of 64 rows, 512 x 512": ("grouped_matmul", lambda: grouped(8, 64, 512, 512)),
    "grouped product, 64 of 8 rows, 256 x 512": ("grouped_matmul", lambda: grouped(64, 8, 256, 512)),
    "softmax over 64 segments of 64 rows, N=256": ("segmented_softmax", lambda: softmax(64, 64, 256)),
    "embedding bags, 1024 of 20, D=64": ("embedding_bag", lambda: bags(1024, 20, 50000, 64)),
    "attention, 16 of 128 tokens, 8 x 64": ("attention_segments", lambda: attention(16, 128, 8, 64)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("generator")
    parser.add_argument("runtime")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--schedule", help="in place of the shipped or derived one")
    parser.add_argument("--rows", default="", help="those whose name has it")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    torch.set_num_threads(options.threads)
    pool, kernels = Pools(options.runtime, options.folder), {}
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    for name, (algorithm, make) in CASES.items():
        if options.rows not in name:
            continue
        if algorithm not in kernels:
            words = [algorithm] + (["--schedule", options.schedule] if options.schedule else [])
            kernels[algorithm] = Library(options.generator, options.runtime, options.folder, algorithm, words)
        inputs, shape, peers = make()
        out = np.full(shape, np.nan, "f4")
        ours = kernels[algorithm].run.bound([desc(a) for a in [*inputs, out]], (), options.threads, pool.of(options.threads))
        ours()
        for peer, call in peers.items():
            far = float(np.abs(np.asarray(call()) - out).max())
            if not far <= 1e-3:
                sys.exit(f"error[segments.far]: {name} differs from {peer} by {far:.1e}; expected at most 1e-3")
        taken = turns({"ours": ours, **peers}, options.rounds, clock=clock, pause=0 if options.threads == 1 else 0.01)
        line = f"{name}, {options.threads} thread(s): ours {min(taken['ours']) * 1e6:.0f} us"
        for peer in peers:
            median, low, high = median_with_interval([y / x for x, y in zip(taken["ours"], taken[peer])])
            line += f"; {peer} {min(taken[peer]) * 1e6:.0f} us, ratio {median:.2f} ({low:.2f} to {high:.2f})"
        print(line, flush=True)


main()
