"""Functions as operators of PyTorch: in its dispatcher, for torch.compile, with gradients where a backward function or @autodiff says them.

    linear_silu = tessera.torch.register(linear_silu, "my::linear_silu")     # torch.ops.my.linear_silu.default
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tessera._core import DType
from tessera.errors import CallError, CompilationError
from tessera.jit import Jit
from tessera.shapes import Shapes
from tessera.types import ARRAY_NAMES

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, theirs) for name, theirs in ARRAY_NAMES.items() if hasattr(torch, theirs)}
_PARAMETERS = {"f32": "float", "f64": "float", "bool": "bool", "i8": "int", "u8": "int", "i32": "int", "i64": "int"}

# A library of PyTorch takes its operators away when it goes, so these stay.
_libraries: dict[str, torch.library.Library] = {}


def _dtype(function: str, what: str, dtype: DType) -> torch.dtype:
    if dtype.name not in DTYPES:
        raise CompilationError("torch.dtype", f"{function}: '{what}' is {dtype.name}, and PyTorch {torch.__version__} has no tensors of "
                                              f"it; it has {', '.join(DTYPES)}. Call the function directly")
    return DTYPES[dtype.name]


class _Operator:
    """What the dispatcher is told of one function."""

    def __init__(self, function: Jit, name: str) -> None:
        algorithm = function.algorithm
        self.function, self.name, self.label = function, name, algorithm.name
        self.arguments = function.arguments
        self.shapes = Shapes(algorithm)
        self.tensors = {n: (_dtype(self.label, n, t), len(dims)) for n, _, t, dims in algorithm.tensors}
        self.states = [n for n, role, _, _ in algorithm.tensors if role == "state"]
        self.results = {n: _dtype(self.label, n, t) for n, t, _ in algorithm.outputs}
        self.parameters = {n: t.name for n, t in algorithm.parameters}
        if not self.tensors:
            raise CompilationError("torch.arguments", f"{self.label}: it has no tensor among its arguments, by which PyTorch's dispatcher "
                                                      "would choose; call it directly")
        for n, t in self.parameters.items():
            if t not in _PARAMETERS:
                raise CompilationError("torch.dtype", f"{self.label}: the parameter '{n}' is {t}, and operators of PyTorch take "
                                                      f"{', '.join(_PARAMETERS)}; declare it as one of them")

    def schema(self) -> str:
        said = []
        for n in self.arguments:
            word = n.replace(".", "_")  # y.grad, which is no name there
            if n in self.parameters:
                # PyTorch takes defaults of the last arguments alone.
                has_default = all(other in self.function.defaults for other in self.arguments[self.arguments.index(n):])
                said.append(f"{_PARAMETERS[self.parameters[n]]} {word}" + (f"={self.function.defaults[n]!r}" if has_default else ""))
            else:
                said.append(f"Tensor({chr(ord('a') + self.states.index(n))}!) {word}" if n in self.states else f"Tensor {word}")
        results = ["Tensor"] * len(self.results)
        return f"({', '.join(said)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"

    def fake(self, *values: Any) -> Any:
        """The results without their values, as PyTorch asks for them while it traces."""
        given = {n: v for n, v in zip(self.arguments, values) if n in self.tensors}
        for n, (dtype, rank) in self.tensors.items():
            subject, at = f"{self.label}: argument '{n}'", self.arguments.index(n)
            if given[n].dtype != dtype:
                raise CallError("dtype", f"{subject}: dtype must be {dtype}, not {given[n].dtype}", at)
            if given[n].dim() != rank:
                raise CallError("rank", f"{subject}: expected {rank} dimensions, got {given[n].dim()}", at)
        shapes = {n: v.shape for n, v in given.items()}
        for holds, words in self.shapes.constraints(shapes):
            torch._check(holds, lambda words=words: words)
        device = next(iter(given.values())).device
        made = [torch.empty(s, dtype=t, device=device) for s, t in zip(self.shapes.results(shapes), self.results.values())]
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    def refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Without a backward function a result would be a constant to autograd, and gradients silently zero."""
        floats = [(i, n) for i, n in enumerate(self.arguments) if n in self.tensors and self.tensors[n][0].is_floating_point]
        enabled = torch.is_grad_enabled

        def checked(*values: Any) -> Any:
            if enabled():
                for i, n in floats:
                    if values[i].requires_grad:
                        raise CallError(
                            "gradient", f"{self.label}: argument '{n}' requires grad, and {self.name} has no backward function; declare "
                                        "it under @autodiff, register it with backward=, or call it under torch.no_grad() or with a detached tensor", i)
            return call(*values)

        return checked

    def define(self, library: torch.library.Library, has_backward: bool) -> Any:
        space, op = self.name.split("::")
        library.define(op + self.schema())
        library.impl(op, self.function if has_backward else self.refusing(self.function), "CPU")
        torch.library.register_fake(self.name, self.fake if has_backward else self.refusing(self.fake), lib=library)
        return getattr(getattr(torch.ops, space), op).default


