"""What the unseen algorithms are called with: arguments, shapes, data. One row for each algorithm of generator.cpp.

Data are multiples of 1/16 where nothing else is said, so that most sums are exact in any order and positions of maxima are the same
on both sides."""
import ctypes
import re
from dataclasses import dataclass, field

import numpy as np

TYPES = {"f32": "f4", "i32": "i4", "i64": "i8", "i8": "i1", "u8": "u1"}


def sixteenths(rng, shape, lowest=-2.0, highest=2.0):
    return (rng.integers(round(16 * lowest), round(16 * highest), shape, endpoint=True) / 16).astype("f4")


def between(lowest, highest):
    return lambda rng, shape, extents: sixteenths(rng, shape, lowest, highest)


def whole(rng, shape, extents):
    """Small whole numbers, of which many are equal: a position is that of the first of equals."""
    return rng.integers(-4, 4, shape, endpoint=True).astype("f4")


def turns(rng, shape, extents):
    """Rotations of the plane, whose products neither grow nor vanish."""
    angle = rng.uniform(0, 2 * np.pi, shape[:2])
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2).astype("f4")


def offsets(rng, shape, extents):
    """Bags of all sizes, some of them empty, which together have every row."""
    if shape[0] == 1:
        return np.zeros(1, "i8")
    inner = np.sort(rng.integers(0, extents["T"], shape[0] - 2, endpoint=True))
    return np.concatenate([[0], inner, [extents["T"]]]).astype("i8")


def rows_of(dim):
    return lambda rng, shape, extents: rng.integers(0, extents[dim], shape).astype("i4")


WHOLE = {"i8": lambda rng, shape, extents: rng.integers(-128, 128, shape).astype("i1"),
         "u8": lambda rng, shape, extents: rng.integers(0, 256, shape).astype("u1"),
         "f32": between(-2, 2)}


@dataclass
class Argument:
    name: str
    dims: list
    type: str


@dataclass
class Case:
    """`arguments`: "x[M, K] -> y[M, N] at[M, N]: i32", an extent being a dim, a number or an expression of dims. `small` shapes are for
    tests: none, one and odd numbers of everything. `shapes` are a dozen for timing, the first one typical, four with a dim under 8."""
    name: str
    dims: str
    arguments: str
    small: str
    shapes: str
    data: dict = field(default_factory=dict)        # of an input, instead of multiples of 1/16
    parameters: dict = field(default_factory=dict)  # f32, in order

    def extents(self, which):
        """The shapes of `small` or `shapes`, each a dictionary."""
        return [dict(zip(self.dims.split(), map(int, shape.split(",")), strict=True)) for shape in which.split()]

    def sides(self):
        """Inputs and outputs."""
        for side in self.arguments.split("->"):
            yield [Argument(name, [d.strip() for d in dims.split(",")], type or "f32")
                   for name, dims, type in re.findall(r"(\w+)\[([^]]*)\](?:: (\w+))?", side)]

    def make(self, extents, seed=1):
        """Arrays for the inputs, and for the outputs such as hold what no kernel writes."""
        rng = np.random.default_rng(seed)
        inputs, outputs = self.sides()
        def shape(argument):
            return tuple(eval(d, {}, extents) for d in argument.dims)
        made = [self.data.get(a.name, WHOLE.get(a.type))(rng, shape(a), extents) for a in inputs]
        for a, array in zip(inputs, made):
            assert array.dtype.str[1:] == TYPES[a.type] and array.shape == shape(a), f"{self.name}: {a.name} is not as declared"
        return made, [np.full(shape(a), np.nan if a.type == "f32" else -1, TYPES[a.type]) for a in outputs]


PRODUCTS = dict(small="0,3,2 3,0,2 1,1,1 1,7,5 5,1,17 7,9,1 13,31,33",
                shapes="256,256,256 128,512,128 64,64,64 512,128,64 100,300,200 200,200,50 33,65,129 128,128,512 "
                       "1,1024,512 5,256,256 256,6,256 256,256,3")
PAIRS = dict(small="0,3,2 3,0,2 1,1,1 1,7,5 5,1,17 7,9,1 13,31,33",
             shapes="128,128,64 64,64,64 256,64,32 64,256,128 100,75,50 33,65,129 48,48,200 16,512,64 "
                    "1,512,128 200,5,128 128,128,3 7,300,100")

