#include "python/core/function.h"

#include <structmember.h>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "algorithms/ir/algorithm.h"
#include "python/core/extents.h"
#include "python/core/kernel.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

constexpr size_t max_parameter_bytes = 512;
constexpr size_t usual_tensors = 64;  // with more, a call allocates: whole models take their weights as arguments

// Room for `count` objects, which the caller makes: on the stack as far as is usual.
template <class T>
class Room {
public:
    explicit Room(size_t count) : more_(count > usual_tensors ? new Bytes[count] : nullptr) {}
    T *data() { return reinterpret_cast<T *>(more_ ? more_.get() : own_); }

private:
    struct alignas(T) Bytes {
        unsigned char of[sizeof(T)];
    };
    Bytes own_[usual_tensors];
    std::unique_ptr<Bytes[]> more_;
};

// A call that is made while an argument is read, by its __dlpack__, takes stack; Python's own limit does not count that.
constexpr int max_nested_calls = 32;
thread_local int nested_calls = 0;

// What a call fills in: an argument of the function is a tensor or a parameter of the kernel.
struct Slot {
    bool is_tensor;
    size_t position;  // of the kernel's tensors or parameters
};

struct FunctionObject {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *name, *miss, *defaults, *dict, *weakrefs;
    struct State *state;
};

struct State {
    std::vector<std::string> arguments;  // names, as the user's function has them; results are not among them
    std::vector<std::string> results;
    std::vector<std::shared_ptr<Kernel>> kernels;  // the one that ran last comes first
    std::vector<Slot> slots;                       // of each argument
    std::vector<size_t> outputs;                   // positions among the kernel's tensors
    std::shared_ptr<const Algorithm> algorithm;    // null: extents of results have to follow from arguments
    std::vector<const Dim *> derived = {};         // its dims whose extents follow from others
};

FunctionObject *function_of(PyObject *self) { return reinterpret_cast<FunctionObject *>(self); }

// CallError, with the function's name in front of the words.
PyObject *raise_call_error(const FunctionObject *self, const char *kind, const std::string &words, int argument = -1) {
    const nb::object type = nb::module_::import_("tessera.errors").attr("CallError");
    const nb::object error = type(kind, nb::cast<std::string>(nb::handle(self->name)) + ": " + words, argument);
    PyErr_SetObject(type.ptr(), error.ptr());
    return nullptr;
}

PyObject *raise_status(const FunctionObject *self, const Kernel &kernel, int32_t status, const TessFault &fault) {
    char text[512];
    tess_status_message(status, &fault, kernel.argument_names().data(), text, sizeof text);
    return raise_call_error(self, tess_status_kind(status), text, tess_status_argument(status));
}

// An argument's exception with the name of function and argument in front.
PyObject *name_argument(const FunctionObject *self, const std::string &argument) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
        return nullptr;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const std::string words = value != nullptr ? nb::cast<std::string>(nb::str(nb::handle(value))) : "";
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return raise_call_error(self, "argument", "argument '" + argument + "': " + words);
}

// The extent of a dim as the kernel fixes it or the arguments' tensors tell it.
std::optional<int64_t> told_extent(const Kernel &kernel, const Argument *tensors, size_t dim) {
    if (kernel.dims()[dim].fixed >= 0) return kernel.dims()[dim].fixed;
    for (size_t t = 0; t < kernel.tensors().size(); t++) {
        const KernelTensor &tensor = kernel.tensors()[t];
        if (tensor.role == TESS_ROLE_OUTPUT || (tensor.flags & TESS_FLAG_PACKED) != 0 || tensors[t].tensor.rank != tensor.rank) continue;
        for (int32_t axis = 0; axis < tensor.rank; axis++)
            if (tensor.dims[static_cast<size_t>(axis)] == static_cast<int32_t>(dim)) return tensors[t].tensor.extents[axis];
    }
    return std::nullopt;
}

// The same, or as it is derived from others.
std::optional<int64_t> extent_in_call(const State &state, const Kernel &kernel, const Argument *tensors, size_t dim) {
    const auto told = [&](const Dim &other) -> std::optional<int64_t> {
        for (size_t d = 0; d < kernel.dims().size(); d++)
            if (kernel.dims()[d].name == other.name) return told_extent(kernel, tensors, d);
        return std::nullopt;
    };
    for (const Dim *derived : state.derived)
        if (derived->name == kernel.dims()[dim].name && kernel.dims()[dim].fixed < 0)
            return extent_of<int64_t>(*state.algorithm, *derived, told);
    return told_extent(kernel, tensors, dim);
}

