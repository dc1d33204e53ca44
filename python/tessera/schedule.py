"""Schedules as values. Every call gives a new one; what is wrong is said where it is written, by the C++ that the tools use."""
from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tessera import _core
from tessera.errors import CompilationError

_shipped = Path(__file__).parent / "share" / "tessera" / "schedules"


@functools.cache
def shipped_library() -> _core.Library:
    return _core.Library([str(_shipped)])


class Schedule:
    """How an algorithm is computed: exactly a JSON document, with a parent that it inherits from.

    base = Schedule.named("linear/avx512")
    mine = base.with_block("y", M=128).with_micro("acc", M=6, N=48)

    What is changed of a schedule that has a file is a child of it, called <name>/child until `rename`.
    """

    def __init__(self, name: str, extends: Schedule | str | None = None) -> None:
        self._raw = _core.RawSchedule(name)
        self._parent: Schedule | None = None
        self._is_file = False
        if isinstance(extends, str):
            extends = Schedule.named(extends)
        if extends is not None:
            self._raw = self._raw.extends(extends._raw)
            self._parent = extends

    @classmethod
    def _of(cls, raw: _core.RawSchedule, parent: Schedule | None, is_file: bool = False) -> Schedule:
        made = cls.__new__(cls)
        made._raw, made._parent, made._is_file = raw, parent, is_file
        return made

    @staticmethod
    def named(name: str, folders: Sequence[str | os.PathLike[str]] = ()) -> Schedule:
        """A schedule of these folders, or a shipped one."""
        library = _core.Library([os.fspath(f) for f in folders] + [str(_shipped)]) if folders else shipped_library()
        raw = library.find(name)
        parent = Schedule.named(raw.parent_name, folders) if raw.parent_name else None
        return Schedule._of(raw, parent, True)

    @staticmethod
    def read(file: str | os.PathLike[str]) -> Schedule:
        """A schedule by its file; its ancestors are shipped ones."""
        raw = _core.RawSchedule.read(os.fspath(file))
        parent = Schedule.named(raw.parent_name) if raw.parent_name else None
        return Schedule._of(raw, parent, True)

    @property
    def name(self) -> str:
        return self._raw.name

    @property
    def parent(self) -> Schedule | None:
        return self._parent

    @property
    def text(self) -> str:
        """The canonical document."""
        return self._raw.text

    @property
    def hash(self) -> str:
        return self._raw.hash

    def _own(self) -> Schedule:
        """This schedule, or a child of it where it is somebody's file."""
        return Schedule(self.name + "/child", self) if self._is_file else self

    def _with(self, raw: _core.RawSchedule, parent: Schedule | None) -> Schedule:
        made = Schedule._of(raw, parent)
        made.library().check(raw)
        return made

    def library(self) -> _core.Library:
        """The shipped schedules and this one's ancestors."""
        library = _core.Library([str(_shipped)])
        ancestor = self._parent
        while ancestor is not None:
            if not ancestor._is_file or ancestor.name not in library.names():
                library.add(ancestor._raw)
            ancestor = ancestor._parent
        return library

    def rename(self, name: str) -> Schedule:
        own = self._own()
        return Schedule._of(own._raw.named(name), own._parent)

    def stage(self, stage: str, **knobs: Any) -> Schedule:
        """States knobs of a stage, in the form of their JSON: stage("acc", micro={"M": 6, "N": 48}, place="y.tile")."""
        own = self._own()
        return self._with(own._raw.stage(stage, json.dumps(knobs)), own._parent)

    def with_block(self, stage: str, **extents: int) -> Schedule:
        return self.stage(stage, block=extents)

    def with_k(self, stage: str, **extents: int) -> Schedule:
        return self.stage(stage, k=extents)

    def with_micro(self, stage: str, **extents: int) -> Schedule:
        return self.stage(stage, micro=extents)

    def with_vector(self, stage: str, **lanes: int) -> Schedule:
        return self.stage(stage, vector=lanes)

    def with_unroll(self, stage: str, **iterations: int) -> Schedule:
        return self.stage(stage, unroll=iterations)

    def variant(self, when: Sequence[str], stage: str, **knobs: Any) -> Schedule:
        """Other knobs where every condition holds, such as ["M <= 16"]; earlier variants come first."""
        own = self._own()
        return self._with(own._raw.variant(list(when), stage, json.dumps(knobs)), own._parent)

    def remove(self, stage: str, knob: str) -> Schedule:
        """Without the knob, inherited or not."""
        own = self._own()
        return self._with(own._raw.remove(stage, knob), own._parent)

    def explain(self, field: str = "") -> str:
        """Which ancestor states each field; of one field, such as "acc.micro.M", that line alone."""
        if not field:
            return self.library().explain(self._raw)
        wanted = "/stages/" + field.replace(".", "/")
        fields = json.loads(self.library().explain_json(self._raw))["fields"]
        for f in fields:
            if f["field"] in (wanted, field):
                over = "".join(f", over {json.dumps(o['value'])} of {o['from']}" for o in f["over"])
                return f"{f['field']}   {json.dumps(f['value'])}   {f['from']}{over}"
        raise CompilationError("schedule.field", f"{self.name}: there is no field '{field}'; there are {', '.join(f['field'] for f in fields)}")

    def diff(self, other: Schedule) -> str:
        """The fields in which two merged schedules differ, one to a line."""
        library = self.library()
        for ancestor in (other, *other.ancestors()):
            if ancestor.name not in library.names():
                library.add(ancestor._raw)
        return library.diff(self._raw, other._raw)

    def ancestors(self) -> list[Schedule]:
        found: list[Schedule] = []
        ancestor = self._parent
        while ancestor is not None:
            found.append(ancestor)
            ancestor = ancestor._parent
        return found

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the document, for reviews and for the command line."""
        path = Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(json.loads(self.text), indent=2) + "\n", encoding="utf-8")

    def write_below(self, folder: Path) -> None:
        """This schedule and those of its ancestors that are in no file, as a folder of schedules (--schedule-dir)."""
        for schedule in (self, *self.ancestors()):
            if schedule is self or not schedule._is_file:
                schedule.save(folder / f"{schedule.name}.json")

    def __reduce__(self) -> Any:
        return _rebuilt, (self.text, self._parent, self._is_file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.text == other.text and self._parent == other._parent

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<schedule {' -> '.join(s.name for s in (self, *self.ancestors()))}>"


def _rebuilt(text: str, parent: Schedule | None, is_file: bool) -> Schedule:
    raw = _core.RawSchedule.parse(text, "a copied schedule")
    return Schedule._of(raw if parent is None else raw.extends(parent._raw), parent, is_file)
