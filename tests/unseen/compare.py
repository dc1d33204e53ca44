#!/usr/bin/env python3
"""The unseen algorithms beside what gcc makes of plain loops: ./tessera unseen [algorithm...]

Each algorithm is generated with all dims dynamic, and timed at a dozen shapes in turns with its loops (loops.c), compiled by
`gcc -O3 -march=native -ffast-math`. A ratio is the loops' time over the kernel's: above 1 the kernel is faster. Times are the best of
20 turns on both sides, each of as many calls as take half a millisecond. A row has the geometric mean of the ratios of an algorithm's shapes
and the least of them.

--schedule is given to the generator as it is: none for plain loops, a name or a file; without it the kernel has what it would get if
nobody said anything. --tune N searches with N trials first, for the typical shape of each algorithm, and takes what it finds;
--tune-shapes K for the first K shapes, N trials for each. --threads gives threads to the kernel; the loops have one. --detail shows each
shape, --json writes everything."""
import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, "..", "..", "bench", "peers"))  # behind this folder, which has a cases.py of its own
from cases import CASES, Loops  # noqa: E402
from generated import Library, dense  # noqa: E402

LOOP_FLAGS = ["-O3", "-march=native", "-ffast-math"]
TURNS, LEAST_S = 20, 5e-4  # and seconds of a turn
# Calls from C, since a call through ctypes takes as long as a small kernel. With one thread, time is the thread's own.
TIMER = """
#include <time.h>
#include "tessera.h"
typedef int Kernel({kernel_types});
typedef void Loops({loops_types});
static double now(int threads) {{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}}
void *pool_of(int threads) {{ return tess_pool_create(threads); }}
double time_kernel(Kernel *kernel, int calls, int threads, void **a, const float *p, int *status) {{
    const double start = now(threads);
    for (int i = 0; i < calls; i++) *status |= kernel({kernel});
    return now(threads) - start;
}}
double time_loops(Loops *loops, int calls, int threads, const int *d, void **a, const float *p) {{
    const double start = now(threads);
    for (int i = 0; i < calls; i++) loops({loops});
    return now(threads) - start;
}}
"""


def timer_of(case):
    """C that times a kernel on descriptors a[i], and loops on dims d[i] and arrays a[i], both with parameters p[i]."""
    dims, tensors, floats = len(case.dims.split()), sum(map(len, case.sides())), len(case.parameters)
    def words(name, count):
        return [f"{name}[{i}]" for i in range(count)]
    return TIMER.format(kernel_types=", ".join(["const void *"] * (tensors + (floats > 0) + 1)),
                        loops_types=", ".join(["int"] * dims + ["void *"] * tensors + ["float"] * floats),
                        kernel=", ".join(words("a", tensors) + ["p"] * (floats > 0) + [f"a[{tensors}]"]),
                        loops=", ".join(words("d", dims) + words("a", tensors) + words("p", floats)))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def compiled(cc, source, folder, name, flags, libraries=()):
    """A library of a C file. It is linked without the flags: -ffast-math would change how the whole process rounds."""
    path = os.path.join(folder, name)
    run(cc, *flags, "-std=gnu11", "-fPIC", "-c", "-o", path + ".o", source)
    run(cc, "-shared", "-o", path + ".so", path + ".o", *libraries, "-lm", "-lpthread")
    return path + ".so"


def tuned(options, case, folder):
    """The words that make the generator take what `tune` finds."""
    shapes = case.extents(case.shapes)[:options.tune_shapes]
    base = ["--schedule", options.schedule] if options.schedule else []
    found = os.path.join(folder, "tuned")
    run(options.generator, "tune", case.name, "--target", options.target, *base, "--trials", str(options.tune * len(shapes)),
        "--extents", *(f"{d}={extents[d]}" for d in case.dims.split() for extents in shapes), "--threads", str(options.threads),
        "--quiet", "--records", os.path.join(folder, "records.db"), "--out", found)
    return ["--schedule-dir", found] if os.path.isdir(found) else base  # nothing where nothing was faster


