"""Calls: which tensors are taken, what is refused and in which words, results, threads."""
import ctypes
import gc
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import tessera as ts
from tessera import CallError, Tensor, f32, jit, tile


def test_results_are_made_or_given(add, rng):
    x, z = rng.standard_normal((2, 5, 7)).astype(np.float32)
    y = add(x, z)
    assert type(y) is np.ndarray and y.dtype == np.float32
    np.testing.assert_array_equal(y, x + z)
    out = np.empty_like(x)
    assert add(x, z, out=out) is out and add(x, z=z, out=(out,)) is out
    np.testing.assert_array_equal(out, x + z)
    assert add(x, z, out=None) is not out


def test_nothing_is_copied_and_nothing_is_kept(add):
    x = np.zeros((4, 6), np.float32)
    before = sys.getrefcount(x)
    wide = np.zeros((8, 12), np.float32)
    add(x, x, out=wide[::2, :6])  # rows apart
    assert sys.getrefcount(x) == before
    np.testing.assert_array_equal(add(np.broadcast_to(np.arange(6, dtype=np.float32), (4, 6)), x), np.tile(np.arange(6), (4, 1)))
    assert add(np.empty((0, 6), np.float32), np.empty((0, 6), np.float32)).shape == (0, 6)


class Mark:
    """What a weak reference can be made of."""


def test_types_and_dtypes_of_arguments_are_not_kept_for_ever(add):
    x = np.ones((4, 6), np.float32)
    marks, classes = [], []
    for _ in range(1000):
        mark = Mark()
        own = type("Own", (), {"__dlpack__": lambda self, **_: x.__dlpack__(), "__dlpack_device__": lambda self: x.__dlpack_device__()})
        marks.append(weakref.ref(mark)), classes.append(weakref.ref(own))
        marked = x.astype(np.dtype(np.float32, metadata={"mark": mark}))
        np.testing.assert_array_equal(add(marked, own()), x + x)
    del mark, own, marked
    gc.collect()
    assert sum(m() is not None for m in marks) <= 300 and sum(c() is not None for c in classes) <= 300
    np.testing.assert_array_equal(add(x, x), x + x)


@pytest.mark.parametrize("change, kind, words", [
    (lambda x: (x, x[:3]), "extent-mismatch", "argument 1 ('z'), dimension 0"),
    (lambda x: (x, x.astype(np.float64)), "dtype", "argument 1 ('z'): dtype must be f32, not f64"),
    (lambda x: (x, x.astype(ml_dtypes.bfloat16)), "dtype", "not bf16"),
    (lambda x: (x, x[0]), "rank", "argument 1 ('z')"),
    (lambda x: (x, x.T.copy().T), "stride-last", "argument 1 ('z')"),
    (lambda x: (x, x.astype(">f4")), "argument", "argument 'z': kernels have no tensors of dtype >f4"),
    (lambda x: (x, x.astype(np.complex64)), "argument", "argument 'z': kernels have no tensors of dtype complex64"),
    (lambda x: (x, [1.0]), "argument", "argument 'z': expected a tensor (NumPy, PyTorch, JAX or anything with __dlpack__), got list"),
    (lambda x: (x, None), "argument", "got NoneType"),
    (lambda x: (x,), "argument", "argument 'z' is missing; it takes x, z"),
    (lambda x: (x, x, x), "argument", "expected 2 arguments (x, z), got 3"),
])
def test_what_is_wrong_is_named(add, change, kind, words):
    x = np.zeros((4, 6), np.float32)
    with pytest.raises(CallError) as error:
        add(*change(x))
    assert error.value.kind == kind and words in str(error.value) and str(error.value).startswith("add: ")


def test_wrong_results_are_named(add):
    x = np.zeros((4, 6), np.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    for out, kind, words in [(frozen, "read-only", "the tensor for the result 'y' is read-only"), (x, "overlap", "argument 2 ('y')"),
                             (np.empty((4, 5), np.float32), "extent-mismatch", "('y'), dimension 1"),
                             (np.lib.stride_tricks.as_strided(x.copy(), strides=(0, 4)), "self-overlap", "('y')"),
                             ((x, x), "argument", "expected a tensor")]:
        with pytest.raises(CallError) as error:
            add(x, x, out=out)
        assert error.value.kind == kind and words in str(error.value), str(error.value)
    with pytest.raises(CallError, match="there is no argument 'zz'; there are x, z and out. Did you mean 'z'?"):
        add(x, zz=x)
    with pytest.raises(CallError, match="argument 'x' is given twice"):
        add(x, x, x=x)
    raw = np.zeros(4 * 24 + 1, np.uint8)[1:].view(np.float32).reshape(4, 6)
    with pytest.raises(CallError) as error:
        add(raw, x)
    assert error.value.kind == "misaligned"


class Capsule:
    """A tensor of a framework that has nothing but DLPack's protocol, of either age."""

    def __init__(self, array, versioned):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **wanted):
        if not self.versioned and wanted:
            raise TypeError("no arguments are known")
        return self.array.__dlpack__(**wanted)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_the_protocol(add, rng):
    x = rng.standard_normal((4, 6)).astype(np.float32)
    for versioned in (False, True):
        before = sys.getrefcount(x)
        np.testing.assert_array_equal(add(Capsule(x, versioned), x), x + x)
        out = np.empty_like(x)
        add(x, x, out=Capsule(out, versioned))
        np.testing.assert_array_equal(out, x + x)
        assert sys.getrefcount(x) == before
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(CallError, match="read-only"):
        add(x, x, out=Capsule(frozen, True))


