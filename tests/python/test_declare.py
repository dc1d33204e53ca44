"""Functions of tiles as algorithms: what C++ declares, Python can, with errors at the line that is wrong."""
import copy
import inspect
import os
import pickle

import numpy as np
import pytest
import scipy.special

import tessera as ts
from tessera import CompilationError, Dim, Monoid, Param, State, Tensor, accum, bf16, f32, f64, i8, i32, i64, jit, tile
from tessera.stdlib import function

plain = jit(schedule="none")


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_it_is_the_algorithm_that_cpp_declares():
    @jit
    def linear(x: Tensor["M", "K", f32], w: Tensor["K", "N", f32], b: Tensor["N", f32]) -> Tensor["M", "N", f32]:
        return tile.dot(x, w).named("acc") + b

    assert linear.algorithm.semantic_hash == function("linear").algorithm.semantic_hash
    assert linear.algorithm.surface_hash == function("linear").algorithm.surface_hash
    again = ts.Algorithm.from_json(linear.json)
    assert again.json() == linear.json and linear.__name__ == "linear"


def test_errors_show_the_line():
    def wrong(x: Tensor["M", "K", f32], w: Tensor["J", "N", f32]):
        y = tile.dot(x, w)  # this one
        return y

    with pytest.raises(CompilationError) as error:
        jit(wrong)
    assert error.value.id == "shape.dot"
    assert (error.value.file, error.value.line) == (__file__, line_of(wrong, "this one"))
    assert str(error.value) == (f"test_declare.py:{error.value.line}: error[shape.dot]: dot: x[M, K]'s last dim 'K' must be a dim of w[J, N]; "
                                "name the dims to sum over, or rename one.\n    y = tile.dot(x, w)  # this one")

    def truth(x: Tensor["M", f32]):
        return x if x > 0 else -x

    with pytest.raises(CompilationError, match=r"python.truth.*tile.select\(condition, a, b\)"):
        jit(truth)

    def untyped(x):
        return x

    with pytest.raises(CompilationError, match="argument 'x': expected an annotation such as Tensor"):
        jit(untyped)

    def other_dims(x: Tensor["M", f32]) -> Tensor["N", f32]:
        return x * 2

    with pytest.raises(CompilationError, match=r"the result 'y' is annotated with dims \[N\], and the tile has \[M\]"):
        jit(other_dims)
    kept = []

    def keeps(x: Tensor["M", f32]):
        kept.append(x)
        return x * 2

    def uses(x: Tensor["M", f32]):
        return x + kept[0]

    jit(keeps)
    with pytest.raises(CompilationError, match="belongs to another function"):
        jit(uses)
    with pytest.raises(CompilationError, match="python.outside"):
        tile.index("M")
    doubled = jit(keeps)

    def nested(x: Tensor["M", f32]):
        return doubled(x)

    with pytest.raises(ts.CallError, match=r"got Tile; inside of another function write tile.call\(scope, function, tiles\)"):
        jit(nested)

    def fails(x: Tensor["M", f32]):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jit(fails)
    with pytest.raises(CompilationError, match="python.outside"):  # nothing is left behind
        tile.index("M")


def test_elementwise_functions(rng):
    x = rng.standard_normal(257).astype(np.float32)
    expected = {"exp": np.exp, "log1p": lambda v: np.log1p(np.abs(v)), "erf": scipy.special.erf, "tanh": np.tanh, "sin": np.sin,
                "sigmoid": scipy.special.expit, "sqrt": lambda v: np.sqrt(np.abs(v)), "relu": lambda v: np.maximum(v, 0)}
    for name, reference in expected.items():
        def one(x: Tensor["N", f32]) -> Tensor["N", f32]:
            inside = abs(x) if name in ("log1p", "sqrt") else x
            return getattr(tile, name)(inside)

        np.testing.assert_allclose(plain(one)(x), reference(x.astype(np.float64)), rtol=3e-7, atol=1e-7, err_msg=name)


