"""The exceptions of this package."""
from __future__ import annotations

import linecache
import os


class TesseraError(Exception):
    """What this package raises for mistakes of its user's."""


class CompilationError(TesseraError):
    """A function, a schedule or a target that cannot be compiled as it stands.

    id       stable, such as "shape.dot"
    message  the subject, what was expected, what came, and the remedy
    file, line  where the user's code says what is wrong; line 0: nobody knows
    """

    def __init__(self, id: str, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(id, message, file, line)
        self.id, self.message, self.file, self.line = id, message, file, line

    def __str__(self) -> str:
        if not self.line:
            return f"error[{self.id}]: {self.message}"
        source = linecache.getline(self.file, self.line).strip()
        shown = f"\n    {source}" if source else ""
        return f"{os.path.basename(self.file)}:{self.line}: error[{self.id}]: {self.message}{shown}"


class CallError(TesseraError, ValueError):
    """Arguments that a kernel does not take.

    kind      a stable word such as "extent-mismatch" (tess_status_kind)
    argument  the position among the kernel's arguments, or -1
    """

    def __init__(self, kind: str, message: str, argument: int = -1) -> None:
        super().__init__(message)
        self.kind, self.message, self.argument = kind, message, argument


class StateError(TesseraError):
    """What tessera_state says when it does not do what it was asked. Nothing was changed, unless docs/state.md says so.

    kind  a stable word such as "state.full" (tess_state_status_id)
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message
