#include "compiler/emit/c/names.h"

#include <cctype>

#include "compiler/abi/c_names.h"

namespace tessera::emit_c {

// The names of every function's own variables.
static const std::set<std::string> &taken_words() {
    static const std::set<std::string> words = {"call",   "frame",  "index",  "closure",       "outer",        "layout",
                                                "status", "worker", "memory", "worker_memory", "shared_memory"};
    return words;
}

// As in fma_f32x16 or add_i32, where a name of the program could meet one of ours.
static bool ends_like_an_operation(const std::string &name) {
    const size_t at = name.rfind('_');
    const std::string last = at == std::string::npos ? name : name.substr(at + 1);
    for (const char *type : {"f32", "f64", "bf16", "f16", "i8", "u8", "u16", "i32", "u32", "i64", "u64"})
        if (last.rfind(type, 0) == 0) return true;
    return false;
}

std::string identifier(const std::string &name) {
    std::string out;
    for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) || out[0] == '_') out = "v" + out;
    for (const char *prefix : {"size_", "stride_", "parameter_"})
        if (out.rfind(prefix, 0) == 0) out = "v" + out;
    const bool ours = taken_words().count(out) || ends_like_an_operation(out) || out.rfind("tess", 0) == 0 || out.rfind("TESS", 0) == 0;
    if (!is_c_name(out) || may_be_in_headers(out) || ours) out += "_";
    return out;
}

std::string constant_name(const std::string &stem, const std::string &constant) { return stem + "_constant_" + identifier(constant); }

std::string Identifiers::take(const std::string &name) {
    const std::string base = identifier(name);
    std::string candidate = base;
    for (int n = 2; !taken_.insert(candidate).second; n++) candidate = base + (base.back() == '_' ? "" : "_") + std::to_string(n);
    return candidate;
}

}  // namespace tessera::emit_c