// The places of the function's arguments in the kernel, which all its kernels share. False with an exception set.
bool place_arguments(State &state, const Kernel &kernel) {
    state.slots.clear(), state.outputs.clear();
    for (size_t t = 0; t < kernel.tensors().size(); t++)
        if (kernel.tensors()[t].role == TESS_ROLE_OUTPUT) state.outputs.push_back(t);
    for (const std::string &name : state.arguments) {
        std::optional<Slot> slot;
        for (size_t t = 0; t < kernel.tensors().size(); t++)
            if (kernel.tensors()[t].name == name && kernel.tensors()[t].role != TESS_ROLE_OUTPUT) slot = Slot{true, t};
        for (size_t p = 0; p < kernel.parameters().size(); p++)
            if (kernel.parameters()[p].name == name) slot = Slot{false, p};
        if (!slot) {
            PyErr_Format(PyExc_ValueError, "the kernel has no argument '%s'", name.c_str());
            return false;
        }
        state.slots.push_back(*slot);
    }
    if (kernel.parameter_bytes() > max_parameter_bytes) {
        PyErr_Format(PyExc_ValueError, "a kernel of %zu bytes of parameters; Python's calls have at most %zu",
                     static_cast<size_t>(kernel.parameter_bytes()), max_parameter_bytes);
        return false;
    }
    return true;
}

// What one call holds, on the C stack. Only as much of it is touched as the kernel has tensors.
class Frame {
    size_t count_;
    Room<Argument> storage_;
    Room<const TessTensor *> table_;
    Room<PyObject *> made_;

public:
    explicit Frame(size_t count)
        : count_(count), storage_(count), table_(count), made_(count), tensors(storage_.data()), table(table_.data()), made(made_.data()) {
        for (size_t i = 0; i < count; i++) new (tensors + i) Argument, made[i] = nullptr;
    }
    ~Frame() {
        for (size_t i = 0; i < count_; i++) tensors[i].~Argument(), Py_XDECREF(made[i]);
    }
    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;

    Argument *const tensors;
    const TessTensor **const table;
    PyObject **const made;  // results that were made here
    alignas(8) unsigned char parameters[max_parameter_bytes];
};

int32_t run(const Kernel &kernel, Frame &frame, void *stream, TessFault &fault) {
    int32_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = run_kernel(kernel, frame.table, kernel.parameter_bytes() != 0 ? frame.parameters : nullptr, stream, fault);
    Py_END_ALLOW_THREADS;
    return status;
}

// How a call with one kernel went: it was done; the kernel is for other extents; or it failed, with an exception set.
enum class Outcome : uint8_t { done, other_extents, failed };

struct CallArguments {
    PyObject *const *values;  // of each argument of the function, all there
    PyObject *out;            // as given, or null
};

// The objects that results are written to, in the order of the function's results.
bool given_results(const State &state, const FunctionObject *self, PyObject *out, PyObject **results) {
    if (state.outputs.size() == 1) {
        results[0] = PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1 ? PyTuple_GET_ITEM(out, 0) : out;
        return true;
    }
    if (!PyTuple_Check(out) || static_cast<size_t>(PyTuple_GET_SIZE(out)) != state.outputs.size()) {
        raise_call_error(self, "argument",
                         "out: expected a tuple of " + std::to_string(state.outputs.size()) + " tensors (" + join(state.results) +
                             "), got " + Py_TYPE(out)->tp_name);
        return false;
    }
    for (size_t i = 0; i < state.outputs.size(); i++) results[i] = PyTuple_GET_ITEM(out, static_cast<Py_ssize_t>(i));
    return true;
}

bool is_rank_and_type(const KernelTensor &wanted, const TessTensor &got) {
    return wanted.rank == got.rank && wanted.type.code == got.type.code && wanted.type.bits == got.type.bits;
}

