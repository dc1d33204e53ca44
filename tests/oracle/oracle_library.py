"""The kernels of the standard library that oracle.py does not have: what they give is compared with NumPy and SciPy (library_cases.py),
and `verify` finds each right; the suite asks it of every third.

    oracle_library.py <generator> <libtessera_runtime.a> <libtessera_load.a> <scratch folder>

Every algorithm of the library has to be in one of the two scripts, or in ELSEWHERE with who compares it, and in docs/accuracy.md.

Loops are plain, so that this takes a minute: what schedules may change is tested elsewhere. A few are derived."""
import ctypes
import json
import os
import subprocess
import sys

try:
    import numpy as np
    import scipy.special  # noqa: F401
except ImportError:
    print("NumPy and SciPy are not here; ./tessera test installs them")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import library_cases  # noqa: E402
import state_cases  # noqa: E402
from both_ways import BothWays  # noqa: E402
from oracle import (IS_THOROUGH, STORED_RESULTS, Accuracy, Library, as_float, desc, host_features, numpy_cases,  # noqa: E402
                    stored_cases, targets_for, wrong_elements)

PARAMETERS = {"f4": ctypes.c_float, "i4": ctypes.c_int32, "i8": ctypes.c_int64}
STORED = {"f32": "f4", "bf16": "u2", "f16": "f2"}
# Kernels under the schedule that Tessera derives for them: folds, maps, data positions.
DERIVED = {"logsumexp", "rotary", "resize_bilinear_nhwc", "embedding"}
# Shapes at which the reference interpreter takes a moment; of the others verify chooses some.
SHAPES = {"transposed_conv2d_nhwc": "N=2 H=4 W=3 C=3 R=3 S=2 O=5", "attention_grouped": "H=2 G=2 S=5 T=11 D=4 E=9"}

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "accuracy.md")
# Compared by another script, with what nothing of Tessera computed.
ELSEWHERE = {"encoder": "tests/minilm/check.py",
             **dict.fromkeys(("attention_cached", "cache_append", "cache_copy_pages"), "tests/python/test_kv_cache.py"),
             **dict.fromkeys(("causal_conv1d", "gru", "linear_recurrence", "lstm", "rnn"), "tests/python/test_recurrent.py")}


def cases():
    rng = np.random.default_rng(1)

    def f(*shape):
        return rng.standard_normal(shape).astype("f4")
    for topic in library_cases.TOPICS + state_cases.TOPICS:
        yield from topic(f, rng)


def outputs(case):
    for i, expected in enumerate(case.expected[case.states:]):
        type = case.types[i] if case.types else STORED[case.numerics]
        fill = {"u2": 0x7fc0, "i4": -1}.get(type, np.nan)
        yield np.full(expected.shape, fill, type)


def missing(generator):
    """What the library has and no script compares, or the table of errors leaves out: a sentence each."""
    listed = json.loads(subprocess.run([generator, "list", "--json"], check=True, stdout=subprocess.PIPE).stdout)["algorithms"]
    others = [*numpy_cases(np.random.default_rng(1)), *stored_cases(STORED_RESULTS)]
    compared, names = {case.algorithm for case in [*cases(), *others]}, {a["name"] for a in listed}
    with open(TABLE, encoding="utf-8") as stream:
        text = stream.read()
    for name in sorted(names - compared - set(ELSEWHERE)):
        yield f"{name}: nothing that Tessera did not compute is compared with it; add a case to library_cases.py or state_cases.py"
    for name in sorted(name for name in names - set(ELSEWHERE) if f"| `{name}` |" not in text):
        yield f"{name}: docs/accuracy.md has no row of it; accuracy.py says how to make the table again"


def main():
    generator, runtime, load, folder = sys.argv[1:]
    both = BothWays(runtime, load, folder)
    target = "avx2" if "avx2" in targets_for(host_features()) else "x86-64"
    kernels, checked, failed, accuracy = {}, 0, 0, Accuracy()
    for sentence in missing(generator):
        failed += 1
        print(sentence)
    for case in cases():
        if case.numerics == "f16" and target == "x86-64":
            continue
        key = case.algorithm, case.numerics, *case.options.values()
        if key not in kernels:
            name = "_".join(map(str, key))
            words = [case.algorithm, "--numerics", case.numerics, "--target", target]
            words += ["--option"] * bool(case.options) + [f"{k}={v}" for k, v in case.options.items()]
            words += [] if case.algorithm in DERIVED else ["--schedule", "none"]
            kernels[key] = Library(generator, runtime, folder, name, words)
            shapes = ["--extents", *SHAPES[case.algorithm].split()] if case.algorithm in SHAPES else ["--shapes", "4"]
            is_verified = IS_THOROUGH or len(kernels) % 3 == 0
            if is_verified and subprocess.run([generator, "verify", *words, *shapes, "--quiet"], stdout=subprocess.DEVNULL).returncode != 0:
                failed += 1
                print(f"verify {' '.join(words)}: it is wrong")
        made = list(outputs(case))
        inputs = [t.copy() for t in case.inputs[:case.states]] + case.inputs[case.states:]
        if not both.run(kernels[key], desc, inputs + made, [PARAMETERS[t](v) for t, v in case.parameters]):
            failed += 1
            print(f"{case.algorithm} in {case.numerics}, {case.options or 'no options'}: its bits differ when runtime/load loads it")
        for number, (out, expected) in enumerate(zip(inputs[:case.states] + made, case.expected)):
            exact = as_float(np.ascontiguousarray(expected))
            wrong = wrong_elements(as_float(out), exact, case.relative, case.absolute)
            accuracy.add(case.algorithm, case.numerics, out.dtype.str[1:], as_float(out), exact, case.absolute)
            checked += 1
            if wrong:
                failed += 1
                print(f"{case.algorithm} in {case.numerics}, {case.options or 'no options'}, result {number} {expected.shape}: {wrong}")
    accuracy.write()
    print(f"{checked} results of {len(kernels)} kernels compared with NumPy and SciPy, {failed} wrong")
    sys.exit(1 if failed else 0)


main()
