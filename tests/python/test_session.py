"""The session of python/README.md, as a user types it."""
import json

import numpy as np
import pytest

import tessera as ts
from tessera import Tensor, bf16, accum, f32, jit, kernel, tile
from tessera.stdlib import flash_attention, function, linear, names


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_session(rng, tmp_path):
    @kernel.autotune(space={"y.micro.N": [32, 48], "acc.k.K": ["none", 16]}, metric="latency_ms", budget_ms=1_000, cache="schedules")
    @jit(fix=("N", "K"))
    def linear_silu(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
        acc = tile.dot(x, w).named("acc")
        return tile.silu(acc + b)

    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in [(16, 48), (48, 96), (96,)])
    z = x @ w + b
    y = linear_silu(x, w, b)
    np.testing.assert_allclose(y, z / (1 + np.exp(-z)), rtol=1e-4, atol=1e-4)
    assert linear_silu(x, w, b, out=y) is y
    assert (tmp_path / "schedules" / "tune.db").exists()
    assert len((tmp_path / "schedules" / "linear_silu" / "tuned.txt").read_text().splitlines()) == 1

    base = ts.Schedule.named("linear/avx2")
    mine = base.with_micro("acc", M=4, N=16).with_vector("acc", N=8)
    small = linear_silu.with_schedule(mine).schedule("y", levels={"tile": {"M": 4}}, micro={"N": 16})
    assert "linear/avx2/child" in small.explain("acc.micro.M")
    assert "tile program linear_silu" in small.show("tiles", target="avx2", N=96, K=48)
    small.save("schedules/linear_silu/small.json")
    assert json.loads((tmp_path / "schedules/linear_silu/small.json").read_text())["extends"] == "linear/avx2"
    made = small.export("made", target="avx2", N=96, K=48)
    assert (made / "linear_silu.h").exists()
    assert linear_silu.profile(M=16, N=96, K=48, seconds=0.05)["median_s"] > 0
    tuned = linear_silu.autotune(M=16, N=96, K=48, trials=2, progress=False, out="more")
    np.testing.assert_allclose(tuned(x, w, b), y, rtol=1e-4, atol=1e-4)
    assert [t["number"] for t in tuned.search["trials"]] == [0, 1]


def test_a_search_that_finds_nothing_faster_keeps_the_schedule():
    @jit(fix=("N", "K"), schedule="linear/avx2", target="avx2")
    def linear_silu(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
        return tile.silu(tile.dot(x, w).named("acc") + b)

    tuned = linear_silu.autotune(M=8, N=48, K=16, trials=1, progress=False)  # the one trial is the schedule to beat
    assert not tuned.search["improved"] and len(tuned.search["trials"]) == 1 and linear_silu.search is None
    assert repr(tuned.search).startswith("<search of 1 trials in ") and "1.00 of the speed of the schedule to beat" in repr(tuned.search)
    assert tuned.choices.schedule == "linear/avx2"
    assert tuned.profile(M=8, N=48, K=16, seconds=0.01)["schedule"] == "linear/avx2"


def test_the_library(rng):
    assert "linear" in names() and "softmax" in names()
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in [(3, 8), (8, 5), (5,)])
    np.testing.assert_allclose(linear(x, w, b), x @ w + b, rtol=1e-5, atol=1e-5)
    assert flash_attention.algorithm.name == "attention"
    import ml_dtypes
    narrow = function("linear", numerics="bf16")
    y = narrow(*(v.astype(ml_dtypes.bfloat16) for v in (x, w, b)))
    assert y.dtype == ml_dtypes.bfloat16
    with pytest.raises(ImportError, match="cannot import name 'softmaxx'"):
        from tessera.stdlib import softmaxx  # noqa: F401
    with pytest.raises(ts.CompilationError, match="there is no algorithm 'softmaxx'"):
        function("softmaxx")


def test_the_command_line(capfd):
    import subprocess
    import sys
    listed = subprocess.run([sys.executable, "-m", "tessera", "list", "softmax"], capture_output=True, text=True)
    assert listed.returncode == 0 and listed.stdout.startswith("softmax\n")
    for words in (["cache", "list"], ["--cmake-dir"]):
        assert subprocess.run([sys.executable, "-m", "tessera", *words], capture_output=True).returncode == 0
    assert subprocess.run([sys.executable, "-m", "tessera", "cache", "lost"], capture_output=True).returncode == 2


def test_policies_are_types():
    assert (bf16 @ accum(f32)).name == "bf16"


def test_every_type_has_its_name():
    for dtype in ts._core.dtypes:
        assert getattr(ts, "bool_" if dtype.name == "bool" else dtype.name) == dtype
