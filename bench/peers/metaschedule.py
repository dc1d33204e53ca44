#!/usr/bin/env python3
"""Tessera's tuner beside TVM's MetaSchedule, on one thread: ./tessera peers metaschedule [task...]

MetaSchedule searches its default space with its default cost model, in batches of 32 candidates, so that it learns as often as it
can and every column has a batch that ends there; the target is `llvm` with the processor that LLVM finds, one core, and its builder,
its runner and its search have one core as Tessera's have. Its columns are the best that its own runner measured, with the seconds
since it began. Its winner is compiled again and timed again in this process, in turns with the kernel that 16 trials of Tessera's
`tune` with the shipped model made for the shape, on the same inputs, and both results are compared with NumPy's. A ratio above 1
means that Tessera's kernel is faster; its interval is that of the median over rounds, at 95 %.

The last columns are of a search from nothing, without cost model or shipped schedule: trials, and their share of its seconds, until
one measured what MetaSchedule's winner reached. Both are shares of one kernel's speed, that of the shipped schedule, which each
takes turns with."""
import argparse
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

os.environ.update(TVM_NUM_THREADS="1", TVM_BIND_THREADS="0", OMP_NUM_THREADS="1")  # read when TVM is loaded

import numpy as np
import tvm
from tvm import te
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

import autoschedulers
from contest import contest
from generated import Library, dense
from tuning import curve_of, tune_json

BATCH = 32
COLUMNS = [32, 64, 128, 256]


def matmul(x, w):
    r = te.reduce_axis((0, x.shape[1]), name="r")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="y")


def conv(x, w):
    n, h, wide, c = x.shape
    r, s, _, o = w.shape
    a, b, d = te.reduce_axis((0, r), name="a"), te.reduce_axis((0, s), name="b"), te.reduce_axis((0, c), name="d")
    return te.compute((n, h - r + 1, wide - s + 1, o),
                      lambda i, p, q, k: te.sum(x[i, p + a, q + b, d] * w[a, b, d, k], axis=[a, b, d]), name="y")


def softmax(x):
    m, n = x.shape
    over_max, over_sum = te.reduce_axis((0, n), name="over_max"), te.reduce_axis((0, n), name="over_sum")
    top = te.compute((m,), lambda i: te.max(x[i, over_max], axis=over_max), name="top")
    e = te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((m,), lambda i: te.sum(e[i, over_sum], axis=over_sum), name="total")
    return te.compute((m, n), lambda i, j: e[i, j] / total[i], name="y")


@dataclass
class Task:
    of: autoschedulers.Task
    shape: dict           # as `tune` takes it
    te: Callable          # from the inputs as placeholders
    most: int = 1 << 30   # trials of MetaSchedule


TASKS = {  # a candidate of softmax takes MetaSchedule 8 seconds
    "matmul 128x768x768": Task(autoschedulers.matmul(128, 768, 768), dict(M=128, N=768, K=768), matmul),
    "matmul 512x3072x768": Task(autoschedulers.matmul(512, 3072, 768), dict(M=512, N=3072, K=768), matmul),
    "conv 3x3, 64 to 64, 56x56": Task(autoschedulers.conv(64, 58, 64, 3, 0), dict(N=1, H=58, W=58, C=64, R=3, S=3, O=64), conv),
    "softmax 1024x4096": Task(autoschedulers.softmax(1024, 4096), dict(M=1024, N=4096), softmax, 32),
}


@derived_object
class Progress(ms.measure_callback.PyMeasureCallback):
    """Keeps the best seconds of a call after each batch: (trials, seconds since `start`, best)."""

    def __init__(self, start, curve):
        super().__init__()
        self.start, self.curve = start, curve

    def apply(self, scheduler, task_id, candidates, builds, runs):
        trials, _, best = self.curve[-1] if self.curve else (0, 0, math.inf)
        best = min([best] + [sum(map(float, r.run_secs)) / len(r.run_secs) for r in runs if r.run_secs])
        self.curve.append((trials + len(runs), time.monotonic() - self.start, best))


def search(task, options):
    """MetaSchedule's winner as a function of TVM's tensors, and its curve."""
    inputs = [te.placeholder(shape, name=name) for name, shape in task.of.inputs.items()]
    function = te.create_prim_func([*inputs, task.te(*inputs)])
    target = tvm.target.Target({"kind": "llvm", "mcpu": options.mcpu, "num-cores": 1})
    trials, curve, start = min(options.trials, task.most), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        callbacks = [Progress(start, curve), *ms.measure_callback.MeasureCallback.create("default")]
        database = ms.tune_tir(function, target, folder, trials, num_trials_per_iter=min(BATCH, trials), num_tuning_cores=1,
                               seed=options.seed, measure_callbacks=callbacks)
        winner = ms.tir_integration.compile_tir(database, function, target)
        return tvm.compile(winner.mod, target=target)["main"], curve


