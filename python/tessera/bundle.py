"""Bundles: one file with kernels for several processors and their weights, opened by the loader that servers have. Nothing is compiled."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tessera import _core
from tessera.weights import array_of


class Replayed(NamedTuple):
    """An output of a run that was recorded, and what came out now."""
    run: int
    kernel: str
    argument: str
    target: str
    bits: str
    sha256: str
    expected: str

    @property
    def outcome(self) -> str:
        """"equal", "different", or "new" where nothing is recorded of code with this order of operations."""
        return "new" if not self.expected else "equal" if self.sha256 == self.expected else "different"


class Bundle:
    """A bundle that is open: `Bundle("layer.tess")["up"](x)` calls a kernel. Weights need not be given.

    `public_key`, 32 bytes of Ed25519, demands that the bundle is signed by it. `trust_weights` leaves out hashing them. What is called is
    code of the file: open what you would run."""

    def __init__(self, file: str | os.PathLike[str], *, public_key: bytes | None = None, trust_weights: bool = False) -> None:
        self._file = Path(file)
        self._core = _core.Bundle(os.fspath(file), public_key, trust_weights)
        self._targets = dict(self._core.kernels)
        self._functions: dict[str, _core.Function] = {}

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def kernels(self) -> Mapping[str, str | None]:
        """The target of each kernel's code; None where this processor runs none of it."""
        return dict(self._targets)

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors of the weights."""
        return self._core.tensors

    def tensor(self, name: str) -> Any:
        """A tensor by its name, in the mapped file, read only: of NumPy where NumPy has its type, else anything with __dlpack__."""
        return array_of(self._core.tensor(name))

    def asset(self, name: str) -> bytes:
        """A file of the application's own, as `bundle make --asset` took it along."""
        return self._core.member(f"assets/{name}")

    def __getitem__(self, kernel: str) -> _core.Function:
        """A kernel as a function: of its inputs and states, then its parameters, then its weights, which have their values."""
        if kernel not in self._functions:
            self._functions[kernel] = self._function(kernel)
        return self._functions[kernel]

    def _function(self, name: str) -> _core.Function:
        kernel = self._core.kernel(name)
        # A kernel calls what it takes packed "w.packed", a bundle the weight w.
        held = {argument: self._core.weight(name, argument.removesuffix(".packed")) for argument in kernel.inputs}
        weights = {argument: weight for argument, weight in held.items() if weight is not None}
        arguments = [a for a in kernel.inputs if a not in weights] + list(weights)
        function = _core.Function(name, arguments, kernel.outputs, None, None, weights)
        function.add_kernel(kernel)
        return function

    def replay(self) -> list[Replayed]:
        """Runs what the bundle recorded on this processor. Results depend on neither threads nor runs, so a difference is a defect."""
        return [Replayed(*output) for output in self._core.replay()]

    def record(self, folder: str | os.PathLike[str], *runs: tuple[str, Mapping[str, Any]]) -> list[Replayed]:
        """Runs kernels with these arguments (tensors and parameters by name; states as they are before), and writes what came out for
        `bundle make --replay`: expected.json and inputs.safetensors. States of the caller stay as they are."""
        import zipfile  # not where a bundle is opened only: it takes longer to import than the bundle to be opened

        import numpy
        manifest = json.loads(zipfile.ZipFile(self._file).read("manifest.json"))
        kernels = {kernel["name"]: kernel for kernel in manifest["kernels"]}
        tensors: dict[str, Any] = {}
        texts: list[dict[str, Any]] = []
        for number, (name, values) in enumerate(runs):
            kernel, extents, inputs = kernels[name], dict[str, int](), list[dict[str, str]]()
            for argument in kernel["arguments"]:
                if argument["name"] not in values or argument["role"] == "output":
                    continue
                array = numpy.ascontiguousarray(values[argument["name"]])
                extents.update((dim, n) for dim, n in zip(argument["dims"], array.shape) if dim not in kernel["fixed"])
                tensors[f"run{number}.{argument['name']}"] = array
                inputs.append({"argument": argument["name"], "tensor": f"run{number}.{argument['name']}"})
            parameters = [{"name": p["name"], "value": _value(values[p["name"]], p["dtype"])} for p in kernel["parameters"]]
            texts.append({"kernel": name, "extents": extents, "inputs": inputs, "parameters": parameters, "outputs": []})
        stored = _safetensors(tensors)
        outputs = [Replayed(*output) for output in self._core.replay(_record(texts), stored)]
        for output in outputs:
            texts[output.run]["outputs"].append({"argument": output.argument, "bits": output.bits, "sha256": output.sha256})
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "inputs.safetensors").write_bytes(stored)
        (Path(folder) / "expected.json").write_bytes(_record(texts))
        return outputs

    def __repr__(self) -> str:
        return f"<bundle {self.name} of {len(self._targets)} kernels and {len(self.tensors)} tensors>"


def _record(runs: list[dict[str, Any]]) -> bytes:
    return (json.dumps({"format": "tessera-replay", "version": 1, "runs": runs}, indent=2) + "\n").encode()


def _value(value: Any, dtype: str) -> str:
    """A parameter as records have it: floats in hexadecimal, rounded to the type."""
    if dtype not in ("f32", "f64"):
        return str(int(value))
    import numpy
    return float(numpy.float32(value) if dtype == "f32" else value).hex()


_TYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64", "bool": "BOOL",
          "bfloat16": "BF16"}


def _safetensors(tensors: Mapping[str, Any]) -> bytes:
    header, data, at = dict[str, Any](), list[bytes](), 0
    for name, array in tensors.items():
        if array.dtype.name not in _TYPES:
            raise TypeError(f"{name}: expected one of {', '.join(_TYPES)}, got {array.dtype.name}")
        header[name] = {"dtype": _TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        data.append(array.tobytes())
        at += array.nbytes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(data)
