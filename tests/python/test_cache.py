"""The cache: one compilation for many processes, whole entries or none, TESSERA_CACHE."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tessera import CompilationError, Tensor, cache, f32, jit

PROGRAM = """
import sys, numpy as np
from tessera import Tensor, f32, jit
@jit(schedule="none")
def third(x: Tensor["M", f32]) -> Tensor["M", f32]:
    return x / 3
x = np.arange(5, dtype=np.float32)
assert (third(x) == x / np.float32(3)).all()
"""


def start():
    return subprocess.Popen([sys.executable, "-c", PROGRAM.replace("from tessera import Tensor", "from tessera import Tensor")], stderr=subprocess.PIPE, text=True)


def third():
    @jit(schedule="none")
    def third(x: Tensor["M", f32]) -> Tensor["M", f32]:
        return x / 3

    return third


def counted_generator(tmp_path, monkeypatch, seconds=0.0):
    """A generator that counts how often it is run to generate."""
    from tessera import compiler
    log, program = tmp_path / "runs", tmp_path / "generator"
    program.write_text(f'#!/bin/sh\nif [ "$1" = generate ]; then echo x >> {log}; sleep {seconds}; fi\nexec {compiler.generator()} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("TESSERA_GENERATOR", str(program))
    compiler.generator.cache_clear(), compiler.generator_identity.cache_clear()
    return log


@pytest.fixture(autouse=True)
def real_generator():
    yield
    from tessera import compiler
    compiler.generator.cache_clear(), compiler.generator_identity.cache_clear()


def test_many_processes_compile_once(tmp_path, monkeypatch, cache_folder):
    log = counted_generator(tmp_path, monkeypatch, 0.2)
    running = [start() for _ in range(32)]
    for process in running:
        assert process.wait() == 0, process.stderr.read()
        process.stderr.close()
    assert log.read_text() == "x\n"
    [entry] = cache.entries()
    assert entry.kernel == "third" and entry.fixed == {}


def test_a_killed_process_leaves_nothing_broken(tmp_path, monkeypatch, cache_folder):
    log = counted_generator(tmp_path, monkeypatch, 1)
    process = start()
    while not log.exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert cache.entries() == []
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(third()(x), x / np.float32(3))


def test_a_broken_entry_is_made_again(cache_folder):
    x = np.arange(4, dtype=np.float32)
    third()(x)
    [library] = cache_folder.glob("kernels/*/*/libthird.a")
    whole = library.read_bytes()
    for broken in (b"", whole[:-7], whole[:100] + b"\xff" + whole[101:]):
        library.write_bytes(broken)
        np.testing.assert_array_equal(third()(x), x / np.float32(3))
        assert library.read_bytes() == whole
    [manifest] = cache_folder.glob("kernels/*/*/*.manifest.json")
    for broken in ("{", '{"files":[1]}', '{"files":{"../libthird.a":"sha256:0"}}', '{"kernel":1,"targets":3,"fixed":{}}', "[]"):
        manifest.write_text(broken)
        assert len(cache.entries()) == 0
        third()(x)
    assert cache.prune() == 1 and cache.entries() == []


def test_only_and_off(cache_folder, monkeypatch, tmp_path):
    x = np.arange(4, dtype=np.float32)
    monkeypatch.setenv("TESSERA_CACHE", f"only:{cache_folder}")
    with pytest.raises(CompilationError) as error:
        third()(x)
    assert error.value.id == "cache.missing" and "third with no extents fixed: TESSERA_CACHE=only" in error.value.message
    monkeypatch.setenv("TESSERA_CACHE", "off")
    log = counted_generator(tmp_path, monkeypatch)
    third()(x), third()(x)
    assert log.read_text() == "x\nx\n" and not cache_folder.exists()
    monkeypatch.setenv("TESSERA_CACHE", str(cache_folder))
    third()(x)
    monkeypatch.setenv("TESSERA_CACHE", f"only:{cache_folder}")
    third()(x)


def test_folders(tmp_path, monkeypatch):
    x = np.arange(4, dtype=np.float32)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TESSERA_CACHE", str(tmp_path / "file"))
    with pytest.raises(CompilationError, match="cache.folder.*kernels cannot be kept in .*Name another folder in TESSERA_CACHE"):
        third()(x)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TESSERA_CACHE", "~/mine")
    assert cache.settings().folder == tmp_path / "mine"
    monkeypatch.setenv("TESSERA_CACHE", "ONLY")
    assert cache.settings().only
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESSERA_CACHE", "near")
    first = cache.settings().folder
    monkeypatch.chdir("/")
    assert cache.settings().folder == first == tmp_path / "near"


def test_the_key_has_all_that_matters(cache_folder):
    base = third()
    keys = {base._key({}), base._key({"M": 4}), base.with_schedule("derived")._key({}), base._with(target="avx2")._key({}),
            base.with_schedule(base._own_schedule().stage("y", vector={"M": 8}))._key({})}
    assert len(keys) == 5 and third()._key({}) == base._key({})


def test_a_kernel_from_the_cache_needs_few_modules(cache_folder):
    """What takes longer to import than the kernel to be found is not imported."""
    program = """
import sys
import numpy as np
from tessera import Tensor, f32, jit
@jit(schedule="none")
def add(x: Tensor["M", "N", f32], z: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
    return x + z
x = np.ones((2, 3), np.float32)
assert (add(x, x) == 2).all()
print(*sorted({"dataclasses", "hashlib", "inspect", "ml_dtypes", "shutil", "subprocess", "tempfile"} & set(sys.modules)))
"""
    environment = {**os.environ, "TESSERA_CACHE": str(cache_folder)}
    for only in (False, True):
        if only:
            environment["TESSERA_CACHE"] = f"only:{cache_folder}"
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "\n", ran.stdout