// Where it is the last chance, other extents are the call's to refuse, in the kernel's words.
Outcome call_kernel(const State &state, FunctionObject *self, const Kernel &kernel, const CallArguments &call, bool is_last_chance,
                    Frame &frame, PyObject **result) {
    PyObject *like = nullptr;
    TessDevice device = {TESS_HOST, 0};
    for (size_t i = 0; i < state.slots.size(); i++) {
        const Slot slot = state.slots[i];
        if (!slot.is_tensor) {
            if (!write_parameter(call.values[i], kernel.parameters()[slot.position], frame.parameters))
                return name_argument(self, state.arguments[i]), Outcome::failed;
            continue;
        }
        Argument &argument = frame.tensors[slot.position];
        if (!argument.take(call.values[i])) return name_argument(self, state.arguments[i]), Outcome::failed;
        if (argument.is_read_only && kernel.tensors()[slot.position].role == TESS_ROLE_INOUT) {
            raise_call_error(
                self, "read-only",
                "argument '" + state.arguments[i] + "' is updated in place, and the tensor is read-only; pass a copy that can be written");
            return Outcome::failed;
        }
        frame.table[slot.position] = &argument.tensor;
        if (like == nullptr) like = call.values[i], device = argument.tensor.device;
    }
    if (!is_last_chance)
        for (const FixedAxis &f : kernel.fixed_axes()) {
            const TessTensor &tensor = frame.tensors[f.tensor].tensor;
            if (is_rank_and_type(kernel.tensors()[f.tensor], tensor) && tensor.extents[f.axis] != f.extent) return Outcome::other_extents;
        }

    Room<PyObject *> results_room(state.outputs.size());
    PyObject **const results = results_room.data();
    if (call.out != nullptr && !given_results(state, self, call.out, results)) return Outcome::failed;
    for (size_t i = 0; i < state.outputs.size(); i++) {
        const KernelTensor &wanted = kernel.tensors()[state.outputs[i]];
        Argument &argument = frame.tensors[state.outputs[i]];
        if (call.out == nullptr) {
            int64_t extents[TESS_MAX_RANK];
            for (int32_t axis = 0; axis < wanted.rank; axis++) {
                const auto dim = static_cast<size_t>(wanted.dims[static_cast<size_t>(axis)]);
                const std::optional<int64_t> extent = extent_in_call(state, kernel, frame.tensors, dim);
                if (!extent || *extent < 0) {
                    raise_call_error(self, "argument",
                                     "the extent of dim " + kernel.dims()[dim].name + " of the result '" + wanted.name +
                                         "' does not follow from the arguments; pass out=");
                    return Outcome::failed;
                }
                extents[axis] = *extent;
            }
            results[i] = frame.made[i] = make_result(like, wanted.type, device, wanted.rank, extents);
            if (results[i] == nullptr) return Outcome::failed;
        }
        if (!argument.take(results[i])) return name_argument(self, wanted.name), Outcome::failed;
        if (argument.is_read_only) {
            raise_call_error(self, "read-only",
                             "the tensor for the result '" + wanted.name + "' is read-only; pass one that can be written");
            return Outcome::failed;
        }
        frame.table[state.outputs[i]] = &argument.tensor;
    }

    TessFault fault = tess_fault();
    void *stream = nullptr;
    if (like != nullptr && !stream_of(like, device, stream)) return Outcome::failed;
    const int32_t status = run(kernel, frame, stream, fault);
    if (status != TESS_OK) return raise_status(self, kernel, status, fault), Outcome::failed;

    auto owned = [&](size_t i) {
        if (frame.made[i] == nullptr) return Py_NewRef(results[i]);
        PyObject *made = frame.made[i];
        frame.made[i] = nullptr;
        return hand_over(like, made);
    };
    if (state.outputs.empty()) {
        *result = Py_NewRef(Py_None);
    } else if (state.outputs.size() == 1) {
        *result = owned(0);
    } else {
        *result = PyTuple_New(static_cast<Py_ssize_t>(state.outputs.size()));
        for (size_t i = 0; i < state.outputs.size(); i++) {
            PyObject *one = owned(i);
            if (one == nullptr) {
                Py_CLEAR(*result);
                break;
            }
            PyTuple_SET_ITEM(*result, static_cast<Py_ssize_t>(i), one);
        }
    }
    return *result != nullptr ? Outcome::done : Outcome::failed;
}

