"""What the tests of the Python package share."""
import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, f32, jit, tile


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TESSERA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@jit(schedule="none")
def add(x: Tensor["M", "N", f32], z: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
    return x + z


@jit(fix=("N", "K"), schedule="linear/avx2", target="avx2")
def linear_silu(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
    """silu(x w + b)"""
    acc = tile.dot(x, w).named("acc")
    return tile.silu(acc + b)


@pytest.fixture(name="add")
def add_fixture():
    return add


@pytest.fixture(name="linear_silu")
def linear_silu_fixture():
    return linear_silu


@pytest.fixture(autouse=True)
def one_thread():
    ts.threads(1)
    yield
    ts.threads(1)
