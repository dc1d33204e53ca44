"""Functions over tiles, inside of a function that `jit` takes. Dims are given by their names.

Those of one tile or several are C++'s (algorithms/build/tile_functions.h), with the same names, errors and accuracy.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tessera import _core
from tessera._core import Algorithm, DType, Tile
from tessera._core import Dim as _Dim
from tessera._core.expr import Expr, constant, extent, position
from tessera._core.tile import (
    KVCache, RandomStream, abs, atan, atan2, attend, average_pool, average_pool2d, bernoulli, bitcast, bounded, broadcast, causal_conv1d,
    ceil, conv, conv1d, conv2d, copy_pages, cos, dequantize, dot, dropout, einsum, erf, erfc, exp, exp_nonpositive, expm1, floor, fma,
    fmod, from_end, from_order_key, gather, gelu, gelu_tanh, gru, kv_cache, largest, layernorm, linear_recurrence, log, log1p, logsumexp,
    lstm, mask_causal, max, max_pool, max_pool2d, maximum, mean, min, minimum, multiply, normal, normalized, one_hot, online_softmax,
    order_key, product, quantize_dynamic, relu, rename, replace_at, resize, rmsnorm, rnn, round, rsqrt, select, sigmoid, silu, sin,
    smallest, softmax, softplus, sorted, sqrt, stack, stop_gradient, straight_through, sum, tanh, transpose, transposed_conv, trunc,
    uniform)
from tessera.declare import current_builder

if TYPE_CHECKING:
    from tessera.jit import Jit
    from tessera.monoid import Monoid


def dim(name: str | _Dim, extent: int | None = None) -> None:
    """Declares a dim that no tensor has, or constraints of one: dim("R", 3), dim(Dim.symbolic("M", max=4096))."""
    if isinstance(name, _Dim):
        current_builder().dim(name)
    else:
        current_builder().dim(name, extent)


def index(dim: str) -> Tile:
    """The index of a dim, as a tile of positions."""
    return current_builder().index(dim)


def scalar(dtype: DType, value: float) -> Tile:
    return current_builder().scalar(dtype, value)


def table(name: str, dims: Sequence[str], values: Sequence[float], dtype: DType | None = None) -> Tile:
    """A constant table inside of the kernel: row-major values over fixed dims."""
    return current_builder().constant(name, list(dims), list(values), dtype)


def tile_of(value: Expr, dims: Sequence[str]) -> Tile:
    """A tile of any expression over the dims."""
    return current_builder().tile(value, list(dims))


def _raw(monoid: Monoid | _core.RawMonoid) -> _core.RawMonoid:
    return monoid if isinstance(monoid, _core.RawMonoid) else monoid.raw


def fold(monoid: Monoid | _core.RawMonoid, inputs: Tile | Sequence[Tile], over: str | Sequence[str], where: Tile | None = None) -> list[Tile]:
    """Combines the inputs over dims; one tile for each part of the monoid."""
    return current_builder().fold(_raw(monoid), _list(inputs), [over] if isinstance(over, str) else list(over), where)


def scan(monoid: Monoid | _core.RawMonoid, inputs: Tile | Sequence[Tile], along: str, *, inclusive: bool = True, backward: bool = False,
         segments: Tile | None = None) -> list[Tile]:
    """Prefix folds along a dim; one tile for each part of the monoid."""
    return current_builder().scan(_raw(monoid), _list(inputs), along, inclusive, backward, segments)


def scatter(monoid: Monoid | _core.RawMonoid, inputs: Tile | Sequence[Tile], at: Tile | Sequence[Tile], dims: Sequence[str]) -> list[Tile]:
    """result[at...] accumulates the inputs; positions outside are dropped."""
    return current_builder().scatter(_raw(monoid), _list(inputs), _list(at), list(dims))


def scatter_into(x: Tile, monoid: Monoid | _core.RawMonoid, updates: Tile, at: Tile | Sequence[Tile]) -> Tile:
    """x with the updates combined into it, each at the position that `at` gives for each of x's dims; positions outside are dropped."""
    return _core.tile.scatter_into(x, _raw(monoid), updates, _list(at))


