"""Extents of results from those of arguments, over ints or what frameworks have for them while they trace."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tessera._core import Algorithm
from tessera.errors import CompilationError


class Shapes:
    """What an algorithm says of its tensors' extents."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm, self._name = algorithm, algorithm.name
        self._dims: dict[str, dict[str, Any]] = {d["name"]: d for d in json.loads(algorithm.json())["dims"]}
        self._arguments = {name: dims for name, _, _, dims in algorithm.tensors}
        self._results = {name: dims for name, _, dims in algorithm.outputs}
        # Found out once, so that no later call can fail: any extents that are told will do.
        told = {name: [1] * len(dims) for name, dims in self._arguments.items()}
        for name, dims in self._results.items():
            for dim in dims:
                if algorithm.extent(dim, self._told(told)) is None:
                    raise CompilationError(
                        "python.result-extent",
                        f"{self._name}: the extent of dim {dim} of the result '{name}' does not follow from the shapes of the arguments, "
                        "and a framework that traces has to know it; call the function directly, with out=")

    def _told(self, shapes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        extents: dict[str, Any] = {}
        for name, dims in self._arguments.items():
            for dim, extent in zip(dims, shapes[name]):
                extents.setdefault(dim, extent)
        return extents

    def results(self, shapes: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The shape of each result, from those of the arguments."""
        told = self._told(shapes)
        return [tuple(self._algorithm.extent(d, told) for d in dims) for dims in self._results.values()]

    def constraints(self, shapes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, str]]:
        """What has to hold for a call with these shapes, each with its words. Ranks have to be right."""
        told = self._told(shapes)
        for name, dims in self._arguments.items():
            for axis, (dim, extent) in enumerate(zip(dims, shapes[name])):
                wanted = self._algorithm.extent(dim, told)
                about = self._dims[dim]
                subject = f"{self._name}: argument '{name}', dimension {axis} ({dim})"
                if wanted is not extent:
                    yield extent == wanted, f"{subject}: expected {wanted}, got {extent}"
                if about.get("min", 0) > 0:
                    yield extent >= about["min"], f"{subject}: expected at least {about['min']}, got {extent}"
                if "max" in about:
                    yield extent <= about["max"], f"{subject}: expected at most {about['max']}, got {extent}"
                if about.get("multiple_of", 1) > 1:
                    multiple = about["multiple_of"]
                    yield extent % multiple == 0, f"{subject}: expected a multiple of {multiple}, got {extent}"
                if about.get("equals", "") in told:
                    yield extent == told[about["equals"]], f"{subject}: expected the extent of {about['equals']}, got {extent}"
