#!/usr/bin/env python3
"""The shipped schedules beside those that Halide's own autoschedulers find for the same algorithms, in one process, taking
turns, on one thread: ./tessera peers halide [task...]

Halide's side is written as its users would, with the shape as an estimate, and scheduled by Mullapudi2016 and by Adams2019
(whose weights are in the wheel), each told that there is one core. A ratio above 1 means that the generated kernel is
faster; its interval is that of the median over rounds, at 95 %. A row has a process of its own, since an autoscheduler may
crash or search for very long."""
import argparse
import ctypes
import importlib.util
import math
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

from contest import contest
from generated import Library, dense

hl = None  # Halide's Python bindings, loaded from the unpacked wheel


def load_halide(folder):
    global hl
    spec = importlib.util.spec_from_file_location("halide", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    hl = sys.modules["halide"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hl)
    for name in AUTOSCHEDULERS:
        hl.load_plugin(os.path.join(folder, "lib64", f"libautoschedule_{name.lower()}.so"))


AUTOSCHEDULERS = {"Mullapudi2016": {"parallelism": "1"}, "Adams2019": {"parallelism": "1"}}


@dataclass
class Task:
    """One algorithm on one shape. Halide's dims are in the order of its own, the innermost first."""
    arguments: list                 # of `tessera generate`
    inputs: dict                    # shapes by name, as the kernel takes them
    output: tuple
    halide: Callable                # from the inputs as ImageParams to a Func
    reference: Callable             # from the inputs as doubles
    work: float                     # per call, in units of 1e9
    unit: str = "GFLOP/s"
    parameters: list = field(default_factory=list)


def matmul(m, n, k):
    def halide(x, w):
        i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(0, k)])
        y = hl.Func("y")
        y[j, i] = hl.f32(0)
        y[j, i] += x[r, i] * w[j, r]
        return y
    return Task(["matmul"], {"x": (m, k), "w": (k, n)}, (m, n), halide, lambda x, w: x @ w, 2e-9 * m * n * k)


def linear_gelu(m, n, k):
    def halide(x, w, b):
        i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(0, k)])
        dot, y = hl.Func("dot"), hl.Func("y")
        dot[j, i] = hl.f32(0)
        dot[j, i] += x[r, i] * w[j, r]
        z = dot[j, i] + b[j]
        y[j, i] = hl.f32(0.5) * z * (hl.f32(1) + hl.erf(z * hl.f32(math.sqrt(0.5))))
        return y

    def reference(x, w, b):
        z = x @ w + b
        return 0.5 * z * (1 + np.vectorize(math.erf)(z * math.sqrt(0.5)))
    return Task(["linear_gelu"], {"x": (m, k), "w": (k, n), "b": (n,)}, (m, n), halide, reference, 2e-9 * m * n * k)


