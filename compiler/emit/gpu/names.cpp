#include "compiler/emit/gpu/names.h"

#include <cctype>

#include "compiler/abi/c_names.h"
#include "support/text/error.h"

namespace tessera::emit_gpu {

// Words of C, OpenCL C and CUDA C++, and the functions that kernels call.
static const std::set<std::string> &reserved() {
    static const std::set<std::string> words = {
        "auto",     "bool",   "break",    "case",     "char",     "class",     "const",   "constant",  "continue", "default",  "delete",
        "do",       "double", "else",     "enum",     "extern",   "false",     "float",   "for",       "generic",  "global",   "goto",
        "half",     "if",     "inline",   "int",      "kernel",   "local",     "long",    "namespace", "new",      "operator", "pipe",
        "private",  "public", "register", "restrict", "return",   "short",     "signed",  "sizeof",    "static",   "struct",   "switch",
        "template", "this",   "true",     "typedef",  "typename", "uchar",     "uint",    "ulong",     "uniform",  "union",    "unsigned",
        "ushort",   "using",  "virtual",  "void",     "volatile", "while",     "barrier", "fma",       "sqrt",     "fabs",     "floor",
        "ceil",     "trunc",  "rint",     "min",      "max",      "workspace", "frame",   "bounded",   "status",   "run",      "asm",
        "event_t",  "image",  "and",      "or",       "not",      "xor",       "bitand",  "bitor",     "compl",    "dim3",     "signbit",
        "swizzled", "uint3",  "M_PI",     "NULL",     "NAN",      "INFINITY",  "EOF",     "threadIdx", "blockIdx", "blockDim", "gridDim"};
    return words;
}

std::string Names::take(const std::string &name) {
    std::string stem;
    for (char c : name) stem += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0])) || stem[0] == '_') stem = "v" + stem;
    if (reserved().count(stem) || !is_c_name(stem) || may_be_in_headers(stem)) stem += "_";
    std::string candidate = stem;
    for (int n = 2; !taken_.insert(candidate).second; n++) candidate = stem + "_" + std::to_string(n);
    return candidate;
}

const std::string &Names::bind(const std::string &kind, const std::string &name) { return bound_[{kind, name}] = take(name); }

const std::string &Names::of(const std::string &kind, const std::string &name) const {
    auto it = bound_.find({kind, name});
    if (it == bound_.end()) throw InternalError("'" + name + "' is not defined where it is used");
    return it->second;
}

}  // namespace tessera::emit_gpu
