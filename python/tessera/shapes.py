"""Extents of results from those of arguments, over ints or what frameworks have for them while they trace."""
from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tessera._core import Algorithm
from tessera.errors import CompilationError

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": lambda a, b: a // b, "mod": operator.mod, "min": min, "max": max}


class _Unknown(Exception):
    """An extent that no argument's shape tells."""


class Shapes:
    """What an algorithm says of its tensors' extents."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._name = algorithm.name
        self._dims: dict[str, dict[str, Any]] = {d["name"]: d for d in json.loads(algorithm.json())["dims"]}
        self._arguments = {name: dims for name, _, _, dims in algorithm.tensors}
        self._results = {name: dims for name, _, dims in algorithm.outputs}
        # Found out once, so that no later call can fail: any extents that are told will do.
        told = {name: [1] * len(dims) for name, dims in self._arguments.items()}
        for name, dims in self._results.items():
            for dim in dims:
                try:
                    self.extent(dim, self._told(told))
                except _Unknown:
                    raise CompilationError(
                        "python.result-extent",
                        f"{self._name}: the extent of dim {dim} of the result '{name}' does not follow from the shapes of the arguments, "
                        "and a framework that traces has to know it; call the function directly, with out=") from None

    def _told(self, shapes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        extents: dict[str, Any] = {}
        for name, dims in self._arguments.items():
            for dim, extent in zip(dims, shapes[name]):
                extents.setdefault(dim, extent)
        return extents

    def extent(self, dim: str, told: Mapping[str, Any]) -> Any:
        """A dim's extent, from those of dims that shapes tell."""
        about = self._dims[dim]
        if "fixed" in about:
            return about["fixed"]
        if "size" in about:
            return self._value(about["size"], told)
        if dim not in told:
            raise _Unknown
        return told[dim]

    def _value(self, expression: Any, told: Mapping[str, Any]) -> Any:
        if isinstance(expression, int):
            return expression
        operation, *operands = expression
        if operation == "extent":
            return self.extent(operands[0], told)
        if operation not in _OPERATIONS:  # a value of a tensor or a parameter
            raise _Unknown
        return _OPERATIONS[operation](*(self._value(o, told) for o in operands))

    def results(self, shapes: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The shape of each result, from those of the arguments."""
        told = self._told(shapes)
        return [tuple(self.extent(d, told) for d in dims) for dims in self._results.values()]

    def constraints(self, shapes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, str]]:
        """What has to hold for a call with these shapes, each with its words. Ranks have to be right."""
        told = self._told(shapes)
        for name, dims in self._arguments.items():
            for axis, (dim, extent) in enumerate(zip(dims, shapes[name])):
                try:
                    wanted = self.extent(dim, told)
                except _Unknown:
                    continue
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
