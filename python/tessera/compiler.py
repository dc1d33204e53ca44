"""The compiler is a program of its own, which runs as a child: it needs limits of time and memory, and a process without threads."""
from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera import cache
from tessera.errors import CompilationError

_package = Path(__file__).parent


@functools.cache
def generator() -> str:
    """The generator's program: TESSERA_GENERATOR, or the package's own."""
    program = os.environ.get("TESSERA_GENERATOR") or str(_package / "bin" / "tessera-generator")
    if not os.access(program, os.X_OK):
        raise CompilationError("python.generator", f"there is no generator at {program}; build it (./tessera python), or name one in TESSERA_GENERATOR")
    return program


@functools.cache
def generator_identity() -> str:
    """Tells one build of the generator from another."""
    about = os.stat(generator())
    return f"{about.st_size}.{about.st_mtime_ns}"


def _error(said: dict[str, Any], spans: Mapping[str, tuple[str, int]]) -> CompilationError:
    """The error of a JSON line that the generator wrote; `spans` are the lines where stages are declared."""
    file, line = spans.get(said.get("stage", ""), ("", 0))
    more = [f"\n{e['id']}: {e['text']}" for e in said.get("errors", [])[1:]]
    return CompilationError(said["id"], said["text"] + "".join(more), file, line)


def _words(line: str) -> str:
    """A line of the generator's as people read it: of a note its words, of an error nothing, since it is raised."""
    if not line.startswith('{"'):
        return line
    said = json.loads(line)
    return "" if said.get("kind") == "error" else f"{said['kind']}: {said['text']}\n"


def run(arguments: Sequence[str], *, progress: bool = False, spans: Mapping[str, tuple[str, int]] | None = None) -> str:
    """Runs a command of the generator and gives what it prints. Its errors become CompilationErrors. `progress` shows its notes as they come."""
    import subprocess  # a kernel from the cache starts none

    command = [generator(), *arguments, "--errors", "json"]
    environment = {**os.environ, "TESSERA_CACHE": str(cache.settings().folder or "")}  # where derived schedules are kept, too
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None and process.stdout is not None
    try:
        if progress:
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                sys.stderr.write(_words(line))
            output, errors = process.stdout.read(), "".join(lines)
            process.wait()
        else:
            output, errors = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode == 0:
        return output
    for line in reversed(errors.splitlines()):
        if line.startswith('{"'):
            said = json.loads(line)
            if said.get("kind") == "error":
                raise _error(said, spans or {})
    raise CompilationError("generator.failed", f"tessera-generator {arguments[0]} ended with {process.returncode}:\n{errors.strip() or output.strip()}")
