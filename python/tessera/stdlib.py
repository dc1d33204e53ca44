"""The library's algorithms as functions, with their shipped schedules: from tessera.stdlib import linear, softmax."""
from __future__ import annotations

import functools
import json
from typing import Any

from tessera import compiler
from tessera._core import Algorithm
from tessera.errors import CompilationError
from tessera.jit import Choices, Jit

_OTHER_NAMES = {"flash_attention": "attention"}  # by what its fold is known as elsewhere


@functools.cache
def names() -> tuple[str, ...]:
    """All that `tessera list` shows."""
    return tuple(a["name"] for a in json.loads(compiler.run(["list", "--json"]))["algorithms"])


def function(name: str, *, numerics: str = "f32", fix: tuple[str, ...] = (), target: str = "host", **options: Any) -> Jit:
    """A library algorithm with a policy and options: function("linear", numerics="bf16"), function("conv2d_nhwc", stride=2, padding=1)."""
    said = [item for key, value in options.items() for item in ("--option", f"{key}={value}")]
    algorithm = Algorithm.from_json(compiler.run(["show", _OTHER_NAMES.get(name, name), "--numerics", numerics, *said, "--json"]))
    arguments = [n for n, _, _, _ in algorithm.tensors] + [n for n, _ in algorithm.parameters]
    return Jit(algorithm, Choices(tuple(fix), target), arguments)


@functools.cache
def _standard(name: str) -> Jit:
    return function(name)


def __getattr__(name: str) -> Jit:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return _standard(name)
    except CompilationError as error:
        if error.id != "generator.unknown-algorithm":
            raise
        raise AttributeError(error.message) from None


def __dir__() -> list[str]:
    return ["function", "names", *names()]
