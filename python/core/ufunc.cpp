#include "python/core/ufunc.h"

#include <structmember.h>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <optional>

#include "python/core/broadcast.h"
#include "python/core/kernel.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

constexpr size_t max_operands = 32, max_parameter_bytes = 512;
constexpr int64_t few_elements = 1024;  // over which letting other threads run takes longer than the kernel

struct Array {
    std::string name;
    TessType type;
    size_t position;  // among the arguments; of a result, among the results
};

struct Made {
    std::shared_ptr<Kernel> kernel;
    SmallVector<size_t, 4> positions;  // of each operand among the kernel's tensors
};

// By which arrays have one element for the whole row: a bit for each of `inputs`.
using Kernels = std::map<uint32_t, Made>;

struct Ufunc {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *dict, *weakrefs;
    struct UfuncState *state;
};

struct UfuncState {
    std::string name;
    size_t arguments = 0;
    std::vector<Array> inputs, results;
    std::vector<std::pair<std::string, size_t>> parameters;  // and their positions among the arguments
    nb::object miss, other;  // miss([names of repeated inputs]) makes a kernel; other(*args, **kwargs) takes what is not taken here
    Kernels kernels;
};

Ufunc *ufunc_of(PyObject *self) { return reinterpret_cast<Ufunc *>(self); }

// Raises tessera.CallError.
[[noreturn]] void fail(const UfuncState &state, const char *kind, const std::string &words, int argument = -1) {
    const nb::object type = nb::module_::import_("tessera.errors").attr("CallError");
    const nb::object error = type(kind, state.name + ": " + words, argument);
    PyErr_SetObject(type.ptr(), error.ptr());
    throw nb::python_error();
}

bool is_array_of(PyObject *object, TessType type) {
    const NumpyArray *array = numpy_array(object);
    if (array == nullptr) return false;
    const TessType got = type_of_numpy(array->dtype);
    return got.code == type.code && got.bits == type.bits;
}

Operand operand_of(PyObject *object, TessType type) {
    const auto *array = reinterpret_cast<const NumpyArray *>(object);
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
    return {array->data, (type.bits + 7) / 8, array->rank, reinterpret_cast<const int64_t *>(array->extents),
            reinterpret_cast<const int64_t *>(array->strides)};
}

bool is_contiguous(PyObject *object) { return (reinterpret_cast<const NumpyArray *>(object)->flags & numpy_contiguous) != 0; }

nb::object transposed(const nb::object &array, const std::vector<int> &axes) {
    nb::list order;
    for (const int axis : axes) order.append(axis);
    return array.attr("transpose")(nb::tuple(order));
}

std::vector<int> inverse(const std::vector<int> &axes) {
    std::vector<int> all(axes.size());
    for (size_t i = 0; i < axes.size(); i++) all[static_cast<size_t>(axes[i])] = static_cast<int>(i);
    return all;
}

// All axes in the order of these, which are those of more than one element; others stand in front.
std::vector<int> completed(const std::vector<int> &axes, int rank) {
    std::vector<int> all;
    for (int i = 0; i < rank; i++)
        if (std::find(axes.begin(), axes.end(), i) == axes.end()) all.push_back(i);
    all.insert(all.end(), axes.begin(), axes.end());
    return all;
}

// A new array whose memory goes along these axes.
nb::object array_along(const Shape &shape, const std::vector<int> &axes, TessType type) {
    const std::vector<int> all = completed(axes, shape.rank);
    std::array<int64_t, max_axes> extents;
    for (size_t i = 0; i < all.size(); i++) extents[i] = shape.extents[static_cast<size_t>(all[i])];
    const nb::object made = nb::steal(numpy_empty(type, shape.rank, extents.data()));
    if (!made.is_valid()) throw nb::python_error();
    return std::is_sorted(all.begin(), all.end()) ? made : transposed(made, inverse(all));
}

// A copy of the array itself, not of what it is broadcast to, whose memory goes along these axes.
nb::object copy_along(const nb::object &array, int rank, const Shape &shape, const std::vector<int> &axes) {
    std::vector<int> own;
    for (const int axis : completed(axes, shape.rank))
        if (axis >= shape.rank - rank) own.push_back(axis - (shape.rank - rank));
    return transposed(transposed(array, own).attr("copy")(), inverse(own));
}