def softmax(m, n):
    def halide(x):
        i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(0, n)])
        top, e, total, y = hl.Func("top"), hl.Func("e"), hl.Func("total"), hl.Func("y")
        top[i] = hl.f32(-math.inf)
        top[i] = hl.max(top[i], x[r, i])
        e[j, i] = hl.exp(x[j, i] - top[i])
        total[i] = hl.f32(0)
        total[i] += e[r, i]
        y[j, i] = e[j, i] / total[i]
        return y

    def reference(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    return Task(["softmax"], {"x": (m, n)}, (m, n), halide, reference, 8e-9 * m * n, "GB/s")


def layernorm(m, n):
    def halide(x, gamma, beta):
        i, j, r = hl.Var("i"), hl.Var("j"), hl.RDom([(0, n)])
        total, mean, squares, y = hl.Func("total"), hl.Func("mean"), hl.Func("squares"), hl.Func("y")
        total[i] = hl.f32(0)
        total[i] += x[r, i]
        mean[i] = total[i] / hl.f32(n)
        squares[i] = hl.f32(0)
        squares[i] += (x[r, i] - mean[i]) * (x[r, i] - mean[i])
        y[j, i] = (x[j, i] - mean[i]) / hl.sqrt(squares[i] / hl.f32(n) + hl.f32(1e-5)) * gamma[j] + beta[j]
        return y

    def reference(x, gamma, beta):
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta
    return Task(["layernorm"], {"x": (m, n), "gamma": (n,), "beta": (n,)}, (m, n), halide, reference, 8e-9 * m * n, "GB/s", [ctypes.c_float(1e-5)])


def gemv(m, k):
    def halide(a, x):
        i, r = hl.Var("i"), hl.RDom([(0, k)])
        y = hl.Func("y")
        y[i] = hl.f32(0)
        y[i] += a[r, i] * x[r]
        return y
    return Task(["gemv"], {"a": (m, k), "x": (k,)}, (m,), halide, lambda a, x: a @ x, 4e-9 * m * k, "GB/s")


def windows(x, r, s, padding):
    """x[h, w, ...] padded, as [r, s, h, w, ...]."""
    h, w = x.shape[:2]
    wide = np.pad(x, [(padding, padding)] * 2 + [(0, 0)] * (x.ndim - 2))
    p, q = h + 2 * padding - r + 1, w + 2 * padding - s + 1
    return np.array([[wide[a:a + p, b:b + q] for b in range(s)] for a in range(r)])


def conv(c, hw, o, r, padding):
    def halide(x, w):
        i, p, q, n = hl.Var("i"), hl.Var("p"), hl.Var("q"), hl.Var("n")
        d = hl.RDom([(0, c), (0, r), (0, r)])
        wide, y = hl.BoundaryConditions.constant_exterior(x, 0, [(0, c), (0, hw), (0, hw), (0, 1)]) if padding else x, hl.Func("y")
        y[i, q, p, n] = hl.f32(0)
        y[i, q, p, n] += wide[d[0], q + d[1] - padding, p + d[2] - padding, n] * w[i, d[0], d[1], d[2]]
        return y

    def reference(x, w):
        return np.einsum("rsphc,rsco->pho", windows(x[0], r, r, padding), w)[None]
    out = hw + 2 * padding - r + 1
    return Task(["conv2d_nhwc", "--option", f"padding={padding}"], {"x": (1, hw, hw, c), "w": (r, r, c, o)}, (1, out, out, o), halide, reference,
                2e-9 * out * out * o * c * r * r)


def depthwise(c, hw, r, padding):
    def halide(x, w):
        i, p, q, n = hl.Var("i"), hl.Var("p"), hl.Var("q"), hl.Var("n")
        d = hl.RDom([(0, r), (0, r)])
        wide, y = hl.BoundaryConditions.constant_exterior(x, 0, [(0, c), (0, hw), (0, hw), (0, 1)]) if padding else x, hl.Func("y")
        y[i, q, p, n] = hl.f32(0)
        y[i, q, p, n] += wide[i, q + d[0] - padding, p + d[1] - padding, n] * w[i, d[0], d[1]]
        return y

    def reference(x, w):
        return np.einsum("rsphc,rsc->phc", windows(x[0], r, r, padding), w)[None]
    out = hw + 2 * padding - r + 1
    return Task(["depthwise_conv2d_nhwc", "--option", f"padding={padding}"], {"x": (1, hw, hw, c), "w": (r, r, c)}, (1, out, out, c), halide, reference,
                2e-9 * out * out * c * r * r)


def attention(h, s, d):
    def halide(q, k, v):
        head, i, j, e = hl.Var("head"), hl.Var("i"), hl.Var("j"), hl.Var("e")
        over_d, over_t = hl.RDom([(0, d)]), hl.RDom([(0, s)])
        scores, top, p, total, sums, o = (hl.Func(name) for name in ["scores", "top", "p", "total", "sums", "o"])
        scores[j, i, head] = hl.f32(0)
        scores[j, i, head] += q[over_d, i, head] * k[over_d, j, head]
        top[i, head] = hl.f32(-math.inf)
        top[i, head] = hl.max(top[i, head], scores[over_t, i, head])
        p[j, i, head] = hl.exp((scores[j, i, head] - top[i, head]) * hl.f32(1 / math.sqrt(d)))
        total[i, head] = hl.f32(0)
        total[i, head] += p[over_t, i, head]
        sums[e, i, head] = hl.f32(0)
        sums[e, i, head] += p[over_t, i, head] * v[e, over_t, head]
        o[e, i, head] = sums[e, i, head] / total[i, head]
        return o

    def reference(q, k, v):
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(d)
        p = np.exp(scores - scores.max(2, keepdims=True))
        return p / p.sum(2, keepdims=True) @ v
    return Task(["attention"], {name: (h, s, d) for name in "qkv"}, (h, s, d), halide, reference, 4e-9 * h * s * s * d)


TASKS = {"matmul 512x768x3072": lambda: matmul(512, 768, 3072), "matmul 128x768x768": lambda: matmul(128, 768, 768),
         "linear_gelu 192x768x768": lambda: linear_gelu(192, 768, 768), "gemv 1024x4096": lambda: gemv(1024, 4096),
         "softmax 1024x4096": lambda: softmax(1024, 4096), "layernorm 4096x768": lambda: layernorm(4096, 768),
         "conv 3x3, 64 channels, 56x56": lambda: conv(64, 56, 64, 3, 1), "conv 1x1, 64 to 256, 56x56": lambda: conv(64, 56, 256, 1, 0),
         "depthwise 3x3, 96, 112x112": lambda: depthwise(96, 112, 3, 1), "attention 12x197x64": lambda: attention(12, 197, 64)}


def scheduled(task, arrays, output, autoscheduler):
    """Halide's kernel as a call without arguments."""
    inputs = [hl.ImageParam(hl.Float(32), len(shape), name) for name, shape in task.inputs.items()]
    for parameter, shape in zip(inputs, task.inputs.values()):
        parameter.set_estimates([(0, extent) for extent in reversed(shape)])
    func = task.halide(*inputs)
    func.set_estimates([(0, extent) for extent in reversed(task.output)])
    pipeline, target = hl.Pipeline(func), hl.get_host_target()
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(autoscheduler, AUTOSCHEDULERS[autoscheduler]))
    run = pipeline.compile_to_callable(inputs, target)
    buffers = [hl.Buffer(array) for array in [*arrays, output]]
    return lambda: run(*buffers)


