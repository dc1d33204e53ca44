"""The network of examples/vad beside onnxruntime with the ONNX file that has the same weights: ./tessera peers vad WAVE

    vad.py <silero.tess> <silero_vad_16k_op15.onnx> WAVE [--rounds N]

Steps of 512 samples, one thread each. Probabilities must lie within 1e-4 of onnxruntime's, and those of steps be those of one call, bit by
bit. Each round takes the file once by each side, in turns. Microseconds are those that the processor worked, with the call from Python."""
import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import tessera

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "vad"))
import vad  # noqa: E402

LIMIT = 1e-4


class Peer:
    """silero's own file, which takes the samples before a piece with it."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.state, self.before = np.zeros((2, 1, vad.WIDTH), np.float32), np.zeros(vad.CONTEXT, np.float32)
        self.rate = np.array(vad.RATE, np.int64)

    def __call__(self, pieces):
        heard = np.concatenate([self.before, pieces[0]])[None]
        probability, self.state = self.session.run(None, {"input": heard, "state": self.state, "sr": self.rate})
        self.before = pieces[0, -vad.CONTEXT:]
        return probability[0]


def steps(network, pieces):
    """Probabilities, and microseconds a step."""
    start = time.process_time()
    made = [network(pieces[i:i + 1]) for i in range(len(pieces))]
    return np.concatenate(made), (time.process_time() - start) / len(pieces) * 1e6


parser = argparse.ArgumentParser()
for name in ("bundle", "onnx", "wave"):
    parser.add_argument(name)
parser.add_argument("--rounds", type=int, default=9)
o = parser.parse_args()
bundle, pieces = tessera.Bundle(o.bundle), vad.pieces_of(o.wave)
times, far = [], 0.0
for _ in range(o.rounds):
    (ours, our_time), (expected, peer_time) = steps(vad.Vad(bundle), pieces), steps(Peer(o.onnx), pieces)
    far = max(far, float(np.abs(ours - expected).max()))
    times.append((our_time, peer_time))
if not np.array_equal(vad.Vad(bundle)(pieces), ours):
    sys.exit("error[vad.bits]: steps and the whole file in one call give other bits")
if not far <= LIMIT:
    sys.exit(f"error[vad.far]: a probability differs from onnxruntime's by {far:.1e}; expected at most {LIMIT}")
print(f"{len(pieces)} pieces, {int((ours >= 0.5).sum())} with speech; probabilities differ from onnxruntime's by at most {far:.1e}")
print(f"a step: {statistics.median(a for a, _ in times):.1f} us, onnxruntime {onnxruntime.__version__} "
      f"{statistics.median(b for _, b in times):.1f} us; the median of the ratios is {statistics.median(b / a for a, b in times):.2f}")