// One call: operands are the inputs, then the results.
class Call {
public:
    Call(UfuncState &state, PyObject *const *values, PyObject *const *out) : state_(state), values_(values), out_(out) {}

    nb::object run() {
        find_shape();
        if (!whole()) {
            find_axes();
            take_inputs();
            take_results();
            walk_ = walk_over(shape_, axes_, strides_);
        }
        if (shape_.elements() != 0) call();
        return finished();
    }

private:
    UfuncState &state_;
    PyObject *const *values_;  // of each argument
    PyObject *const *out_;     // of each result, or null; null: none is given
    Shape shape_;
    std::vector<int> axes_;
    SmallVector<Operand, 4> operands_;
    std::vector<Strides> strides_;
    std::vector<nb::object> kept_;  // copies of inputs
    SmallVector<nb::object, 2> made_,
        returned_;  // by result: what the kernel writes to where that is not what was given; what a call gives
    Walk walk_;

    PyObject *given(size_t result) const { return out_ == nullptr ? nullptr : out_[result]; }

    void find_shape() {
        for (const Array &a : state_.inputs) operands_.push_back(operand_of(values_[a.position], a.type));
        bool fits = true;
        for (const Operand &o : operands_) fits = fits && broadcast(shape_, o);
        const auto shapes = [&] {
            std::string all;
            for (const Operand &o : operands_) {
                Shape one;
                broadcast(one, o);
                all += " " + one.text();
            }
            return all;
        };
        if (!fits) fail(state_, "extent-mismatch", "operands could not be broadcast together with shapes" + shapes());
        for (size_t r = 0; r < state_.results.size(); r++) {
            PyObject *out = given(r);
            if (out == nullptr) continue;
            const Operand o = operand_of(out, state_.results[r].type);
            const Shape before = shape_;
            if (!broadcast(shape_, o) || !is_of_shape(o, shape_)) {
                Shape own;
                broadcast(own, o);
                fail(state_, "extent-mismatch",
                     "out: the result '" + state_.results[r].name + "' has the shape " + before.text() +
                         " of the inputs broadcast together, and the array " + own.text() + ", which is not broadcast");
            }
        }
    }

    // The common case: one shape, no gaps, and perhaps single elements. One row, and no axis is looked at.
    bool whole() {
        const int64_t elements = shape_.elements();
        uint32_t repeated = 0;
        for (size_t i = 0; i < operands_.size(); i++) {
            const Operand &o = operands_[i];
            const bool is_one = o.rank == 0 && shape_.rank != 0;
            if (!is_one && (!is_of_shape(o, shape_) || !is_contiguous(values_[state_.inputs[i].position]))) return false;
            if (reinterpret_cast<uintptr_t>(o.data) % static_cast<uintptr_t>(o.item) != 0) return false;
            repeated |= uint32_t{is_one && elements > 1} << i;
        }
        const auto range = [&](const Operand &o, bool is_one) {
            const auto first = reinterpret_cast<uintptr_t>(o.data);
            return std::pair(first, first + static_cast<uintptr_t>(o.item * (is_one ? 1 : elements)));
        };
        SmallVector<Operand, 2> results;
        for (size_t r = 0; r < state_.results.size(); r++) {
            PyObject *out = given(r);
            if (out == nullptr) continue;
            const Operand o = operand_of(out, state_.results[r].type);
            if (!is_contiguous(out) || reinterpret_cast<uintptr_t>(o.data) % static_cast<uintptr_t>(o.item) != 0) return false;
            const auto mine = range(o, false);
            for (size_t i = 0; i < operands_.size() + results.size(); i++) {
                const auto other =
                    i < operands_.size() ? range(operands_[i], (repeated >> i & 1) != 0) : range(results[i - operands_.size()], false);
                if (mine.first < other.second && other.first < mine.second) return false;
            }
            results.push_back(o);
        }
        for (size_t r = 0; r < state_.results.size(); r++) {
            nb::object result = nb::borrow(given(r));
            if (!result.is_valid()) {
                result = nb::steal(numpy_empty(state_.results[r].type, shape_.rank, shape_.extents.data()));
                if (!result.is_valid()) throw nb::python_error();
            }
            operands_.push_back(operand_of(result.ptr(), state_.results[r].type));
            returned_.push_back(std::move(result));
        }
        walk_.columns = elements, walk_.repeated = repeated;
        for (size_t i = 0; i < operands_.size(); i++) walk_.row_strides.push_back(0);
        return true;
    }

