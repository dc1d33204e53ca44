"""States that outlive a call: which page of a cache holds which tokens of which sequence, and states of training in files.

    pages = state.Pages(keys, values, page_tokens=16)          # the pools that kernels take, pages along their first axis
    s = pages.open()
    pages.reserve(s, 1)                                         # room for a token; a page that is shared is copied
    with pages.step([s]) as step:                               # pinned until the block ends
        y = decode(q, k, v, keys, values, step.length, step.table)
    pages.commit(s, 1)

    state.save("step.safetensors", {"m": m, "v": v, "w": w}, step=7)
    state.load("step.safetensors", {"m": m, "v": v, "w": w})    # in place, all or nothing
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, cast

from tessera import _core
from tessera.checks import refuse_state, state_flag, state_number, state_real, state_seconds, state_text, state_tokens
from tessera.errors import StateError

_I32, _I64, _U64 = 2**31 - 1, 2**63 - 1, 2**64 - 1


def _id(subject: str, sequence: object) -> int:
    return state_number(subject, "sequence", sequence, 0, _U64)


def _i32(subject: str, **numbers: object) -> list[int]:
    return [state_number(subject, name, value, 0, _I32) for name, value in numbers.items()]


def _path(subject: str, argument: str, path: object) -> str:
    try:
        return state_text(subject, argument, os.fspath(path))  # type: ignore[call-overload]
    except TypeError:
        refuse_state(subject, argument, "a path", path)


def _named(subject: str, tensors: object) -> list[tuple[str, Any]]:
    if not isinstance(tensors, Mapping):
        refuse_state(subject, "tensors", "tensors by name, such as {'w': w}", tensors)
    return [(state_text(subject, "a tensor's name", name), one) for name, one in cast("Mapping[object, Any]", tensors).items()]


__all__ = ["AdaptivePrecision", "Counts", "Head", "Pages", "SequenceInfo", "StateError", "Step", "TensorInfo", "load", "look", "save"]


class SequenceInfo(NamedTuple):
    """What is known of a sequence: tokens, the first that was not pruned, entries of its table, and where it is: "memory", "leaving",
    "outside", "arriving" or "lost"."""
    sequence: int
    key: int
    length: int
    begin: int
    keep: int
    reserved: int
    pages: int
    pins: int
    where: str


class Counts(NamedTuple):
    """Pages by what they are; free, used, moving and held ones are all there are. `damaged` counts files that were found so."""
    free: int
    used: int
    moving: int
    held: int
    outside: int
    damaged: int


class Step:
    """The tables of sequences at one moment, as kernels take them: i32 arrays of NumPy, read only.

    table   [n, entries], the page of each entry, -1 where there is none
    length  [n], committed tokens
    begin   [n], the first token that was not pruned
    """

    def __init__(self, pages: _core.Pages, number: int, table: Any, length: Any, begin: Any) -> None:
        self._pages: _core.Pages | None = pages
        self._number = number
        self.table, self.length, self.begin = table, length, begin

    def release(self) -> None:
        """Lets go of what the step reads. A second time does nothing. A step that nobody has any more is released too."""
        pages, self._pages = getattr(self, "_pages", None), None
        if pages is not None:
            pages.release(self._number)

    def __del__(self) -> None:
        self.release()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


class Pages:
    """Which page of the pools holds which tokens of which sequence (docs/state.md). Any thread may call it.

    The pools are tensors of the caller's with pages along their first axis: keys, values, scales, of each layer. One table serves all.

    sequence_pages  most pages of a sequence; as many as there are by default
    steps           most steps that run at once
    prefix_tokens   most tokens of a sequence that `publish` keeps
    outside_pages   most pages outside: in the host's memory, or in files of `folder`
    recover         sequences that an earlier process left in the folder are open, outside: with the same pools in the same order. Without,
                    what an earlier process left there is removed
    sync            files are forced to the disk
    thread          a thread moves pages; without, who waits does
    """

    def __init__(self, *pools: Any, page_tokens: int, sequences: int = 64, sequence_pages: int | None = None, steps: int = 4,
                 prefix_tokens: int = 0, outside_pages: int = 0, folder: str | os.PathLike[str] | None = None, recover: bool = False,
                 sync: bool = True, thread: bool = True) -> None:
        for name, flag in {"recover": recover, "sync": sync, "thread": thread}.items():
            state_flag("Pages", name, flag)
        page_tokens, sequences, most_pages, steps, prefix_tokens, outside_pages = _i32(
            "Pages", page_tokens=page_tokens, sequences=sequences, sequence_pages=0 if sequence_pages is None else sequence_pages, steps=steps,
            prefix_tokens=prefix_tokens, outside_pages=outside_pages)
        if outside_pages == 0 and (folder is not None or recover):
            raise StateError("state.argument", "folder and recover are for pages outside, of which outside_pages allows none; give it.")
        if recover and folder is None:
            raise StateError("state.argument", "recover: expected the folder that an earlier process left, got none.")
        self._core = _core.Pages(list(pools), page_tokens, sequences, most_pages, steps, prefix_tokens, outside_pages,
                                 None if folder is None else _path("Pages", "folder", folder), recover, sync, thread)

    def open(self, key: int = 0) -> int:
        """A sequence without tokens. `key` is the caller's, for `info` and after `recover`."""
        return self._core.open(state_number("open", "key", key, 0, _U64))

    def close(self, sequence: int) -> None:
        """Ends a sequence, in any state."""
        self._core.close(_id("close", sequence))

    def fork(self, parent: int, at: int | None = None, key: int = 0) -> int:
        """A sequence with the first `at` tokens of another, all by default, which shares their pages."""
        tokens = self.info(parent).length if at is None else state_number("fork", "at", at, 0, _I32)
        return self._core.fork(state_number("fork", "parent", parent, 0, _U64), tokens, state_number("fork", "key", key, 0, _U64))

    def reserve(self, sequence: int, tokens: int, *, timeout: float | None = 0, copy: bool = True) -> tuple[int, int] | None:
        """Makes room for tokens after the sequence's length, all or nothing. A page that others share is replaced by a copy. Without
        `copy`, the pages (from, to) to copy are given instead, for a kernel such as `cache_copy_pages`. With a timeout in seconds, None
        for no end, others go outside where pages are missing."""
        (tokens,) = _i32("reserve", tokens=tokens)
        return self._core.reserve(_id("reserve", sequence), tokens, state_seconds("reserve", timeout), state_flag("reserve", "copy", copy))

    def commit(self, sequence: int, tokens: int) -> None:
        """The first reserved tokens count as written."""
        self._core.commit(_id("commit", sequence), *_i32("commit", tokens=tokens))

    def truncate(self, sequence: int, length: int) -> None:
        """Drops the tokens from `length` on, and what is reserved."""
        self._core.truncate(_id("truncate", sequence), *_i32("truncate", length=length))

    def prune(self, sequence: int, window: int, keep: int = 0) -> None:
        """Keeps the last `window` tokens and the first `keep`, and frees the pages between. Positions stay."""
        self._core.prune(_id("prune", sequence), *_i32("prune", window=window, keep=keep))

    def step(self, sequences: Sequence[int], entries: int | None = None) -> Step:
        """The tables of these sequences at one moment, pinned until `release`. `entries` is the width of the table; by default that of the
        longest."""
        if isinstance(sequences, (str, bytes)) or not isinstance(cast("object", sequences), Iterable):
            refuse_state("step", "sequences", "a sequence of ids that open gave", sequences)
        sequences = [_id("step", s) for s in sequences]
        if entries is not None:
            (entries,) = _i32("step", entries=entries)
        while True:
            wide = max([1, *(self.info(s).pages for s in sequences)]) if entries is None else entries
            try:
                return Step(self._core, *self._core.tables(sequences, wide))
            except StateError as error:  # another thread may have reserved more meanwhile
                if entries is not None or error.kind != "state.argument" or all(self.info(s).pages <= wide for s in sequences):
                    raise

    def offload(self, sequence: int) -> None:
        """Begins to send a sequence outside."""
        self._core.offload(_id("offload", sequence))

    def prefetch(self, sequence: int, *, timeout: float | None = 0) -> None:
        """Begins to bring a sequence back. `timeout` is as in `reserve`."""
        self._core.prefetch(_id("prefetch", sequence), state_seconds("prefetch", timeout))

    def wait(self, sequence: int, *, timeout: float | None = None) -> None:
        """Waits until a sequence does not move, and raises how that ended."""
        self._core.wait(_id("wait", sequence), state_seconds("wait", timeout))

    def publish(self, sequence: int, tokens: Iterable[int]) -> None:
        """Makes the first tokens of a sequence known to `prefix`."""
        self._core.publish(_id("publish", sequence), state_tokens("publish", "tokens", tokens))

    def prefix(self, tokens: Iterable[int]) -> tuple[int, int] | None:
        """The published sequence that begins with most of these tokens, in whole pages, and with how many."""
        sequence, matched = self._core.prefix(state_tokens("prefix", "tokens", tokens))
        return (sequence, matched) if sequence else None

    def info(self, sequence: int) -> SequenceInfo:
        return SequenceInfo(*self._core.info(_id("info", sequence)))

    @property
    def sequences(self) -> list[SequenceInfo]:
        """All that are open."""
        return [SequenceInfo(*one) for one in self._core.sequences()]

    @property
    def counts(self) -> Counts:
        return Counts(*self._core.counts())

    def __repr__(self) -> str:
        c = self.counts
        return f"<pages: {c.free} free, {c.used} used, {c.moving} moving, {c.held} held, {c.outside} outside>"


