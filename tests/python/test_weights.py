"""Files of weights as arrays. The bytes of GGUF files are written here from the published layout; tests/onnx/gguf_files.py has the package's."""
import json
import struct

import numpy as np
import pytest

import tessera as ts
from tessera import compiler


def text(words):
    return struct.pack("<Q", len(words)) + words.encode()


def gguf(tensors):
    """A file of tensors: name, number of the type, extents outermost first, bytes."""
    made, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + text("general.name") + struct.pack("<I", 8) + text("test"), b""
    for name, kind, extents, content in tensors:
        made += text(name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents[::-1], kind, len(data))
        data += content + bytes(-len(content) % 32)
    return made + bytes(-len(made) % 32) + data


def test_tensors_of_gguf_are_arrays(tmp_path, rng):
    file = tmp_path / "model.gguf"
    x = rng.standard_normal((3, 5)).astype(np.float32)
    codes, scales = rng.integers(-127, 128, (2, 64)).astype(np.int8), np.array([[0.5, 2], [-0.25, 1]], np.float16)
    blocks = b"".join(scales[r, b].tobytes() + codes[r, 32 * b:32 * b + 32].tobytes() for r in range(2) for b in range(2))
    file.write_bytes(gguf([("x", 0, x.shape, x.tobytes()), ("q", 8, codes.shape, blocks), ("half", 1, (2,), np.float16([1.5, -2]).tobytes())]))
    weights = ts.Weights(file)
    assert list(weights) == ["half", "q", "q_scales", "x"] and len(weights) == 4 and "y" not in weights and weights.notes == []
    np.testing.assert_array_equal(weights["x"], x)
    np.testing.assert_array_equal(weights["q"], codes)
    np.testing.assert_array_equal(weights["q_scales"], scales)
    assert not weights["x"].flags.writeable
    floats = ts.Weights(file, floats="f32")
    kept = floats["q"]
    del floats, weights
    np.testing.assert_array_equal(kept, codes * np.repeat(scales.astype(np.float32), 32, 1))
    with pytest.raises(KeyError):
        ts.Weights(file)["y"]
    with pytest.raises(ts.TesseraError, match="expected one of f32, f64, f16 and bf16"):
        ts.Weights(file, floats="i8")
    with pytest.raises(ts.TesseraError, match="Is it whole"):
        (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[:-40])
        ts.Weights(tmp_path / "cut.gguf")


def test_tensors_of_safetensors_are_arrays_aligned_or_not(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    for padding in range(4):
        file = tmp_path / f"{padding}.safetensors"
        file.write_bytes(struct.pack("<Q", len(header) + padding) + header + b" " * padding + np.float32([1, 2]).tobytes())
        np.testing.assert_array_equal(ts.Weights(file)["w"], [1, 2])
        np.testing.assert_array_equal(ts.Weights(file, floats="f64")["w"], np.float64([1, 2]))


def test_a_kernel_takes_them(tmp_path, rng):
    w = rng.standard_normal((32, 48)).astype(np.float32)
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf([("w", 0, w.shape, w.tobytes()), ("b", 0, (48,), np.arange(48, dtype=np.float32).tobytes())]))
    weights, x = ts.Weights(file), rng.standard_normal((7, 32)).astype(np.float32)

    @ts.jit
    def linear(x: ts.Tensor["M", "K", ts.f32], w: ts.Tensor["K", "N", ts.f32], b: ts.Tensor["N", ts.f32]):
        return ts.tile.dot(x, w) + b
    np.testing.assert_allclose(linear(x, weights["w"], weights["b"]), x @ w + np.arange(48), rtol=1e-5, atol=1e-5)


def test_codes_of_four_bits_are_weights_of_a_bundle(tmp_path, rng):
    codes, scales = rng.integers(0, 16, (24, 64)), rng.standard_normal((24, 2)).astype(np.float16)
    blocks = b"".join(scales[n, g].tobytes() + (codes[n, 32 * g:32 * g + 16] | codes[n, 32 * g + 16:32 * g + 32] << 4).astype(np.uint8).tobytes()
                      for n in range(24) for g in range(2))
    (tmp_path / "model.gguf").write_bytes(gguf([("up", 2, codes.shape, blocks)]))
    compiler.run(["generate", "matmul_qint4", "--option", "half_scale=yes", "--target", "x86-64,avx2", "--schedule", "none", "--quiet",
                  "--out", str(tmp_path / "made")])
    bundle = str(tmp_path / "layer.tess")
    compiler.run(["bundle", "make", bundle, "--from", str(tmp_path / "made"), "--weights", str(tmp_path / "model.gguf"),
                  "--weight", "codes=up", "scale=up_scales"])
    compiler.run(["bundle", "check", bundle])
    x = rng.standard_normal((5, 64)).astype(np.float32)
    w = (codes - 8) * np.repeat(scales.astype(np.float32), 32, 1)
    np.testing.assert_allclose(ts.Bundle(bundle)["matmul_qint4"](x), x @ w.T, rtol=1e-4, atol=1e-4)
