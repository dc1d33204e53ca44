"""Element-wise functions over NumPy's arrays of any shape, as numpy.ufunc.

    add = my_add.ufunc()
    add(x, y), add(x[:, None], 2.0), add(x, y, out=x)

Its shapes broadcast by NumPy's rules, from the last axis on, whatever dims the function was declared over: they say no more than that it is
element-wise. Its types are the algorithm's: arrays of others are cast where NumPy casts safely, and Python's numbers where NumPy's weak
scalars are; a result's type never depends on them. A parameter takes one number for all elements.

An array is passed as it is where, along the innermost axis of the iteration, its elements are next to each other, or it has one for all of
it; NumPy's order K chooses that axis. Any other is copied once, at the size that it has. An array for a result is written as it is where its
elements are next to each other along that axis and its memory is that of no other argument; otherwise what is computed is copied to it.
"""
from __future__ import annotations

from typing import Any, NoReturn, cast

import numpy as np

from tessera import _core
from tessera._core import DType, Kernel
from tessera.errors import CallError, CompilationError
from tessera.jit import Choices, Jit
from tessera.types import ARRAY_NAMES

_REFUSED = {
    "reduce": "a reduction is a function of its own: write it with tile.fold or tile.sum",
    "accumulate": "a prefix fold is a function of its own: write it with tile.scan",
    "reduceat": "a fold of ranges is a function of its own: write it with tile.scan and its segments",
    "at": "an update at indices is a function of its own: write it with tile.scatter",
    "outer": "give the first argument axes of one element behind its own: f(x[:, None], y)"}
# What other arguments of a ufunc have to be, where they are given.
_STANDARD: dict[str, tuple[Any, ...]] = {"where": (True,), "casting": ("same_kind",), "order": ("K",), "dtype": (None,), "subok": (True,), "signature": (None,)}


def _numpy_type(function: str, what: str, dtype: DType) -> np.dtype[Any]:
    name = ARRAY_NAMES.get(dtype.name)
    if name is None:
        raise CompilationError("elementwise.type", f"{function}: '{what}' is {dtype.name}, and NumPy has no arrays of it; it has {', '.join(ARRAY_NAMES)}")
    if not hasattr(np, name):
        try:
            import ml_dtypes
        except ImportError:
            raise CompilationError("elementwise.type", f"{function}: '{what}' is {dtype.name}, of which the package ml_dtypes has arrays; install it") from None
        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