def _differentiate(forward: _Operator, backward: _Operator, call: Any, library: torch.library.Library) -> None:
    gradients = {f"grad_{n}": i for i, n in enumerate(forward.results)}
    known = [*forward.arguments, *forward.results, *gradients]
    positions = {n: i for i, n in enumerate(backward.results)}
    if forward.states or backward.states:
        raise CompilationError("torch.backward", f"{forward.label}: functions that update a state in place have no gradient here; return "
                                                 "the new value as a result")
    for n in backward.arguments:
        if n not in known:
            raise CompilationError("torch.backward", f"{backward.label}: argument '{n}': a backward function of {forward.label} takes some "
                                                     f"of {', '.join(known)}; rename it")
    for n in positions:
        if n.removeprefix("grad_") not in forward.tensors or not n.startswith("grad_"):
            wanted = ", ".join("grad_" + t for t in forward.tensors)
            raise CompilationError("torch.backward", f"{backward.label}: result '{n}': a backward function of {forward.label} returns some "
                                                     f"of {wanted}; return a dict, which names results")
    saved = [n for n in backward.arguments if n not in gradients and n not in forward.parameters]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        for i, n in enumerate(forward.arguments):
            if ctx.needs_input_grad[i] and f"grad_{n}" not in positions:
                raise CallError("gradient", f"{forward.label}: argument '{n}' requires grad, and the backward function {backward.label} "
                                            f"has no result 'grad_{n}'; add it, or pass a detached tensor", i)
        outputs = output if isinstance(output, tuple) else (output,)
        values = {**dict(zip(forward.arguments, inputs)), **dict(zip(forward.results, outputs))}
        ctx.save_for_backward(*(values[n] for n in saved))
        ctx.parameters = {n: values[n] for n in forward.parameters}

    def propagate(ctx: Any, *grads: Any) -> Any:
        values = {**ctx.parameters, **dict(zip(saved, ctx.saved_tensors))}
        values.update((n, grads[i].contiguous()) for n, i in gradients.items())
        made = call(*(values[n] for n in backward.arguments))
        made = made if isinstance(made, tuple) else (made,)
        return tuple(made[positions[f"grad_{n}"]] if f"grad_{n}" in positions else None for n in forward.arguments)

    torch.library.register_autograd(forward.name, propagate, setup_context=setup_context, lib=library)


def _differentiate_by_vjp(forward: _Operator, library: torch.library.Library) -> None:
    """The backward pass is the function's vjp: one operator for each set of arguments that require grad, made when it is first asked for."""
    if forward.states:
        raise CompilationError("torch.backward", f"{forward.label}: functions that update a state in place have no gradient here; return "
                                                 "the new value as a result")
    whole = {n.removesuffix(".grad") for n, _, _ in forward.function.algorithm.vjp().outputs}
    floats = [n for n, (dtype, _) in forward.tensors.items() if dtype.is_floating_point]
    made: dict[tuple[str, ...], tuple[Any, Jit]] = {}

    def backward_by(names: tuple[str, ...]) -> tuple[Any, Jit]:
        if names not in made:
            function = forward.function.vjp(names)
            operator = _Operator(function, f"{forward.name}_backward_{'_'.join(str(forward.arguments.index(n)) for n in names)}")
            made[names] = operator.define(library, has_backward=False), function
        return made[names]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.wanted = tuple(n for i, n in enumerate(forward.arguments) if ctx.needs_input_grad[i] and n in whole and n in floats)
        values = dict(zip(forward.arguments, inputs))
        ctx.save_for_backward(*(values[n] for n in forward.tensors))
        ctx.parameters = {n: values[n] for n in forward.parameters}

    def propagate(ctx: Any, *grads: Any) -> Any:
        if not ctx.wanted:  # what they give is constant in each
            return tuple(None for _ in forward.arguments)
        call, function = backward_by(ctx.wanted)
        values = {**ctx.parameters, **dict(zip(forward.tensors, ctx.saved_tensors))}
        values.update((f"{n}.grad", g.contiguous()) for n, g in zip(forward.results, grads) if g is not None)
        results = call(*(values[n] for n in function.arguments))
        found = dict(zip(ctx.wanted, results if isinstance(results, tuple) else (results,)))
        return tuple(found.get(n) for n in forward.arguments)

    torch.library.register_autograd(forward.name, propagate, setup_context=setup_context, lib=library)


def register(function: Jit, name: str, *, backward: Jit | None = None) -> Any:
    """Registers a function as the operator `name`, "space::operator", and gives the operator. Kernels run on the CPU; torch.compile sees
    the shapes of results, and what the function asks of extents as guards.

    backward  a function for its gradients, which becomes the operator `name`_backward. Its arguments are some of the function's
              arguments and results by name, and grad_<result>; its results are grad_<argument>. Without it a function under @autodiff
              has its vjp, and of any other an input that requires grad is an error.
    """
    space, colons, op = name.partition("::")
    if not (colons and space.isidentifier() and op.isidentifier()):
        such = getattr(function, "__name__", "linear")
        raise CompilationError("torch.name", f"register: expected a name such as \"my::{such}\", got {name!r}")
    for f in (function, backward):
        if f is not None and not isinstance(f, Jit):
            raise CompilationError("torch.function", f"register: expected a function under @jit, got {type(f).__name__}; a function with "
                                                     "static arguments is registered for values of them: "
                                                     "register(function.specialised(...), ...)")
    for taken in (name, f"{name}_backward") if backward is not None else (name,):
        if hasattr(getattr(torch.ops, space), taken.partition("::")[2]):
            raise CompilationError("torch.name", f"register: there is an operator {taken} already; take another name")
    forward = _Operator(function, name)
    behind = None if backward is None else _Operator(backward, f"{name}_backward")
    library = _libraries.setdefault(space, torch.library.Library(space, "FRAGMENT"))
    by_vjp = function.choices.autodiff and behind is None
    made = forward.define(library, has_backward=behind is not None or by_vjp)
    if by_vjp:
        _differentiate_by_vjp(forward, library)
    if behind is not None:
        _differentiate(forward, behind, behind.define(library, has_backward=False), library)
    return made
