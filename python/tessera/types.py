"""Annotations of functions: what a tensor or a parameter is."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tessera._core import Dim, DType, Numerics, accum, dtypes
from tessera.errors import CompilationError

__all__ = ["DType", "Dim", "Numerics", "Param", "State", "Tensor", "accum"]

# By their names; `bool` is Python's, so that type is bool_.
_by_name = {"bool_" if t.name == "bool" else t.name: t for t in dtypes}
globals().update(_by_name)
__all__ += list(_by_name)


@dataclass(frozen=True)
class TensorType:
    """A tensor of named dims: Tensor["M", "K", f32]. Without a type it is stored as the policy says."""

    dims: tuple[str | int | Dim, ...]
    dtype: DType | None
    policy: Numerics | None
    is_state: bool = False


@dataclass(frozen=True)
class ParameterType:
    """A scalar argument, and the values that a call may give it."""

    dtype: DType
    least: float | None = None
    most: float | None = None
    above: bool = False
    below: bool = False


def _tensor_type(what: str, items: Any, is_state: bool) -> TensorType:
    parts = items if isinstance(items, tuple) else (items,)
    dtype: DType | None = None
    policy: Numerics | None = None
    if parts and isinstance(parts[-1], DType):
        dtype, parts = parts[-1], parts[:-1]
    elif parts and isinstance(parts[-1], Numerics):
        policy, parts = parts[-1], parts[:-1]
        dtype = policy.storage
    for part in parts:
        if not isinstance(part, (str, int, Dim)) or isinstance(part, bool) or (isinstance(part, int) and not 0 <= part < 2**31):
            raise CompilationError("python.annotation", f'{what}[...]: expected names of dims, extents of 0 ..< 2^31, and a type at the end, such as '
                                                        f'{what}["M", "K", f32]; got {part!r}')
    if len(parts) > 8:
        raise CompilationError("python.annotation", f"{what}[...]: tensors have at most 8 dims, got {len(parts)}")
    return TensorType(tuple(parts), dtype, policy, is_state)


class Tensor:
    """Tensor["M", "K", f32] annotates an argument or a result of a function that `jit` takes. A dim is a name, an extent or a Dim."""

    def __class_getitem__(cls, items: Any) -> Any:
        return _tensor_type("Tensor", items, False)


class State:
    """State["B", "D", f32] annotates a tensor of the caller's that the function updates in place."""

    def __class_getitem__(cls, items: Any) -> Any:
        return _tensor_type("State", items, True)


class Param:
    """Param[f32] annotates a scalar argument; Param[f32, 0, 1] one whose values lie in 0 ..= 1, None leaving an end out."""

    def __class_getitem__(cls, items: Any) -> Any:
        parts = items if isinstance(items, tuple) else (items,)
        if not parts or not isinstance(parts[0], DType) or len(parts) > 3:
            raise CompilationError("python.annotation", f"Param[...]: expected a type and perhaps two ends, such as Param[f32, 0, 1]; got {items!r}")
        return ParameterType(parts[0], *parts[1:])
