"""Derivatives of functions, as functions: their algorithms are made by C++ (docs/gradients.md), and are scheduled, tuned and called like any other.

    @autodiff
    @jit
    def linear(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
        return tile.dot(x, w) + b

    x_grad, w_grad = ts.vjp(linear, by=("x", "w"))(x, w, b, y_grad)

`by` names inputs, states and parameters, `of` outputs; nothing named means all floats. Whatever has no derivative is refused with the stage
and what to do (derivative.*).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from tessera._core import Algorithm
from tessera.errors import CompilationError
from tessera.jit import Jit, JitFamily

Names = str | Sequence[str]


def _list(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _derived(function: Any, transform: str, make: Callable[[Algorithm], Algorithm]) -> Jit:
    if not isinstance(function, Jit):
        advice = "; give the function for values of its static arguments, specialised(...)" if isinstance(function, JitFamily) else ""
        raise CompilationError("python.function", f"{transform}: expected a function under @jit, got {type(function).__name__}{advice}")
    return function.transformed(make)


def jvp(function: Jit, by: Names = (), of: Names = ()) -> Jit:
    """How outputs change: a function of the function's arguments, then x.tangent of each of `by`; of its outputs, then y.tangent of each of
    `of`. Tangents have the dims and types of their tensors."""
    return _derived(function, "jvp", lambda a: a.jvp(_list(by), _list(of)))


def vjp(function: Jit, by: Names = (), of: Names = ()) -> Jit:
    """The gradient of the sum of y.grad y: a function of the function's arguments, then y.grad of each of `of`, that gives x.grad of each of
    `by` in their order. States are read and not written."""
    return _derived(function, "vjp", lambda a: a.vjp(_list(by), _list(of)))


def grad(function: Jit, by: Names = (), of: str = "") -> Jit:
    """The gradient of one number, the function's output without dims (`of` where there are several): x.grad of each of `by`."""
    return _derived(function, "grad", lambda a: a.grad(_list(by), [of] if of else []))


def value_and_grad(function: Jit, by: Names = (), of: str = "") -> Jit:
    """The function's outputs, then x.grad of each of `by`: what a step of training calls. States are written as the function writes them."""
    return _derived(function, "value_and_grad", lambda a: a.value_and_grad(_list(by), [of] if of else []))


def transpose(function: Jit, linear_in: Names = ()) -> Jit:
    """The adjoint of a function that is linear in these inputs: a function of the function's arguments, of which those are not read but for
    their extents, then y.grad."""
    return _derived(function, "transpose", lambda a: a.transposed(_list(linear_in)))


@overload
def autodiff(function: Jit, /) -> Jit: ...
@overload
def autodiff(function: Callable[..., Any], /) -> Callable[..., Any]: ...
def autodiff(function: Any, /) -> Any:
    """Above or below @jit: the function has a gradient, in frameworks too. tessera.torch.register and tessera.jax.call take its vjp as
    their backward pass. What has none is refused here, at its line."""
    if isinstance(function, Jit):
        vjp(function)
        return function.differentiable()
    if isinstance(function, JitFamily):
        return function.differentiable()
    function.__tessera_autodiff__ = True
    return function
