"""Bundles from Python: kernels with their weights, tensors in place, records. No compiler runs."""
import struct
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tessera as ts
from tessera import compiler


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    compiler.run(["generate", "linear", "--shape", "N=48", "K=32", "--target", "x86-64,avx2", "--schedule", "none", "--quiet", "--out", str(folder / "made")])
    rng = np.random.default_rng(3)
    tensors = {"b": rng.standard_normal(48).astype(np.float32), "w": rng.standard_normal((32, 48)).astype(np.float32)}
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t.tobytes() for t in tensors.values()))

    def make(name, *more):
        compiler.run(["bundle", "make", str(folder / name), "--from", str(folder / "made"), "--weights", str(folder / "weights.safetensors"), *map(str, more)])
        return folder / name
    return make, tensors


def test_a_kernel_has_its_weights(made, rng):
    make, tensors = made
    bundle = ts.Bundle(make("linear.tess"))
    assert list(bundle.kernels) == ["linear"] and bundle.kernels["linear"] is not None and bundle.tensors == ["b", "w"]
    x = rng.standard_normal((7, 32)).astype(np.float32)
    y = bundle["linear"](x)
    np.testing.assert_allclose(y, x @ tensors["w"] + tensors["b"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(bundle["linear"](x, w=2 * tensors["w"], b=0 * tensors["b"]), bundle["linear"](x, w=2 * tensors["w"], b=0 * tensors["b"]))
    w = bundle.tensor("w")
    np.testing.assert_array_equal(w, tensors["w"])
    assert not w.flags.writeable
    kept = bundle["linear"]
    del bundle
    np.testing.assert_array_equal(kept(x), y)
    np.testing.assert_array_equal(w, tensors["w"])
    with pytest.raises(ts.CallError, match="extent"):
        kept(x[:, :31].copy())


def test_weights_may_be_packed(made, rng, tmp_path):
    plain = made[0]("plain_weights.tess")
    compiler.run(["generate", "linear", "--shape", "N=48", "K=32", "--target", "avx2", "--schedule", "linear/prepacked_avx2", "--quiet", "--out", str(tmp_path / "made")])
    compiler.run(["bundle", "make", str(tmp_path / "packed.tess"), "--from", str(tmp_path / "made"), "--weights", str(plain.parent / "weights.safetensors")])
    x = rng.standard_normal((7, 32)).astype(np.float32)
    np.testing.assert_array_equal(ts.Bundle(tmp_path / "packed.tess")["linear"](x), ts.Bundle(plain)["linear"](x))


def test_assets_are_bytes(made, tmp_path):
    make, _ = made
    (tmp_path / "words.txt").write_bytes(b"a\x00b")
    bundle = ts.Bundle(make("assets.tess", "--asset", tmp_path / "words.txt"))
    assert bundle.asset("words.txt") == b"a\x00b"
    with pytest.raises(ts.TesseraError, match="assets/letters.txt"):
        bundle.asset("letters.txt")


def test_what_is_recorded_is_equal(made, rng, tmp_path):
    make, _ = made
    bundle = ts.Bundle(make("plain.tess"))
    with pytest.raises(ts.TesseraError, match="expected a record of runs, got none"):
        bundle.replay()
    x = rng.standard_normal((5, 32)).astype(np.float32)
    recorded = bundle.record(tmp_path / "record", ("linear", {"x": x}), ("linear", {"x": x[:2]}))
    assert [r.outcome for r in recorded] == ["new", "new"]
    again = ts.Bundle(make("recorded.tess", "--replay", tmp_path / "record"))
    assert [(r.run, r.kernel, r.argument, r.outcome) for r in again.replay()] == [(0, "linear", "y", "equal"), (1, "linear", "y", "equal")]
    record = json.loads((tmp_path / "record" / "expected.json").read_text())
    record["runs"][1]["outputs"][0]["sha256"] = "sha256:" + "0" * 64
    (tmp_path / "record" / "expected.json").write_text(json.dumps(record))
    wrong = ts.Bundle(make("wrong.tess", "--replay", tmp_path / "record"))
    assert [r.outcome for r in wrong.replay()] == ["equal", "different"]


def test_what_is_damaged_is_refused(made, tmp_path):
    make, _ = made
    whole = make("whole.tess").read_bytes()
    for cut in (0, 100, len(whole) - 1):
        (tmp_path / "cut.tess").write_bytes(whole[:cut])
        with pytest.raises(ts.TesseraError, match="cut.tess"):
            ts.Bundle(tmp_path / "cut.tess")
    at = whole.find(b"!<arch>") + 2000
    (tmp_path / "changed.tess").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    with pytest.raises(ts.TesseraError, match="expected the bytes that the manifest hashed"):
        ts.Bundle(tmp_path / "changed.tess")["linear"]
    with pytest.raises(ts.TesseraError, match="expected one of its 1 kernels"):
        ts.Bundle(make("whole.tess"))["none"]
    with pytest.raises(ts.TesseraError, match="signature"):
        ts.Bundle(make("whole.tess"), public_key=bytes(32))
    with pytest.raises(ts.TesseraError, match="expected 32 bytes, got 3"):
        ts.Bundle(make("whole.tess"), public_key=b"key")


def test_a_signature_is_demanded(made, tmp_path):
    make, _ = made
    try:
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "key.pem"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not installed: openssl")
    der = subprocess.run(["openssl", "pkey", "-in", tmp_path / "key.pem", "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
    signed = make("signed.tess", "--key", tmp_path / "key.pem")
    assert list(ts.Bundle(signed, public_key=der[-32:]).kernels) == ["linear"]
    with pytest.raises(ts.TesseraError, match="one of another key"):
        ts.Bundle(signed, public_key=bytes(31) + b"\x01")


def test_no_compiler_is_started(made, monkeypatch, rng):
    make, _ = made
    path: Path = make("alone.tess")
    monkeypatch.setattr(compiler, "run", None)
    assert ts.Bundle(path)["linear"](rng.standard_normal((1, 32)).astype(np.float32)).shape == (1, 48)
