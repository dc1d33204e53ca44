"""Schedules as values: inheritance, explanations, the JSON that the tools read."""
import copy
import json
import pickle

import numpy as np
import pytest

from tessera import CompilationError, Schedule, load


def test_values_and_inheritance(tmp_path, linear_silu):
    base = Schedule.named("linear/avx512")
    assert [s.name for s in base.ancestors()] == ["linear/avx2"]
    mine = base.with_micro("acc", M=6, N=48).with_vector("y", N=16).rename("linear_silu/mine")
    assert base == Schedule.named("linear/avx512") and mine.parent == base
    assert mine.explain("acc.micro.M") == "/stages/acc/micro/M   6   linear_silu/mine, over 8 of linear/avx512, over 3 of linear/avx2"
    assert mine.explain().startswith("linear_silu/mine -> linear/avx512 -> linear/avx2\n")
    assert "/stages/acc/micro/M  8 -> 6" in base.diff(mine)
    mine.save(tmp_path / "linear_silu" / "mine.json")
    assert json.loads((tmp_path / "linear_silu" / "mine.json").read_text())["stages"]["acc"] == {"micro": {"M": 6, "N": 48}}
    assert Schedule.named("linear_silu/mine", [tmp_path]) == mine == Schedule.read(tmp_path / "linear_silu" / "mine.json")
    removed = mine.remove("y", "parallel")
    assert "parallel" not in removed.explain()


@pytest.mark.parametrize("wrong, id, words", [
    (lambda: Schedule.named("linear/avx51"), "schedule.missing", "Did you mean"),
    (lambda: Schedule("a b"), "schedule.name", "a b"),
    (lambda: Schedule("mine").with_micro("acc", M=0), "schedule.value", "micro"),
    (lambda: Schedule("mine").stage("acc", micr={"M": 2}), "schedule.knob", "micr"),
    (lambda: Schedule("mine").explain("acc.micro.M"), "schedule.field", "there is no field 'acc.micro.M'"),
])
def test_errors_stand_where_they_are_written(wrong, id, words):
    with pytest.raises(CompilationError) as error:
        wrong()
    assert error.value.id.split(".")[0] == "schedule" and words in str(error.value)
    assert error.value.file == __file__ or error.value.id == "schedule.field"


def test_knobs_by_dims_in_order(linear_silu, rng):
    small = linear_silu.with_schedule(None).schedule(block=(8, 16), k=4).vector(8)
    stages = json.loads(small.choices.schedule.text)["stages"]
    assert stages == {"y": {"block": {"M": 8, "N": 16}, "vector": {"N": 8}}, "acc": {"k": {"K": 4}}}
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in [(5, 12), (12, 20), (20,)])
    z = x @ w + b
    np.testing.assert_allclose(small(x, w, b), z / (1 + np.exp(-z)), rtol=1e-4, atol=1e-5)
    with pytest.raises(CompilationError, match="there is no stage 'accc'; there are acc, y"):
        linear_silu.schedule("accc", block=8)
    with pytest.raises(CompilationError, match="3 extents for the dims M, N"):
        linear_silu.schedule(block=(1, 2, 3))
    with pytest.raises(CompilationError, match="warps"):
        linear_silu.with_schedule(None).warps(4).compile(N=20, K=12)


def test_export_is_what_the_command_writes(linear_silu, tmp_path, rng):
    from tessera import compiler
    linear_silu.export(tmp_path / "a", N=64, K=32)
    (tmp_path / "linear_silu.json").write_text(linear_silu.json)
    compiler.run(["generate", str(tmp_path / "linear_silu.json"), "--target", "avx2", "--shape", "N=64", "K=32", "--schedule", "linear/avx2",
                  "--out", str(tmp_path / "b")])
    files = sorted(f.name for f in (tmp_path / "a").iterdir())
    assert files == ["liblinear_silu.a", "linear_silu.h", "linear_silu.manifest.json"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    exported = load(tmp_path / "a" / "liblinear_silu.a", "linear_silu")
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in [(5, 32), (32, 64), (64,)])
    assert exported(x, w, b).tobytes() == linear_silu(x, w, b).tobytes()
    with pytest.raises(CompilationError, match="load.kernel.*no kernel 'other'"):
        load(tmp_path / "a" / "liblinear_silu.a", "other")
    with pytest.raises(CompilationError, match="load.file"):
        load(tmp_path / "none.a", "x")


def test_show(linear_silu):
    assert "tile program linear_silu" in linear_silu.show("tiles", N=64, K=32)
    assert "dot" in linear_silu.show() and "vfmadd" in linear_silu.show("assembly", N=64, K=32)
    with pytest.raises(CompilationError, match="command.arguments"):
        linear_silu.show("colour")


def test_copies(linear_silu, rng):
    mine = linear_silu.with_schedule(Schedule.named("linear/avx2").with_micro("acc", M=2))
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in [(5, 32), (32, 64), (64,)])
    for again in (copy.copy(mine), pickle.loads(pickle.dumps(mine))):
        assert again.choices.schedule == mine.choices.schedule
        assert again(x, w, b).tobytes() == mine(x, w, b).tobytes()


def test_export_onnx_is_what_the_command_writes(linear_silu, tmp_path):
    from tessera import compiler
    written = linear_silu.export_onnx(tmp_path / "a.onnx", N=64)
    (tmp_path / "linear_silu.json").write_text(linear_silu.json)
    compiler.run(["export", str(tmp_path / "linear_silu.json"), "--shape", "N=64", "--out", str(tmp_path / "b.onnx")])
    assert written.read_bytes() == (tmp_path / "b.onnx").read_bytes()
    compiler.run(["import", str(written), "--out", str(tmp_path / "again")])
    again = json.loads((tmp_path / "again" / "import.json").read_text())
    assert again["program"]["name"] == "linear_silu"
    assert again["metadata"] == {"tessera.semantic_hash": again["program"]["semantic_hash"]}
