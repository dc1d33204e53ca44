"""Runs the example of an imported model and compares with onnxruntime: imported.py PROGRAM BUNDLE IMPORTED MODEL.

IMPORTED is the folder that import wrote. The model has one input, whose first axis is dynamic, and one output."""
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime

program, bundle, made, model = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
report = json.loads((made / "import.json").read_text())
(source, model_input), = report["inputs"].items()
(result, model_output), = report["outputs"].items()
(batch,) = (dim["name"] for dim in report["dims"])
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
random = np.random.default_rng(11)


def call(*words):
    return subprocess.run([program, bundle, *words], capture_output=True, text=True)


def compare(x, *words):
    wanted, = session.run([model_output], {model_input: x})
    done = call(f"{result}={made / 'y'}", *words)
    assert done.returncode == 0, done.stderr
    bytes_of = (made / "y").read_bytes()
    y = np.frombuffer(bytes_of, np.float32).reshape(wanted.shape)
    first = " ".join(f"{v:.9g}" for v in y.ravel()[:8]) + (" ..." if y.size > 8 else "")
    line = f"{result} [{', '.join(map(str, y.shape))}] sha256 {hashlib.sha256(bytes_of).hexdigest()}: {first}\n"
    assert done.stdout == line, (done.stdout, line)
    difference = np.abs(y - wanted).max()
    assert difference <= 1e-4, difference
    print(f"{line}largest difference from onnxruntime: {difference:.1e}")


for rows in (1, 5):
    x = random.standard_normal((rows, 3, 48, 192)).astype(np.float32)
    (made / "x").write_bytes(x.tobytes())
    compare(x, f"{batch}={rows}", f"{source}={made / 'x'}")
compare(np.zeros((1, 3, 48, 192), np.float32))  # without a file and with the extents that model.h has

for words, expected in ((["rows=1"], "there are " + batch), ([f"{batch}=many"], "expected an extent"), (["x"], "expected NAME=VALUE"),
                        ([f"{source}={made / 'none'}"], "expected a file that can be read"), ([f"{source}={made / 'x'}"], "expected 110592 bytes"),
                        ([f"{batch}=0"], "extent must be at least 1")):
    done = call(*words)
    assert done.returncode == 1 and done.stderr.startswith("error[example]: ") and expected in done.stderr, (words, done)
done = subprocess.run([program, str(made / "program.json")], capture_output=True, text=True)
assert done.returncode == 1 and "error[example]: " in done.stderr, done
