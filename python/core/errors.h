// What goes wrong, as Python exceptions; and the line of the user's code from which a call comes.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "support/text/span.h"

namespace tessera::python {

namespace nb = nanobind;

struct Line {
    std::string file;
    int number = 0;  // 0: no line of Python is known
};

// The innermost line of Python outside of this package.
Line calling_line();

// Holds the calling line while C++ runs, so that what it declares and what it refuses stands there.
class CallingLine {
public:
    CallingLine();

private:
    SpanScope scope_;
};

// UserError becomes tessera.CompilationError with the calling line, InternalError a RuntimeError.
void translate_errors();

// Raises tessera.CompilationError for a mistake that only the Python face can see.
[[noreturn]] void refuse(const std::string &id, const std::string &message);

}  // namespace tessera::python
