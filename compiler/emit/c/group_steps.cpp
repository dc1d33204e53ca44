// The instruction families that take a group of elements for each lane, in C. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

std::string Operations::words(CType t) {
    const std::string name = "words_" + short_name(t), result = type(t);
    if (fresh(name))
        define(result, name, "const void *p", fmt::format("    {} r;\n    __builtin_memcpy(&r, p, sizeof r);\n    return r;\n", result),
               t.lanes > 0);
    return name;
}

std::string with_names(std::string body, const Names &names) {
    for (const auto &[name, value] : names)
        for (size_t at = body.find("$" + name); at != std::string::npos; at = body.find("$" + name, at)) {
            const std::string text = value();
            body.replace(at, name.size() + 1, text);
            at += text.size();
        }
    return body;
}

std::string Operations::with_emitter_names(const std::string &body) {
    const Names names = {
        {"f32_of_bits",
         [&] {
             return bitcast(DType::f32, {DType::i32, 0});
         }},
        {"bits_of_f32",
         [&] {
             return bitcast(DType::i32, {DType::f32, 0});
         }},
        {"fma",
         [&] {
             return fma({DType::f32, 0});
         }},
    };
    return with_names(body, names);
}

std::string Operations::group_step(const Instruction &family, CType t) {
    const std::string name = family.name + "_" + short_name(t), result = type(t), words = type({DType::i32, t.lanes});
    if (!fresh(name)) return name;
    const Names names = {
        {"result", [&] { return result; }},
        {"lanes", [&] { return std::to_string(t.lanes); }},
        {"elements", [&] { return std::to_string(family.shape.k * t.lanes); }},
    };
    for (const CStep::Function &f : family.c.helpers)
        if (fresh(f.name)) define(f.result, f.name, f.parameters, with_emitter_names(f.body), false);
    std::string body = with_emitter_names(with_names(family.c.portable, names));
    if (family.c.native)
        if (const auto [when, value] = family.c.native(t.lanes, target_); !value.empty())
            body = fmt::format("{}\n    return ({}){};\n#else\n{}#endif\n", when, result, value, body);
    define(result, name, fmt::format("{} sum, {} a, {} b", result, words, words), body, true);
    return name;
}

}  // namespace tessera::emit_c
