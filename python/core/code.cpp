#include "python/core/code.h"

#include "runtime/load/load.h"
#include "support/text/error.h"

namespace tessera::python {

std::shared_ptr<Code> Code::load(const std::string &file) {
    if (file.find('\0') != std::string::npos) throw UserError("load.file", "a file's name has a byte 0");
    std::shared_ptr<Code> code(new Code);
    TessLoadError error;
    const TessLoadStatus status = tess_load_file(file.c_str(), &code->loaded_, &error);
    if (status != TESS_LOAD_OK) throw UserError(tess_load_status_id(status), error.text);
    return code;
}

Code::~Code() { tess_loaded_close(loaded_); }

void *Code::symbol(const std::string &name) const { return tess_loaded_symbol(loaded_, name.c_str()); }

}  // namespace tessera::python
