"""The command quantize against NumPy, ml_dtypes and the PyPI package safetensors: scales and codes, bit by bit.

    quantization.py <generator>

Files are written by safetensors and what comes out is read by it. Scales and codes are computed again here by other means: percentiles are
numpy.percentile's, codes of floats are ml_dtypes's casts. A scale of the least error
must have the least of 80 that are tried here."""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import ml_dtypes
    import numpy as np
    import safetensors
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError:
    print("skipped: ml_dtypes and safetensors are not here; ./tessera test installs them")
    sys.exit(77)

FLOATS = {"f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
          "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f4e2m1fn": ml_dtypes.float4_e2m1fn}
INTEGERS = {"int8": (-128, 127, 0), "uint8": (0, 255, 0), "int4": (-8, 7, 8)}
SCALES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
          "f8e4m3fn": ml_dtypes.float8_e4m3fn}
PRESETS = {"mxfp8": ("f8e4m3fn", 32, "f8e8m0fnu"), "mxfp4": ("f4e2m1fn", 32, "f8e8m0fnu"), "nvfp4": ("f4e2m1fn", 16, "f8e4m3fn")}
NAMES = {"I8": np.int8, "U8": np.uint8, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
         "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
         "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz}


def raw(path):
    """Tensors by name, as safetensors checks and cuts them, and metadata."""
    with open(path, "rb") as file:
        content = file.read()
    made = {name: np.frombuffer(bytes(t["data"]), NAMES.get(t["dtype"], np.uint8)).reshape(t["shape"] if t["dtype"] in NAMES else -1)
            for name, t in safetensors.deserialize(content)}
    with safe_open(path, "np") as file:
        return made, file.metadata()


def up(values, dtype):
    """The least number of the type that is not below."""
    values = np.asarray(values, "f4")
    near = values.astype(dtype)
    if near.dtype.itemsize == 1:
        bits = near.view(np.uint8) + (near.astype("f4") < values).astype(np.uint8)
        return bits.view(dtype)
    bits = near.view(np.uint16) + (near.astype("f4") < values).astype(np.uint16)
    return bits.view(dtype)


def blocked(x, per, axis, group):
    """The blocks of x as rows, and the shape of one number for each; rows are of one length."""
    if per == "tensor":
        return x.reshape(1, -1), (1,), lambda rows: rows.reshape(x.shape)
    moved = np.moveaxis(x, axis, 0 if per == "channel" else -1)
    if per == "channel":
        return moved.reshape(moved.shape[0], -1), (moved.shape[0],), lambda rows: np.moveaxis(rows.reshape(moved.shape), 0, axis)
    rows = moved.reshape(-1, group)
    counts = np.moveaxis(rows[:, 0].reshape(moved.shape[:-1] + (-1,)), -1, axis).shape

    def back(each):
        return np.moveaxis(each.reshape(moved.shape), -1, axis)
    return rows, counts, back


def of_counts(values, x, per, axis, group):
    """One number of each row of `blocked` in the order in which a file has them."""
    if per != "group":
        return values
    moved = np.moveaxis(x, axis, -1)
    return np.moveaxis(values.reshape(moved.shape[:-1] + (-1,)), -1, axis)


class Scheme:
    def __init__(self, format, per="channel", axis=0, group=32, scales="f32", fit="minmax", percent=99.9, zeros=False):
        self.words = ["--format", format, "--scale", fit, "--axis", str(axis)]
        self.words += ["--percentile", str(percent)] if fit == "percentile" else []
        self.words += ["--zero-points"] if zeros else []
        if format in PRESETS:
            format, group, scales = PRESETS[format]
            per = "group"
        else:
            self.words += ["--per", per, "--scales", scales]
            self.words += ["--group", str(group)] if per == "group" else []
        self.format, self.per, self.axis, self.group, self.scales, self.fit = format, per, axis, group, scales, fit
        self.percent, self.zeros = percent, zeros
        self.largest = INTEGERS[format][1] if format in INTEGERS else float(ml_dtypes.finfo(FLOATS[format]).max)

    def ranges(self, rows):
        wide = rows.astype("f8")
        if self.fit != "percentile":
            return wide.min(1), wide.max(1)
        if self.zeros:
            return np.percentile(wide, 100 - self.percent, axis=1), np.percentile(wide, self.percent, axis=1)
        limit = np.percentile(np.abs(wide), self.percent, axis=1)
        return -limit, limit

    def stored(self, wanted, tensor_scale):
        wanted = np.maximum(np.asarray(wanted).astype("f4"), np.float32(2.0 ** -126))
        if self.scales == "f32":
            return wanted
        limit = np.float32(ml_dtypes.finfo(SCALES[self.scales]).max)
        asked = np.minimum((wanted.astype("f8") / (1 if tensor_scale is None else float(tensor_scale))).astype("f4"), limit)
        return up(asked, SCALES[self.scales])

    def expected(self, x):
        rows, _, _ = blocked(x, self.per, self.axis, self.group)
        low, high = self.ranges(rows)
        tensor_scale, zero = None, np.zeros(len(rows), int)
        if self.zeros:
            low, high = np.minimum(low, 0), np.maximum(high, 0)
            lowest, highest, _ = INTEGERS[self.format]
            stored = self.stored((high - low) / (highest - lowest), None)
            zero = np.clip(lowest - np.rint(low / stored.astype("f8")), lowest, highest).astype(int)
        else:
            limit = np.maximum(-low, high)
            if self.scales == "f8e4m3fn":
                tensor_scale = np.maximum(np.float32(limit.max() / (448 * self.largest)), np.float32(2.0 ** -126))
            stored = self.stored(limit / self.largest, tensor_scale)
        return stored, zero, tensor_scale

    def numbers(self, stored, tensor_scale):
        return stored.astype("f4") if tensor_scale is None else stored.astype("f4") * np.float32(tensor_scale)

    def codes(self, rows, scale, zero):
        quotient = rows / scale[:, None]
        if self.format in INTEGERS:
            lowest, highest, offset = INTEGERS[self.format]
            return (np.clip(np.rint(quotient) + zero[:, None], lowest, highest) + offset).astype(int) & 255
        limit = np.float32(self.largest)
        return np.clip(quotient, -limit, limit).astype(FLOATS[self.format]).view(np.uint8).astype(int)

    def values(self, codes, scale, zero):
        if self.format in INTEGERS:
            whole = codes.astype(np.uint8).view(np.int8).astype(int) if self.format == "int8" else codes
            number = (whole - INTEGERS[self.format][2] - zero[:, None]).astype("f4")
        else:
            number = codes.astype(np.uint8).view(FLOATS[self.format]).astype("f4")
        return scale[:, None] * number


def main():
    generator = sys.argv[1]
    rng = np.random.default_rng(7)
    tensors = {"a.weight": (rng.standard_normal((48, 64)) * np.exp(rng.standard_normal((48, 1)))).astype("f4"),
               "deep.weight": rng.standard_t(3, (3, 32, 64)).astype("f4"), "half.weight": rng.standard_normal((32, 32)).astype("f2"),
               "positive.weight": rng.random((32, 64)).astype("f4") + np.float32(0.5), "bias": rng.standard_normal(7).astype("f4"),
               "ids": np.arange(5), "flags": np.array([True, False])}
    tensors["a.weight"][3] = 0
    tensors["a.weight"][4] *= np.float32(1e-30)
    tensors["deep.weight"][0, 0, 0] = -0.0
    schemes = []
    for format in list(INTEGERS) + list(FLOATS):
        zeros = format == "uint8"
        schemes += [Scheme(format, per, axis, zeros=zeros) for per, axis in (("tensor", 0), ("channel", 0), ("channel", -1), ("group", -1), ("group", 1))]
        schemes += [Scheme(format, "channel", 0, fit="percentile", percent=p, zeros=zeros) for p in (99.9, 87.5, 100)]
        schemes += [Scheme(format, "group", -1, fit="mse", zeros=zeros)]
        if not zeros:
            schemes += [Scheme(format, "group", -1, group=16, scales=s) for s in SCALES if s != "f32"]
    schemes += [Scheme(format, "channel", zeros=True, fit=fit) for format in INTEGERS for fit in ("minmax", "percentile", "mse")]
    schemes += [Scheme(format, axis=-1, fit=fit) for format in PRESETS for fit in ("minmax", "mse")]
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
        save_file(tensors, source, {"format": "np"})
        for scheme in schemes:
            subprocess.run([generator, "quantize", source, "--out", target, "--tensors", "*.weight", *scheme.words], check=True, capture_output=True)
            made, metadata = raw(target)
            about = json.loads(metadata["tessera.quantization"])
            assert metadata["format"] == "np" and set(about["tensors"]) == {n for n in tensors if n.endswith(".weight")}, metadata
            assert made["bias"].tobytes() == tensors["bias"].tobytes() and len(made["ids"]) == 40 and len(made["flags"]) == 2
            for name in about["tensors"]:
                x = tensors[name].astype("f4")
                subject = f"{name}, {' '.join(scheme.words)}"
                rows, _, back = blocked(x, scheme.per, scheme.axis, scheme.group)
                stored, zero, tensor_scale = scheme.expected(x)
                got_stored = made[name + "_scales"]
                if scheme.fit == "mse":  # any scale, if it is no worse
                    moved = got_stored if scheme.per != "group" else np.moveaxis(got_stored, scheme.axis, -1)
                    flat = moved.reshape(-1)
                    got_zero = zero
                    if scheme.zeros:
                        z = made[name + "_zeros"]
                        got_zero = (z if scheme.per != "group" else np.moveaxis(z, scheme.axis, -1)).reshape(-1).astype(int) - INTEGERS[scheme.format][2]

                    def squares(scale, zero):
                        made = scheme.values(scheme.codes(rows, scale, zero), scale, zero)
                        return ((made.astype("f8") - rows) ** 2).sum(1)
                    ours = squares(scheme.numbers(flat, tensor_scale), got_zero)
                    assert (ours <= squares(scheme.numbers(stored.reshape(-1), tensor_scale), zero) * (1 + 1e-5)).all(), subject
                    if scheme.scales == "f32" and not scheme.zeros:
                        limit = np.abs(rows.astype("f8")).max(1)
                        others = [squares(scheme.stored(limit * (1 - 0.8 * i / 80) / scheme.largest, None), zero) for i in range(80)]
                        assert np.allclose(ours, np.min(others, 0), rtol=1e-4, atol=0), subject
                    stored, zero = flat, got_zero
                assert of_counts(stored, x, scheme.per, scheme.axis, scheme.group).tobytes() == got_stored.tobytes(), f"{subject}: scales"
                if tensor_scale is not None:
                    assert made[name + "_tensor_scale"].tobytes() == np.array([tensor_scale], "f4").tobytes(), f"{subject}: tensor scale"
                if scheme.zeros:
                    expected = (of_counts(zero, x, scheme.per, scheme.axis, scheme.group) + INTEGERS[scheme.format][2]).astype(np.uint8)
                    assert made[name + "_zeros"].tobytes() == expected.tobytes(), f"{subject}: zero points"
                else:
                    assert name + "_zeros" not in made
                codes = back(scheme.codes(rows, scheme.numbers(stored.reshape(-1), tensor_scale), zero.reshape(-1)))
                got = made[name].view(np.uint8).astype(int)
                if scheme.format in ("int4", "f4e2m1fn"):
                    got = np.stack([got & 15, got >> 4], -1).reshape(x.shape)
                assert got.shape == x.shape and (got == codes).all(), f"{subject}: {(got != codes).sum()} of {codes.size} codes differ"
                checked += codes.size
        # What safetensors refuses, the command refuses.
        with open(source, "rb") as file:
            content = file.read()
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + size])
        refused = 0
        for round in range(300):
            wrong = bytearray(content)
            if round < 150:
                wrong[rng.integers(0, 8 + size)] ^= 1 << rng.integers(0, 8)
            elif round < 200:
                wrong = wrong[:rng.integers(0, len(wrong))]
            else:
                changed = json.loads(json.dumps(header))
                entry = changed[list(tensors)[rng.integers(0, len(tensors))]]
                field = ["shape", "data_offsets"][rng.integers(0, 2)]
                entry[field][rng.integers(0, len(entry[field]))] = int(rng.choice([0, 1, 2 ** 31, 2 ** 62, 2 ** 63 - 1, 12, len(content)]))
                text = json.dumps(changed).encode()
                wrong = struct.pack("<Q", len(text)) + text + content[8 + size:]
            try:
                safetensors.deserialize(bytes(wrong))
                continue  # still a file of tensors
            except safetensors.SafetensorError:
                refused += 1
            with open(target, "wb") as file:
                file.write(wrong)
            run = subprocess.run([generator, "quantize", target, "--out", target + ".made", "--tensors", "*.weight"], capture_output=True, text=True)
            assert run.returncode == 2 and run.stderr.startswith("error["), (run.returncode, run.stderr)
    print(f"{checked} codes of {len(schemes)} schemes are those of NumPy and ml_dtypes; {refused} broken files are refused, as safetensors does")


if __name__ == "__main__":
    main()
