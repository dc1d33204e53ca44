"""The networks of examples/reader beside onnxruntime with the ONNX files that they were imported from: ./tessera peers reader PAGE

    reader.py <libpage.so> <reader.tess> <folder of the ONNX files> PAGE [--rounds N]

Both have the pixels and boxes of page.c, and one thread. They must read the same text. Each round reads the page once by each side, in
turns. Milliseconds are those that the processor worked, medians of all rounds."""
import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import tessera

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "reader"))
import read as reader  # noqa: E402

FILES = {"det": "ch_PP-OCRv4_det_infer", "cls": "ch_ppocr_mobile_v2.0_cls_infer", "rec": "ch_PP-OCRv4_rec_infer"}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda picture: made.run(None, {made.get_inputs()[0].name: picture})[0]


def milliseconds(act):
    start = time.process_time()
    result = act()
    return result, (time.process_time() - start) * 1e3


class Kept:
    """Networks that keep what they gave, and how long it took."""

    def __init__(self, networks):
        self.networks, self.outputs, self.times = networks, [], []

    def __getitem__(self, name):
        def run(picture):
            output, ms = milliseconds(lambda: self.networks[name](picture))
            self.outputs.append(output)
            self.times.append((name, ms))
            return output
        return run


parser = argparse.ArgumentParser()
for name in ("library", "bundle", "models", "page"):
    parser.add_argument(name)
parser.add_argument("--rounds", type=int, default=9)
o = parser.parse_args()
bundle, bundle_ms = milliseconds(lambda: tessera.Bundle(o.bundle))
ours, kernels_ms = milliseconds(lambda: {name: network for name, network in reader.networks_of(bundle).items() if bundle[name]})
peer, sessions_ms = milliseconds(lambda: {name: session(str(Path(o.models) / f"{file}.onnx")) for name, file in FILES.items()})
alphabet = reader.alphabet_of(bundle)


def page(networks):
    kept = Kept(networks)
    return list(reader.read(o.library, o.page, kept, alphabet))[:-1], kept


(text, ours_kept), (expected, peer_kept) = page(ours), page(peer)
if text != expected:
    sys.exit("error[reader.text]: expected onnxruntime's text\n  " + "\n  ".join(expected) + "\ngot\n  " + "\n  ".join(text))
print(*text, sep="\n")
difference = max(float(np.abs(a - b).max()) for a, b in zip(ours_kept.outputs, peer_kept.outputs))
print(f"probabilities differ by at most {difference:.1e}")
print(f"opened in {bundle_ms + kernels_ms:.1f} ms, onnxruntime {onnxruntime.__version__} in {sessions_ms:.1f} ms")
rounds = [[page(networks)[1].times for networks in (ours, peer)] for _ in range(o.rounds)]
for what, names in [*((name, [name]) for name in FILES), ("all networks", list(FILES))]:
    a, b = ([sum(ms for name, ms in turn[side] if name in names) for turn in rounds] for side in range(2))
    ratio = statistics.median(y / x for x, y in zip(a, b))
    print(f"{what}: {statistics.median(a):.1f} ms a page, onnxruntime {statistics.median(b):.1f} ms; "
          f"the median of the ratios is {ratio:.2f}")