def tessera(task, options, folder, more):
    """What `tune` says; its artifacts are in `folder`/out."""
    return tune_json(options.generator, task.of.arguments, task.shape, "host", [*more, "--seed", str(options.seed)], folder)


def row(name, options):
    task, draw = TASKS[name], np.random.default_rng(1)
    function, curve = search(task, options)
    arrays = [draw.standard_normal(shape, dtype=np.float32) for shape in task.of.inputs.values()]
    inputs = [tvm.runtime.tensor(a) for a in arrays]
    outputs = {who: tvm.runtime.tensor(np.zeros(task.of.output, np.float32)) for who in ["MetaSchedule", "tuned", "shipped"]}

    def desc(tensor):
        return dense(np.from_dlpack(tensor).ctypes.data, "f32", tensor.shape)
    calls = {"MetaSchedule": lambda: function(*inputs, outputs["MetaSchedule"])}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as another:
        few = tessera(task, options, folder, ["--trials", "16"])
        fixed = [*task.of.arguments, "--shape", *(f"{d}={n}" for d, n in task.shape.items())]
        for who, more in [("tuned", ["--schedule-dir", os.path.join(folder, "out")] if few["improved"] else []), ("shipped", [])]:
            library = Library(options.generator, options.runtime, folder, f"{task.of.arguments[0]}_{who}", [*fixed, *more])
            calls[who] = library.run.bound([desc(t) for t in [*inputs, outputs[who]]])
        expected = task.of.reference(*(a.astype(np.float64) for a in arrays))
        for who, call in calls.items():
            call()
            error = np.abs(outputs[who].numpy() - expected).max() / np.abs(expected).max()
            if not error <= 1e-4:
                sys.exit(f"{name}, {who}: wrong by {error:.1e} of the largest result; expected at most 1e-4")
        ours, theirs, low, high = contest(calls["tuned"], calls["MetaSchedule"], options.rounds)
        shipped = contest(calls["shipped"], calls["MetaSchedule"], options.rounds)
        goal = 1 / math.sqrt(shipped[2] * shipped[3])  # MetaSchedule's speed as a share of the shipped schedule's
        nothing = tessera(task, options, another, ["--trials", str(options.from_nothing), "--model", "none", "--unseeded"])
    reached = curve_of(nothing, with_base=False)
    found = next((i for i, ratio in enumerate(reached) if ratio >= goal), None)
    return {"task": name, "mcpu": options.mcpu, "metaschedule": [(n, s, task.of.work / best) for n, s, best in curve],
            "again": task.of.work / theirs, "tessera": task.of.work / ours, "tessera_s": few["elapsed_s"], "ratio": [low, high],
            "goal": goal, "curve": reached, "nothing_s": nothing["elapsed_s"], "found": found,
            "found_s": found and nothing["elapsed_s"] * found / (len(reached) - 1)}


def columns(options):
    return [c for c in COLUMNS if c < options.trials] + [options.trials]


def line(result, options):
    after = {n: f"{speed:.1f} ({seconds:.0f} s)" for n, seconds, speed in result["metaschedule"]}
    found = f"over {len(result['curve']) - 1}" if result["found"] is None else f"{result['found']} ({result['found_s']:.0f} s)"
    ours = f"{result['tessera']:.1f} ({result['tessera_s']:.0f} s)"
    return "".join([f"{result['task'] + ', ' + TASKS[result['task']].of.unit:36}", *(f"{after.get(c, ''):>15}" for c in columns(options)),
                    f"{result['again']:9.1f}{ours:>15}   {result['ratio'][0]:.2f}..{result['ratio'][1]:.2f}{found:>16}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="those whose name begins so; default: all")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--runtime", required=True, help="libtessera_runtime.a")
    parser.add_argument("--trials", type=int, default=256, help="of MetaSchedule, at most; 32 for softmax")
    parser.add_argument("--from-nothing", type=int, default=64, help="trials of the search from nothing")
    parser.add_argument("--mcpu", default=tvm.target.codegen.llvm_get_system_cpu(), help="what TVM compiles for; default: this processor")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="a file that results are appended to, as lines of JSON")
    options = parser.parse_args()
    tasks = [name for name in TASKS if not options.tasks or any(name.startswith(t) for t in options.tasks)]
    if not tasks:
        sys.exit(f"no task begins with any of {options.tasks}; there are: {', '.join(TASKS)}")
    logging.disable(logging.INFO)  # MetaSchedule tells all that it does
    heads = [*(f"{c:>15}" for c in columns(options)), f"{'again':>9}{'Tessera, 16':>15}   {'ratio':10}{'from nothing':>16}"]
    print(f"{'MetaSchedule after trials:':36}" + "".join(heads), flush=True)
    for name in tasks:
        result = row(name, options)
        print(line(result, options), flush=True)
        if options.out:
            with open(options.out, "a") as out:
                out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
