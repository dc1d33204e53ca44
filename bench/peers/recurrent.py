"""The library's LSTM and GRU beside onnxruntime's nodes of ONNX: ./tessera peers recurrent [--rounds N]

One thread each, in turns, f32; the hidden size is fixed. Results must lie within 1e-4 of each other. Microseconds are those that the
processor worked in a call from Python, medians of all rounds; weights are as they are, not packed ahead of time."""
import argparse
import statistics
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tessera.stdlib import function

GATES = {"lstm": 4, "gru": 3}
SIZES = [(1, 1, 128), (1, 1, 256), (1, 16, 256), (100, 1, 256)]  # steps, sequences, hidden and inputs


def peer(kind, steps, sequences, hidden, weights):
    """A session of one node, which takes x and the states."""
    w, r, b, recurrent_b = weights
    constants = {"w": w.T[None], "r": r.T[None], "b": np.concatenate([b, recurrent_b])[None]}
    states = ["h", "c"] if kind == "lstm" else ["h"]
    node = helper.make_node(kind.upper(), ["x", "w", "r", "b", "", *states], ["y"], hidden_size=hidden,
                            **({"linear_before_reset": 1} if kind == "gru" else {}))
    inputs = {"x": [steps, sequences, hidden], **{state: [1, sequences, hidden] for state in states}}
    graph = helper.make_graph(
        [node], kind, [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, sequences, hidden])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def microseconds(act, calls):
    start = time.process_time()
    for _ in range(calls):
        act()
    return (time.process_time() - start) / calls * 1e6


parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=9)
rounds = parser.parse_args().rounds
rng = np.random.default_rng(0)
for kind, gates in GATES.items():
    network = function(kind, fix=("I", "H"))
    for steps, sequences, hidden in SIZES:
        columns = gates * hidden
        weights = [rng.standard_normal(shape).astype(np.float32) / 8 for shape in [(hidden, columns), (hidden, columns), columns, columns]]
        x = rng.standard_normal((steps, sequences, hidden)).astype(np.float32)
        states = [rng.standard_normal((sequences, hidden)).astype(np.float32) for _ in range(2 if kind == "lstm" else 1)]
        session = peer(kind, steps, sequences, hidden, weights)
        feed = {"x": x, **{name: state[None] for name, state in zip("hc", states)}}
        far = float(np.abs(np.from_dlpack(network(x, *weights, *states)[0]) - session.run(None, feed)[0][:, 0]).max())
        if not far <= 1e-4:
            sys.exit(f"error[recurrent.far]: {kind} differs from onnxruntime's by {far:.1e}; expected at most 1e-4")
        calls = max(3, 600 // (steps * sequences))
        times = [(microseconds(lambda: network(x, *weights, *states), calls), microseconds(lambda: session.run(None, feed), calls))
                 for _ in range(rounds)]
        ours, theirs = (statistics.median(side) for side in zip(*times))
        ratio = statistics.median(b / a for a, b in times)
        print(f"{kind} of {hidden}, {steps} x {sequences}: {ours:.1f} us, onnxruntime {onnxruntime.__version__} {theirs:.1f} us; "
              f"the median of the ratios is {ratio:.2f}; results differ by at most {far:.1e}", flush=True)
