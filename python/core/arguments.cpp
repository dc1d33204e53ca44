#include "python/core/arguments.h"

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tessera::python {

namespace {

struct NamedType {
    const char *numpy;  // or of ml_dtypes
    TessDType type;
};
constexpr NamedType named_types[] = {
    {"float32", TESS_F32},
    {"float64", TESS_F64},
    {"bfloat16", TESS_BF16},
    {"float16", TESS_F16},
    {"int8", TESS_I8},
    {"uint8", TESS_U8},
    {"int32", TESS_I32},
    {"int64", TESS_I64},
    {"bool", TESS_BOOL},
    {"float8_e4m3", TESS_F8E4M3},
    {"float8_e4m3fn", TESS_F8E4M3FN},
    {"float8_e4m3fnuz", TESS_F8E4M3FNUZ},
    {"float8_e5m2", TESS_F8E5M2},
    {"float8_e5m2fnuz", TESS_F8E5M2FNUZ},
    {"float8_e8m0fnu", TESS_F8E8M0FNU},
    {"float6_e2m3fn", TESS_F6E2M3FN},
    {"float6_e3m2fn", TESS_F6E3M2FN},
};

// What is known of types and dtypes, by their addresses. Each is kept alive, so that no other gets its address. Programs may make them as
// they run; when there are many, all are let go.
template <class Value>
class Known {
public:
    template <class Find>
    Value of(PyObject *key, const Find &find) {
        if (key == last_) return last_value_;
        const auto found = all_.find(key);
        const Value value = found != all_.end() ? found->second : find();  // which may run Python, and so come here
        if (found == all_.end()) {
            if (all_.size() >= most) forget();
            if (all_.emplace(key, value).second) Py_INCREF(key);
        }
        last_ = key, last_value_ = value;
        return value;
    }

private:
    static constexpr size_t most = 256;
    std::unordered_map<PyObject *, Value> all_;
    PyObject *last_ = nullptr;
    Value last_value_ = {};

    void forget() {
        const std::unordered_map<PyObject *, Value> gone = std::exchange(all_, {});
        last_ = nullptr;
        for (const auto &[key, value] : gone) Py_DECREF(key);
    }
};

Known<TessType> types_of_dtypes;

}  // namespace

TessType type_of_numpy(PyObject *dtype) {
    return types_of_dtypes.of(dtype, [&] {
        TessType type = {};
        const nb::handle d(dtype);
        if (!nb::cast<bool>(d.attr("isnative"))) return type;
        const std::string name = nb::cast<std::string>(d.attr("name"));
        for (const NamedType &t : named_types)
            if (name == t.numpy) type = tess_type(t.type);
        return type;
    });
}

const char *numpy_name(int32_t dtype) {
    for (const NamedType &t : named_types)
        if (t.type == dtype) return t.numpy;
    return "";
}

namespace {

// How tensors of one Python type are read.
struct Way {
    enum Kind : uint8_t { numpy, exchange, protocol, none } kind = none;
    const dlpack::Exchange *table = nullptr;
    bool is_immutable = false;  // JAX's arrays, whose capsules do not say so
};

bool layout_holds(PyObject *object) {
    const auto *array = reinterpret_cast<const NumpyArray *>(object);
    const nb::handle h(object);
    const nb::dict about = nb::cast<nb::dict>(h.attr("__array_interface__"));
    const nb::tuple shape = nb::cast<nb::tuple>(about["shape"]);
    if (array->rank != static_cast<int>(shape.size()) || array->dtype != h.attr("dtype").ptr()) return false;
    const nb::tuple strides = nb::cast<nb::tuple>(h.attr("strides"));
    for (int i = 0; i < array->rank; i++)
        if (array->extents[i] != nb::cast<Py_ssize_t>(shape[i]) || array->strides[i] != nb::cast<Py_ssize_t>(strides[i])) return false;
    return reinterpret_cast<uintptr_t>(array->data) == nb::cast<uintptr_t>(about["data"][0]);
}

Known<Way> ways;

Way way_of(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    return ways.of(reinterpret_cast<PyObject *>(type), [&] {
        Way way;
        const nb::handle t(reinterpret_cast<PyObject *>(type));
        if (std::string_view(type->tp_name) == "numpy.ndarray" && layout_holds(object)) {
            way.kind = Way::numpy;
        } else if (nb::hasattr(t, "harden_mask")) {
            way.kind = Way::none;  // NumPy's masked arrays: a kernel would read what is masked
        } else if (nb::hasattr(t, dlpack::exchange_attribute)) {
            void *table = PyCapsule_GetPointer(nb::object(t.attr(dlpack::exchange_attribute)).ptr(), dlpack::exchange_capsule);
            if (table == nullptr) PyErr_Clear();
            way.table = static_cast<const dlpack::Exchange *>(table);
            while (way.table != nullptr && way.table->header.version.major != 1)
                way.table = reinterpret_cast<const dlpack::Exchange *>(way.table->header.previous);
            way.kind = way.table != nullptr && way.table->tensor_of != nullptr ? Way::exchange : Way::protocol;
        } else if (nb::hasattr(t, "__dlpack__")) {
            way.kind = Way::protocol;
            way.is_immutable = std::string_view(type->tp_name).starts_with("jaxlib.");
        }
        return way;
    });
}

}  // namespace

const NumpyArray *numpy_array(PyObject *object) {
    return way_of(object).kind == Way::numpy ? reinterpret_cast<const NumpyArray *>(object) : nullptr;
}

bool Argument::take(PyObject *object) {
    release();
    const Way way = way_of(object);
    switch (way.kind) {
    case Way::numpy: return take_numpy(object);
    case Way::exchange: is_read_only = false; return way.table->tensor_of(object, &tensor) == 0;
    case Way::protocol:
        if (!take_capsule(object)) return false;
        is_read_only = is_read_only || way.is_immutable;
        return true;
    case Way::none: break;
    }
    const bool is_tile = std::string_view(Py_TYPE(object)->tp_name) == "Tile";
    PyErr_Format(PyExc_TypeError, "expected a tensor (NumPy, PyTorch, JAX or anything with __dlpack__), got %s%s", Py_TYPE(object)->tp_name,
                 is_tile ? "; inside of another function write tile.call(scope, function, tiles)" : "");
    return false;
}

bool Argument::take_numpy(PyObject *object) {
    const auto *array = reinterpret_cast<const NumpyArray *>(object);
    const TessType type = type_of_numpy(array->dtype);
    if (type.bits == 0) {
        PyErr_Format(PyExc_TypeError, "kernels have no tensors of dtype %S", array->dtype);
        return false;
    }
    if (array->rank > TESS_MAX_RANK) {
        PyErr_Format(PyExc_TypeError, "kernels have tensors of at most %d axes, got %d", TESS_MAX_RANK, array->rank);
        return false;
    }
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
    tensor.data = array->data;
    tensor.device = {TESS_HOST, 0};
    tensor.rank = array->rank;
    tensor.type = type;
    tensor.extents = reinterpret_cast<const int64_t *>(array->extents);
    tensor.strides = nullptr;
    tensor.byte_offset = 0;
    is_read_only = (array->flags & numpy_writeable) == 0;
    if ((array->flags & numpy_contiguous) == 0) {
        const int64_t bytes = (type.bits + 7) / 8;  // floats of six bits fill a byte
        for (int i = 0; i < array->rank; i++) {
            if (array->strides[i] % bytes != 0) {
                PyErr_Format(PyExc_TypeError, "axis %d has a stride of %zd bytes, which is no multiple of its elements' %d", i,
                             array->strides[i], static_cast<int>(bytes));
                return false;
            }
            strides_[i] = array->strides[i] / bytes;
        }
        tensor.strides = strides_;
    }
    return true;
}

// Frameworks are trusted with addresses, not with what this file itself reads: ranks, extents and offsets.
bool Argument::take_dlpack(const TessTensor &given) {
    tensor = given;
    if (tensor.type.code == 1 && tensor.type.bits == 1) tensor.type = tess_type(TESS_BOOL);
    if (tensor.rank < 0 || tensor.rank > TESS_MAX_RANK || (tensor.rank > 0 && tensor.extents == nullptr)) {
        PyErr_Format(PyExc_TypeError, "expected a tensor of 0 ..= %d axes, each with an extent; got %d%s", TESS_MAX_RANK, tensor.rank,
                     tensor.extents == nullptr ? " without extents" : "");
        return false;
    }
    for (int32_t i = 0; i < tensor.rank; i++)
        if (tensor.extents[i] < 0) {
            PyErr_Format(PyExc_TypeError, "axis %d has the extent %lld", i, static_cast<long long>(tensor.extents[i]));
            return false;
        }
    if (tensor.byte_offset > UINT64_MAX - reinterpret_cast<uintptr_t>(tensor.data)) {
        PyErr_SetString(PyExc_TypeError, "the byte offset leads beyond the last address");
        return false;
    }
    return true;
}

bool Argument::take_capsule(PyObject *object) {
    // Asked for without a copy; what is older than versions is asked again without arguments.
    static PyObject *names = Py_BuildValue("(s)", "max_version"), *version = Py_BuildValue("(ii)", 1, 1),
                    *method = PyUnicode_InternFromString("__dlpack__");
    PyObject *arguments[] = {object, version};
    capsule_ = PyObject_VectorcallMethod(method, arguments, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (capsule_ == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule_ = PyObject_CallMethodNoArgs(object, method);
    }
    if (capsule_ == nullptr) return false;
    if (PyCapsule_IsValid(capsule_, "dltensor_versioned") != 0) {
        const auto *managed = static_cast<dlpack::ManagedVersioned *>(PyCapsule_GetPointer(capsule_, "dltensor_versioned"));
        if (managed->version.major > 1) {
            PyErr_Format(PyExc_TypeError, "a tensor of DLPack %u, of which 1 is known here", managed->version.major);
            return false;
        }
        is_read_only = (managed->flags & dlpack::read_only) != 0;
        return take_dlpack(managed->tensor);
    }
    const auto *managed = static_cast<dlpack::Managed *>(PyCapsule_GetPointer(capsule_, "dltensor"));
    if (managed == nullptr) return false;
    is_read_only = false;
    return take_dlpack(managed->tensor);
}

namespace {

// Null where NumPy has no such type. ml_dtypes, which takes milliseconds to import, is asked for its own types alone.
PyObject *dtype_of(TessType type) {
    static std::unordered_map<int, PyObject *> known;
    const auto [found, is_new] = known.try_emplace(type.code | type.bits << 8, nullptr);
    if (!is_new) return found->second;
    for (const NamedType &t : named_types) {
        if (static_cast<int>(t.type) != found->first) continue;
        const nb::object numpy = nb::module_::import_("numpy");
        try {
            nb::object name = nb::str(t.numpy);
            if (!nb::hasattr(numpy, t.numpy)) name = nb::module_::import_("ml_dtypes").attr(t.numpy);
            found->second = nb::object(numpy.attr("dtype")(name)).release().ptr();
        } catch (nb::python_error &) { PyErr_Clear(); }
    }
    return found->second;
}

}  // namespace

PyObject *numpy_empty(TessType type, int32_t rank, const int64_t *extents) {
    static PyObject *empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
    PyObject *dtype = dtype_of(type);
    if (dtype == nullptr) {
        PyErr_Format(PyExc_TypeError,
                     "NumPy has no dtype of %d bits with DLPack's code %d; the package ml_dtypes has more, or pass out=", type.bits,
                     type.code);
        return nullptr;
    }
    PyObject *shape = PyTuple_New(rank);
    for (int32_t i = 0; i < rank; i++) PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(extents[i]));
    PyObject *arguments[] = {nullptr, shape, dtype};
    PyObject *result = PyObject_Vectorcall(empty, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    Py_DECREF(shape);
    return result;
}

namespace {

void set_error(void *, const char *kind, const char *message) { PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message); }

}  // namespace

PyObject *make_result(PyObject *like, TessType type, TessDevice device, int32_t rank, const int64_t *extents) {
    const Way way = like == nullptr ? Way{Way::numpy} : way_of(like);
    if (way.kind == Way::exchange && way.table->allocate != nullptr) {
        TessTensor prototype = {};
        prototype.device = device;
        prototype.rank = rank;
        prototype.type = type;
        prototype.extents = extents;
        dlpack::ManagedVersioned *managed = nullptr;
        void *object = nullptr;
        if (way.table->allocate(&prototype, &managed, nullptr, set_error) != 0 || way.table->object_of(managed, &object) != 0)
            return nullptr;
        return static_cast<PyObject *>(object);
    }
    return numpy_empty(type, rank, extents);
}

bool stream_of(PyObject *like, TessDevice device, void *&stream) {
    stream = nullptr;
    if (device.type == TESS_HOST) return true;
    const Way way = way_of(like);
    if (way.kind != Way::exchange || way.table->current_stream == nullptr) return true;
    if (way.table->current_stream(device.type, device.id, &stream) == 0) return true;
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "the framework of the first tensor has no current stream");
    return false;
}

PyObject *hand_over(PyObject *like, PyObject *result) {
    if (like == nullptr || way_of(like).kind != Way::protocol) return result;
    PyObject *space = PyObject_CallMethod(like, "__array_namespace__", nullptr);  // of the Python array API
    if (space == nullptr) {
        PyErr_Clear();
        return result;
    }
    PyObject *handed = PyObject_CallMethod(space, "from_dlpack", "O", result);
    if (handed == nullptr && PyErr_ExceptionMatches(PyExc_BufferError)) {  // NumPy does not hand over the types of ml_dtypes
        PyErr_Clear();
        handed = PyObject_CallMethod(space, "asarray", "O", result);
    }
    Py_DECREF(space);
    Py_DECREF(result);
    return handed;
}

}  // namespace tessera::python