PyObject *call_with(FunctionObject *self, const CallArguments &call) {
    State &state = *self->state;
    // The kernels that there are, the one that is made for these arguments, and at last that one's own words.
    for (int attempt = 0; attempt < 3; attempt++) {
        for (size_t k = 0; k < state.kernels.size(); k++) {
            const std::shared_ptr<Kernel> kernel = state.kernels[k];  // kept, whatever another thread does meanwhile
            Frame frame(kernel->tensors().size());
            PyObject *result = nullptr;
            const Outcome outcome = call_kernel(state, self, *kernel, call, attempt == 2, frame, &result);
            if (outcome == Outcome::other_extents) continue;
            if (outcome == Outcome::failed) return nullptr;
            if (k != 0 && k < state.kernels.size()) std::swap(state.kernels[0], state.kernels[k]);
            return result;
        }
        if (attempt != 0 || self->miss == Py_None) continue;
        PyObject *all = PyTuple_New(static_cast<Py_ssize_t>(state.arguments.size()));
        for (size_t i = 0; i < state.arguments.size(); i++) PyTuple_SET_ITEM(all, static_cast<Py_ssize_t>(i), Py_NewRef(call.values[i]));
        PyObject *done = PyObject_CallOneArg(self->miss, all);
        Py_DECREF(all);
        if (done == nullptr) return nullptr;
        Py_DECREF(done);
    }
    return raise_call_error(self, "extent-fixed", "there is no kernel; compile(...) makes one");
}

PyObject *call_checked(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) {
    FunctionObject *self = function_of(object);
    const State &state = *self->state;
    const auto given = static_cast<size_t>(PyVectorcall_NARGS(flags));
    const size_t wanted = state.arguments.size(), named = names != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
    CallArguments call = {arguments, nullptr};
    if (given == wanted && named == 0) return call_with(self, call);
    if (given > wanted)
        return raise_call_error(
            self, "argument",
            "expected " + std::to_string(wanted) + " arguments (" + join(state.arguments) + "), got " + std::to_string(given));
    Room<PyObject *> room(wanted);
    PyObject **const values = room.data();
    std::fill(std::copy(arguments, arguments + given, values), values + wanted, nullptr);
    for (size_t i = 0; i < named; i++) {
        Py_ssize_t length = 0;
        const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), &length);
        if (text == nullptr) return nullptr;
        const std::string_view key(text, static_cast<size_t>(length));
        if (key == "out") {
            if (arguments[given + i] != Py_None) call.out = arguments[given + i];
            continue;
        }
        const auto found = std::find(state.arguments.begin(), state.arguments.end(), key);
        if (found == state.arguments.end())
            return raise_call_error(self, "argument",
                                    "there is no argument '" + std::string(key) + "'; there are " + join(state.arguments) + " and out." +
                                        did_you_mean(key, state.arguments));
        PyObject *&value = values[found - state.arguments.begin()];
        if (value != nullptr) return raise_call_error(self, "argument", "argument '" + std::string(key) + "' is given twice");
        value = arguments[given + i];
    }
    for (size_t i = 0; i < wanted; i++) {
        if (values[i] == nullptr) values[i] = PyDict_GetItemString(self->defaults, state.arguments[i].c_str());
        if (values[i] == nullptr)
            return raise_call_error(self, "argument",
                                    "argument '" + state.arguments[i] + "' is missing; it takes " + join(state.arguments));
    }
    call.values = values;
    return call_with(self, call);
}

// No exception of C++ leaves a function that Python calls.
PyObject *call_function(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names) noexcept {
    if (nested_calls == max_nested_calls) {
        PyErr_Format(PyExc_RecursionError, "%d calls of kernels inside of each other's arguments", max_nested_calls);
        return nullptr;
    }
    struct Nested {
        Nested() { nested_calls++; }
        ~Nested() { nested_calls--; }
    } nested;
    try {
        return call_checked(object, arguments, flags, names);
    } catch (nb::python_error &e) { e.restore(); } catch (const std::exception &e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return nullptr;
}

int visit(PyObject *object, visitproc visit, void *arg) {
    FunctionObject *self = function_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->miss);
    Py_VISIT(self->defaults);
    Py_VISIT(self->dict);
    return 0;
}

