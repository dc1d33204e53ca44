"""Functions inside of JAX: under jax.jit, where XLA calls their kernels itself.

    y = tessera.jax.call(linear_silu, x, w, b)
"""
from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from tessera import _core
from tessera.errors import CallError, CompilationError
from tessera.jit import Jit
from tessera.shapes import Shapes
from tessera.types import ARRAY_NAMES

_TARGET = "tessera"


@functools.cache
def _register() -> None:
    jax.ffi.register_ffi_target(_TARGET, _core.xla_handler(), platform="cpu")


def _dtype(name: str) -> np.dtype[Any]:
    if not hasattr(jax.numpy, ARRAY_NAMES.get(name, name)):
        raise CompilationError("jax.dtype", f"JAX has no arrays of {name} that kernels take; call the function directly")
    return jax.numpy.dtype(ARRAY_NAMES[name])


def call(function: Jit, *values: Any) -> Any:
    """Calls a function with arrays of JAX, traced ones too. Parameters are Python's numbers. What it gives is the new values of its states,
    whose arrays are donated, then its results: one value, or a tuple. vmap calls it once for each element. JAX differentiates a function
    under @autodiff in reverse mode, by its vjp."""
    if not isinstance(function, Jit):
        raise CompilationError("jax.function", f"call: expected a function under @jit, got {type(function).__name__}")
    algorithm, label = function.algorithm, function.algorithm.name
    names = function.arguments
    values += tuple(function.defaults[n] for n in names[len(values):] if n in function.defaults)
    if len(values) != len(names):
        raise CallError("argument", f"{label}: expected {len(names)} arguments ({', '.join(names)}), got {len(values)}")
    given = dict(zip(names, values))
    arrays: dict[str, Any] = {}
    for n, _, dtype, dims in algorithm.tensors:
        arrays[n] = array = jax.numpy.asarray(given[n])
        subject = f"{label}: argument '{n}'"
        if array.dtype != _dtype(dtype.name):
            raise CallError("dtype", f"{subject}: dtype must be {_dtype(dtype.name)}, not {array.dtype}", names.index(n))
        if array.ndim != len(dims):
            raise CallError("rank", f"{subject}: expected {len(dims)} dimensions, got {array.ndim}", names.index(n))
    parameters = {n: given[n] for n, _ in algorithm.parameters}
    for n, value in parameters.items():
        if isinstance(value, jax.core.Tracer):
            raise CallError("argument", f"{label}: argument '{n}' is a number of the kernel's and is traced; name it in static_argnames of "
                                        "jax.jit", names.index(n))
    if function.choices.autodiff:
        return _differentiable(function, arrays, parameters)
    return _called(function, arrays, parameters)


def _differentiable(function: Jit, arrays: dict[str, Any], parameters: dict[str, Any]) -> Any:
    algorithm = function.algorithm
    if "memory" in algorithm.effects:
        raise CompilationError("jax.backward", f"{algorithm.name}: functions that update a state in place have no gradient here; return the "
                                               "new value as a result")
    names = list(arrays)
    with_gradient = [n.removesuffix(".grad") for n, _, _ in algorithm.vjp().outputs if n.removesuffix(".grad") in arrays]
    wanted: list[str] = []  # told by the forward pass

    @jax.custom_vjp
    def run(*values: Any) -> Any:
        return _called(function, dict(zip(names, values)), parameters)

    def forward(*primals: Any) -> tuple[Any, Any]:
        wanted[:] = [n for n, p in zip(names, primals) if p.perturbed and n in with_gradient]
        values = tuple(p.value for p in primals)
        return run(*values), values

    def backward(values: Any, cotangents: Any) -> Any:
        if not wanted:
            return (None,) * len(names)
        behind = function.vjp(wanted)
        given = dict(zip(names, values))
        all_of_them = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        for (n, _, _), c in zip(algorithm.outputs, all_of_them):
            is_zero = isinstance(c, jax.custom_derivatives.SymbolicZero)
            given[f"{n}.grad"] = jax.numpy.zeros(c.shape, c.dtype) if is_zero and c.dtype != jax.dtypes.float0 else c
        made = _called(behind, {n: given[n] for n, _, _, _ in behind.algorithm.tensors}, parameters)
        found = dict(zip(wanted, made if isinstance(made, tuple) else (made,)))
        return tuple(found.get(n) for n in names)

    run.defvjp(forward, backward, symbolic_zeros=True)
    return run(*arrays.values())


def _called(function: Jit, arrays: dict[str, Any], parameters: dict[str, Any]) -> Any:
    algorithm, names = function.algorithm, function.arguments
    shapes = Shapes(algorithm)
    extents = {n: a.shape for n, a in arrays.items()}
    for holds, words in shapes.constraints(extents):
        if not holds:
            raise CallError("extent-mismatch", words)

    _register()
    hash_, kernel = function.kernel_for(*(arrays.get(n) for n in names))
    _core.xla_kernel(hash_, kernel)
    states = [n for n, role, _, _ in algorithm.tensors if role == "state"]
    results = [jax.ShapeDtypeStruct(arrays[n].shape, arrays[n].dtype) for n in states]
    results += [jax.ShapeDtypeStruct(s, _dtype(t.name)) for s, (_, t, _) in zip(shapes.results(extents), algorithm.outputs)]
    made = jax.ffi.ffi_call(_TARGET, results, vmap_method="sequential", has_side_effect=False,
                            input_output_aliases={list(arrays).index(n): i for i, n in enumerate(states)})(
        *arrays.values(), kernel=hash_, parameters=np.frombuffer(kernel.parameter_block({n: parameters[n] for n, _ in algorithm.parameters}), np.uint8))
    return made[0] if len(made) == 1 else tuple(made)
