"""Runs a function once with tiles, which makes the algorithm that it declares."""
from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator, Sequence
from types import FunctionType
from typing import Any, NamedTuple, cast, get_args, get_origin

from tessera import _core
from tessera._core import Algorithm, Builder, Dim, DType, Numerics, Tile
from tessera.errors import CompilationError
from tessera.types import ParameterType, TensorType

_current: contextvars.ContextVar[Builder | None] = contextvars.ContextVar("tessera.builder", default=None)


def current_builder() -> Builder:
    """The builder of the function that is being declared."""
    builder = _current.get()
    if builder is None:
        raise CompilationError("python.outside", "this declares a part of an algorithm, and none is being declared; call it inside of a function under @jit")
    return builder


@contextlib.contextmanager
def declaring(builder: Builder) -> Generator[Builder]:
    """What is called inside declares with this builder."""
    token = _current.set(builder)
    try:
        yield builder
    finally:
        _current.reset(token)


class Signature(NamedTuple):
    """What annotations say: arguments of kernels in order, with defaults of parameters, static arguments (int, float, bool, str) with their defaults, results."""

    name: str
    arguments: dict[str, TensorType | ParameterType]
    defaults: dict[str, int | float | bool]  # of parameters that a call may leave out
    static: dict[str, Any]
    static_types: dict[str, type]
    required_static: tuple[str, ...]
    results: tuple[TensorType | None, ...] | None  # None: not annotated


_STATIC = (int, float, bool, str)


def static_value(signature: Signature, name: str, value: Any) -> Any:
    """The value of a static argument, as its annotation says it: an int may stand for a float, and nothing else for another."""
    wanted = signature.static_types.get(name)
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is not None and type(value) is not wanted:
        raise CompilationError("python.static", f"{signature.name}: the static argument '{name}' is {wanted.__name__}, got {value!r}")
    return value


# Flags of a code object (its documentation has the numbers; `inspect` has their names, and takes longer to import than a call to declare).
_REST, _REST_NAMED, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x4, 0x8, 0x20, 0x80, 0x200


