"""collect.py <folder>: writes ONNX's own tests of operators as files, a folder for each: model.onnx, input_<i>.pb, output_<i>.pb (TensorProto)
of the first set of data. `skip` says that a test has data that are no tensors."""
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def write(case, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
        for i, value in enumerate(values):
            if isinstance(value, (list, dict, type(None), onnx.SequenceProto, onnx.OptionalProto)):
                (folder / "skip").write_text(type(value).__name__)
                continue
            tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
            tensor.name = infos[i].name
            (folder / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def main(folder: str) -> None:
    warnings.filterwarnings("ignore")
    for case in collect_testcases(None):
        # The expansions of a function are nodes that others test.
        if case.model is not None and "_expanded" not in case.name:
            write(case, Path(folder) / case.name)


main(sys.argv[1])