class Ufunc(_core.Ufunc):
    """An element-wise function as numpy.ufunc: `nin`, `nout`, `nargs`, `types`, and calls with `out=`."""

    nin: int
    nout: int
    nargs: int
    ntypes = 1
    identity = None
    signature = None

    def __new__(cls, function: Jit) -> Ufunc:
        return super().__new__(cls)

    def __init__(self, function: Jit) -> None:
        algorithm = function.algorithm
        algorithm.check_elementwise()
        name = algorithm.name
        self.function, self.__name__, self.__doc__ = function, name, function.__doc__
        self._arguments = function.arguments
        self._inputs = {n: (_numpy_type(name, n, t), t) for n, _, t, _ in algorithm.tensors}
        self._results = {n: _numpy_type(name, n, t) for n, t, _ in algorithm.outputs}
        self.nin, self.nout = len(self._arguments), len(self._results)
        self.nargs = self.nin + self.nout
        parameters = dict(algorithm.parameters)
        given = "".join(self._inputs[n][0].char if n in self._inputs else _numpy_type(name, n, parameters[n]).char for n in self._arguments)
        self.types = [f"{given}->{''.join(t.char for t in self._results.values())}"]
        super().__init__(name, self._arguments, {n: t for n, (t, _) in self._inputs.items()}, self._results, self._made, self._call)

    def _made(self, repeated: list[str]) -> Kernel:
        """The kernel for inputs of which these have one element for each row."""
        choices = Choices(target=self.function.choices.target)
        return Jit(self.function.algorithm.elementwise_over_rows(repeated), choices, self._arguments).compile()

    def _wrong(self, kind: str, words: str) -> CallError:
        return CallError(kind, f"{self.__name__}: {words}")

    def _input(self, name: str, value: Any) -> np.ndarray[Any, Any]:
        dtype, own = self._inputs[name]
        if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
            fits = isinstance(value, bool) or (own.is_float if isinstance(value, float) else own.name != "bool")
            if fits:
                try:
                    return np.asarray(value).astype(dtype) if own.is_float else np.asarray(value, dtype=dtype)
                except OverflowError as error:
                    raise self._wrong("dtype", f"argument '{name}': {error}") from None
        if isinstance(value, np.ma.MaskedArray):
            raise self._wrong("argument", f"argument '{name}': masked arrays are not taken, as their masks would be lost; pass filled() or data")
        array = np.asarray(value)
        if array.dtype == dtype:
            return array
        if not np.can_cast(array.dtype, dtype, "safe"):
            raise self._wrong("dtype", f"argument '{name}': dtype must be {dtype}, or one that NumPy casts to it safely, not {array.dtype}; cast it with astype")
        return array.astype(dtype)

    def _call(self, *values: Any, **named: Any) -> Any:
        """A call in general: C++ takes it where all are NumPy's arrays of the right types."""
        out: Any = named.pop("out", None)
        if self.nin < len(values) <= self.nargs and out is None:
            values, out = values[:self.nin], (*values[self.nin:], *[None] * (self.nargs - len(values)))
        defaults = self.function.defaults
        left_out = self._arguments[len(values):]
        if all(n in defaults for n in left_out):
            values += tuple(defaults[n] for n in left_out)
        if len(values) != self.nin:
            raise self._wrong("argument", f"expected {self.nin} arguments ({', '.join(self._arguments)}), and perhaps {self.nout} for results, got {len(values)}")
        for key, value in named.items():
            if key not in _STANDARD:
                raise self._wrong("argument", f"there is no argument '{key}='; ufuncs of Tessera take out= alone")
            if not any(value is v or (type(value) is type(v) and value == v) for v in _STANDARD[key]):
                raise self._wrong("argument", f"{key}={value!r}: ufuncs of Tessera take {key}={_STANDARD[key][0]!r} alone; "
                                              + ("choose with numpy.where, or in the function with tile.select" if key == "where" else "cast or copy the arrays"))
        results: tuple[Any, ...] = (out,) if self.nout == 1 or out is not None else (None,) * self.nout
        if isinstance(out, tuple):
            results = cast("tuple[Any, ...]", out)
        if len(results) != self.nout:
            raise self._wrong("argument", f"out: expected {'an array' if self.nout == 1 else f'a tuple of {self.nout} arrays'} ({', '.join(self._results)}), got "
                                          f"{len(results)}")
        taken = tuple(self._input(n, v) if n in self._inputs else v for n, v in zip(self._arguments, values))
        made = tuple(self._result(n, r) for n, r in zip(self._results, results))
        done = self.over(taken, made)
        for given, written in zip(results, made):
            if written is not None and given is not written:
                np.copyto(given, written, casting="same_kind")
        if all(given is written for given, written in zip(results, made)):
            return done
        all_done = (done,) if self.nout == 1 else done
        chosen = tuple(d if given is written else given for given, written, d in zip(results, made, all_done))
        return chosen[0] if self.nout == 1 else chosen

    def _result(self, name: str, out: Any) -> np.ndarray[Any, Any] | None:
        """The array that is written for `out`, or one of the result's type, which is copied to it."""
        dtype = self._results[name]
        if out is None:
            return None
        kind = cast("type[Any]", type(out))
        if not issubclass(kind, np.ndarray) or issubclass(kind, np.ma.MaskedArray):
            raise self._wrong("argument", f"out: expected an array of NumPy for the result '{name}', got {kind.__name__}")
        if not out.flags.writeable:
            raise self._wrong("read-only", f"out: the array for the result '{name}' is read-only; pass one that can be written")
        if not np.can_cast(dtype, out.dtype, "same_kind"):
            raise self._wrong("dtype", f"out: the result '{name}' is {dtype}, which NumPy does not cast to {out.dtype} by 'same_kind'")
        if out.dtype == dtype and kind is np.ndarray:
            return out
        return np.empty(out.shape, dtype)

    def __getattr__(self, name: str) -> NoReturn:
        why = _REFUSED.get(name)
        raise AttributeError(f"{self.__name__}: ufuncs of Tessera have no '{name}'" + (f"; {why}" if why else ""))

    def __reduce__(self) -> Any:
        return Ufunc, (self.function,)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__}({', '.join(self._arguments)})>"


_core.keep_vectorcall(Ufunc)