    void find_axes() {
        for (const Operand &o : operands_) strides_.push_back(strides_along(shape_, o));
        std::vector<Strides> telling = strides_;
        for (size_t r = 0; r < state_.results.size(); r++)
            if (PyObject *out = given(r)) telling.push_back(strides_along(shape_, operand_of(out, state_.results[r].type)));
        axes_ = axes_by_memory(shape_, telling);
    }

    int innermost() const { return axes_.empty() ? -1 : axes_.back(); }

    void take_inputs() {
        for (size_t i = 0; i < state_.inputs.size(); i++) {
            if (is_taken(shape_, operands_[i], strides_[i], innermost(), false)) continue;
            kept_.push_back(copy_along(nb::borrow(values_[state_.inputs[i].position]), operands_[i].rank, shape_, axes_));
            operands_[i] = operand_of(kept_.back().ptr(), state_.inputs[i].type);
            strides_[i] = strides_along(shape_, operands_[i]);
        }
    }

    void take_results() {
        for (size_t r = 0; r < state_.results.size(); r++) {
            const TessType type = state_.results[r].type;
            PyObject *out = given(r);
            bool is_usable = out != nullptr;
            if (is_usable) {
                const Operand operand = operand_of(out, type);
                const Strides strides = strides_along(shape_, operand);
                is_usable = is_taken(shape_, operand, strides, innermost(), true);
                for (size_t i = 0; is_usable && i < operands_.size(); i++)
                    is_usable = !overlap(shape_, operand, strides, operands_[i], strides_[i]);
            }
            const nb::object written = is_usable ? nb::borrow(out) : array_along(shape_, axes_, type);
            operands_.push_back(operand_of(written.ptr(), type));
            strides_.push_back(strides_along(shape_, operands_.back()));
            returned_.push_back(out != nullptr ? nb::borrow(out) : written);
            made_.push_back(written);
        }
    }

    const Array &array(size_t operand) const {
        return operand < state_.inputs.size() ? state_.inputs[operand] : state_.results[operand - state_.inputs.size()];
    }

    Made made() const {
        const uint32_t repeated = walk_.repeated;
        const auto found = state_.kernels.find(repeated);
        if (found != state_.kernels.end()) return found->second;
        nb::list names;
        for (size_t i = 0; i < state_.inputs.size(); i++)
            if ((repeated >> i & 1) != 0) names.append(state_.inputs[i].name);
        Made made{nb::cast<std::shared_ptr<Kernel>>(state_.miss(names)), {}};
        const std::vector<KernelTensor> &tensors = made.kernel->tensors();
        for (size_t i = 0; i < operands_.size(); i++)
            made.positions.push_back(static_cast<size_t>(std::ranges::find(tensors, array(i).name, &KernelTensor::name) - tensors.begin()));
        return state_.kernels.try_emplace(repeated, std::move(made)).first->second;
    }

    void call() {
        const Made made = this->made();  // kept, whatever another thread does meanwhile
        const Kernel *kernel = made.kernel.get();
        alignas(8) unsigned char parameters[max_parameter_bytes];
        require(kernel->parameter_bytes() <= sizeof parameters, "the parameters of a ufunc have room");
        for (const KernelParameter &p : kernel->parameters()) {
            const auto at = std::ranges::find(state_.parameters, p.name, &std::pair<std::string, size_t>::first)->second;
            if (!write_parameter(values_[at], p, parameters)) {
                const nb::python_error said;
                fail(state_, "argument", "argument '" + p.name + "': " + nb::cast<std::string>(nb::str(said.value())),
                     static_cast<int>(at));
            }
        }
        TessTensor tensors[max_operands];
        const TessTensor *table[max_operands];
        int64_t extents[2][2] = {{walk_.rows, walk_.columns}, {walk_.rows, 1}}, strides[max_operands][2];
        for (size_t i = 0; i < operands_.size(); i++) {
            strides[i][0] = walk_.row_strides[i] / operands_[i].item, strides[i][1] = 1;
            tensors[i] = TessTensor();
            tensors[i].data = operands_[i].data;
            tensors[i].device = {TESS_HOST, 0};
            tensors[i].rank = 2;
            tensors[i].type = array(i).type;
            tensors[i].extents = extents[walk_.repeated >> i & 1];
            tensors[i].strides = strides[i];
            table[made.positions[i]] = &tensors[i];
        }
        TessFault fault = tess_fault();
        const void *block = kernel->parameter_bytes() != 0 ? parameters : nullptr;
        int32_t status;
        if (shape_.elements() < few_elements) {
            status = go(*kernel, tensors, table, block, fault);
        } else {
            const nb::gil_scoped_release free;
            status = go(*kernel, tensors, table, block, fault);
        }
        if (status == TESS_OK) return;
        char text[512];
        tess_status_message(status, &fault, kernel->argument_names().data(), text, sizeof text);
        fail(state_, tess_status_kind(status), text);
    }