def test_specialisations(rng):
    @jit(fix=("N",), schedule="none")
    def twice(x: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
        return x + x

    for n in (3, 5, 3, 8):
        for m in (1, 4):
            x = rng.standard_normal((m, n)).astype(np.float32)
            np.testing.assert_array_equal(twice(x), x + x)
    assert sorted(k.fixed["N"] for k in twice.kernels()) == [3, 5, 8]
    for n in range(20, 33):
        twice.compile(N=n)
    with pytest.raises(ts.CompilationError, match="python.specialisations.*16 kernels are made for N="):
        twice(np.zeros((1, 99), np.float32))
    twice.forget_kernels()
    assert twice(np.zeros((1, 99), np.float32)).shape == (1, 99)
    with pytest.raises(ts.CompilationError, match="there is no dim 'Q'; there are M, N"):
        jit(fix=("Q",))(twice.__wrapped__)


def test_fixed_extents_that_contradict_each_other(linear_silu):
    x, w = np.zeros((4, 32), np.float32), np.zeros((31, 64), np.float32)
    with pytest.raises(CallError) as error:
        linear_silu(x, w, np.zeros(64, np.float32))
    assert error.value.kind == "extent-fixed" and "'w'" in str(error.value)


def test_threads(rng):
    @jit(schedule="softmax/avx2", target="avx2")
    def softmax(x: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
        return tile.softmax(x, "N")

    x = rng.standard_normal((64, 65)).astype(np.float32)
    alone = softmax(x)
    assert ts.threads(2) == 2 and ts.threads() == 2
    assert softmax(x).tobytes() == alone.tobytes()  # the same bits on any number
    wrong = []

    def call():
        for _ in range(200):
            if softmax(x).tobytes() != alone.tobytes():
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong
    with pytest.raises(ts.CompilationError, match="expected 1 ..= 4096, got 0"):
        ts.threads(0)


def test_the_fast_call_is_inherited(add):
    assert "__call__" not in type(add).__dict__
    assert type(add).__flags__ & 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL


def test_hostile_tensors(add):
    x = np.zeros((4, 6), np.float32)
    sixes = np.zeros((4, 12), ml_dtypes.float6_e2m3fn)[:, ::2]
    with pytest.raises(CallError, match="dtype must be f32"):
        add(sixes, x)
    with pytest.raises(CallError, match="got numpy.ma.MaskedArray|got MaskedArray"):
        add(np.ma.masked_array(x, mask=x > 3), x)

    class Nested:
        def __dlpack__(self, **wanted):
            return add(self, x)

    with pytest.raises(RecursionError):
        add(Nested(), x)
    with pytest.raises(TypeError, match="unsupported operand"):
        ts.Tile.__new__(ts.Tile) + 1  # one that nobody made
    with pytest.raises(TypeError, match="expected a tessera.Kernel, got int"):
        add.add_kernel(5)


def test_threads_that_miss_at_one_time_make_one_kernel():
    @jit(fix=("N",), schedule="none")
    def twice(x: Tensor["N", f32]) -> Tensor["N", f32]:
        return x + x

    begin = threading.Barrier(8)

    def call():
        begin.wait()
        twice(np.zeros(5, np.float32))

    callers = [threading.Thread(target=call) for _ in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert len(twice.kernels()) == 1
    assert twice.compile(N=5) is twice.compile(N=5)
    with pytest.raises(ts.CompilationError, match="N: expected an extent of 0 ..< 2\\^31, got '4'"):
        twice.compile(N="4")


def test_pools_are_kept():
    import os
    before = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        ts.threads(3), ts.threads(1)
    assert len(os.listdir("/proc/self/task")) <= before + 2


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("extents", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


def exchanged(device, status=0):
    """A framework of one type, whose tensors say that they are on that device, and the devices whose streams were asked for."""
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
    def tensor_of(value, out):
        out[0] = DLTensor(value.array.ctypes.data, device, 2, 2, 32, 1, ctypes.addressof(value.extents), None, 0)
        return 0

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    def current_stream(kind, number, out):
        asked.append((kind, number))
        out[0] = 64
        return status

    def address(function):
        return ctypes.cast(function, ctypes.c_void_p).value

    # version 1.3, no table before it; then allocate, managed_of, object_of, tensor_of, current_stream
    table = (ctypes.c_void_p * 7)(1 | 3 << 32, None, None, None, None, address(tensor_of), address(current_stream))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Exchanged:
        kept = table, tensor_of, current_stream
        __dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)

        def __init__(self, array):
            self.array, self.extents = array, (ctypes.c_int64 * 2)(*array.shape)

    return Exchanged, asked


def test_kernels_join_the_stream_of_the_first_tensor(add):
    x, y = np.ones((4, 6), np.float32), np.empty((4, 6), np.float32)
    host, asked = exchanged((1, 0))
    add(host(x), host(x), out=host(y))
    assert asked == [] and (y == 2).all()  # the host has no streams
    cuda, asked = exchanged((2, 1))
    with pytest.raises(CallError, match="device"):
        add(cuda(x), cuda(x), out=cuda(y))
    assert set(asked) == {(2, 1)}
    none, asked = exchanged((2, 1), -1)
    with pytest.raises(RuntimeError, match="the framework of the first tensor has no current stream"):
        add(none(x), none(x), out=none(y))
