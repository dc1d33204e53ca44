#!/usr/bin/env python3
"""Generated kernels beside PyTorch (eager, and compiled where that makes a kernel), onnxruntime, a current OpenBLAS, FFTW and NumPy, in one
process, taking turns: ./tessera peers [--quick] [--rows REGEX].

Each side takes the fastest of its ways for a row, and weights that are constant in the form that it likes best, made before the time
begins. All results are compared with one in f64 first. The ratio is the best peer's time by ours: above 1 the generated kernel is faster.
The limit of a row is the greater of two times, measured in the same turns: of its operations on registers, and of its bytes by a plain
copy."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime
import torch

import limits
import report
import rows
from cases import Cases
from contest import fastest, median_with_interval, turns
from ours import Kernels

SPINNING_ENDS_S = 5e-3  # threads that wait for work stop spinning, and are not in the next contestant's way


def far(result, expected):
    return ((result.double() - expected).abs().max() / expected.abs().max()).item()


def rounded(values):
    return [float(f"{v:.4g}") for v in values]


def measured(row, case, machine, rounds):
    """A row of the report, without a name."""
    how = {"clock": time.thread_time} if row.threads == 1 else {"clock": time.perf_counter}
    if row.cold:
        how["before"] = machine.evict
    for way, call in case.ours.items():
        case.result.zero_()
        call()
        if not far(case.result, case.expected) <= case.tolerance:
            raise ArithmeticError(
                f"ours by {way} is off by {far(case.result, case.expected):.1e} of the largest; at most {case.tolerance:.0e}")
    for peer, ways in case.peers.items():
        for way, call in ways.items():
            if not far(call(), case.expected) <= case.tolerance:
                raise ArithmeticError(
                    f"{peer} by {way} is off by {far(call(), case.expected):.1e} of the largest; at most {case.tolerance:.0e}")
    sides = {"Tessera": case.ours, **case.peers}
    chosen = {side: fastest(ways, **how) for side, ways in sides.items()}
    kept = []

    def memory(size):
        kept.append(torch.zeros(size + 64, dtype=torch.uint8))
        return -(-kept[-1].data_ptr() // 64) * 64
    calls = {side: ways[chosen[side]] for side, ways in sides.items()}
    calls["copy"] = machine.movement(memory, *rows.bytes_moved(row))
    operations = rows.operations(row)
    if operations:
        calls["arithmetic"] = machine.arithmetic(row.dtype, operations)
    taken = turns(calls, rounds, pause=SPINNING_ENDS_S if row.threads > 1 else 0, **how)
    medians = {name: median_with_interval(values) for name, values in taken.items()}
    peer = min(case.peers, key=lambda name: medians[name][0])
    ratio = median_with_interval([theirs / ours for theirs, ours in zip(taken[peer], taken["Tessera"])])
    limit = {"copy": medians["copy"][0]}
    if operations:
        limit["arithmetic"] = medians["arithmetic"][0] / row.threads
    what = max(limit, key=limit.get)
    read, written = rows.bytes_moved(row)
    return {"operations": operations, "bytes": read + written,
            "seconds": {side: {"way": chosen[side], "median": median, "interval": interval}
                        for side in sides for median, *interval in [rounded(medians[side])]},
            "best_peer": peer, "ratio": rounded(ratio)[0], "interval": rounded(ratio)[1:],
            "limit": {"what": what, "seconds": rounded([limit[what]])[0]}, "share": rounded([limit[what] / medians["Tessera"][0]])[0],
            "without": case.why_not}


def words_of(error):
    """One line, without the folders of this machine."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"'{os.path.basename(error.cmd[0])} {' '.join(error.cmd[1:3])}' ended with {error.returncode}"
    return re.sub(r"(/[\w.-]+)+/", "", f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")


def versions(cases, checkout):
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return {"Tessera": commit.stdout.strip() or "unknown", "PyTorch": torch.__version__, "onnxruntime": onnxruntime.__version__,
            "OpenBLAS": f"{cases.openblas.version}, kernels for {cases.openblas.core}", "FFTW": cases.fftw.version.removeprefix("fftw-"),
            "NumPy": numpy.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--runtime", required=True, help="libtessera_runtime.a")
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--out", required=True, metavar="STEM", help="STEM.json, .md and .svg are written, after each row")
    parser.add_argument("--add", action="store_true", help="keep the rows of STEM.json that this run does not measure")
    parser.add_argument("--quick", action="store_true", help="a few rows, and nothing compiled by PyTorch")
    parser.add_argument("--rows", metavar="REGEX", default="", help="only those whose name has it")
    parser.add_argument("--list", action="store_true", help="only show the names")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--each", type=int, default=4, help="rows of each kind in the sample")
    options = parser.parse_args()
    every = rows.all_rows(options.seed, options.each)
    wanted = rows.select(every, options.rows, options.quick)
    if options.list:
        print(*(row.name for row in wanted), sep="\n")
        return 0
    here = limits.machine()
    features = here.pop("features")
    found = report.read(options.out, here) if options.add else {"rows": [], "left_out": []}
    names = {row.name for row in wanted}
    done, left_out = ({row["name"]: row for row in found[part] if row["name"] not in names} for part in ("rows", "left_out"))
    order = {row.name: i for i, row in enumerate(every)}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        machine = limits.Limits(options.checkout, options.runtime, folder)
        cases = Cases(Kernels(options.generator, options.runtime, folder, features), not options.quick)
        of_all = versions(cases, options.checkout)
        for row in wanted:
            began = time.monotonic()
            try:
                result = measured(row, cases.case(row), machine, options.rounds)
            except Exception as error:  # each side refuses in exceptions of its own, and the other rows are worth having
                why = words_of(error)
                left_out[row.name] = {"name": row.name, "why": why}
                print(f"{row.name}: left out, {why}", flush=True)
            else:
                done[row.name] = {"name": row.name, "kind": row.kind, "group": row.group, "model": row.model, "shape": row.extents,
                                  "dtype": row.dtype, "prepared": row.prepared, "cold": row.cold, "threads": row.threads, **result}
                print(f"{report.line(done[row.name])}, {time.monotonic() - began:.0f} s", flush=True)
            in_order = sorted(done.values(), key=lambda r: order.get(r["name"], len(order)))
            report.write({"format": "tessera-peers", "version": 1, "machine": here, "versions": of_all,
                          "rows": in_order, "left_out": list(left_out.values())}, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
