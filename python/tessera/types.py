"""Annotations of functions: what a tensor or a parameter is."""
from __future__ import annotations

from typing import Any, NamedTuple, cast

from tessera._core import Dim, DType, Numerics
from tessera.errors import CompilationError

f64 = DType.named("f64")
f32 = DType.named("f32")
f16 = DType.named("f16")
bf16 = DType.named("bf16")
f8e4m3 = DType.named("f8e4m3")
f8e4m3fn = DType.named("f8e4m3fn")
f8e4m3fnuz = DType.named("f8e4m3fnuz")
f8e5m2 = DType.named("f8e5m2")
f8e5m2fnuz = DType.named("f8e5m2fnuz")
f8e8m0fnu = DType.named("f8e8m0fnu")
f6e2m3fn = DType.named("f6e2m3fn")
f6e3m2fn = DType.named("f6e3m2fn")
f4e2m1fn = DType.named("f4e2m1fn")
i64 = DType.named("i64")
i32 = DType.named("i32")
i8 = DType.named("i8")
i4 = DType.named("i4")
u8 = DType.named("u8")
u4 = DType.named("u4")
bool_ = DType.named("bool")  # `bool` is Python's

# What NumPy with ml_dtypes, JAX and PyTorch call those types of arrays that they have.
ARRAY_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu",
    "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}


class TensorType(NamedTuple):
    """A tensor of named dims: Tensor["M", "K", f32]. Without a type it is stored as the policy says."""

    dims: tuple[str | int | Dim, ...]
    dtype: DType | None
    policy: Numerics | None
    is_state: bool = False


class ParameterType(NamedTuple):
    """A scalar argument, and the values that a call may give it."""

    dtype: DType
    least: float | None = None
    most: float | None = None
    above: bool = False
    below: bool = False


def _parts(items: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", items) if isinstance(items, tuple) else (items,)


def _tensor_type(what: str, items: Any, is_state: bool) -> TensorType:
    parts = _parts(items)
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
        parts = _parts(items)
        if not 1 <= len(parts) <= 3 or not isinstance(parts[0], DType):
            raise CompilationError("python.annotation", f"Param[...]: expected a type and perhaps two ends, such as Param[f32, 0, 1]; got {items!r}")
        least, most = (*parts[1:], None, None)[:2]
        return ParameterType(parts[0], least, most)
