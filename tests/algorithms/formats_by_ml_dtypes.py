"""Prints the table `by_ml_dtypes` of formats.cpp: hashes of what the Python package ml_dtypes decodes and encodes.

    python3 -m pip install ml_dtypes==0.6.0 numpy && python3 formats_by_ml_dtypes.py

The inputs are made here as the test makes them. NaN is hashed as one code, since its sign means nothing.
"""
import ml_dtypes
import numpy as np

NAMES = ["8_e4m3fn", "8_e4m3", "8_e4m3fnuz", "8_e5m2", "8_e5m2fnuz", "8_e8m0fnu", "6_e2m3fn", "6_e3m2fn", "4_e2m1fn"]


def fnv(words):
    h = 0xCBF29CE484222325
    for w in words.tolist():
        h = ((h ^ w) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def splitmix(count):
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def with_neighbours(values):
    """Each value, the next one below and above, and all three with the other sign."""
    v = values.astype(np.float32)
    three = np.stack([v, np.nextafter(v, np.float32(-np.inf)), np.nextafter(v, np.float32(np.inf))], axis=1).reshape(-1)
    return np.stack([three, -three], axis=1).reshape(-1)


for name in NAMES:
    t = getattr(ml_dtypes, "float" + name)
    codes = np.arange(1 << int(name[0]), dtype=np.uint8).view(t)
    numbers = codes.astype(np.float32)
    nan = np.isnan(numbers)
    decoded = np.where(nan, np.uint32(0x7FC00000), numbers.view(np.uint32))

    finite = np.unique(np.abs(numbers[np.isfinite(numbers)].astype(np.float64)))
    beyond = finite[-1] + (finite[-1] - finite[-2] if name != "8_e8m0fnu" else finite[-1])
    steps = np.append(finite, beyond)
    inputs = np.concatenate([
        (np.arange(65536, dtype=np.uint32) << 16).view(np.float32),
        (splitmix(1 << 17) >> np.uint64(32)).astype(np.uint32).view(np.float32),
        with_neighbours((steps[1:] + steps[:-1]) / 2),
        with_neighbours(np.minimum(steps, 3.4e38)),
    ])
    if name == "8_e8m0fnu":  # ml_dtypes 0.6.0 gives 2^-126 there, the farther of the two numbers beside it
        inputs = inputs[~((inputs > 2.0**-127) & (inputs < 1.5 * 2.0**-127))]
    with np.errstate(all="ignore"):
        made = inputs.astype(t)
    # In a format without NaN the code says nothing but the sign.
    nan = np.isnan(inputs) if name[0] != "8" else np.isnan(made.astype(np.float32))
    encoded = np.where(nan, np.uint8(0xFF), made.view(np.uint8))
    row = name.replace("_", "")
    print(f'    {{DType::f{row}, 0x{fnv(decoded):016x}, {len(inputs)}, 0x{fnv(encoded):016x}}},')
