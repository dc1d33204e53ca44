#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/header.h"
#include "compiler/lower.h"

namespace tessera {

TEST_CASE("the header declares a kernel, its workspace and its arguments' names") {
    Kernel kernel{"ring_append", {{{}, lower(library::ring_append({}), {}, target_named("avx2"))}}};
    std::string text = header_of("my-kernels", {{target_named("avx2"), {kernel}}});
    for (const char *part : {"#ifndef TESSERA_GENERATED_MY_KERNELS_H\n", "#include <tessera.h>\n", "/** ring_append, for avx2 (sse4_1, ", "f16c). Arguments:\n", "extern \"C\" {\n",
                             "int ring_append(const TessTensorDesc *cache, const TessTensorDesc *x, int64_t position, const TessContext *context);\n",
                             "int ring_append_workspace(const TessTensorDesc *cache, const TessTensorDesc *x, int64_t position, const TessContext *context, uint64_t *bytes);\n",
                             "static const char *const ring_append_argument_names[] = {\"cache\", \"x\", 0};\n"})
        CHECK_THAT(text, Catch::Contains(part));
    text = header_of("several", {{target_named("avx2"), {kernel}}, {target_named("x86-64"), {kernel}}});
    CHECK_THAT(text, Catch::Contains("/** ring_append, for avx2, else x86-64. Arguments:\n"));
}

TEST_CASE("a kernel's name is a C identifier") {
    for (const char *good : {"matmul", "_x1"}) CHECK_NOTHROW(check_c_name(good));
    for (const char *bad : {"", "1x", "a.b", "int"}) CHECK_THROWS(check_c_name(bad));
}

}  // namespace tessera