    // Every iteration of the loops is a call of the kernel.
    int32_t go(const Kernel &kernel, TessTensor *tensors, const TessTensor *const *table, const void *parameters, TessFault &fault) const {
        std::vector<int64_t> at(walk_.loops.size());
        while (true) {
            const int32_t status = run_kernel(kernel, table, parameters, nullptr, fault);
            if (status != TESS_OK) return status;
            const auto move = [&](size_t loop, int64_t by) {
                for (size_t i = 0; i < operands_.size(); i++)
                    tensors[i].data = static_cast<char *>(tensors[i].data) + by * walk_.by[loop][i];
            };
            size_t loop = at.size();
            while (loop > 0 && at[loop - 1] + 1 == walk_.loops[loop - 1]) {  // back to its first
                loop--;
                move(loop, -at[loop]);
                at[loop] = 0;
            }
            if (loop == 0) return TESS_OK;
            at[loop - 1]++;
            move(loop - 1, 1);
        }
    }

    nb::object finished() const {
        for (size_t r = 0; r < made_.size(); r++)
            if (!made_[r].is(returned_[r])) nb::module_::import_("numpy").attr("copyto")(returned_[r], made_[r]);
        // As NumPy, a new array without axes is given as its element.
        const auto one = [&](size_t r) {
            return shape_.rank == 0 && given(r) == nullptr ? nb::object(returned_[r][nb::tuple()]) : returned_[r];
        };
        if (returned_.size() == 1) return one(0);
        nb::list all;
        for (size_t r = 0; r < returned_.size(); r++) all.append(one(r));
        return nb::tuple(all);
    }
};

// Whether all is as a kernel's: arrays of NumPy of the right types, and results that can be written. null among `out` is one to be made.
bool is_exact(const UfuncState &state, PyObject *const *values, PyObject *const *out) {
    for (const Array &a : state.inputs)
        if (!is_array_of(values[a.position], a.type)) return false;
    for (size_t r = 0; out != nullptr && r < state.results.size(); r++)
        if (out[r] != nullptr &&
            (!is_array_of(out[r], state.results[r].type) || (reinterpret_cast<const NumpyArray *>(out[r])->flags & numpy_writeable) == 0))
            return false;
    return true;
}

