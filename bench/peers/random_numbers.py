"""How fast random numbers are made, beside others that make as many in turns, and what statistical tests say of them.

    random_numbers.py <generator> <libtessera_runtime.a> <scratch folder> [--count N] [--rounds N] [--statistics [TEST ...]]

Speeds are of f32 numbers written, one thread. The loop in C is Philox 4x32-10 as its authors define it, four words a round, compiled by the
system's compiler with -O3 -march=native. With --statistics the uniform numbers' bits go through dieharder (a Debian package), whose tests
are listed by `dieharder -l`; without names, all that it calls good and that read at most some gigabytes. A p-value below 1e-6 is a failure."""
import argparse
import ctypes
import os
import subprocess
import sys

import numpy as np
from contest import median_with_interval, turns
from generated import Library, dense, host_features, targets_for

PHILOX = r"""
#include <stdint.h>
void philox_uniform(float *y, int64_t count, uint64_t seed, uint32_t step) {
    for (int64_t block = 0; block < count / 4; block++) {
        uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = step, c3 = 0, k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++) {
            const uint64_t a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0, c2 = (uint32_t)(a >> 32) ^ c3 ^ k1, c1 = (uint32_t)b, c3 = (uint32_t)a;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        y[4 * block] = (float)(int32_t)(c0 >> 8) * 0x1p-24f, y[4 * block + 1] = (float)(int32_t)(c1 >> 8) * 0x1p-24f;
        y[4 * block + 2] = (float)(int32_t)(c2 >> 8) * 0x1p-24f, y[4 * block + 3] = (float)(int32_t)(c3 >> 8) * 0x1p-24f;
    }
}
"""
# Those that dieharder calls good, without the ones that read tens of gigabytes.
GOOD = ["0", "1", "2", "3", "4", "8", "9", "10", "11", "12", "13", "15", "16", "17", "100", "101", "102", "205", "206", "207", "208", "209"]
SEED, CHUNK = 20261126, 3 << 20


def compiled_loop(folder):
    path = os.path.join(folder, "philox.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", path, "-x", "c", "-"], input=PHILOX,
                   text=True, check=True)
    loop = ctypes.CDLL(path).philox_uniform
    loop.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint32]
    return loop


def made_by(library, y):
    return lambda step: library.run([dense(y.ctypes.data, "f32", y.shape)], [ctypes.c_int64(SEED), ctypes.c_int64(step)])


def speeds(kernels, loop, count, rounds):
    y = {name: np.empty(count, "f4") for name in kernels}
    made = {name: made_by(library, y[name]) for name, library in kernels.items()}
    own, theirs = np.empty(count, "f4"), np.random.Generator(np.random.Philox(SEED))
    fast = np.random.Generator(np.random.SFC64(SEED))
    loop(own.ctypes.data, count, SEED, 7)
    made["random_uniform"](7)
    assert (own == y["random_uniform"]).all(), "the loop in C gives other numbers"
    calls = {"random_uniform": lambda: made["random_uniform"](7), "random_normal": lambda: made["random_normal"](7),
             "Philox in C, gcc": lambda: loop(own.ctypes.data, count, SEED, 7),
             "NumPy, Philox 4x64": lambda: theirs.random(dtype="f4", out=own), "NumPy, SFC64": lambda: fast.random(dtype="f4", out=own),
             "NumPy, Philox 4x64, normal": lambda: theirs.standard_normal(dtype="f4", out=own)}
    taken = turns(calls, rounds)
    print(f"{count} numbers, GB/s, one thread:")
    for name, times in taken.items():
        print(f"  {name:28} {4e-9 * count / min(times):6.2f}")
    for ours, other in [("random_uniform", "Philox in C, gcc"), ("random_uniform", "NumPy, Philox 4x64"), ("random_uniform", "NumPy, SFC64"),
                        ("random_normal", "NumPy, Philox 4x64, normal")]:
        middle, low, high = median_with_interval([b / a for a, b in zip(taken[ours], taken[other])])
        print(f"  {ours} beside {other}: {middle:.2f} ({low:.2f}..{high:.2f}) times as fast")


def statistics(library, tests):
    """Runs dieharder on the numbers' 24 bits each, three bytes a number, and says what it found; the count of failures."""
    y = np.empty(CHUNK, "f4")
    make, failed, weak = made_by(library, y), 0, 0
    for test in tests:
        # Each test begins where no other does.
        step = 1 << 20 | int(test) << 10
        reader = subprocess.Popen(["dieharder", "-g", "200", "-d", test, "-D", "test_name", "-D", "ntuple", "-D", "pvalues"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
        try:
            while reader.poll() is None:
                make(step)
                step += 1
                words = (y * np.float32(2 ** 24)).astype("<u4")
                reader.stdin.write(np.ascontiguousarray(words.view("u1").reshape(-1, 4)[:, :3]).tobytes())
        except BrokenPipeError:
            pass
        for line in reader.stdout.read().decode().splitlines():
            if "|" not in line or line.lstrip().startswith("test_name") or line.startswith("#"):
                continue
            name, size, p = [part.strip() for part in line.split("|")][:3]
            p = float(p)
            failed, weak = failed + (p < 1e-6 or p > 1 - 1e-6), weak + (p < 5e-3 or p > 1 - 5e-3)
            print(f"  {name:24} {size:>3}  p = {p:.8f}", flush=True)
        reader.wait()
    print(f"{failed} failed, {weak} outside 0.005 .. 0.995")
    return failed


def main():
    parser = argparse.ArgumentParser()
    for name in ("generator", "runtime", "folder"):
        parser.add_argument(name)
    parser.add_argument("--count", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--statistics", nargs="*", metavar="TEST")
    options = parser.parse_args()
    target = targets_for(host_features())[0]
    os.makedirs(options.folder, exist_ok=True)
    kernels = {name: Library(options.generator, options.runtime, options.folder, name, [name, "--target", target])
               for name in ("random_uniform", "random_normal")}
    if options.statistics is None:
        speeds(kernels, compiled_loop(options.folder), options.count, options.rounds)
    else:
        sys.exit(statistics(kernels["random_uniform"], options.statistics or GOOD) > 0)


main()
