#include "python/core/errors.h"

#include "support/text/error.h"

namespace tessera::python {

namespace {

// The folder of the package, with a separator behind it.
const std::string &package_folder() {
    static const std::string folder = [] {
        const std::string file = nb::cast<std::string>(nb::module_::import_("tessera").attr("__file__"));
        return file.substr(0, file.rfind('/') + 1);
    }();
    return folder;
}

void raise(const UserError &e) {
    const Line line = e.span() ? Line{e.span().file, static_cast<int>(e.span().line)} : calling_line();
    const nb::object type = nb::module_::import_("tessera.errors").attr("CompilationError");
    const nb::object error = type(e.id(), e.message(), line.file, line.number);
    PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

Line calling_line() {
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(reinterpret_cast<PyObject *>(frame));
    while (frame != nullptr) {
        const nb::object owned = nb::steal(reinterpret_cast<PyObject *>(frame));
        const nb::object code = nb::steal(reinterpret_cast<PyObject *>(PyFrame_GetCode(frame)));
        const std::string file = nb::cast<std::string>(code.attr("co_filename"));
        if (file.compare(0, package_folder().size(), package_folder()) != 0) return {file, PyFrame_GetLineNumber(frame)};
        frame = PyFrame_GetBack(frame);
    }
    return {};
}

CallingLine::CallingLine()
    : scope_([] {
          const Line line = calling_line();
          return line.number > 0 ? Span(line.file, static_cast<uint32_t>(line.number)) : Span();
      }()) {}

void translate_errors() {
    nb::register_exception_translator(
        [](const std::exception_ptr &error, void *) {
            try {
                std::rethrow_exception(error);
            } catch (const UserError &e) { raise(e); } catch (const InternalError &e) {
                PyErr_SetString(PyExc_RuntimeError, e.what());
            }
        },
        nullptr);
}

void refuse(const std::string &id, const std::string &message) { throw UserError(id, message); }

}  // namespace tessera::python
