"""Writes an algorithm as another tool would, with nothing of Tessera's: y[M, N] = max(x[M, K] w[K, N] + b[N], 0), to the file given."""
import json
import sys

F32 = {"name": "f32", "storage": "f32", "compute": "f32", "accumulate": "f32", "rounding": "nearest_even", "saturate": False}
LEFT, RIGHT, X, W = ["left", 0, "f32"], ["right", 0, "f32"], ["input", 0, "f32"], ["input", 1, "f32"]
PRODUCT = {"name": "product", "inputs": ["f32", "f32"], "commutative": True, "parts": [{"name": "value", "identity": ["f32", "0x0p+0"]}],
           "lift": [["mul", X, W]], "step": [["fma", X, W, LEFT]], "combine": [["add", LEFT, RIGHT]]}


def tensor(name, dims):
    return {"name": name, "dtype": "f32", "role": "input", "dims": dims}


def load(name, dims):
    return ["load", name, "f32", *dims]


algorithm = {
    "format": "tessera-algorithm", "version": 2, "name": "dense_relu",
    "dims": [{"name": "M"}, {"name": "N"}, {"name": "K"}],
    "parameters": [], "outputs": ["y"], "numerics": F32,
    "tensors": [tensor("x", ["M", "K"]), tensor("w", ["K", "N"]), tensor("b", ["N"])],
    "steps": [
        {"name": "acc", "dims": ["M", "N"],
         "reduce": {"monoid": PRODUCT, "dims": ["K"], "inputs": [load("x", ["M", "K"]), load("w", ["K", "N"])]}},
        {"name": "y", "dims": ["M", "N"],
         "map": ["max", ["add", load("acc", ["M", "N"]), load("b", ["N"])], ["f32", "0x0p+0"]]},
    ],
}
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(algorithm, file)
