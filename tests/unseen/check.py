"""The unseen algorithms compute what they say: under the schedule that each gets when nobody names one, its kernel gives what the plain
loops of loops.c give, at awkward shapes, and `verify` finds it right; the suite asks that of every second one.

    check.py <generator of the unseen> <loops.c as a library> <libtessera_runtime.a> <scratch folder>
"""
import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy as np
except ImportError:
    print("NumPy is not here; ./tessera test installs it")
    sys.exit(77)

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, "..", "..", "bench", "peers"))  # behind this folder, which has a cases.py of its own
from cases import CASES, Loops  # noqa: E402
from generated import Library, dense  # noqa: E402

IS_THOROUGH = os.environ.get("TESSERA_THOROUGH", "0") != "0"
TOLERANCE = 2e-5  # of an element, in parts of the largest result


def wrong(out, expected):
    """"" or how a result differs; integers must be equal."""
    if out.dtype.kind != "f":
        differs = out != expected
    else:
        largest = np.abs(expected, where=np.isfinite(expected), out=np.zeros_like(expected)).max(initial=0)
        with np.errstate(invalid="ignore"):
            differs = ~((out == expected) | (np.abs(out - expected) <= TOLERANCE * (1 + largest)) | (np.isnan(out) & np.isnan(expected)))
    if not differs.any():
        return ""
    at = tuple(map(int, np.argwhere(differs)[0]))
    return f"{differs.sum()} elements differ; the first, at {at}, is {out[at]}, expected {expected[at]}"


def names(arguments):
    """Of "x[M, K]"."""
    return [a.split("[")[0] for a in arguments]


def check(case, generator, loops, runtime, folder):
    """What is wrong, a line each."""
    problems = []
    if IS_THOROUGH or CASES.index(case) % 2 == 0:
        verified = subprocess.run([generator, "verify", case.name, "--shapes", "6", "--threads", "1"], capture_output=True, text=True)
        if verified.returncode != 0:
            problems.append(f"{case.name}: verify says {(verified.stdout + verified.stderr).strip()}")
    kernel = Library(generator, runtime, folder, case.name, [case.name])
    inputs, outputs = case.sides()
    parameters = [ctypes.c_float(p) for p in case.parameters.values()]
    for number, extents in enumerate(case.extents(case.small)):
        given, out = case.make(extents, seed=number)
        expected = [array.copy() for array in out]
        loops.run(case, extents, given, expected)
        tensors = [dense(array.ctypes.data, a.type, array.shape) for a, array in zip(inputs + outputs, given + out)]
        kernel.run(tensors, parameters)
        for argument, got, wanted in zip(outputs, out, expected):
            if difference := wrong(got, wanted):
                problems.append(f"{case.name}, {argument.name} at {extents}: {difference}")
    return problems


def main():
    generator, library, runtime, folder = sys.argv[1:]
    loops = Loops(library)
    listed = json.loads(subprocess.run([generator, "list", "--json"], capture_output=True, check=True).stdout)["algorithms"]
    declared = {a["name"]: (a["dims"], [names(a["inputs"]), names(a["outputs"])]) for a in listed}
    expected = {case.name: (case.dims.split(), [[a.name for a in side] for side in case.sides()]) for case in CASES}
    problems = [f"{name}: generator.cpp and cases.py do not agree: {declared.get(name)} and {expected.get(name)}"
                for name in sorted(declared | expected) if declared.get(name) != expected.get(name)]
    with ThreadPoolExecutor(2) as both:
        for found in both.map(lambda case: check(case, generator, loops, runtime, folder), CASES):
            problems += found
    for problem in problems:
        print(problem)
    shapes = sum(len(case.extents(case.small)) for case in CASES)
    print(f"{len(CASES)} algorithms at {shapes} shapes beside plain loops, {len(problems)} wrong")
    sys.exit(1 if problems else 0)


main()