int clear(PyObject *object) {
    FunctionObject *self = function_of(object);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->defaults);
    Py_CLEAR(self->dict);
    return 0;
}

void destroy(PyObject *object) {
    FunctionObject *self = function_of(object);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
    clear(object);
    Py_CLEAR(self->name);
    delete self->state;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
    PyObject *object = type->tp_alloc(type, 0);
    if (object == nullptr) return nullptr;
    FunctionObject *self = function_of(object);
    self->vectorcall = call_function;
    self->name = PyUnicode_FromString("kernel");
    self->miss = Py_NewRef(Py_None);
    self->defaults = PyDict_New();
    self->state = new State;
    return object;
}

// Function(name, arguments, results, algorithm or None, miss or None, values of arguments that a call may leave out)
int initialise(PyObject *object, PyObject *arguments, PyObject *) {
    FunctionObject *self = function_of(object);
    PyObject *name, *inputs, *results, *algorithm, *miss, *defaults;
    if (PyArg_ParseTuple(arguments, "UOOOOO!", &name, &inputs, &results, &algorithm, &miss, &PyDict_Type, &defaults) == 0) return -1;
    try {
        *self->state = State();  // a second time, too
        self->state->arguments = nb::cast<std::vector<std::string>>(nb::handle(inputs));
        self->state->results = nb::cast<std::vector<std::string>>(nb::handle(results));
        if (algorithm != Py_None)
            self->state->algorithm = std::make_shared<const Algorithm>(nb::cast<const Algorithm &>(nb::handle(algorithm)));
        if (self->state->algorithm)
            for (const Dim &dim : self->state->algorithm->dims)
                if (dim.kind == DimKind::derived) self->state->derived.push_back(&dim);
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_TypeError, e.what());
        return -1;
    }
    Py_SETREF(self->name, Py_NewRef(name));
    Py_SETREF(self->miss, Py_NewRef(miss));
    Py_SETREF(self->defaults, PyDict_Copy(defaults));
    return 0;
}

PyObject *add_kernel(PyObject *object, PyObject *kernel) {
    State &state = *function_of(object)->state;
    try {
        if (!nb::isinstance<Kernel>(nb::handle(kernel))) {
            PyErr_Format(PyExc_TypeError, "expected a tessera.Kernel, got %s", Py_TYPE(kernel)->tp_name);
            return nullptr;
        }
        auto added = nb::cast<std::shared_ptr<Kernel>>(nb::handle(kernel));
        if (!place_arguments(state, *added)) return nullptr;
        state.kernels.insert(state.kernels.begin(), added);
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_TypeError, e.what());
        return nullptr;
    }
    return Py_NewRef(Py_None);
}

PyObject *kernels_of(PyObject *object, PyObject *) { return nb::cast(function_of(object)->state->kernels).release().ptr(); }

PyObject *forget_kernels(PyObject *object, PyObject *) {
    function_of(object)->state->kernels.clear();
    return Py_NewRef(Py_None);
}

PyMethodDef methods[] = {{"add_kernel", add_kernel, METH_O, "Adds a kernel, which is tried first."},
                         {"kernels", kernels_of, METH_NOARGS, "Those made so far, the one that ran last first."},
                         {"forget_kernels", forget_kernels, METH_NOARGS, "Drops them all."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weakrefs), READONLY, nullptr},
                         {"__name__", T_OBJECT, offsetof(FunctionObject, name), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char *>("Function(name, arguments, results, algorithm, miss, defaults): calls kernels with tensors of any framework.")},
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
PyType_Spec spec = {"tessera._core.Function", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

// A class of Python that inherits from Function does not get its fast calls by itself before Python 3.12. It must not define __call__.
void keep_vectorcall(nb::handle type) {
    auto *t = reinterpret_cast<PyTypeObject *>(type.ptr());
    t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(t);
}

}  // namespace

void declare_function(nb::module_ &m) {
    PyObject *type = PyType_FromSpec(&spec);
    if (type == nullptr) throw nb::python_error();
    m.attr("Function") = nb::steal(type);
    m.def("keep_vectorcall", &keep_vectorcall, nb::arg("type"));
}

}  // namespace tessera::python