CASES = [
    Case("max_plus", "M N K", "x[M, K] w[K, N] -> y[M, N] at[M, N]: i32", **PRODUCTS, data={"x": whole, "w": whole}),
    Case("noisy_or", "M N K", "x[M, K] w[K, N] -> y[M, N]", PRODUCTS["small"] + " 3,5,0", PRODUCTS["shapes"],
         data={"x": between(0, 0.5), "w": between(0, 0.5)}),
    Case("l1_distance", "I J K", "x[I, K] c[J, K] -> y[I, J]", PAIRS["small"] + " 3,5,0",
         "256,256,128 128,512,64 64,64,64 512,512,32 100,300,50 33,65,129 16,1024,256 200,100,300 1,1024,128 256,5,128 256,256,3 7,512,100"),
    Case("pairwise_lse", "I J K", "x[I, K] c[J, K] -> y[I, J]", **PAIRS),
    Case("vector_quantize", "M N K", "x[M, K] codes[N, K] -> code[M]: i32 y[M, K]", "0,3,2 3,1,0 1,1,1 1,7,5 5,1,17 7,9,1 13,31,33",
         "128,256,64 64,64,64 256,512,16 512,128,32 100,300,50 33,65,129 16,1024,128 200,100,100 1,1024,128 256,5,128 256,256,3 6,512,100",
         data={"x": whole, "codes": whole}),
    Case("hausdorff", "B M N", "x[B, M, 3] z[B, N, 3] -> y[B]", "0,3,2 1,1,1 1,7,5 5,1,17 7,9,1 3,31,33",
         "8,128,128 32,64,64 16,200,100 64,33,65 128,16,16 8,300,50 12,50,300 40,100,20 1,512,512 3,256,256 64,256,5 64,7,256"),
    Case("transfer_matrices", "M K", "x[M, K, 2, 2] -> y[M, 2, 2]", "0,3 3,0 1,1 1,7 5,17 7,1 13,31",
         "256,64 64,256 1024,16 100,100 512,32 33,500 2000,10 16,1024 1,4096 3,2000 1024,3 4096,7", data={"x": turns}),
    Case("max_subarray", "M T", "x[M, T] -> y[M]", "0,3 3,0 1,1 1,7 5,17 7,1 13,310",
         "64,1024 256,256 16,4096 1024,64 100,300 33,1000 512,100 20,2000 1,8192 5,4096 4096,6 8192,3"),
    Case("linear_recurrence", "T C", "a[T, C] x[T, C] q[T, C] -> y[T]", "0,3 3,0 1,1 1,7 5,17 7,1 31,33",
         "2048,256 512,512 1024,64 256,1024 300,100 4096,32 100,333 64,2048 3,4096 5,1000 4096,7 2048,1", data={"a": between(0, 1)}),
    Case("selective_scan", "T C S", "x[T, C] dt[T, C] a[C, S] b[T, S] c[T, S] -> y[T, C]", "0,3,2 3,0,2 3,2,0 1,1,1 1,7,5 5,1,17 7,9,1 13,7,16",
         "128,64,16 64,128,16 256,32,16 32,256,8 100,50,16 64,64,32 33,65,17 512,16,16 1,512,16 256,3,16 128,128,4 300,100,1",
         data={"dt": between(1 / 16, 1), "a": between(-2, -0.5)}),
    Case("running_moments", "T C", "x[T, C] -> y[T, C]", "0,3 3,0 1,1 1,7 5,17 7,1 31,33",
         "1024,128 512,512 256,64 128,1024 300,100 2048,32 100,333 64,2048 3,4096 5,2000 4096,7 4096,1"),
    Case("bilateral", "H W R S", "x[H, W] g[R, S] -> y[H - R + 1, W - S + 1]", "1,1,1,1 3,5,3,5 7,9,3,1 9,8,2,5 13,31,5,3",
         "68,68,5,5 64,128,3,3 40,40,9,9 100,100,7,7 33,65,5,5 20,400,3,5 128,32,5,3 50,75,11,11 64,64,1,9 9,512,8,8 300,12,9,10 90,90,13,9",
         data={"g": between(-2, 0)}, parameters={"sharpness": 0.25}),
    Case("erosion", "H W C R S", "x[H, W, C] k[R, S] -> y[H - R + 1, W - S + 1, C]", "1,1,1,1,1 3,5,2,3,5 7,9,0,3,1 9,8,3,2,5 5,7,31,3,3",
         "34,34,32,3,3 30,30,64,5,5 66,66,16,3,3 20,20,128,3,3 58,58,8,5,5 25,40,33,3,5 28,28,96,2,2 18,18,256,3,3 "
         "128,128,1,3,3 100,100,3,5,5 40,40,32,1,7 12,12,512,9,9"),
    Case("rotate", "B N", "x[B, N, 3] q[B, 4] -> y[B, N, 3]", "0,3 3,0 1,1 1,7 5,17 7,1 13,31",
         "64,128 16,1024 256,32 100,100 33,500 512,24 8,3000 1000,17 1,8192 3,4000 2000,5 4096,1"),
    Case("group_glu", "M G K F N", "x[M, G, K] gate[G, K, F] up[G, K, F] down[G, F, N] -> y[M, G, N]",
         "0,1,2,3,1 2,0,3,1,2 2,1,3,2,0 2,2,0,3,2 2,1,3,0,2 1,1,1,1,1 1,3,7,5,9 5,2,17,3,1 7,1,9,33,31",
         "64,4,64,128,64 128,2,64,64,64 32,8,32,64,32 256,1,64,128,64 48,3,100,75,50 16,16,32,128,32 33,2,65,129,33 100,4,48,96,48 "
         "1,4,128,256,128 3,8,64,128,64 64,2,64,128,5 200,6,16,64,16"),
    Case("top2_routing", "M K E N", "x[M, K] w[K, E] expert[E, N] -> y[M, N] first[M]: i32 second[M]: i32",
         "0,3,2,1 3,0,2,5 3,2,2,0 1,1,2,1 1,7,3,5 5,17,9,1 7,1,16,33 13,31,8,7",
         "256,64,16,64 128,128,32,128 512,32,16,32 64,256,64,64 100,100,20,100 1000,16,16,16 33,65,33,129 200,64,9,256 "
         "1,512,64,512 256,64,7,64 512,64,2,64 300,5,16,100", data={"x": whole, "w": whole}),
    Case("weighted_bag", "B T V N", "offsets[B + 1]: i64 id[T]: i32 weight[T] table[V, N] -> y[B, N]",
         "0,1,1,3 3,1,1,0 1,1,1,1 1,7,5,9 5,17,3,1 7,1,9,33 13,31,17,7",
         "64,1024,1000,64 256,2000,5000,32 16,512,500,256 100,1000,2000,128 500,2000,1000,16 33,700,3000,100 8,4096,1000,48 1000,3000,2000,24 "
         "1,1000,1000,128 5,2000,500,64 200,2000,2000,7 1000,2000,1000,3", data={"offsets": offsets, "id": rows_of("V")}),
    Case("ragged_pool", "B T N", "offsets[B + 1]: i64 score[T] value[T, N] -> y[B, N]", "0,1,3 3,1,0 1,1,1 1,7,9 5,17,1 7,1,33 13,31,7",
         "64,1024,64 256,2000,32 16,512,256 100,1000,128 500,2000,16 33,700,100 8,4096,48 1000,3000,24 1,1000,128 5,2000,64 200,2000,7 "
         "1000,2000,3", data={"offsets": offsets}),
    Case("code_distance", "M N G", "code[N, G]: u8 table[M, G, 256] -> y[M, N]", "0,3,2 3,0,2 3,5,0 1,1,1 1,7,5 5,1,17 7,9,1 5,31,33",
         "16,1024,16 8,4096,8 32,512,32 64,256,16 12,1000,24 20,300,50 9,2000,12 100,200,16 1,4096,16 4,2048,16 64,5,64 32,1024,4"),
    Case("grouped_int8", "M N G K", "x[M, G, K]: i8 w[N, G, K]: i8 x_scale[M, G] w_scale[N, G] -> y[M, N]",
         "0,3,2,1 3,0,2,5 3,2,0,4 3,2,2,0 1,1,1,1 1,7,3,5 5,17,9,1 7,1,2,33 13,31,3,7",
         "64,128,8,32 128,128,4,64 32,256,16,32 64,64,32,16 100,75,5,50 33,65,9,33 256,64,2,128 16,512,8,64 "
         "1,512,16,32 5,256,8,64 128,6,16,32 128,128,24,4", data={"x_scale": between(1 / 16, 1), "w_scale": between(1 / 16, 1)}),
]


class Loops:
    """The loops of loops.c, compiled into a library."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def run(self, case, extents, inputs, outputs):
        """Fills the outputs."""
        getattr(self.library, case.name)(*(ctypes.c_int(extents[d]) for d in case.dims.split()),
                                         *(ctypes.c_void_p(array.ctypes.data) for array in inputs + outputs),
                                         *(ctypes.c_float(p) for p in case.parameters.values()))