PyObject *call_ufunc(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) noexcept {
    const Ufunc *self = ufunc_of(object);
    UfuncState &state = *self->state;
    const auto given = static_cast<size_t>(PyVectorcall_NARGS(flags));
    const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
    try {
        if (given == state.arguments && named == 0 && is_exact(state, arguments, nullptr))
            return Call(state, arguments, nullptr).run().release().ptr();
        if (given == state.arguments && named == 1 && state.results.size() == 1 &&
            PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0 && is_exact(state, arguments, arguments + given))
            return Call(state, arguments, arguments + given).run().release().ptr();
        if (!state.other.is_valid()) fail(state, "argument", "it is not initialised");
        return PyObject_Vectorcall(state.other.ptr(), arguments, given, names);
    } catch (nb::python_error &e) { e.restore(); } catch (const std::exception &e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return nullptr;
}

// over(values, out): what `other` has made of a call. Values are of all arguments, `out` has an array or None for each result.
PyObject *over(PyObject *object, PyObject *const *arguments, Py_ssize_t count) noexcept {
    UfuncState &state = *ufunc_of(object)->state;
    try {
        if (count != 2 || !PyTuple_Check(arguments[0]) || !PyTuple_Check(arguments[1]) ||
            static_cast<size_t>(PyTuple_GET_SIZE(arguments[0])) != state.arguments ||
            static_cast<size_t>(PyTuple_GET_SIZE(arguments[1])) != state.results.size())
            fail(state, "argument", "over: expected a tuple of all arguments and one of all results");
        std::vector<PyObject *> values, out;
        for (size_t i = 0; i < state.arguments; i++) values.push_back(PyTuple_GET_ITEM(arguments[0], static_cast<Py_ssize_t>(i)));
        for (size_t i = 0; i < state.results.size(); i++) {
            PyObject *one = PyTuple_GET_ITEM(arguments[1], static_cast<Py_ssize_t>(i));
            out.push_back(one == Py_None ? nullptr : one);
        }
        if (!is_exact(state, values.data(), out.data()))
            fail(state, "argument", "over: expected arrays of NumPy of the types of the function");
        return Call(state, values.data(), out.data()).run().release().ptr();
    } catch (nb::python_error &e) { e.restore(); } catch (const std::exception &e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return nullptr;
}

TessType type_named_by(nb::handle dtype) {
    const TessType type = type_of_numpy(dtype.ptr());
    require(type.bits != 0, "the dtypes of a ufunc are of kernels");
    return type;
}

// Ufunc(name, arguments, {input: dtype}, {result: dtype}, miss, other)
int initialise(PyObject *object, PyObject *arguments, PyObject *) {
    PyObject *name, *all, *inputs, *results, *miss, *other;
    if (PyArg_ParseTuple(arguments, "UOOOOO", &name, &all, &inputs, &results, &miss, &other) == 0) return -1;
    try {
        UfuncState state;
        state.name = nb::cast<std::string>(nb::handle(name));
        const auto names = nb::cast<std::vector<std::string>>(nb::handle(all));
        state.arguments = names.size();
        const auto types = nb::cast<nb::dict>(nb::handle(inputs));
        for (size_t i = 0; i < names.size(); i++) {
            if (types.contains(names[i].c_str())) state.inputs.push_back({names[i], type_named_by(nb::object(types[names[i].c_str()])), i});
            else state.parameters.emplace_back(names[i], i);
        }
        for (const auto &[result, dtype] : nb::cast<nb::dict>(nb::handle(results)))
            state.results.push_back({nb::cast<std::string>(result), type_named_by(dtype), state.results.size()});
        if (state.inputs.size() + state.results.size() > max_operands)
            fail(state, "argument", "a ufunc has at most " + std::to_string(max_operands) + " inputs and results");
        state.miss = nb::borrow(miss), state.other = nb::borrow(other);
        *ufunc_of(object)->state = std::move(state);
    } catch (nb::python_error &e) {
        e.restore();
        return -1;
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_TypeError, e.what());
        return -1;
    }
    return 0;
}

int visit(PyObject *object, visitproc visit, void *arg) {
    Ufunc *self = ufunc_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dict);
    Py_VISIT(self->state->miss.ptr());
    Py_VISIT(self->state->other.ptr());
    return 0;
}

int clear(PyObject *object) {
    Ufunc *self = ufunc_of(object);
    Py_CLEAR(self->dict);
    self->state->miss.reset();
    self->state->other.reset();
    return 0;
}

void destroy(PyObject *object) {
    Ufunc *self = ufunc_of(object);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
    clear(object);
    delete self->state;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
    auto *state = new UfuncState;
    PyObject *object = type->tp_alloc(type, 0);
    if (object == nullptr) {
        delete state;
        return nullptr;
    }
    ufunc_of(object)->vectorcall = call_ufunc;
    ufunc_of(object)->state = state;
    return object;
}

PyMethodDef methods[] = {{"over", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(over)), METH_FASTCALL,
                          "over(values, out): the call with arrays of the right types; None among out is a result to be made."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Ufunc, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Ufunc, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Ufunc, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char *>("Ufunc(name, arguments, inputs, results, miss, other): calls kernels over arrays of any shape.")},
    {Py_tp_new, reinterpret_cast<void *>(make)},
    {Py_tp_init, reinterpret_cast<void *>(initialise)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void *>(visit)},
    {Py_tp_clear, reinterpret_cast<void *>(clear)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {0, nullptr}};
PyType_Spec spec = {"tessera._core.Ufunc", sizeof(Ufunc), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void declare_ufuncs(nb::module_ &m) {
    PyObject *type = PyType_FromSpec(&spec);
    if (type == nullptr) throw nb::python_error();
    m.attr("Ufunc") = nb::steal(type);
}

}  // namespace tessera::python
