// Tensors of NumPy, PyTorch, JAX and others as kernels take them, without a copy. What is handed over is borrowed for one call.
#pragma once
#include "python/core/errors.h"

#include "python/core/dlpack.h"

namespace tessera::python {

// The head of NumPy's array object, whose layout NumPy has promised since 1.0 (ndarraytypes.h: PyArrayObject_fields). Reading it costs a
// few nanoseconds, the buffer protocol over a hundred.
struct NumpyArray {
    PyObject_HEAD char *data;
    int rank;
    Py_ssize_t *extents, *strides;  // strides in bytes
    PyObject *base, *dtype;
    int flags;
};
constexpr int numpy_contiguous = 0x1, numpy_writeable = 0x400;

// The object as NumPy's array, or null where it is none, or is of a subclass.
const NumpyArray *numpy_array(PyObject *object);
// The NumPy dtype's type, or bits 0 where kernels have no such type.
TessType type_of_numpy(PyObject *dtype);
// What NumPy or ml_dtypes call a TessDType; "" where neither has it.
const char *numpy_name(int32_t dtype);
// An array without values. Null with an exception set.
PyObject *numpy_empty(TessType type, int32_t rank, const int64_t *extents);

// One argument of a call in flight.
class Argument {
public:
    Argument() {}  // the tensor is filled in by `take`
    ~Argument() { release(); }
    Argument(const Argument &) = delete;
    Argument &operator=(const Argument &) = delete;

    // False with a Python exception set where the object is no tensor.
    bool take(PyObject *object);

    TessTensor tensor;
    bool is_read_only;

private:
    int64_t strides_[TESS_MAX_RANK];
    PyObject *capsule_ = nullptr;  // what `__dlpack__` gave

    void release() { Py_CLEAR(capsule_); }
    bool take_numpy(PyObject *object);
    bool take_capsule(PyObject *object);
    bool take_dlpack(const TessTensor &given);
};

// A tensor without values on that device, of the framework of the argument `like` where it can be written there, else of NumPy. Null with
// an exception set.
PyObject *make_result(PyObject *like, TessType type, TessDevice device, int32_t rank, const int64_t *extents);

// The stream that the framework of `like` works in now on that device, which kernels join; null on the host, and where the framework does
// not say. False with an exception set.
bool stream_of(PyObject *like, TessDevice device, void *&stream);

// A finished result in the framework of `like`, where make_result could not make it there: JAX's arrays are never written. Takes the
// reference. Null with an exception set.
PyObject *hand_over(PyObject *like, PyObject *result);

}  // namespace tessera::python
