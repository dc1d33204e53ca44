"""Files that the package gguf writes, read by tessera.Weights: gguf_files.py FOLDER.

Numbers are compared with the package's own, bit by bit."""
import sys
from pathlib import Path

import numpy as np

try:
    import gguf
except ImportError:
    print("skipped: not installed: the package gguf, ./tessera test fetches it")
    sys.exit()
import tessera

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(5)
Type = gguf.GGMLQuantizationType
PLAIN = {Type.F32: np.float32, Type.F64: np.float64, Type.F16: np.float16, Type.I8: np.int8, Type.I16: np.int16, Type.I32: np.int32,
         Type.I64: np.int64}
CODES = {Type.Q8_0: "int8", Type.Q4_0: "uint8", Type.MXFP4: "uint8"}
ROUNDED = [Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q4_K, Type.Q5_K, Type.Q6_K]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def written(name, tensors):
    """A file of tensors: name, array of the stored bytes or values, type where they are bytes."""
    file = folder / name
    writer = gguf.GGUFWriter(file, "test")
    writer.add_string("tokenizer.text", "größe")
    writer.add_array("tokenizer.tokens", ["a", "b", "cd"])
    writer.add_array("numbers", [1, 2, 3])
    for tensor, array, kind in tensors:
        writer.add_tensor(tensor, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def blocks(kind, shape):
    """Random numbers, quantised by the package where it can; else random codes with scales that are numbers."""
    values = random.standard_normal(shape).astype(np.float32)
    try:
        return gguf.quants.quantize(values, kind)
    except NotImplementedError:
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        raw = random.integers(0, 256, (*shape[:-1], shape[-1] // elements, size), np.uint8)
        scale = np.frombuffer(np.float16(0.0123).tobytes(), np.uint8)
        if kind is Type.Q6_K:
            raw[..., -2:] = scale
        else:
            raw[..., :2], raw[..., 2:4] = scale, scale
        return raw.reshape(*shape[:-1], -1)


plain = {kind.name: random.integers(-100, 100, (3, 5)).astype(dtype) for kind, dtype in PLAIN.items()}
read = tessera.Weights(written("plain.gguf", [(name, array, None) for name, array in plain.items()]))
assert sorted(read) == sorted(plain) and not read.notes
for name, array in plain.items():
    np.testing.assert_array_equal(read[name], array)
    assert read[name].dtype == array.dtype

shape = (4, 3, 512)
stored = {kind: blocks(kind, shape) for kind in [*CODES, *ROUNDED, Type.BF16]}
file = written("blocks.gguf", [(kind.name, array, kind) for kind, array in stored.items()])
numbers = {kind: gguf.quants.dequantize(array, kind) for kind, array in stored.items()}
floats = tessera.Weights(file, floats="f32")
for kind, expected in numbers.items():
    assert floats[kind.name].shape == shape and floats[kind.name].dtype == np.float32
    np.testing.assert_array_equal(floats[kind.name], expected, err_msg=kind.name)
read = tessera.Weights(file)
assert len(read.notes) == len(ROUNDED), read.notes
for kind, dtype in CODES.items():
    codes, scales = read[kind.name], read[f"{kind.name}_scales"]
    assert codes.dtype == dtype
    if kind is Type.Q8_0:
        values = codes.astype(np.float32)
    else:
        halves = np.stack([codes & 15, codes >> 4], -1).reshape(shape)
        values = halves.astype(np.float32) - 8 if kind is Type.Q4_0 else E2M1[halves]
    if kind is Type.MXFP4:  # NumPy has no float8e8m0
        continue
    np.testing.assert_array_equal(values * np.repeat(scales.astype(np.float32), 32, -1), numbers[kind], err_msg=kind.name)
narrow = tessera.Weights(file, floats="f16")
for kind, expected in numbers.items():
    np.testing.assert_array_equal(narrow[kind.name], expected.astype(np.float16), err_msg=kind.name)

# Every type of the package is known by its size: what lies behind a tensor of it is read, or its name is in the refusal.
for kind, (elements, size) in gguf.GGML_QUANT_SIZES.items():
    raw = np.zeros((2, 3 * size), np.uint8)
    file = written("type.gguf", [("a", raw, kind), ("b", np.arange(4, dtype=np.float32), None)])
    try:
        read = tessera.Weights(file)
        np.testing.assert_array_equal(read["b"], np.arange(4))
    except tessera.TesseraError as error:
        assert f"got {kind.name}." in str(error) and "tensor 'a'" in str(error), error
print(f"{len(PLAIN) + len(numbers)} types give the package's numbers, {len(gguf.GGML_QUANT_SIZES)} sizes are known")