def row(name, autoscheduler, options):
    task, draw = TASKS[name](), np.random.default_rng(1)
    arrays = [draw.standard_normal(shape, dtype=np.float32) for shape in task.inputs.values()]
    ours, theirs = np.zeros(task.output, np.float32), np.zeros(task.output, np.float32)
    with tempfile.TemporaryDirectory() as folder:
        library = Library(options.generator, options.runtime, folder, task.arguments[0], task.arguments)
        descs = [dense(a.ctypes.data, "f32", a.shape) for a in [*arrays, ours]]
        call, peer = library.run.bound(descs, task.parameters), scheduled(task, arrays, theirs, autoscheduler)
        for step, run in [("running Tessera's kernel", call), (f"running the kernel of {autoscheduler}", peer)]:
            print(step, file=sys.stderr, flush=True)  # the last word of a process that crashes
            run()
        expected = task.reference(*(a.astype(np.float64) for a in arrays))
        for who, result in [("Tessera", ours), (autoscheduler, theirs)]:
            error = np.abs(result - expected).max() / np.abs(expected).max()
            if not error <= 1e-4:
                sys.exit(f"{who} is wrong by {error:.1e} of the largest result")
        a, b, low, high = contest(call, peer, options.rounds)
        print(f"{name:30} {task.work / a:8.1f} {task.unit:8} {autoscheduler:14} {task.work / b:8.1f}  ratio {low:.2f}..{high:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="those whose name begins so; default: all")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--runtime", required=True, help="libtessera_runtime.a")
    parser.add_argument("--halide", required=True, help="the unpacked Halide wheel")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit", type=float, default=180, help="seconds for a row")
    parser.add_argument("--row", nargs=2, metavar=("TASK", "AUTOSCHEDULER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        load_halide(options.halide)
        return row(*options.row, options)
    tasks = [name for name in TASKS if not options.tasks or any(name.startswith(t) for t in options.tasks)]
    if not tasks:
        sys.exit(f"no task begins with any of {options.tasks}; there are: {', '.join(TASKS)}")
    for name in tasks:
        for autoscheduler in AUTOSCHEDULERS:
            row_process = subprocess.Popen([sys.executable, *sys.argv, "--row", name, autoscheduler], stderr=subprocess.PIPE, text=True,
                                           start_new_session=True)
            try:
                words = row_process.communicate(timeout=options.limit)[1].strip().splitlines()
                ended = row_process.returncode
                failure = ended and (f"signal {-ended} " if ended < 0 else f"exit {ended}: ") + "".join(words[-1:])
            except subprocess.TimeoutExpired:
                os.killpg(row_process.pid, signal.SIGKILL)
                row_process.communicate()
                failure = f"not done within {options.limit:.0f} s"
            if failure:
                print(f"{name:30} {'':17} {autoscheduler:14} {failure}", flush=True)


if __name__ == "__main__":
    os.environ["HL_NUM_THREADS"] = "1"
    main()
