"""Compiled kernels on disk, by the hash of everything that they are made of.

An entry is a folder with the library and its manifest. It appears whole, by a rename, and is checked by its hash when it is read; while one
process makes it, others wait for its lock, which the system frees when a process dies. Nothing is evicted by itself.

TESSERA_CACHE=<folder>        another folder than ~/.cache/tessera
TESSERA_CACHE=only[:<folder>] nothing is compiled: what is not there is an error that says what is missing
TESSERA_CACHE=off, or empty   every process compiles for itself
"""
from __future__ import annotations

import fcntl
import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from tessera import _core
from tessera.errors import CompilationError

T = TypeVar("T")


class Settings(NamedTuple):
    folder: Path | None  # None: off
    only: bool


def settings() -> Settings:
    return _settings(os.environ.get("TESSERA_CACHE"))


@functools.cache
def _settings(value: str | None) -> Settings:
    standard = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tessera"
    if value is None:
        return Settings(standard, False)
    word, _, folder = value.partition(":")
    if value == "" or value.lower() == "off":
        return Settings(None, False)
    if word.lower() == "only":
        return Settings(_absolute(folder) if folder else standard, True)
    return Settings(_absolute(value), False)


def _absolute(folder: str) -> Path:
    """Where it was when it was first asked for, so that a change of folder does not change the cache."""
    return Path(folder).expanduser().absolute()


def _library(entry: Path) -> Path | None:
    """The entry's library, or None where the entry is not whole."""
    try:
        [file] = [n for n in os.listdir(entry) if n.endswith(".manifest.json")]
        manifest = json.loads((entry / file).read_bytes())
        [(name, wanted)] = [(n, h) for n, h in manifest["files"].items() if n.endswith(".a") and os.path.basename(n) == n]
        if _core.sha256((entry / name).read_bytes()) == wanted:
            return entry / name
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def loaded(key: str, what: str, make: Callable[[Path], None], load: Callable[[Path], T]) -> T:
    """What `load` makes of the library of this key. Where there is none, `make` writes one into the folder that it is given. `what` names
    it in errors."""
    if settings().folder is not None:
        return load(_library_of(key, what, make))
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        make(Path(folder))
        made = _library(Path(folder))
        assert made is not None, "the generator wrote no library"
        return load(made)


def _library_of(key: str, what: str, make: Callable[[Path], None]) -> Path:
    chosen = settings()
    assert chosen.folder is not None
    entry = chosen.folder / "kernels" / key[:2] / key
    found = _library(entry)
    if found is not None:
        return found
    if chosen.only:
        raise CompilationError("cache.missing", f"{what}: TESSERA_CACHE=only, and {chosen.folder} has no kernel of this key, {key}. "
                                                "Run once without it on a machine like this one, and bring the folder along")
    import shutil  # not where a kernel is there: these take longer to import than it to be read
    import tempfile

    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        opened = open(entry.parent / f"{key}.lock", "w")
    except OSError as error:
        raise CompilationError("cache.folder", f"{what}: kernels cannot be kept in {chosen.folder}: {error}. Name another folder in TESSERA_CACHE, "
                                               "or set it to 'off'") from None
    with opened as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _library(entry)  # somebody may have made it meanwhile
        if found is not None:
            return found
        staging = Path(tempfile.mkdtemp(prefix=f".{key[:8]}.", dir=entry.parent))
        try:
            make(staging)
            shutil.rmtree(entry, ignore_errors=True)  # one that is not whole
            os.rename(staging, entry)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    found = _library(entry)
    if found is None:
        raise CompilationError("cache.broken", f"{what}: what was written to {entry} is not what its manifest says; is the disk full?")
    return found


class Entry(NamedTuple):
    key: str
    kernel: str
    target: str
    fixed: dict[str, int]
    bytes: int
    age_s: float


def entries() -> list[Entry]:
    folder = settings().folder
    all_entries: list[Entry] = []
    for manifest in sorted((folder / "kernels").glob("*/*/*.manifest.json")) if folder else []:
        try:
            said = json.loads(manifest.read_bytes())
            size = sum(f.stat().st_size for f in manifest.parent.iterdir())
            all_entries.append(Entry(manifest.parent.name, said["kernel"], ",".join(t["name"] for t in said["targets"]), said["fixed"], size,
                                     time.time() - manifest.stat().st_mtime))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return all_entries


def prune(older_than_s: float = 0) -> int:
    """Deletes entries of at least that age, and what killed processes left. Gives how many entries went."""
    import shutil

    folder = settings().folder
    if folder is None:
        return 0
    gone = 0
    for entry in entries():
        if entry.age_s >= older_than_s:
            shutil.rmtree(folder / "kernels" / entry.key[:2] / entry.key, ignore_errors=True)
            gone += 1
    for left in (folder / "kernels").glob("*/.*"):
        if time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)
    return gone