class AdaptivePrecision:
    """By what a training scales its loss, and in which of two numerics policies of one program its next step runs: a narrow one while its
    gradients fit, a wide one where they overflow again and again (docs/state.md).

        precision = AdaptivePrecision(range=65504)
        for ids, targets in batches:
            g = (wide if precision.is_wide else narrow)(w, ids, targets, precision.scale) / precision.scale
            if precision.step(abs(g).max()):
                update(w, g)

    range     the largest number of the narrow type
    first     the scale of the first step is 2**first; it stays within 2**least and 2**most
    grow      after so many steps in a row without an overflow the scale doubles; an overflow halves it
    patience  so many overflows, and not `grow` steps without one between them, bring in the wide policy
    stay      the wide policy stays for so many steps in a row whose gradients would have fitted, twice as many each time that the narrow one
              gave way again before it made `grow` steps
    """

    def __init__(self, *, range: float = float("inf"), first: int = 16, least: int = 0, most: int = 24, patience: int = 4, grow: int = 1000,
                 stay: int = 100) -> None:
        scales = [state_number("precision", n, v, -2**31, _I32) for n, v in {"first": first, "least": least, "most": most}.items()]
        steps = [state_number("precision", n, v, -2**31, _I32 if n == "patience" else _I64)
                 for n, v in {"patience": patience, "grow": grow, "stay": stay}.items()]
        largest = state_real("precision", "range", range, "the largest number of the narrow type, such as 65504", lambda r: True)
        self._precision = _core.Precision(largest, *scales, *steps)
        self.state = self._precision.fields()
        """i64, what a checkpoint keeps: save and load take it as a tensor. Whatever reads it refuses what no steps leave (state.argument)."""

    @property
    def scale(self) -> float:
        """What the next step's loss is multiplied by: a power of two, 1 in the wide policy."""
        return self._precision.scale()

    @property
    def is_wide(self) -> bool:
        self._precision.check()
        return bool(self.state[1])

    @property
    def updates(self) -> int:
        """Steps that counted."""
        return int(self.state[5])

    @property
    def skipped(self) -> int:
        """Steps that did not."""
        return int(self.state[6])

    def step(self, largest: float) -> bool:
        """A step was made, whose gradients without the scale have this largest magnitude, or a number that is not smaller, such as their
        length; infinite or NaN where one of them is. Whether the step counts: if not, the weights stay as they are."""
        return self._precision.step(state_real("precision.step", "largest", largest, "a magnitude, 0 or more, infinite or NaN",
                                               lambda m: not m < 0))

    def __repr__(self) -> str:
        policy = "wide" if self.is_wide else f"narrow, scale {self.scale:g}"
        return f"<precision: {policy}; {self.updates} updates, {self.skipped} skipped>"


