"""Weights of a model out of a file, as arrays."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tessera import _core


def array_of(tensor: Any) -> Any:
    """A tensor of the module as an array of NumPy where NumPy has its type, else as it is, with __dlpack__."""
    try:
        import numpy
        return numpy.from_dlpack(tensor)
    except (ImportError, BufferError, RuntimeError, TypeError):
        return tensor


class Weights(Mapping[str, Any]):
    """The tensors of a safetensors or GGUF file by their names, read only: `Weights("model.gguf")["blk.0.attn_q.weight"]`.

    Quantised tensors of GGUF of the types Q8_0, Q4_0 and MXFP4 are codes, with their scales as `<name>_scales`, as kernels take them; those
    of other types are rounded to bf16, which `notes` says. `floats`, one of "f32", "f64", "f16" and "bf16", converts all floats and all that
    codes stand for. docs/weights.md says more."""

    def __init__(self, file: str | os.PathLike[str], *, floats: str | None = None) -> None:
        self._core = _core.Weights(os.fspath(file), floats)
        self._names = self._core.names

    @property
    def notes(self) -> list[str]:
        """What was rounded, in words."""
        return self._core.notes

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return array_of(self._core.tensor(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
