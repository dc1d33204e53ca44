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

from tessera._core import Algorithm, Dim
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


def vjp(function: Jit, by: Names = (), of: Names = (), saved: Names = ()) -> Jit:
    """The gradient of the sum of y.grad y: a function of the function's arguments, then y.grad of each of `of`, that gives x.grad of each of
    `by` in their order. States are read and not written. `saved`: stages of calls that repeat ("layers.acc", "layers.*") whose results
    rounds leave for their backward rounds; others are computed again."""
    return _derived(function, "vjp", lambda a: a.vjp(_list(by), _list(of), _list(saved)))


def grad(function: Jit, by: Names = (), of: str = "", saved: Names = ()) -> Jit:
    """The gradient of one number, the function's output without dims (`of` where there are several): x.grad of each of `by`."""
    return _derived(function, "grad", lambda a: a.grad(_list(by), [of] if of else [], _list(saved)))


def value_and_grad(function: Jit, by: Names = (), of: str = "", saved: Names = ()) -> Jit:
    """The function's outputs, then x.grad of each of `by`: what a step of training calls. States are written as the function writes them."""
    return _derived(function, "value_and_grad", lambda a: a.value_and_grad(_list(by), [of] if of else [], _list(saved)))


def transpose(function: Jit, linear_in: Names = ()) -> Jit:
    """The adjoint of a function that is linear in these inputs: a function of the function's arguments, of which those are not read but for
    their extents, then y.grad."""
    return _derived(function, "transpose", lambda a: a.transposed(_list(linear_in)))


def vmap(function: Jit, over: str | Dim, mapped: Names = ()) -> Jit:
    """The function for many arguments at once: at each index of the dim `over`, which stands in front of `mapped` (inputs, states and
    parameters; nothing named: all inputs and states) and of every output, what the function gives of the arguments there, bit for bit."""
    dim = Dim.symbolic(over) if isinstance(over, str) else over
    return _derived(function, "vmap", lambda a: a.vmap(dim, _list(mapped)))


def checkpoint(function: Jit, scope: str, every: int) -> Jit:
    """The function with the rounds of the call `scope` in groups of `every`: gradients of it keep what is carried into each group, and of
    one group at a time into each round, so with groups of sqrt(L) rounds memory grows with sqrt(L). All bits stay."""
    return _derived(function, "checkpoint", lambda a: a.checkpoint(scope, every))


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
