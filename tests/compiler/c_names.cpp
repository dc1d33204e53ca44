// Names in C against the C library's headers and two compilers, which say what is a macro, a type or a function.
#include "compiler/abi/c_names.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/emit/emit_source.h"
#include "compiler/emit/header.h"
#include "compiler/lower/lower.h"
#include "tests/support/words.h"

namespace tessera::test_c_names {

using namespace tessera::test;

using Names = std::vector<std::string>;

static Names in_c(const Names &tensors, const Names &parameters = {}) {
    TileProgram p;
    for (const std::string &name : tensors) p.arguments.emplace_back().tensor.name = name;
    for (const std::string &name : parameters) p.parameters.push_back({name, DType::f32});
    return c_argument_names(p);
}

TEST_CASE("arguments keep plain names, and all differ") {
    const Names plain = {"x", "w", "y", "gamma", "q_scale", "x2", "kCache", "index", "exp", "w_packed", "arg_class"};
    CHECK(in_c(plain) == plain);
    CHECK(in_c({"w.packed", "a.b.c"}) == Names{"w_packed", "a_b_c"});
    CHECK(in_c({"class", "NULL", "EOF", "int64_t", "linux", "TessContext", "context", "bytes", "parameters", "tensors", "kernel", "tess_x",
                "_x", "a__b", "x_plan"}) == Names{"arg_class", "arg_NULL", "arg_EOF", "arg_int64_t", "arg_linux", "arg_TessContext",
                                                  "arg_context", "arg_bytes", "arg_parameters", "arg_tensors", "arg_kernel", "arg_tess_x",
                                                  "arg_x", "arg_a_b", "arg_x_plan_"});
    CHECK(in_c({"w.packed", "w_packed"}) == Names{"w_packed_2", "w_packed"});
    CHECK(in_c({"class", "arg_class", "arg_class_2"}, {"arg.class"}) == Names{"arg_class_3", "arg_class", "arg_class_2", "arg_class_4"});
    CHECK(c_packing_suffix("w") == "_pack_w");
    CHECK(c_packing_suffix("w_size") == "_pack_arg_w_size");
    CHECK(c_packing_suffix("arg_w") == "_pack_arg_arg_w");
}

namespace {

struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "tessera-names-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    void write(const std::string &file, const std::string &text) const { std::ofstream(path / file) << text; }
    std::string run(const std::string &command) const {
        const int code = std::system(("cd '" + path.string() + "' && { " + command + "; } > log 2>&1").c_str());
        std::ifstream log(path / "log");
        const std::string text(std::istreambuf_iterator<char>(log), {});
        INFO(command << "\n" << text);
        CHECK(code == 0);
        return text;
    }
};

}  // namespace

// Every header of C11, and some of POSIX with small macros.
static std::string headers(bool posix) {
    std::string text;
    for (const char *name :
         {"assert", "complex",     "ctype",  "errno",    "fenv",    "float",     "inttypes", "iso646", "limits", "locale",
          "math",   "setjmp",      "signal", "stdalign", "stdarg",  "stdatomic", "stdbool",  "stddef", "stdint", "stdio",
          "stdlib", "stdnoreturn", "string", "tgmath",   "threads", "time",      "uchar",    "wchar",  "wctype"})
        text += "#include <" + std::string(name) + ".h>\n";
    if (posix)
        for (const char *name : {"dirent", "fcntl", "netdb", "netinet/in", "pthread", "sched", "sys/socket", "sys/stat", "sys/time",
                                 "sys/types", "sys/wait", "unistd"})
            text += "#include <" + std::string(name) + ".h>\n";
    return text;
}

// From a compiler's list: those that stand for something wherever they are written.
static std::set<std::string> macros(const Folder &folder, const std::string &compiler) {
    std::istringstream lines(folder.run(compiler + " -dM -E headers.c"));
    std::set<std::string> all;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string define, name;
        words >> define >> name;
        if (!name.empty() && name[0] != '_' && name.find('(') == std::string::npos) all.insert(name);
    }
    REQUIRE(all.size() > 20);
    return all;
}

TEST_CASE("no argument is named like a macro of the C library or of a compiler") {
    const Folder folder;
    folder.write("headers.c", headers(true));
    for (const char *compiler : {"gcc -std=gnu99 -D_GNU_SOURCE", "gcc -std=gnu2x -D_GNU_SOURCE", "clang -std=gnu17 -D_GNU_SOURCE"}) {
        if (std::string(compiler).starts_with("clang") && std::system("command -v clang > /dev/null") != 0) continue;
        const std::set<std::string> taken = macros(folder, compiler);
        for (const std::string &name : in_c({taken.begin(), taken.end()})) {
            INFO(name);
            CHECK(!taken.count(name));
        }
    }
}

static Algorithm sum_of(const Names &names, const std::string &parameter) {
    Builder f("sum", {});
    const Dim n = symbolic_dim("N");
    Tile sum = f.input(names[0], {n});
    for (size_t i = 1; i < names.size(); i++) sum = sum + f.input(names[i], {n});
    return f.output("result", sum * f.parameter(parameter, DType::f32)).build();
}