def _parameters(function: FunctionType) -> tuple[tuple[str, ...], dict[str, Any], str]:
    """Names, defaults, and the name behind * or ** where there is one."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    given = function.__defaults__ or ()
    defaults = {**dict(zip(names[code.co_argcount - len(given):code.co_argcount], given)), **(function.__kwdefaults__ or {})}
    rest = "" if not code.co_flags & (_REST | _REST_NAMED) else "*" * (not code.co_flags & _REST) + code.co_varnames[count]
    return names, defaults, rest


def _default(kind: ParameterType, value: Any, refuse: Callable[[str], CompilationError]) -> int | float | bool:
    """The default of a parameter, which has to be a value that a call could give it."""
    name = kind.dtype.name
    wanted = (bool,) if name == "bool" else (int, float) if kind.dtype.is_float else (int,)
    if type(value) not in wanted:
        raise refuse(f"expected {' or '.join(t.__name__ for t in wanted)} as the default of a parameter of {name}, got {value!r}")
    if name[0] in "iu":
        bits = int(name[1:])
        least, end = (-(1 << bits - 1), 1 << bits - 1) if name[0] == "i" else (0, 1 << bits)
        if not least <= value < end:
            raise refuse(f"the default {value!r} is no {name}")
    if (kind.least is not None and (value < kind.least or kind.above and value == kind.least)) \
            or (kind.most is not None and (value > kind.most or kind.below and value == kind.most)):
        raise refuse(f"the default {value!r} is not in the parameter's range")
    return value


def signature_of(function: Callable[..., Any]) -> Signature:
    if not isinstance(function, FunctionType) or function.__code__.co_flags & (_GENERATOR | _COROUTINE | _ASYNC_GENERATOR):
        raise CompilationError("python.function", f"jit takes a plain function of Python, got {function!r}")
    name = function.__name__

    def refuse(message: str) -> CompilationError:
        return CompilationError("python.annotation", f"{name}: {message}", function.__code__.co_filename, function.__code__.co_firstlineno)

    plain = function
    while isinstance(getattr(plain, "__wrapped__", None), FunctionType):  # a decorator's wrapper says no more than what it wraps
        plain = cast("FunctionType", getattr(plain, "__wrapped__"))
    hints = {n: eval(hint, plain.__globals__) if isinstance(hint, str) else hint for n, hint in plain.__annotations__.items()}
    arguments: dict[str, TensorType | ParameterType] = {}
    kept: dict[str, int | float | bool] = {}
    static: dict[str, Any] = {}
    types: dict[str, type] = {}
    required: list[str] = []
    parameters, defaults, rest = _parameters(plain)
    if rest:
        raise refuse(f"argument '*{rest}': a kernel has a fixed number of arguments; name each of them")
    for parameter in parameters:
        hint = hints.get(parameter)
        if isinstance(hint, DType):
            hint = ParameterType(hint)
        if parameter == "out":
            raise refuse("no argument may be called 'out', which is where calls take the memory of results")
        if isinstance(hint, (TensorType, ParameterType)):
            if parameter in defaults:
                if isinstance(hint, TensorType):
                    raise refuse(f"argument '{parameter}': a tensor has no default; a parameter, such as f32, and static arguments (int, float, bool, str) may have one")
                kept[parameter] = _default(hint, defaults[parameter], lambda words: refuse(f"argument '{parameter}': {words}"))
            arguments[parameter] = hint
        elif hint in _STATIC or (hint is None and parameter in defaults):
            if hint in _STATIC:
                types[parameter] = hint
            if parameter in defaults:
                static[parameter] = defaults[parameter]
            else:
                required.append(parameter)
        else:
            raise refuse(f"argument '{parameter}': expected an annotation such as Tensor[\"M\", \"K\", f32], State[...], "
                         f"f32, Param[f32, 0, 1], or int, float, bool or str for what the kernel is made for; got {hint!r}")
    result = hints.get("return")
    results: tuple[TensorType | None, ...] | None = None
    if isinstance(result, TensorType):
        results = (result,)
    elif isinstance(result, tuple) and not isinstance(result, ParameterType):
        results = cast("tuple[TensorType | None, ...]", result)
    elif get_origin(result) is tuple:
        results = tuple(a if isinstance(a, TensorType) else None for a in get_args(result))
    if result is not None and results is None:
        raise refuse(f"the result: expected an annotation such as Tensor[\"M\", \"N\", f32], or none; got {result!r}")
    return Signature(name, arguments, kept, static, types, tuple(required), results)


def _policy_of(signature: Signature, numerics: Numerics | str | None) -> Numerics:
    if isinstance(numerics, str):
        return Numerics.named(numerics)
    if numerics is not None:
        return numerics
    stated = {t.policy for t in signature.arguments.values() if isinstance(t, TensorType) and t.policy is not None}
    if len(stated) > 1:
        raise CompilationError("numerics.policy", f"{signature.name}: its arguments state several policies ({', '.join(sorted(p.name for p in stated))}); "
                                                  "state one, or give numerics= to jit")
    if stated:
        return stated.pop()
    types = [t.dtype.name for t in signature.arguments.values() if t.dtype is not None]
    return Numerics.named("f64" if "f64" in types else "f32")


def _declare_dim(builder: Builder, dim: str | int | Dim) -> str:
    if isinstance(dim, Dim):
        builder.dim(dim)
        return dim.name
    if isinstance(dim, int):
        builder.dim(f"n{dim}", dim)
        return f"n{dim}"
    builder.dim(dim)
    return dim


def _free(signature: Signature, name: str, other: str) -> str:
    return other if name in signature.arguments else name


def declare(function: Callable[..., Any], signature: Signature, static: dict[str, Any], numerics: Numerics | str | None, name: str) -> Algorithm:
    """The algorithm of the function, with these values of its static arguments."""
    builder = Builder(name, _policy_of(signature, numerics))
    tiles: dict[str, Tile] = {}
    for argument, kind in signature.arguments.items():
        if isinstance(kind, ParameterType):
            tiles[argument] = builder.parameter(argument, kind.dtype, kind.least, kind.most, kind.above, kind.below)
            continue
        dims = [_declare_dim(builder, d) for d in kind.dims]
        tiles[argument] = (builder.state if kind.is_state else builder.input)(argument, dims, kind.dtype)
    with declaring(builder):
        returned = function(**tiles, **static)
    named: dict[str, Any]
    if returned is None:
        named = {}
    elif isinstance(returned, dict):
        named = cast("dict[str, Any]", returned)
    elif isinstance(returned, (tuple, list)):
        named = {_free(signature, f"y{i}", f"result{i}"): tile for i, tile in enumerate(cast("Sequence[Any]", returned))}
    else:
        named = {_free(signature, "y", "result"): returned}
    results = signature.results
    if results is not None and named and len(results) != len(named):
        raise CompilationError("python.result", f"{name}: {len(results)} results are annotated, and {len(named)} are returned",
                               function.__code__.co_filename, function.__code__.co_firstlineno)
    for i, (result, tile) in enumerate(named.items()):
        if not isinstance(tile, Tile):
            raise CompilationError("python.result", f"{name}: expected a tile for the result '{result}', got {type(tile).__name__}",
                                   function.__code__.co_filename, function.__code__.co_firstlineno)
        annotated = results[i] if results is not None else None
        if annotated is not None:
            dims = [_declare_dim(builder, d) for d in annotated.dims]
            if sorted(dims) != sorted(tile.dims):
                raise CompilationError("python.result", f"{name}: the result '{result}' is annotated with dims [{', '.join(dims)}], and the tile has "
                                                        f"[{', '.join(tile.dims)}]; correct one of them",
                                       function.__code__.co_filename, function.__code__.co_firstlineno)
            if dims != tile.dims:
                tile = _core.tile.broadcast(tile, dims)
        builder.output(result, tile, annotated.dtype if annotated is not None else None)
    return builder.build()
