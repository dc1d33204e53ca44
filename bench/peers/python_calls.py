"""What a call from Python costs beside NumPy's own, what importing costs, and a first call. Run with ./tessera python bench/peers/python_calls.py.

Calls of both are timed in turns in one process, seven times each; the least counts. Imports and first calls are those of new processes, which
take turns too; the median of seven counts.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import timeit

import numpy as np

import tessera as ts
from tessera import Tensor, f32, jit

ROUNDS, CALLS = 7, 100_000
FIRST = """
import time
import numpy as np
from tessera import Tensor, f32, jit, tile
x, w, b = np.ones((64, 384), np.float32), np.ones((384, 512), np.float32), np.ones(512, np.float32)
start = time.perf_counter()
@jit(fix=("N", "K"), schedule={schedule!r})
def linear_silu(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
    return tile.silu(tile.dot(x, w).named("acc") + b)
linear_silu(x, w, b)
print(time.perf_counter() - start)
"""


@jit
def add(x: Tensor["N", f32], z: Tensor["N", f32]) -> Tensor["N", f32]:
    return x + z


def calls():
    for count in (16, 1024):
        x = np.ones(count, np.float32)
        names = {"add": add, "np": np, "x": x, "out": np.empty_like(x)}
        statements = {"ours, out": "add(x, x, out=out)", "NumPy, out": "np.add(x, x, out=out)", "ours, new result": "add(x, x)", "NumPy, new result": "x + x"}
        print(f"{count} elements: {in_turns(statements, names, CALLS)}")


def in_turns(statements, names, number):
    for statement in statements.values():
        eval(statement, names)  # compiles
    least = dict.fromkeys(statements, float("inf"))
    for _ in range(ROUNDS):
        for what, statement in statements.items():
            least[what] = min(least[what], timeit.timeit(statement, globals=names, number=number) / number)
    return "; ".join(f"{what} {1e9 * seconds:.0f} ns" for what, seconds in least.items())


def ufuncs():
    plus = add.ufunc()
    for rows, columns in ((1, 16), (1, 1024), (16, 64), (1024, 1024)):
        x = np.ones((rows, columns), np.float32)
        names = {"add": plus, "np": np, "x": x, "row": x[0].copy(), "column": x[:, :1].copy(), "out": np.empty_like(x), "own": x.copy()}
        statements = {f"{whose}, {what}": f"{module}add({arguments})" for what, arguments in
                      (("same shape", "x, x, out=out"), ("new result", "x, x"), ("a row", "x, row, out=out"), ("a column", "x, column, out=out"),
                       ("in place", "x, own, out=own")) for whose, module in (("ours", ""), ("NumPy", "np."))}
        with np.errstate(all="ignore"):
            print(f"ufunc, {rows}x{columns}: {in_turns(statements, names, max(100, 20_000_000 // (1000 + x.size)))}")


def seconds_of(program, folder):
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "TESSERA_CACHE": folder})
    return float(ran.stdout)


def processes():
    timed = {what: f"import time; a = time.perf_counter(); import {what}; print(time.perf_counter() - a)" for what in ("numpy", "tessera")}
    times = {what: [] for what in (*timed, "plain loops", "plain loops, from the cache", "shipped schedule", "shipped schedule, from the cache")}
    for _ in range(ROUNDS):
        for what, program in timed.items():
            times[what].append(seconds_of(program, "off"))
        with tempfile.TemporaryDirectory() as folder:
            for what, schedule in (("plain loops", "none"), ("shipped schedule", "linear/avx2")):
                program = FIRST.format(schedule=schedule)
                times[what].append(seconds_of(program, folder))
                times[f"{what}, from the cache"].append(seconds_of(program, folder))
    for what, seconds in times.items():
        print(f"{'import ' if what in timed else 'declare and call first, '}{what}: {1e3 * statistics.median(seconds):.1f} ms")


if __name__ == "__main__":
    print(f"tessera {ts.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}")
    calls()
    ufuncs()
    processes()