def update(name: str, state: Tile, index: Tile | Sequence[Tile], value: Tile) -> None:
    """state[index...] = value at every point of the value's dims, in the caller's memory."""
    current_builder().update(name, state, _list(index), value)


def _algorithm(callee: Jit | Algorithm) -> Algorithm:
    return callee if isinstance(callee, Algorithm) else callee.algorithm


def call(scope: str, callee: Jit | Algorithm, *arguments: Tile, **parameters: Tile) -> Tile | list[Tile]:
    """Calls another function; its stages are named scope.stage, and its schedules apply. One tile where it has one result."""
    results = current_builder().call(scope, _algorithm(callee), list(arguments), parameters)
    return results[0] if len(results) == 1 else results


def repeat(scope: str, callee: Jit | Algorithm, dim: str, *arguments: Tile, carried: Mapping[str, str] | None = None,
           stacked: Sequence[str] = (), until: str = "", **parameters: Tile) -> Tile | list[Tile]:
    """Calls it once for each index of `dim`, in order. carried: {input: the output of the round before}; stacked: outputs of which each
    round's stays, with the dim in front; until: an output, one bool, after which there is no further round."""
    results = current_builder().repeat(scope, _algorithm(callee), dim, list(arguments), dict(carried or {}), list(stacked), until, parameters)
    return results[0] if len(results) == 1 else results


def scope(prefix: str) -> _core.Scope:
    """`with scope("ffn"):` names the stages made inside ffn.<stage>."""
    return current_builder().scope(prefix)


def suspend(*effects: str) -> _core.Suspended:
    """`with suspend("memory", "random"):` refuses what has one of these effects."""
    return current_builder().suspend(list(effects))


def verify_numerics(stage: str, *, stable: bool = True, bounded: tuple[float, float] | None = None, loss: float | None = None) -> None:
    """Asks for a proof about the stage's numbers whenever a kernel is made."""
    current_builder().verify_numerics(stage, stable, bounded, loss)


def state_range(input: str, lowest: float, highest: float) -> None:
    """Where the elements of an input are taken to lie by verify_numerics."""
    current_builder().state_range(input, lowest, highest)


def _list(tiles: Tile | Sequence[Tile]) -> list[Tile]:
    return [tiles] if isinstance(tiles, Tile) else list(tiles)


__all__ = [
    "Expr", "KVCache", "RandomStream", "abs", "atan", "atan2", "attend", "average_pool", "average_pool2d", "bernoulli", "bitcast",
    "bounded", "broadcast", "call", "causal_conv1d", "ceil", "constant", "conv", "conv1d", "conv2d", "copy_pages", "cos", "dequantize",
    "dim", "dot", "dropout", "einsum", "erf", "erfc", "exp", "exp_nonpositive", "expm1", "extent", "floor", "fma", "fmod", "fold",
    "from_end", "from_order_key", "gather", "gelu", "gelu_tanh", "gru", "index", "kv_cache", "largest", "layernorm", "linear_recurrence",
    "log", "log1p", "logsumexp", "lstm", "mask_causal", "max", "max_pool", "max_pool2d", "maximum", "mean", "min", "minimum", "multiply",
    "normal", "normalized", "one_hot", "online_softmax", "order_key", "position", "product", "quantize_dynamic", "relu", "rename", "repeat",
    "replace_at", "resize", "rmsnorm", "rnn", "round", "rsqrt", "scalar", "scan", "scatter", "scatter_into", "scope", "select", "sigmoid",
    "silu", "sin", "smallest", "softmax", "softplus", "sorted", "sqrt", "stack", "state_range", "stop_gradient", "straight_through", "sum",
    "suspend", "table", "tanh", "tile_of", "transpose", "transposed_conv", "trunc", "uniform", "update", "verify_numerics"]
