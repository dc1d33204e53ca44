#!/usr/bin/env python3
"""Generated kernels beside PyTorch (eager, and compiled where that makes a kernel), onnxruntime, a current OpenBLAS, FFTW and NumPy, in one
process, taking turns: ./tessera peers [--quick] [--rows REGEX].

Each side takes the fastest of its ways for a row, and weights that are constant in the form that it likes best, made before the time begins.
All results are compared with one in f64 first. The ratio is the best peer's time by ours: above 1 the generated kernel is faster. The limit of a
row is the greater of two times, measured in the same turns: of its operations on registers, and of its bytes by a plain copy."""
import argparse
import json
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
            raise ArithmeticError(f"ours by {way} is off by {far(case.result, case.expected):.1e} of the largest; at most {case.tolerance:.0e}")
    for peer, ways in case.peers.items():
        for way, call in ways.items():
            if not far(call(), case.expected) <= case.tolerance:
                raise ArithmeticError(f"{peer} by {way} is off by {far(call(), case.expected):.1e} of the largest; at most {case.tolerance:.0e}")
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
            "seconds": {side: {"way": chosen[side], "median": rounded(medians[side])[0], "interval": rounded(medians[side])[1:]} for side in sides},
            "best_peer": peer, "ratio": rounded(ratio)[0], "interval": rounded(ratio)[1:],
            "limit": {"what": what, "seconds": rounded([limit[what]])[0]}, "share": rounded([limit[what] / medians["Tessera"][0]])[0],
            "without": case.why_not}


def versions(cases, generator):
    commit = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
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
    wanted = [row for row in rows.all_rows(options.seed, options.each) if re.search(options.rows, row.name) and (row.quick or not options.quick)]
    if options.list:
        print(*(row.name for row in wanted), sep="\n")
        return 0
    if not wanted:
        sys.exit(f"error[peers.rows]: no row has '{options.rows}' in its name. --list shows them")
    found = {}
    if options.add and os.path.exists(options.out + ".json"):
        with open(options.out + ".json", encoding="utf-8") as stream:
            found = json.load(stream)
    here = limits.machine()
    features = here.pop("features")
    if found and found["machine"] != here:
        sys.exit(f"error[peers.machine]: {options.out}.json is of {found['machine']}, and this machine is {here}. Choose another --out")
    names = {row.name for row in wanted}
    done = {row["name"]: row for row in found.get("rows", []) if row["name"] not in names}
    left_out = {row["name"]: row for row in found.get("left_out", []) if row["name"] not in names}
    order = {row.name: i for i, row in enumerate(rows.all_rows(options.seed, options.each))}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        machine = limits.Limits(options.checkout, options.runtime, folder)
        cases = Cases(Kernels(options.generator, options.runtime, folder, features), not options.quick)
        for row in wanted:
            began = time.monotonic()
            try:
                result = measured(row, cases.case(row), machine, options.rounds)
            except Exception as error:  # each side refuses in exceptions of its own, and the other rows are worth having
                why = f"{type(error).__name__}: " + re.sub(r"/\S*/", "", (str(error).splitlines() or [""])[0])
                left_out[row.name] = {"name": row.name, "why": why}
                print(f"{row.name}: left out, {why}", flush=True)
            else:
                done[row.name] = {"name": row.name, "group": row.group, "model": row.model, "shape": row.extents, "dtype": row.dtype,
                                  "prepared": row.prepared, "cold": row.cold, "threads": row.threads, **result}
                print(f"{report.line(done[row.name])}, {time.monotonic() - began:.0f} s", flush=True)
            in_order = sorted(done.values(), key=lambda r: order.get(r["name"], len(order)))
            report.write({"format": "tessera-peers", "version": 1, "machine": here, "versions": versions(cases, options.generator),
                          "rows": in_order, "left_out": list(left_out.values())}, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
