"""Element-wise functions as numpy.ufunc: beside NumPy's own on random shapes, strides and memory."""
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest

import tessera as ts
from tessera import CallError, CompilationError, Param, State, Tensor, bf16, f32, f64, i4, i32, jit, tile


@jit
def weigh(x: Tensor["M", "N", f32], w: Tensor["N", f32], y: Tensor["M", "N", f32]) -> tuple[Tensor["M", "N", f32], Tensor["M", "N", i32]]:
    """(x - w) * y, and whether x < y."""
    return (x - w) * y, (x < y).cast(i32)


@pytest.fixture(scope="module")
def both():
    """Ours, and NumPy's for the same."""
    def numpys(x, w, y):
        x, w, y = np.broadcast_arrays(x, w, y)
        return (x - w) * y, np.less(x, y).astype(np.int32)

    return weigh.ufunc(), numpys


@pytest.fixture
def plus(add):
    return add.ufunc()


def some_array(rng, shape, dtype=np.float32):
    """An array of that shape, whose memory is any: permuted axes, gaps, backward, one element for many, not aligned."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, -1])) for _ in shape]
    wide = [n * abs(s) + int(rng.integers(0, 2)) * int(rng.integers(0, 2)) for n, s in zip(shape, steps)]
    memory = rng.standard_normal([wide[a] for a in order]).astype(dtype)
    array = memory.transpose(np.argsort(order))
    array = array[tuple(slice(None, None, s) for s in steps)]
    array = array[tuple(slice(0, n) for n in shape)]
    if array.size and rng.integers(0, 8) == 0:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
        raw[...] = array
        array = raw
    assert array.shape == tuple(shape)
    return array


def some_shapes(rng, count):
    """Shapes that broadcast together."""
    rank = int(rng.integers(0, 6))
    whole = [int(rng.choice([0, 1, 2, 3, 5, 8], p=[0.04, 0.16, 0.2, 0.2, 0.2, 0.2])) for _ in range(rank)]
    shapes = []
    for _ in range(count):
        skipped = int(rng.integers(0, rank + 1)) if rng.integers(0, 3) == 0 else 0
        shapes.append([1 if rng.integers(0, 4) == 0 else n for n in whole[skipped:]])
    return shapes


@pytest.mark.parametrize("seed", range(12))
def test_any_shapes_and_memory_are_as_with_numpy(both, seed):
    ours, numpys = both
    rng = np.random.default_rng(seed)
    for _ in range(60):
        values = [some_array(rng, s) for s in some_shapes(rng, 3)]
        wanted = numpys(*values)
        got = ours(*values)
        for g, w in zip(got, wanted):
            assert type(g) is type(w) or g.ndim == 0
            assert g.dtype == w.dtype and g.shape == w.shape
            np.testing.assert_array_equal(g, w)
        out = tuple(np.asarray(some_array(rng, w.shape, w.dtype)) for w in wanted)
        given = ours(*values, out=out)
        for g, o, w in zip(given, out, wanted):
            assert g is o
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("seed", range(6))
def test_results_may_be_in_the_memory_of_arguments(plus, seed):
    rng = np.random.default_rng(seed)
    for _ in range(80):
        whole = rng.standard_normal((7, 9, 6)).astype(np.float32)

        def part():
            start = rng.integers(0, 3, 3)
            return tuple(slice(int(s), int(s) + n) for s, n in zip(start, (4, 6, 3)))

        x, z, out = (whole[part()] for _ in range(3))
        if rng.integers(0, 3) == 0:
            out = x
        wanted = x + z
        assert plus(x, z, out=out) is out
        np.testing.assert_array_equal(out, wanted)


def test_memory_goes_as_numpys(plus, rng):
    for shape, axes in [((3, 4, 5), (0, 1, 2)), ((3, 4, 5), (2, 1, 0)), ((3, 4, 5), (1, 2, 0)), ((1, 4, 1, 5), (3, 2, 1, 0))]:
        x = rng.standard_normal([shape[a] for a in axes]).astype(np.float32).transpose(np.argsort(axes))
        for given, wanted in [(plus(x, x), x + x), (plus(x, np.float32(1)), x + np.float32(1))]:
            assert all(n == 1 or g == w for n, g, w in zip(shape, given.strides, wanted.strides)), (shape, axes)


def test_numbers_and_arrays_without_axes(plus):
    assert type(plus(1, 2.5)) is np.float32 and plus(1, 2.5) == 3.5
    assert plus(np.float32(1), np.ones((), np.float32)) == 2
    out = np.zeros((), np.float32)
    assert plus(1, 2, out=out) is out and out == 3
    assert plus(np.ones(3, np.float32), True).tolist() == [2, 2, 2]
    assert plus(np.empty((0, 3), np.float32), np.ones(3, np.float32)).shape == (0, 3)
    assert plus(np.ones(3, np.float32), np.ones(3, np.float16)).dtype == np.float32  # cast where that is safe


def test_outs_as_numpy_takes_them(both, plus):
    ours, numpys = both
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, flags = np.empty_like(x), np.empty_like(x, np.int32)
    assert ours(x, x, x, y, flags)[0] is y
    given = ours(x, 1, x, out=(None, flags))
    assert given[1] is flags
    np.testing.assert_array_equal(given[0], numpys(x, np.float32(1), x)[0])
    wide = np.empty((2, 3), np.float64)
    assert plus(x, x, out=wide) is wide and plus(x, x, out=(wide,)) is wide
    np.testing.assert_array_equal(wide, x + x)
    broader = np.empty((4, 2, 3), np.float32)
    np.testing.assert_array_equal(plus(x, x, out=broader), np.broadcast_to(x + x, broader.shape))
    assert plus(x, x, where=True, casting="same_kind", dtype=None) is not None


@pytest.mark.parametrize("call, kind, words", [
    (lambda f, x: f(x, x[:, :2]), "extent-mismatch", "operands could not be broadcast together with shapes (2,3) (2,2)"),
    (lambda f, x: f(x, x, out=np.empty(3, np.float32)), "extent-mismatch", "out: the result 'y' has the shape (2,3) of the inputs broadcast together, and the array (3,)"),
    (lambda f, x: f(x, x.astype(np.float64)), "dtype", "argument 'z': dtype must be float32, or one that NumPy casts to it safely, not float64"),
    (lambda f, x: f(x, 1j), "dtype", "not complex128"),
    (lambda f, x: f(x), "argument", "expected 2 arguments (x, z), and perhaps 1 for results, got 1"),
    (lambda f, x: f(x, x, where=x > 0), "argument", "ufuncs of Tessera take where=True alone; choose with numpy.where"),
    (lambda f, x: f(x, x, order="C"), "argument", "order='C': ufuncs of Tessera take order='K' alone"),
    (lambda f, x: f(x, x, axis=0), "argument", "there is no argument 'axis='"),
    (lambda f, x: f(x, x, out=[x]), "argument", "out: expected an array of NumPy for the result 'y', got list"),
    (lambda f, x: f(x, x, out=(x, x)), "argument", "out: expected an array (y), got 2"),
    (lambda f, x: f(x, x, out=np.broadcast_to(x, (2, 2, 3))), "read-only", "the array for the result 'y' is read-only"),
    (lambda f, x: f(x, x, out=np.empty((2, 3), np.int32)), "dtype", "the result 'y' is float32, which NumPy does not cast to int32"),
    (lambda f, x: f(x, np.ma.masked_array(x)), "argument", "masked arrays are not taken"),
])
def test_what_is_wrong_is_named(plus, call, kind, words):
    with pytest.raises(CallError) as error:
        call(plus, np.ones((2, 3), np.float32))
    assert error.value.kind == kind and words in str(error.value) and str(error.value).startswith("add: ")


def test_what_ufuncs_have_and_have_not(both, plus):
    assert (plus.nin, plus.nout, plus.nargs, plus.ntypes, plus.types, plus.__name__) == (2, 1, 3, 1, ["ff->f"], "add")
    assert (both[0].nin, both[0].nout, both[0].types, both[0].__doc__) == (3, 2, ["fff->fi"], weigh.__doc__)
    for name, words in [("reduce", "tile.fold"), ("accumulate", "tile.scan"), ("outer", r"x\[:, None\]"), ("at", "tile.scatter"), ("reduceat", "tile.scan")]:
        assert not hasattr(plus, name)
        with pytest.raises(AttributeError, match=f"add: ufuncs of Tessera have no '{name}'; .*{words}"):
            getattr(plus, name)
    x = np.ones(3, np.float32)
    assert pickle.loads(pickle.dumps(plus))(x, x).tolist() == [2, 2, 2]


def test_parameters_and_types_of_their_own():
    @jit
    def scale(x: Tensor["N", bf16], s: Param[f32, 0, 4]) -> Tensor["N", bf16]:
        return x * s

    f = scale.ufunc()
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)[:, ::-1]
    np.testing.assert_array_equal(f(x, 2), x * ml_dtypes.bfloat16(2))
    with pytest.raises(CallError) as error:
        f(x, 5)
    assert "'s'" in str(error.value)
    with pytest.raises(CallError, match="scale: argument 's': "):
        f(x, x)

    @jit
    def doubled(x: Tensor[3, f64]) -> Tensor[3, f64]:
        return 2 * x

    assert doubled.ufunc()(np.arange(5.0)).tolist() == [0, 2, 4, 6, 8]  # an extent says nothing to a ufunc
    assert doubled.ufunc()(np.arange(5)).tolist() == [0, 2, 4, 6, 8]


def test_only_what_is_element_wise():
    @jit
    def total(x: Tensor["M", "N", f32]) -> Tensor["M", f32]:
        return tile.sum(x, over="N").named("all")

    @jit
    def columns(x: Tensor["M", "N", f32], c: Tensor["M", f32]) -> Tensor["M", "N", f32]:
        return x + c

    @jit
    def accumulate(x: Tensor["N", f32], s: State["N", f32]):
        tile.update("write", s, tile.index("N"), s + x)

    @jit
    def codes(x: Tensor["N", i4]) -> Tensor["N", f32]:
        return x.cast(f32)

    for function, id_, words in [(total, "elementwise.stage", "it folds over N"),
                                 (columns, "elementwise.reading", "it reads c[M], and its own dims are [M, N]: expected c[N]"),
                                 (accumulate, "elementwise.state", "accumulate: it updates a state"), (codes, "elementwise.type", "'x' is i4")]:
        with pytest.raises(CompilationError) as error:
            function.ufunc()
        assert error.value.id == id_ and words in str(error.value), str(error.value)


def test_nothing_is_kept():
    @jit
    def twice(x: Tensor["N", f32]) -> Tensor["N", f32]:
        return x + x

    f = twice.ufunc()
    x = np.ones((4, 4), np.float32)
    f(x, out=x.copy()), f(x.T[::2]), f(x, out=x)
    kept, gone = weakref.ref(f), weakref.ref(x)
    del f, x
    gc.collect()
    assert kept() is None and gone() is None
    assert ts.threads() == 1


def test_families_and_defaults():
    @jit(schedule="none")
    def scaled(x: Tensor["N", f32], by: f32 = 2.0, *, extra: float = 0.0) -> Tensor["N", f32]:
        return x * by + extra

    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(scaled.ufunc()(x), x * 2)
    np.testing.assert_array_equal(scaled.ufunc(extra=1.0)(x, 3.0), x * 4)
    with pytest.raises(CallError, match="expected 2 arguments"):
        scaled.ufunc()()
