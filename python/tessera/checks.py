"""Checks of what public functions are given, before the compiled part takes it: its own words name no argument."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

from tessera.errors import CompilationError, StateError


def shown(value: object) -> str:
    """The value and its type, in short."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def refuse_argument(subject: str, argument: str, expected: str, value: object) -> NoReturn:
    raise CompilationError("python.argument", f"{subject}: {argument}: expected {expected}, got {shown(value)}.")


def names_of(subject: str, argument: str, names: object) -> list[str]:
    """One name, or several. CompilationError python.argument."""
    if isinstance(names, str):
        return [names]
    several = isinstance(names, Iterable) and not isinstance(names, (bytes, Mapping))
    given: list[object] = list(cast("Iterable[object]", names)) if several else []
    if not several or not all(isinstance(n, str) for n in given):
        refuse_argument(subject, argument, "a name or a sequence of names, such as 'x' or ('x', 'w')", cast("object", names))
    return cast("list[str]", given)


def count_of(subject: str, argument: str, value: object, least: int = 1, most: int = 2**31 - 1) -> int:
    """A whole number, no bool. CompilationError python.argument."""
    number = _whole(value, least, most)
    if number is None:
        refuse_argument(subject, argument, f"a whole number from {least} to {most}", value)
    return number


def _is_bool(value: object) -> bool:
    """Python's or NumPy's, which is not imported for this."""
    return type(value).__name__ in ("bool", "bool_")


def _whole(value: object, least: int, most: int) -> int | None:
    """The whole number, no bool, that lies between; otherwise None."""
    try:
        number = None if _is_bool(value) else operator.index(cast(Any, value))
    except TypeError:
        number = None
    return number if number is not None and least <= number <= most else None


def refuse_state(subject: str, argument: str, expected: str, value: object) -> NoReturn:
    raise StateError("state.argument", f"{subject}: {argument}: expected {expected}, got {shown(value)}.")


def state_number(subject: str, argument: str, value: object, least: int, most: int) -> int:
    """A whole number, no bool, of a state's interface. StateError state.argument."""
    number = _whole(value, least, most)
    if number is None:
        refuse_state(subject, argument, f"a whole number from {least} to {most}", value)
    return number


def state_tokens(subject: str, argument: str, value: object) -> list[int]:
    """Whole numbers of 32 bits. StateError state.argument."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        refuse_state(subject, argument, "a sequence of whole numbers", cast("object", value))
    return [state_number(subject, f"{argument}[{i}]", one, -2**31, 2**31 - 1) for i, one in enumerate(cast("Iterable[object]", value))]


def state_real(subject: str, argument: str, value: object, expected: str, accepts: Callable[[float], bool]) -> float:
    """A number, no bool, that is accepted. StateError state.argument."""
    try:
        number = None if isinstance(value, (str, bytes)) or _is_bool(value) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not accepts(number):
        refuse_state(subject, argument, expected, value)
    return number


def state_seconds(subject: str, value: object) -> float | None:
    """A timeout: None for no end. StateError state.argument."""
    if value is None:
        return None
    return state_real(subject, "timeout", value, "seconds, 0 or more, or None for no end", lambda s: not math.isnan(s) and s >= 0)


def state_flag(subject: str, argument: str, value: object) -> bool:
    """True or False. StateError state.argument."""
    if not isinstance(value, bool):
        refuse_state(subject, argument, "True or False", value)
    return value


def state_text(subject: str, argument: str, value: object) -> str:
    if not isinstance(value, str):
        refuse_state(subject, argument, "text", value)
    return value


__all__: Sequence[str] = ["count_of", "names_of", "refuse_argument", "refuse_state", "shown", "state_flag", "state_number", "state_real",
                          "state_seconds", "state_text", "state_tokens"]
