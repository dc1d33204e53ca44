"""Functions of files in place of an algorithm's name, on the command line."""
import json
import subprocess
import sys

import pytest

KERNELS = '''
from tessera import Tensor, f32, jit

@jit
def twice(x: Tensor["N", f32]) -> Tensor["N", f32]:
    return x * 2.0

@jit
def power(x: Tensor["N", f32], n: int) -> Tensor["N", f32]:
    return x ** n

square = power.specialised(n=2)
count = 3
'''


def tessera(*words):
    done = subprocess.run([sys.executable, "-m", "tessera", *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def kernels(tmp_path):
    file = tmp_path / "some kernels.py"
    file.write_text(KERNELS, encoding="utf-8")
    return file


def test_every_command_takes_them(kernels, tmp_path):
    code, shown, errors = tessera("show", f"{kernels}:twice", "--what", "tiles", "--schedule", "none", "--target", "avx2", "--shape", "N=8")
    assert code == 0 and "tile program twice" in shown, errors
    code, _, errors = tessera("generate", f"{kernels}:square", "--schedule", "none", "--target", "avx2", "--out", tmp_path / "made", "--quiet")
    assert code == 0 and (tmp_path / "made" / "libpower.a").exists(), errors
    code, _, errors = tessera("verify", f"{kernels}:twice", "--schedule", "none", "--quiet")
    assert code == 0, errors


def test_its_json_and_the_files_that_it_came_from(kernels, tmp_path):
    code, _, errors = tessera("algorithm", f"{kernels}:twice", tmp_path / "twice.json")
    assert code == 0, errors
    assert json.loads((tmp_path / "twice.json").read_text())["name"] == "twice"
    made, _, sources = (tmp_path / "twice.json.d").read_text().partition(": ")
    assert made == str(tmp_path / "twice.json") and sources == str(kernels).replace(" ", "\\ ") + "\n"
    assert tessera("algorithm", "linear", tmp_path / "linear.json")[0] == 2


@pytest.mark.parametrize("name, words", [
    ("power", "power is a function for each value of its static arguments; give one of them a name in the file, such as power_1 ="),
    ("count", "expected a function under @jit; count is none, the file has twice, square"),
    ("triple", "expected a function under @jit; triple is not there, the file has twice, square"),
])
def test_what_is_no_function(kernels, name, words):
    code, _, errors = tessera("show", f"{kernels}:{name}")
    assert code == 2 and "error[python.file]" in errors and words in errors


def test_no_file(tmp_path):
    code, _, errors = tessera("show", f"{tmp_path}/lost.py:twice")
    assert code == 2 and f"there is no file {tmp_path}/lost.py" in errors
