"""Folds of one's own."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tessera import _core
from tessera._core import DType
from tessera._core.expr import Expr, element, left, right
from tessera.errors import CompilationError


class Monoid:
    """A fold over elements of one part or several.

    parts     {name: (dtype, identity)}
    inputs    the types of what is folded; by default those of the parts
    lift      what one element is by itself: a function of its inputs that gives a value for each part; by default the inputs themselves
    combine   of two elements, each a sequence of its parts; associative, with the identity as its neutral element
    step      of an element and further inputs; by default combine(element, lift(inputs))

    Its laws are tested on many values when it is made, NaN and infinities among them (CompilationError algorithm.monoid-law).

    argmax = Monoid("argmax", {"value": (f32, -inf), "at": (i32, 2**31 - 1)}, combine=lambda a, b: ...)
    """

    def __init__(self, name: str, parts: Mapping[str, tuple[DType, float]], combine: Callable[..., Sequence[Expr] | Expr], *,
                 inputs: Sequence[DType] | None = None, lift: Callable[..., Sequence[Expr] | Expr] | None = None,
                 step: Callable[..., Sequence[Expr] | Expr] | None = None, commutative: bool = True) -> None:
        types = [t for t, _ in parts.values()]
        given = list(inputs) if inputs is not None else types
        a = [left(i, t) for i, t in enumerate(types)]
        b = [right(i, t) for i, t in enumerate(types)]
        x = [element(i, t) for i, t in enumerate(given)]
        lifted = self._values(name, "lift", len(types), lift(*x)) if lift is not None else x
        if len(lifted) != len(types):
            raise CompilationError("python.monoid", f"the monoid '{name}' has {len(types)} parts and {len(given)} inputs; give lift")
        combined = self._values(name, "combine", len(types), combine(a, b))
        stepped = self._values(name, "step", len(types), step(a, x) if step is not None else combine(a, lifted))
        self.raw = _core.RawMonoid(name, list(parts), types, [float(v) for _, v in parts.values()], given, lifted, combined, stepped, commutative)
        broken = self.raw.broken_law()
        if broken is not None:
            raise CompilationError("algorithm.monoid-law", f"the monoid '{name}': {broken}")

    @staticmethod
    def _values(name: str, what: str, count: int, values: Sequence[Expr] | Expr) -> list[Expr]:
        listed = [values] if isinstance(values, Expr) else list(values)
        if len(listed) != count:
            raise CompilationError("python.monoid", f"the monoid '{name}': {what} gives {len(listed)} values, and there are {count} parts")
        return listed

    @staticmethod
    def standard(name: str, dtype: DType) -> _core.RawMonoid:
        """One of the standard ones: sum, product, max, min, max_number, dot, welford, argmax, recurrence."""
        return _core.RawMonoid.standard(name, dtype)

    def __repr__(self) -> str:
        return f"<monoid {self.raw.name}>"