TEST_CASE("headers and C files compile whatever the arguments are called") {
    const std::vector<Names> all = {
        {"context", "bytes",      "NULL",   "TessContext", "EOF",     "int64_t", "uint64_t", "linux",    "class",    "arg_class",
         "I",       "complex",    "errno",  "stdin",       "bool",    "TESS_OK", "sum_spec", "sum_plan", "sum_body", "i32_bits_of_f32",
         "unix",    "TessTensor", "size_t", "nullptr",     "concept", "frame"},
        {"alignas", "alignof",   "and_eq",           "asm",           "bitand",       "char8_t",      "co_await",
         "compl",   "consteval", "constexpr",        "constinit",     "decltype",     "dynamic_cast", "noexcept",
         "not_eq",  "or_eq",     "reinterpret_cast", "static_assert", "thread_local", "typeof",       "typeof_unqual",
         "typeid",  "wchar_t",   "xor_eq",           "_Bool",         "_Foo",         "a__b",         "memcpy"}};
    const std::string includes = "-I'" TESSERA_SOURCE_DIR "' -I'" TESSERA_SOURCE_DIR "/runtime/abi' ";
    const Target target = target_named("avx2");
    const Folder folder;
    folder.write("headers.c", headers(true));
    for (const Names &names : all) {
        const std::vector<Kernel> kernels = {{"sum", {{{}, lower(sum_of(names, "st_mtime"), {}, target)}}}};
        const std::string header = header_of("sum", {{target, kernels}});
        folder.write("sum.h", header);
        folder.write("alone.c", "#include \"sum.h\"\nint main(void) { return sum_argument_names[0] == 0; }\n");
        folder.write("after.c", headers(true) + "#include \"sum.h\"\nint main(void) { return sum_argument_names[0] == 0; }\n");
        folder.write("sum.c", source_of(kernels, target));
        for (const char *compiler : {"gcc -std=c99", "gcc -std=gnu99 -D_GNU_SOURCE", "gcc -std=gnu2x -D_GNU_SOURCE",
                                     "g++ -std=c++20 -x c++", "g++ -std=gnu++20 -x c++"})
            for (const char *file : {"alone.c", "after.c"}) {
                if (std::string(compiler).ends_with("c++") && file == std::string("after.c")) continue;
                folder.run(std::string(compiler) + " -Wall -Wextra -Werror -fsyntax-only " + includes + file);
            }
        for (const char *compiler : {"gcc -std=c11", "gcc -std=gnu17"})
            folder.run(std::string(compiler) + " -Wall -Wextra -Werror -Wno-psabi -fsyntax-only " + includes + "-include sum.h sum.c");
    }
}

TEST_CASE("a kernel's name is a C identifier that nothing else has") {
    for (const char *good : {"matmul", "MatMul", "MATMUL", "softmax_t", "stride_conv", "topk", "isru", "tessera_candidate", "gelu_f32", "E",
                             "expf32", "cluster", "fft", "linear"}) {
        INFO(good);
        CHECK_NOTHROW(check_c_name(good));
    }
    for (const char *bad : {"",
                            "1x",
                            "a.b",
                            "int",
                            "nullptr",
                            "constexpr",
                            "noexcept",
                            "bitand",
                            "static_assert",
                            "thread_local",
                            "concept",
                            "_Bool",
                            "wchar_t",
                            "_Foo",
                            "_x1",
                            "a__b",
                            "memcpy",
                            "tess_pool_create",
                            "TESS_OK",
                            "TessContext",
                            "main",
                            "malloc",
                            "expf",
                            "NULL",
                            "EOF",
                            "ENOENT",
                            "INT_MAX",
                            "int64_t",
                            "stdin",
                            "linux",
                            "pthread_create",
                            "clFinish",
                            "cuInit",
                            "assert"}) {
        INFO(bad);
        CHECK_THROWS_AS(check_c_name(bad), UserError);
    }
    check_words(
        [] { check_c_name("memcpy"); },
        {"error[emit.name]: a kernel's name must be one that nothing else has, got 'memcpy', which is a function of the C library's; "
         "give another one with --name."});
    check_words([] { check_c_name("tess_x"); },
                {"got 'tess_x', which is reserved for Tessera's runtime, as is all that begins with tess_, TESS_ or Tess; give another"});
}

TEST_CASE("no kernel is named like what the C library or the runtime has") {
    const Folder folder;
    folder.write("headers.c", headers(false));
    std::set<std::string> taken = macros(folder, "gcc -std=c11");
    folder.run("gcc -std=c11 -fsyntax-only -aux-info functions headers.c");
    folder.run("sed -E 's#^/[*][^*]*[*]/ ##' functions | grep -oE '[A-Za-z_0-9]+ [(]' | tr -d ' (' > names");
    folder.run("gcc -std=c11 -E headers.c | grep -oE '^typedef .*' | grep -oE '[A-Za-z_0-9]+;' | tr -d ';' >> names");
    folder.run("nm -u '" TESSERA_RUNTIME_LIBRARY "' | awk 'NF == 2 { print $2 }' >> names");
    folder.run("nm --defined-only -g '" TESSERA_RUNTIME_LIBRARY "' | awk 'NF == 3 { print $3 }' >> names");
    std::ifstream names(folder.path / "names");
    for (std::string name; std::getline(names, name);) taken.insert(name);
    CHECK(taken.size() > 900);
    for (const std::string &name : taken) {
        INFO(name);
        CHECK_THROWS_AS(check_c_name(name), UserError);
    }
}

TEST_CASE("what a generated file has of its own is no kernel's name") {
    const Target target = target_named("avx2");
    const TileProgram p = lower(sum_of({"x", "w"}, "scale"), {}, target);
    check_words(
        [&] {
            source_of({{"f32_bits_of_i32", {{{}, p}}}}, target);
        },
        {"error[emit.name]", "got 'f32_bits_of_i32', which is that of an operation of its own C;"});
    const Target gpu = target_named("opencl");
    check_words(
        [&] {
            host_of({{"program", {{{}, lower(sum_of({"x", "w"}, "scale"), {}, gpu)}}}}, gpu, "", false);
        },
        {"error[emit.name]", "got 'program', which is one of the host file's own;"});
}

}  // namespace tessera::test_c_names
