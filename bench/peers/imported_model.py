"""A model that `import` and `generate` wrote, as a function of arrays by the model's own names."""
import json
from pathlib import Path

import numpy as np

import tessera

TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32, "I64": np.int64, "I8": np.int8, "U8": np.uint8,
         "BOOL": np.bool_}
OF_MODEL = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
            "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}


def safetensors(file: Path) -> dict[str, np.ndarray]:
    content = file.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(content[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]], TYPES[t["dtype"]])
            .reshape(t["shape"]).copy() for name, t in header.items()}


class ImportedModel:
    def __init__(self, made: Path, library: Path | None = None):
        """`made`: the folder that import wrote; `library`: that of generate, where it is another one."""
        self.report, program = (json.loads((made / f).read_text()) for f in ("import.json", "program.json"))
        self.weights = safetensors(made / "weights.safetensors")
        self.function = tessera.load((library or made) / f"lib{program['name']}.a", program["name"])
        self.tensors = [t["name"] for t in program["tensors"] if t.get("role", "input") == "input"]
        self.outputs = [self.report["outputs"][o] for o in program["outputs"]]

    def __call__(self, feeds: dict[str, np.ndarray], out: dict[str, np.ndarray]) -> None:
        """Fills `out`, an array of the right shape for each of the model's outputs."""
        inputs = self.report["inputs"] or {}
        arguments = [feeds[inputs[t]] if t in inputs else self.weights[t] for t in self.tensors]
        results = tuple(out[name] for name in self.outputs)
        self.function(*arguments, out=results if len(results) > 1 else results[0])


def random_feed(session, shapes: dict[str, list[int]], random: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal numbers, and integers of 0 to 255, for inputs of an onnxruntime session."""
    types = {i.name: OF_MODEL[i.type] for i in session.get_inputs()}
    return {name: (random.standard_normal(shape) if np.issubdtype(types[name], np.floating) else random.integers(0, 256, shape))
            .astype(types[name]) for name, shape in shapes.items()}
