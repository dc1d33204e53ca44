"""An imported model beside onnxruntime: the largest difference of each output, and times in turns, one thread each.

    tessera-generator import model.onnx --out made
    tessera-generator generate made/program.json --target avx512 --out made
    PYTHONPATH=build/python python3 bench/peers/onnx_models.py made model.onnx x=1x3x48x320 state=2x1x128

Python needs onnxruntime. Inputs are normal numbers (integers: 0 to 255) of these shapes, from a fixed seed."""
import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnxruntime

import tessera

TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32, "I64": np.int64, "I8": np.int8, "U8": np.uint8,
         "BOOL": np.bool_}
OF_MODEL = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(double)": np.float64}


def safetensors(file: Path) -> dict[str, np.ndarray]:
    content = file.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(content[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]], TYPES[t["dtype"]])
            .reshape(t["shape"]).copy() for name, t in header.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, help="what import and generate wrote")
    parser.add_argument("model", help="the ONNX file")
    parser.add_argument("inputs", nargs="+", help="<input>=<extent>x<extent>…")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    report, program = (json.loads((args.made / f).read_text()) for f in ("import.json", "program.json"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    random, feeds = np.random.default_rng(0), {}
    types = {i.name: OF_MODEL[i.type] for i in session.get_inputs()}
    for word in args.inputs:
        name, shape = word.split("=")
        extents = [int(e) for e in shape.split("x")]
        numbers = random.standard_normal(extents) if np.issubdtype(types[name], np.floating) else random.integers(0, 256, extents)
        feeds[name] = numbers.astype(types[name])
    wanted = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    weights = safetensors(args.made / "weights.safetensors")
    function = tessera.load(args.made / f"lib{program['name']}.a", program["name"])
    tensors = [t["name"] for t in program["tensors"] if t.get("role", "input") == "input"]
    arguments = [feeds[report["inputs"][t]] if t in report["inputs"] else weights[t] for t in tensors]
    names = [report["outputs"][o] for o in program["outputs"]]
    out = tuple(np.zeros_like(wanted[n]) for n in names)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(args.rounds):
        for run, taken in ((lambda: function(*arguments, out=out if len(out) > 1 else out[0]), times[0]),
                           (lambda: session.run(None, feeds), times[1])):
            start = time.perf_counter()
            run()
            taken.append(1e3 * (time.perf_counter() - start))
    for name, result in zip(names, out):
        difference = np.abs(result.astype(np.float64) - wanted[name]).max(initial=0)
        print(f"{name} {list(result.shape)}: largest difference {difference:.1e}, largest value {np.abs(wanted[name]).max(initial=0):.3g}")
    ours, theirs = min(times[0]), min(times[1])
    print(f"{ours:.3f} ms, onnxruntime {theirs:.3f} ms, {theirs / ours:.2f} of its speed")


main()
