// Two libraries with the same names and a runtime each live in one program, which has a third.
#include <dlfcn.h>
#include <catch2/catch.hpp>
#include <string>

#include "runtime/abi/tessera.h"

namespace tessera::test_libraries {

namespace {

struct Library {
    explicit Library(const char *path) : handle(dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
        INFO(path);
        REQUIRE(handle != nullptr);
        call = reinterpret_cast<decltype(call)>(dlsym(handle, "toy_table"));
        describe = reinterpret_cast<decltype(describe)>(dlsym(handle, "toy_describe"));
        pool = reinterpret_cast<decltype(pool)>(dlsym(handle, "toy_pool"));
        end = reinterpret_cast<decltype(end)>(dlsym(handle, "toy_end"));
        REQUIRE((call && describe && pool && end));
    }
    ~Library() { dlclose(handle); }
    void *handle;
    int32_t (*call)(const TessTensor *const *, const TessContext *);
    int32_t (*describe)(TessKernel *);
    TessPool *(*pool)(int32_t);
    void (*end)(TessPool *);
};

}  // namespace

TEST_CASE("two libraries and their runtimes live in one program, and take each other's pools") {
    const Library libraries[2] = {Library(TESSERA_LIBRARY_1), Library(TESSERA_LIBRARY_2)};
    CHECK(dlsym(libraries[0].handle, "tess_abi2_call") == nullptr);
    for (int kernel = 0; kernel < 2; ++kernel)
        for (int pool = 0; pool < 2; ++pool) {
            float y = 0;
            const TessTensor tensor = tess_dense(&y, TESS_F32, 0, nullptr), *tensors[] = {&tensor};
            TessContext context = tess_context();
            TessPool *threads = libraries[pool].pool(3);
            context.pool = threads, context.threads = 3;
            REQUIRE(libraries[kernel].call(tensors, &context) == TESS_OK);
            CHECK(y == float(kernel + 1));
            // Described there, planned and run by the runtime here.
            TessKernel value = tess_kernel();
            REQUIRE(libraries[kernel].describe(&value) == TESS_OK);
            TessKernelInfo info;
            info.size = sizeof info;
            REQUIRE(tess_kernel_info(&value, &info) == TESS_OK);
            CHECK(std::string(info.name) == "toy");
            uint64_t memory[64], bytes = 0;
            REQUIRE(tess_plan_bytes(&value, &bytes) == TESS_OK);
            REQUIRE(bytes <= sizeof memory);
            REQUIRE(tess_plan_make(&value, tensors, nullptr, &context, memory, bytes) == TESS_OK);
            float other = 0;
            void *data[] = {&other};
            CHECK(tess_plan_run(reinterpret_cast<const TessPlan *>(memory), data, nullptr, &context) == TESS_OK);
            CHECK(other == float(kernel + 1));
            libraries[pool].end(threads);
        }
}

}  // namespace tessera::test_libraries
