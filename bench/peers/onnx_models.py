"""An imported model beside onnxruntime: the largest difference of each output, and times in turns, one thread each.

    tessera-generator import model.onnx --out made
    tessera-generator generate made/program.json --target avx512 --out made
    PYTHONPATH=build/python python3 bench/peers/onnx_models.py made model.onnx x=1x3x48x320 state=2x1x128

Python needs onnxruntime. Inputs are normal numbers (integers: 0 to 255) of these shapes, from a fixed seed."""
import argparse
import time
from pathlib import Path

import numpy as np
import onnxruntime

from imported_model import ImportedModel, random_feed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, help="what import and generate wrote")
    parser.add_argument("model", help="the ONNX file")
    parser.add_argument("inputs", nargs="+", help="<input>=<extent>x<extent>…")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    shapes = {name: [int(e) for e in shape.split("x")] for name, shape in (word.split("=") for word in args.inputs)}
    feeds = random_feed(session, shapes, np.random.default_rng(0))
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    model = ImportedModel(args.made)
    out = {name: np.zeros_like(wanted[name]) for name in model.outputs}
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(args.rounds):
        for run, taken in ((lambda: model(feeds, out), times[0]), (lambda: session.run(None, feeds), times[1])):
            start = time.perf_counter()
            run()
            taken.append(1e3 * (time.perf_counter() - start))
    for name, result in out.items():
        difference = np.abs(result.astype(np.float64) - wanted[name]).max(initial=0)
        print(f"{name} {list(result.shape)}: largest difference {difference:.1e}, largest value {np.abs(wanted[name]).max(initial=0):.3g}")
    ours, theirs = min(times[0]), min(times[1])
    print(f"{ours:.3f} ms, onnxruntime {theirs:.3f} ms, {theirs / ours:.2f} of its speed")


main()
