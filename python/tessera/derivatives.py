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

import json
from collections.abc import Callable, Sequence
from typing import Any, cast, overload

from tessera._core import Algorithm, Dim
from tessera.checks import count_of, names_of, refuse_argument
from tessera.errors import CompilationError
from tessera.jit import Jit, JitFamily

Names = str | Sequence[str]


def _words_of_plan(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8") as opened:
            plan: object = json.load(opened)
    except (OSError, ValueError) as error:
        raise CompilationError("derivative.residuals", f"plan of residuals '{file}': expected a file of JSON; {error}.") from error
    words: list[str] = []
    for entry in cast("list[object]", plan if isinstance(plan, list) else [plan]):
        choices = cast("dict[str, object]", entry).items() if isinstance(plan, list) and isinstance(entry, dict) else ()
        if len(choices) != 1 or not all(choice in ("save", "recompute") or type(choice) is int and choice > 0 for _, choice in choices):
            raise CompilationError("derivative.residuals", f"plan of residuals '{file}': expected a list of objects of one field, save, recompute or the rounds of a group, such as "
                                   f'[{{"layers": 8}}, {{"*": "recompute"}}], got {json.dumps(entry)[:80]}. The command residuals writes one.')
        words += [f"{stages}={choice}" for stages, choice in choices]
    return words


def _saved(subject: str, names: Names) -> list[str]:
    """Words of residuals, those of files (*.json) among them: [{"layers": 8}, {"layers.each.acc": "save"}, {"*": "recompute"}]."""
    words: list[str] = []
    for name in names_of(subject, "saved", names):
        words += _words_of_plan(name) if name.endswith(".json") else [name]
    return words


def _one_output(subject: str, of: str) -> list[str]:
    if not isinstance(cast("object", of), str):
        refuse_argument(subject, "of", "the name of one output", of)
    return [of] if of else []


def _derived(function: Any, transform: str, make: Callable[[Algorithm], Algorithm]) -> Jit:
    if not isinstance(function, Jit):
        advice = "; give the function for values of its static arguments, specialised(...)" if isinstance(function, JitFamily) else ""
        raise CompilationError("python.function", f"{transform}: expected a function under @jit, got {type(function).__name__}{advice}.")
    return function.transformed(make)


def jvp(function: Jit, by: Names = (), of: Names = ()) -> Jit:
    """How outputs change: a function of the function's arguments, then x.tangent of each of `by`; of its outputs, then y.tangent of each of
    `of`. Tangents have the dims and types of their tensors."""
    return _derived(function, "jvp", lambda a: a.jvp(names_of("jvp", "by", by), names_of("jvp", "of", of)))


def vjp(function: Jit, by: Names = (), of: Names = (), saved: Names = ()) -> Jit:
    """The gradient of the sum of y.grad y: a function of the function's arguments, then y.grad of each of `of`, that gives x.grad of each of
    `by` in their order. States are read and not written. `saved`: stages of calls that repeat ("layers.acc", "layers.*") whose results
    rounds leave for their backward rounds; others are computed again. "acc=recompute" says that of other stages, "layers=8" puts rounds in
    groups, and a file (*.json) says all of it, as the command `residuals` writes it."""
    return _derived(function, "vjp", lambda a: a.vjp(names_of("vjp", "by", by), names_of("vjp", "of", of), _saved("vjp", saved)))


def forward_backward(function: Jit, by: Names = (), of: Names = (), saved: Names = ()) -> tuple[Jit, Jit]:
    """The vjp as two functions. The first gives the function's results, and behind them what the second reads of its stages; the second
    takes those of the function's arguments that it reads, y.grad of each of `of`, and what it reads of the first's results in the order in
    which the first gives them (`.arguments` has the names), and gives x.grad of each of `by`. What `saved` does not keep the second computes
    again."""
    def part(which: int) -> Jit:
        return _derived(function, "forward_backward", lambda a: a.forward_backward(names_of("forward_backward", "by", by), names_of("forward_backward", "of", of), _saved("forward_backward", saved))[which])

    return part(0), part(1)


def grad(function: Jit, by: Names = (), of: str = "", saved: Names = ()) -> Jit:
    """The gradient of one number, the function's output without dims (`of` where there are several): x.grad of each of `by`."""
    return _derived(function, "grad", lambda a: a.grad(names_of("grad", "by", by), _one_output("grad", of), _saved("grad", saved)))


def value_and_grad(function: Jit, by: Names = (), of: str = "", saved: Names = ()) -> Jit:
    """The function's outputs, then x.grad of each of `by`: what a step of training calls. States are written as the function writes them."""
    return _derived(function, "value_and_grad", lambda a: a.value_and_grad(names_of("value_and_grad", "by", by), _one_output("value_and_grad", of), _saved("value_and_grad", saved)))


def transpose(function: Jit, linear_in: Names = ()) -> Jit:
    """The adjoint of a function that is linear in these inputs: a function of the function's arguments, of which those are not read but for
    their extents, then y.grad."""
    return _derived(function, "transpose", lambda a: a.transposed(names_of("transpose", "linear_in", linear_in)))


def vmap(function: Jit, over: str | Dim, mapped: Names = ()) -> Jit:
    """The function for many arguments at once: at each index of the dim `over`, which stands in front of `mapped` (inputs, states and
    parameters; nothing named: all inputs and states) and of every output, what the function gives of the arguments there, bit for bit."""
    if not isinstance(cast("object", over), (str, Dim)) or over == "":
        refuse_argument("vmap", "over", "the name of a dim or a Dim, such as 'B'", over)
    dim = Dim.symbolic(over) if isinstance(over, str) else over
    return _derived(function, "vmap", lambda a: a.vmap(dim, names_of("vmap", "mapped", mapped)))


def checkpoint(function: Jit, scope: str, every: int) -> Jit:
    """The function with the rounds of the call `scope` in groups of `every`: gradients of it keep what is carried into each group, and of
    one group at a time into each round, so with groups of sqrt(L) rounds memory grows with sqrt(L). All bits stay."""
    if not isinstance(cast("object", scope), str):
        refuse_argument("checkpoint", "scope", "the name of a call that repeats", scope)
    rounds = count_of("checkpoint", "every", every)
    return _derived(function, "checkpoint", lambda a: a.checkpoint(scope, rounds))


def _of_function(function: Jit, part: Any, kind: str) -> Algorithm | None:
    """The part of a rule with the names of the algorithm that it is of: x_grad is x.grad, and results without names are those in order."""
    if part is None:
        return None
    if not isinstance(part, Jit):
        raise CompilationError("python.function", f"with_rule: {kind}: expected a function under @jit, got {type(part).__name__}.")
    a, made = function.algorithm, part.algorithm
    inputs = [n for n, _, dtype, _ in a.tensors if dtype.is_float] + [n for n, dtype in a.parameters if dtype.is_float]
    results = [n for n, dtype, _ in a.outputs if dtype.is_float]
    asked = {"jvp": [f"{y}.tangent" for y in results], "backward": [f"{x}.grad" for x in inputs]}.get(kind, [])
    known = {f"{stem}_{suffix}": f"{stem}.{suffix}" for suffix in ("grad", "tangent") for stem in [*inputs, *results]}
    names = {n: known[n] for n, *_ in [*made.tensors, *made.outputs] if n in known}
    given = [n for n, *_ in made.outputs]
    unnamed = ["y"] if len(given) == 1 else [f"y{i}" for i in range(len(given))]
    if asked and given == unnamed and not set(given) & set(names):
        if len(given) != len(asked):
            raise CompilationError("algorithm.rule", f"{a.name}: {kind} of its rule, {made.name}, gives {len(given)} results; expected {len(asked)}, "
                                                     f"{', '.join(asked)}, or a dict of those that it has, such as {{'{asked[0].replace('.', '_')}': ...}}.")
        names.update(zip(given, asked))
    return made.renamed(names) if names else made


@overload
def with_rule(function: Jit, /, *, backward: Jit | None = None, forward: Jit | None = None, jvp: Jit | None = None, differs: bool = False) -> Jit: ...
@overload
def with_rule(*, backward: Jit | None = None, forward: Jit | None = None, jvp: Jit | None = None,
              differs: bool = False) -> Callable[[Jit], Jit]: ...
def with_rule(function: Any = None, /, *, backward: Jit | None = None, forward: Jit | None = None, jvp: Jit | None = None, differs: bool = False) -> Any:
    """The function with a derivative of yours, which derivatives of it and of all that calls it take; above @jit, or a call.

        @ts.with_rule(backward=safe_backward)
        @jit
        def log1pexp(x: Tensor["N", f32]) -> Tensor["N", f32]: ...

    Parts are functions under @jit whose arguments have the function's names:

    backward  of what it reads of arguments, results and what forward gives, and y_grad for each result; gives x_grad of each argument
    forward   of arguments; gives the function's results, and beside them what backward reads
    jvp       of what it reads of arguments and results, and x_tangent; gives y_tangent of each result

    Several results are a dict by name ({"x_grad": ...}), or all in order. What is not among them counts as constant. Of jvp and backward
    the one that is missing is the other's transpose. Differences are compared with a rule unless it `differs` on purpose, as one that clips.
    With `backward` the function is one under @autodiff: tessera.torch.register and tessera.jax.call take the rule as its backward pass.
    """
    if not isinstance(cast("object", differs), bool):
        refuse_argument("with_rule", "differs", "True or False", differs)

    def wrap(made_of: Any) -> Jit:
        made = _derived(made_of, "with_rule", lambda a: a.with_rule(
            jvp=_of_function(made_of, jvp, "jvp"), backward=_of_function(made_of, backward, "backward"),
            forward=_of_function(made_of, forward, "forward"), differs=differs))
        choices = made_of.choices._replace(autodiff=made_of.choices.autodiff or backward is not None)
        made = Jit(made.algorithm, choices, made_of.arguments, made_of.defaults)  # its schedules are those of the function
        made.__dict__.update({n: v for n, v in made_of.__dict__.items() if n.startswith("__")})
        return made

    return wrap if function is None else wrap(function)


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