def test_numbers_and_operators(rng):
    @plain
    def mixed(x: Tensor["N", f32], n: Tensor["N", i32]) -> tuple[Tensor["N", f32], Tensor["N", i32]]:
        return {"y": tile.select((x > 0) & (n % 2 == 0), 2 * x - 1, x ** 2), "k": (n // 3 + 1) << 2}

    x, n = rng.standard_normal(100).astype(np.float32), rng.integers(-50, 50, 100).astype(np.int32)
    y, k = mixed(x, n)
    np.testing.assert_array_equal(y, np.where((x > 0) & (n % 2 == 0), 2 * x - 1, x * x))
    np.testing.assert_array_equal(k, (n // 3 + 1) << 2)
    with pytest.raises(CompilationError, match="expr.number"):
        @jit
        def halves(n: Tensor["N", i32]):
            return n * 0.5


def test_policies_states_parameters(rng):
    @plain
    def narrow(x: Tensor["M", "K", bf16 @ accum(f32)], w: Tensor["K", "N", bf16 @ accum(f32)]) -> Tensor["M", "N", f32]:
        return tile.dot(x, w)

    assert narrow.algorithm.tensors[0][2] == bf16
    import ml_dtypes
    x = rng.standard_normal((3, 8)).astype(ml_dtypes.bfloat16)
    w = rng.standard_normal((8, 5)).astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(narrow(x, w), x.astype(np.float64) @ w.astype(np.float64), rtol=1e-5, atol=1e-5)
    with pytest.raises(CompilationError, match="numerics.policy"):
        bf16 @ accum(bf16)

    @plain
    def momentum(m: State["N", f32], g: Tensor["N", f32], rate: Param[f32, 0, 1]):
        tile.update("put", m, [tile.index("N")], m * rate + g)

    m, g = np.ones(9, np.float32), np.arange(9, dtype=np.float32)
    assert momentum(m, g, 0.5) is None
    np.testing.assert_array_equal(m, 0.5 + g)
    with pytest.raises(ts.CallError, match="rate") as error:
        momentum(m, g, 1.5)
    assert error.value.kind == "parameter-max"
    m.flags.writeable = False
    with pytest.raises(ts.CallError, match="'m' is updated in place, and the tensor is read-only"):
        momentum(m, g, 0.5)


def test_folds_of_ones_own(rng):
    def lesser(a, b):
        take = (b[0] < a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
        from tessera._core.expr import select
        return [select(take, b[0], a[0]), select(take, b[1], a[1])]

    first_min = Monoid("first_min", {"value": (i32, 2**31 - 1), "at": (i64, 2**31)}, lesser)

    @plain
    def argmin(x: Tensor["M", "N", i32]) -> Tensor["M", i64]:
        at = tile.tile_of(tile.position("N").cast(i64), ["N"])
        return tile.fold(first_min, [x, at], "N")[1]

    x = rng.integers(-5, 5, (7, 33)).astype(np.int32)
    np.testing.assert_array_equal(argmin(x), x.argmin(1))
    with pytest.raises(CompilationError, match="algorithm.monoid-law.*the identity changes an element"):
        Monoid("wrong", {"value": (f32, 0)}, lambda a, b: a[0] - b[0] * b[0])
    with pytest.raises(CompilationError, match="python.monoid.*max_number"):
        Monoid.standard("maxx", f32)

    @plain
    def running(x: Tensor["M", "N", f64]) -> Tensor["M", "N", f64]:
        return tile.scan(Monoid.standard("sum", f64), x, "N")[0]

    y = rng.integers(-9, 9, (3, 20)).astype(np.float64)
    np.testing.assert_array_equal(running(y), y.cumsum(1))

    @plain
    def counts(x: Tensor["N", i32], size: Tensor["V", i32]) -> Tensor["V", i32]:
        one = tile.scalar(i32, 1)
        return tile.scatter(Monoid.standard("sum", i32), tile.broadcast(one, ["N"]), [x], ["V"])[0] + size * 0

    ids = rng.integers(-2, 12, 50).astype(np.int32)
    np.testing.assert_array_equal(counts(ids, np.zeros(10, np.int32)), np.bincount(ids[(ids >= 0) & (ids < 10)], minlength=10))


def test_calls_and_repeat(rng):
    @jit
    def layer(x: Tensor["M", "D", f32], w: Tensor["D", "D2", f32]) -> Tensor["M", "D2", f32]:
        return tile.tanh(tile.dot(x, w).named("acc"))

    @plain
    def two(x: Tensor["M", "A", f32], w1: Tensor["A", "B", f32], w2: Tensor["B", "C", f32]) -> Tensor["M", "C", f32]:
        return tile.call("second", layer, tile.call("first", layer, x, w1), w2)

    x, w1, w2 = (rng.standard_normal(s).astype(np.float32) for s in [(4, 5), (5, 6), (6, 3)])
    np.testing.assert_allclose(two(x, w1, w2), np.tanh(np.tanh(x @ w1) @ w2), rtol=1e-5, atol=1e-6)

    @jit
    def square(x: Tensor["M", "D", f32], w: Tensor["D", "E", f32]) -> Tensor["M", "E", f32]:
        return tile.tanh(tile.dot(x, w).named("acc"))

    @plain
    def stack(x: Tensor["M", 8, f32], w: Tensor["L", 8, Dim.fixed("E", 8), f32]) -> Tensor["M", Dim.fixed("E", 8), f32]:
        return tile.repeat("layers", square, "L", x, w, carried={"x": "y"})

    x, w = rng.standard_normal((3, 8)).astype(np.float32), (rng.standard_normal((5, 8, 8)) / 3).astype(np.float32)
    y = x
    for one in w:
        y = np.tanh(y @ one)
    np.testing.assert_allclose(stack(x, w), y, rtol=1e-4, atol=1e-5)


def test_static_arguments(rng):
    @jit(schedule="none")
    def conv(x: Tensor["N", "H", "W", "C", f32], w: Tensor["R", "S", "C", "O", f32], *, stride: int = 1, padding: int = 0):
        return tile.conv2d(x, w, "H", "W", "R", "S", ["C"], stride=stride, padding=padding)

    x, w = rng.standard_normal((1, 9, 7, 2)).astype(np.float32), rng.standard_normal((3, 3, 2, 4)).astype(np.float32)
    assert conv(x, w).shape == (1, 7, 5, 4)  # derived dims
    assert conv(x, w, stride=2, padding=1).shape == (1, 5, 4, 4)
    patch = x[:, 2:5, 4:7]
    np.testing.assert_allclose(conv(x, w, stride=2)[0, 1, 2], np.tensordot(patch[0], w, 3), rtol=1e-5, atol=1e-5)
    with pytest.raises(CompilationError, match="there is no argument 'strides'"):
        conv.specialised(strides=2)
    with pytest.raises(CompilationError, match="the static argument 'stride' is int, got 2.0"):
        conv.specialised(stride=2.0)

    @jit(schedule="none")
    def scaled(x: Tensor["N", f32], *, s: float = 1.0) -> Tensor["N", f32]:
        return x * s

    one = np.ones(2, np.float32)
    assert not np.signbit(scaled(one, s=0.0)).any() and np.signbit(scaled(one, s=-0.0)).all()
    assert scaled.specialised(s=float("nan")) is scaled.specialised(s=float("nan")) and scaled.specialised(s=1) is scaled.specialised()
    with pytest.raises(CompilationError, match="64 values of its static arguments were given"):
        for i in range(100):
            scaled.specialised(s=float(i))


def test_signatures_that_cannot_be():
    def result(x: Tensor["N", f32], y: Tensor["N", f32]) -> Tensor["N", f32]:
        return x + y

    assert [name for name, _, _ in jit(result).algorithm.outputs] == ["result"]

    def out(out: Tensor["N", f32]):
        return out

    def default(x: Tensor["N", f32] = 2.0):
        return x

    def ranged(x: Tensor["N", f32], a: Param[f32, 0, 1] = 2.0):
        return x * a

    def mistyped(x: Tensor["N", f32], a: i8 = 200):
        return x * a.cast(f32)

    def texted(x: Tensor["N", f32], a: f32 = "2"):
        return x * a

    def whole(x: Tensor["N", f32]) -> int:
        return x

    async def later(x: Tensor["N", f32]):
        return x

    for wrong, words in [(out, "no argument may be called 'out'"), (default, "argument 'x': a tensor has no default"),
                         (ranged, "argument 'a': the default 2.0 is not in the parameter's range"), (mistyped, "argument 'a': the default 200 is no i8"),
                         (texted, "argument 'a': expected int or float as the default of a parameter of f32, got '2'"),
                         (whole, "the result: expected an annotation"), (later, "a plain function of Python"), (int, "a plain function of Python")]:
        with pytest.raises(CompilationError, match=words):
            jit(wrong)
    for wrong in (lambda: Tensor[-3, f32], lambda: Tensor[2**70, f32], lambda: Tensor[tuple("ABCDEFGHI")]):
        with pytest.raises(CompilationError, match="python.annotation"):
            wrong()

    @jit(name="twofold", schedule="none")
    def double(x: Tensor["N", f32]) -> Tensor["N", f32]:
        return x + x

    assert double.__name__ == "twofold" and double(np.ones(1, np.float32))[0] == 2

    def numpy_first(x: Tensor["N", f32]) -> Tensor["N", f32]:
        return np.float32(2) * x

    np.testing.assert_array_equal(plain(numpy_first)(np.ones(3, np.float32)), np.full(3, 2, np.float32))
    with pytest.raises(CompilationError, match="json.syntax"):
        ts.Algorithm.from_json("{")


def test_random_numbers_are_those_of_the_library():
    @plain
    def draws(x: Tensor["N", f32], seed: i64, step: Param[i64, 0, 2**32 - 1]) -> Tensor["N", f32]:
        return tile.uniform(tile.RandomStream(seed, step), ["N"]) + x

    zeros = np.zeros(100, np.float32)
    mine = draws(zeros, 5, 3)
    theirs = function("random_uniform").with_schedule("none")(5, 3, out=np.empty(100, np.float32))
    np.testing.assert_array_equal(mine, theirs)
    assert draws.algorithm.effects == ["random"]


@jit(schedule="none")
def times_or_not(x: Tensor["N", f32], *, double: bool = False) -> Tensor["N", f32]:
    return x * (2.0 if double else 1.0)


def test_functions_with_static_arguments_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(times_or_not)) is times_or_not
    assert copy.copy(times_or_not) is times_or_not and copy.deepcopy([times_or_not])[0] is times_or_not
    one = np.ones(3, np.float32)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(times_or_not.specialised(double=True)))(one), one * 2)

    @jit(schedule="none")
    def inner(x: Tensor["N", f32], *, double: bool = False) -> Tensor["N", f32]:
        return x * (2.0 if double else 1.0)

    assert copy.deepcopy(inner) is inner
    with pytest.raises(pickle.PicklingError, match=r"^inner: a function with static arguments is pickled by its module and name, .*"
                                                   r"test_declare\..*inner is not this one; give it that name, or pickle specialised"):
        pickle.dumps(inner)


def test_parameters_with_defaults():
    @jit(schedule="none")
    def moved(x: Tensor["N", f32], by: f32 = 0.5, *, times: Param[f32, 0, 4] = 2) -> Tensor["N", f32]:
        return (x + by) * times

    one = np.ones(3, np.float32)
    for made in (moved, moved.with_schedule("none"), copy.copy(moved), pickle.loads(pickle.dumps(moved))):
        assert made.defaults == {"by": 0.5, "times": 2}
        np.testing.assert_array_equal(made(one), one * 3)
        np.testing.assert_array_equal(made(one, 1.5), one * 5)
        np.testing.assert_array_equal(made(one, times=3.0), one * 4.5)
        np.testing.assert_array_equal(made(one, 1, 3), one * 6)
    with pytest.raises(ts.CallError, match="argument 'x' is missing"):
        moved(by=1.0)

    @jit(schedule="none")
    def family(x: Tensor["N", f32], by: f32 = 0.5, *, double: bool = False) -> Tensor["N", f32]:
        return (x + by) * (2.0 if double else 1.0)

    np.testing.assert_array_equal(family(one, double=True), one * 3)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="of another processor")
def test_kernels_of_another_processor_are_exported_and_not_called(tmp_path):
    @jit(schedule="none", target="arm64")
    def distant(x: Tensor["N", f32]) -> Tensor["N", f32]:
        return x + x

    with pytest.raises(CompilationError, match="python.target.*its target is arm64, and this machine is x86_64, so that it cannot be called here"):
        distant(np.ones(3, np.float32))
    assert (distant.export(tmp_path) / "libdistant.a").exists()
