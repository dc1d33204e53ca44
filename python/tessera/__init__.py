"""Tessera: declare a kernel once, schedule it apart from that, tune it where it runs, and call it or export it as a C library.

    import numpy as np, tessera as ts
    from tessera import Tensor, f32, jit, tile

    @jit(fix=("N", "K"))
    def linear_silu(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
        acc = tile.dot(x, w).named("acc")
        return tile.silu(acc + b)

    y = linear_silu(x, w, b)
"""
from __future__ import annotations

__version__ = "0.1.0"

from tessera import _core, state, tile
from tessera._core import Algorithm, Dim, DType, Kernel, Numerics, Tile, accum, cpu_count
from tessera.bundle import Bundle, Replayed
from tessera.derivatives import autodiff, checkpoint, forward_backward, grad, jvp, transpose, value_and_grad, vjp, vmap, with_rule
from tessera.errors import CallError, CompilationError, StateError, TesseraError
from tessera.jit import Jit, JitFamily, jit, kernel
from tessera.load import load
from tessera.monoid import Monoid
from tessera.schedule import Schedule
from tessera.types import (
    bf16, bool_, f16, f32, f4e2m1fn, f64, f6e2m3fn, f6e3m2fn, f8e4m3, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, i32, i4, i64, i8,
    u4, u8, Param, State, Tensor)
from tessera.weights import Weights


def threads(count: int | None = None) -> int:
    """How many threads calls use, after setting it: one pool for the process. At first 1."""
    return _core.threads() if count is None else _core.set_threads(count)


__all__ = ["Algorithm", "Bundle", "CallError", "CompilationError", "DType", "Dim", "Jit", "JitFamily", "Kernel", "Monoid", "Numerics", "Param",
           "Replayed", "Schedule", "State", "StateError", "Tensor", "TesseraError", "Tile", "Weights", "accum", "autodiff", "checkpoint", "cpu_count",
           "forward_backward", "grad", "jit", "jvp", "kernel", "load", "state", "threads", "tile", "transpose", "value_and_grad", "vjp", "vmap", "with_rule", "bf16",
           "bool_", "f16", "f32", "f4e2m1fn", "f64", "f6e2m3fn", "f6e3m2fn", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz",
           "f8e8m0fnu", "i32", "i4", "i64", "i8", "u4", "u8"]