class Head(NamedTuple):
    """What a checkpoint says beside its tensors: the hash of the algorithm that makes a step, the step that was made last, the seed."""
    semantic_hash: str
    step: int
    seed: int


class TensorInfo(NamedTuple):
    """A tensor of a checkpoint; `dtype` as NumPy or ml_dtypes say it."""
    dtype: str
    shape: tuple[int, ...]


def save(path: str | os.PathLike[str], tensors: Mapping[str, Any], *, step: int = 0, seed: int = 0, semantic_hash: str = "") -> None:
    """Writes a checkpoint in place of the one that is there: whole or not at all, whenever the process is killed."""
    _core.save_state(_path("save", "path", path), _named("save", tensors), state_text("save", "semantic_hash", semantic_hash),
                     state_number("save", "step", step, 0, _I64), state_number("save", "seed", seed, 0, _U64))


def load(path: str | os.PathLike[str], tensors: Mapping[str, Any], *, semantic_hash: str = "") -> Head:
    """Reads a checkpoint into tensors, of these names, types and extents. Nothing is written before the whole file was found right. A
    `semantic_hash` has to be the file's."""
    return Head(*_core.load_state(_path("load", "path", path), _named("load", tensors), state_text("load", "semantic_hash", semantic_hash)))


def look(path: str | os.PathLike[str]) -> tuple[Head, dict[str, TensorInfo]]:
    """What a checkpoint holds."""
    head, stored = _core.look_at_state(_path("look", "path", path))
    return Head(*head), {name: TensorInfo(dtype, tuple(shape)) for name, dtype, shape in stored}