class Contest:
    """A kernel and its loops in one process."""

    def __init__(self, options, case, folder, loops):
        self.case, self.threads = case, options.threads
        if options.tune:
            chosen = tuned(options, case, os.path.join(folder, case.name + ".tune"))
        else:
            chosen = ["--schedule", options.schedule] if options.schedule else []
        arguments = [case.name, "--target", options.target, *chosen]
        self.kernel = Library(options.generator, options.runtime, folder, case.name, arguments).run
        self.loops = getattr(loops.library, case.name)
        source = os.path.join(folder, case.name + "_timer.c")
        with open(source, "w") as text:
            text.write(timer_of(case))
        flags = ["-O2", "-I", os.path.join(here, "..", "..", "runtime", "abi")]
        timer = ctypes.CDLL(compiled(options.cc, source, folder, case.name + "_timer", flags, [options.runtime]))
        self.time_kernel, self.time_loops = timer.time_kernel, timer.time_loops
        self.time_kernel.restype = self.time_loops.restype = ctypes.c_double
        timer.pool_of.restype = ctypes.c_void_p
        self.pool = timer.pool_of(options.threads) if options.threads > 1 else None

    def times(self, extents):
        """The best seconds of a call of the kernel and of the loops."""
        inputs, outputs = self.case.make(extents)
        given, made = self.case.sides()
        arrays, parameters = inputs + outputs, list(self.case.parameters.values())
        tensors = [dense(array.ctypes.data, a.type, array.shape) for a, array in zip(given + made, arrays)]
        context = self.kernel.context(tensors, self.threads, self.pool)
        descriptors = (ctypes.c_void_p * (len(tensors) + 1))(*(ctypes.addressof(t) for t in [*tensors, context]))
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        dims = (ctypes.c_int * len(extents))(*extents.values())
        floats = (ctypes.c_float * (len(parameters) + 1))(*parameters)
        status = ctypes.c_int()

        def kernel(calls):
            return self.time_kernel(self.kernel.run, calls, self.threads, descriptors, floats, ctypes.byref(status))

        def loops(calls):
            return self.time_loops(self.loops, calls, self.threads, dims, pointers, floats)

        sides = [(time, enough(time)) for time in (kernel, loops)]
        turns = [[time(calls) / calls for time, calls in sides] for _ in range(TURNS)]
        if status.value != 0:
            raise RuntimeError(f"at {shape_text(extents)}: status {status.value:#x}")
        return [min(times) for times in zip(*turns)]


def enough(time):
    """So many calls that they take LEAST_S."""
    calls = 1
    while (taken := time(calls)) < LEAST_S:
        calls = max(2 * calls, math.ceil(0.7 * calls * LEAST_S / max(taken, 1e-9)))
    return calls


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def shape_text(extents):
    return " ".join(f"{d}={n}" for d, n in extents.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="*", help="default: all")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--target", default="host")
    parser.add_argument("--schedule")
    parser.add_argument("--tune", type=int, default=0, metavar="N")
    parser.add_argument("--tune-shapes", type=int, default=1, metavar="K")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--detail", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    unknown = set(options.algorithms) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"no algorithm {', '.join(sorted(unknown))}; there are {', '.join(case.name for case in CASES)}")

    schedule = options.schedule or "what nobody named"
    if options.tune:
        schedule = f"tuned, {options.tune} trials for each of {options.tune_shapes} shapes, from {schedule}"
    result = {"cc": run(options.cc, "--version").splitlines()[0], "flags": LOOP_FLAGS, "schedule": schedule, "target": options.target,
              "threads": options.threads, "algorithms": []}
    if not options.json:
        print(f"{result['cc']}, {' '.join(LOOP_FLAGS)}, beside schedule {schedule} for {options.target}, "
              f"{options.threads} thread{'s' * (options.threads > 1)}")
        print(f"{'loops / kernel':20}{'geomean':>9}{'least':>9}  at", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        loops = Loops(compiled(options.cc, os.path.join(here, "loops.c"), folder, "loops", LOOP_FLAGS))
        for case in CASES:
            if options.algorithms and case.name not in options.algorithms:
                continue
            try:
                row = compared(options, case, folder, loops)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{case.name}: {error}", file=sys.stderr, flush=True)
                result.setdefault("failed", []).append(case.name)
                continue
            result["algorithms"].append(row)
            if options.json:
                continue
            least = min(row["shapes"], key=lambda shape: shape["ratio"])
            print(f"{row['name']:20}{row['geomean']:9.2f}{least['ratio']:9.2f}  {shape_text(least['extents'])}", flush=True)
            for shape in row["shapes"] if options.detail else []:
                print(f"{'':20}{shape['ratio']:9.2f}{1e6 * shape['loops_s']:11.1f} / {1e6 * shape['kernel_s']:.1f} us  "
                      f"{shape_text(shape['extents'])}", flush=True)
    ratios = [shape["ratio"] for row in result["algorithms"] for shape in row["shapes"]]
    if ratios:
        result["geomean"], result["least"] = geometric_mean(ratios), min(ratios)
    if options.json:
        print(json.dumps(result, indent=2))
    elif ratios:
        print(f"{'all':20}{result['geomean']:9.2f}{result['least']:9.2f}  {sum(r >= 1 for r in ratios)} of {len(ratios)} shapes at 1 or above")
    sys.exit(1 if "failed" in result else 0)


def compared(options, case, folder, loops):
    contest = Contest(options, case, folder, loops)
    shapes = []
    for extents in case.extents(case.shapes):
        kernel, plain = contest.times(extents)
        shapes.append({"extents": extents, "kernel_s": kernel, "loops_s": plain, "ratio": plain / kernel})
    return {"name": case.name, "geomean": geometric_mean([s["ratio"] for s in shapes]), "shapes": shapes}


if __name__ == "__main__":
    main()
