"""Real models out of ONNX files beside onnxruntime with the same files, one thread each, in turns: ./tessera peers onnx

    onnx_models.py <generator> <folder of models> <folder to work in> [MODEL...] [--rounds N] [--target T] [--schedules FOLDER] [--out FILE.json]

Each is imported with its dynamic dims open, generated for the shape that it is timed at, and put into one bundle with its weights. Inputs are
normal numbers (integers: 0 to 255) from a fixed seed. A turn runs a model by each side for some milliseconds; the time is the processor's,
since others may use the machine, and the ratio is the median over the rounds of onnxruntime's time by ours. Python needs onnxruntime."""
import argparse
import dataclasses
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

import tessera
from imported_model import random_feed
from real_models import MODELS, RealModel, onnx_file

TURN_S = 0.03  # a turn's calls take about so long, and one call at least


@dataclasses.dataclass
class Row:
    model: str
    shape: str
    difference: float  # the largest of all outputs
    ours_ms: float
    theirs_ms: float
    ratio: float  # of onnxruntime's time by ours, the median of the rounds
    quartiles: tuple[float, float]


def generated(o: argparse.Namespace, name: str, model: RealModel, file: Path) -> Path:
    """The folder of program, weights and library, made where the generator or the model is newer."""
    made = o.work / name
    made.mkdir(parents=True, exist_ok=True)
    marks = [f"{flag}={value}" for flag, value in (("target", o.target), ("schedules", o.schedules), ("model", model))]
    sources, mark = (Path(o.generator), file), made / "made-from.txt"
    if mark.exists() and mark.read_text() == "\n".join(marks) and all(s.stat().st_mtime < mark.stat().st_mtime for s in sources):
        return made
    subprocess.run([o.generator, "import", str(file), *model.options, "--name", name, "--out", str(made)], check=True,
                   stdout=subprocess.DEVNULL)
    words = ["--derive-for", *(f"{dim}={extent}" for dim, extent in model.extents.items())] if model.extents else []
    if o.schedules:
        words += ["--schedule-dir", o.schedules]
    start = time.monotonic()
    subprocess.run([o.generator, "generate", str(made / "program.json"), "--target", o.target, *words, "--quiet", "--compile-limit-s", "900",
                    "--out", str(made)], check=True)
    print(f"{name}: generated in {time.monotonic() - start:.0f} s", file=sys.stderr)
    mark.write_text("\n".join(marks))
    return made


def bundled(o: argparse.Namespace, folders: dict[str, Path]) -> Path:
    file = o.work / "models.tess"
    subprocess.run([o.generator, "bundle", "make", str(file), "--from", *map(str, folders.values()), "--weights",
                    *(f"{name}={made / 'weights.safetensors'}" for name, made in folders.items())], check=True, stdout=subprocess.DEVNULL)
    return file


def opened(file: Path, names: list[str], trust_weights: bool) -> tuple[tessera.Bundle, float]:
    """The bundle with all kernels and weights found, and the milliseconds that took."""
    start = time.process_time()
    bundle = tessera.Bundle(file, trust_weights=trust_weights)
    for name in names:
        bundle[name]
    return bundle, 1e3 * (time.process_time() - start)


def session_of(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def seconds(act, calls: int) -> float:
    """Of a call, by the processor's clock."""
    start = time.process_time()
    for _ in range(calls):
        act()
    return (time.process_time() - start) / calls


def calls_of(act) -> int:
    act()
    return max(1, int(TURN_S / max(seconds(act, 3), 1e-6)))


def row_of(function, session: onnxruntime.InferenceSession, name: str, model: RealModel, made: Path, rounds: int) -> Row:
    feeds = random_feed(session, model.timed, np.random.default_rng(0))
    if model.mask:
        feeds[model.mask][:] = 1
    peer_feeds = feeds | {n: np.array(v, np.int64) for n, v in model.numbers.items()}
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, peer_feeds)))
    report, program = (json.loads((made / f).read_text()) for f in ("import.json", "program.json"))
    inputs = report["inputs"] or {}
    arguments = [feeds[inputs[t["name"]]] for t in program["tensors"] if t["name"] in inputs]
    outputs = [report["outputs"][output] for output in program["outputs"]]
    out = {output: np.full_like(wanted[output], np.nan) for output in outputs}
    results = tuple(out.values()) if len(out) > 1 else out[outputs[0]]
    ours, theirs = (lambda: function(*arguments, out=results)), (lambda: session.run(None, peer_feeds))
    ours_calls, theirs_calls = calls_of(ours), calls_of(theirs)
    turns = [(seconds(ours, ours_calls), seconds(theirs, theirs_calls)) for _ in range(rounds)]
    difference = max(float(np.abs(out[n].astype(np.float64) - wanted[n]).max(initial=0)) for n in outputs)
    ratios = [b / a for a, b in turns]
    low, middle, high = statistics.quantiles(ratios, n=4) if rounds > 1 else (ratios * 3)
    shape = ", ".join("×".join(map(str, e)) for e in list(model.timed.values())[:1])
    return Row(name, shape, difference, 1e3 * statistics.median(a for a, _ in turns), 1e3 * statistics.median(b for _, b in turns), middle,
               (low, high))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generator")
    parser.add_argument("models", type=Path)
    parser.add_argument("work", type=Path)
    timed = [name for name, model in MODELS.items() if model.timed]
    parser.add_argument("names", nargs="*", metavar="MODEL", help="all where none is named: " + ", ".join(timed))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--target", default="host")
    parser.add_argument("--schedules", default="", help="a folder of schedules, as tune writes it")
    parser.add_argument("--out", type=Path, help="the rows as JSON")
    o = parser.parse_args()
    if unknown := [name for name in o.names if name not in timed]:
        sys.exit(f"error[peers.model]: no model that is timed is called '{unknown[0]}'; there are {', '.join(timed)}.")
    names = o.names or timed
    o.work.mkdir(parents=True, exist_ok=True)
    files = {name: onnx_file(MODELS[name], o.models, o.work / name) for name in names}
    folders = {name: generated(o, name, MODELS[name], files[name]) for name in names}
    file = bundled(o, folders)
    bundle, hashed_ms = opened(file, names, False)
    _, trusted_ms = opened(file, names, True)
    start = time.process_time()
    sessions = {name: session_of(files[name]) for name in names}
    sessions_ms = 1e3 * (time.process_time() - start)
    print(f"| model | input | largest difference | this kernel, ms | onnxruntime {onnxruntime.__version__}, ms | of its speed (quartiles) |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name in names:
        rows.append(row := row_of(bundle[name], sessions[name], name, MODELS[name], folders[name], o.rounds))
        print(f"| {row.model} | {row.shape} | {row.difference:.1e} | {row.ours_ms:.3g} | {row.theirs_ms:.3g} | {row.ratio:.2f} "
              f"({row.quartiles[0]:.2f} to {row.quartiles[1]:.2f}) |", flush=True)
    ratios = {row.model: row.ratio for row in rows}
    least = min(ratios, key=ratios.get)
    print(f"\ngeometric mean {math.exp(statistics.fmean(map(math.log, ratios.values()))):.2f}, least {ratios[least]:.2f} ({least})")
    print(f"opened in {hashed_ms:.1f} ms, in {trusted_ms:.1f} ms without hashing the weights, onnxruntime in {sessions_ms:.0f} ms; "
          f"{file.stat().st_size / 1e6:.1f} MB")
    if o.out:
        o.out.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=2) + "\n")


main()
