#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "tests/runtime/headers.h"

namespace tessera::test_tessera {

TEST_CASE("the headers mean the same in C99 and C++20") {
    const HeaderView c = headers_as_c99(), cxx = headers_as_cxx20();
    CHECK(c.desc_size == cxx.desc_size);
    CHECK(c.context_size == cxx.context_size);
    CHECK(c.pool_size == cxx.pool_size);
    CHECK(c.call_size == cxx.call_size);
    CHECK(c.desc_rank == cxx.desc_rank);
    CHECK(c.context_pool == cxx.context_pool);
    CHECK(c.call_workers == cxx.call_workers);
    CHECK(c.bool_value == cxx.bool_value);
    CHECK(c.kernel_kind == cxx.kernel_kind);
    CHECK(c.last_feature == cxx.last_feature);
    CHECK(c.frame_slots == cxx.frame_slots);
    CHECK(c.frame_size == cxx.frame_size);
    CHECK(c.status == cxx.status);
    CHECK(std::memcmp(&c.dense, &cxx.dense, sizeof c.dense) == 0);
    CHECK(std::memcmp(&c.context, &cxx.context, sizeof c.context) == 0);
}

TEST_CASE("the values of the ABI are fixed") {
    CHECK(TESS_F32 == 1);
    CHECK(TESS_BOOL == 9);
    CHECK(TESS_HOST == 0);
    CHECK(sizeof(TessTensorDesc) == 152);
    CHECK(sizeof(TessContext) == 40);
}

TEST_CASE("tess_dtype_size") {
    const size_t sizes[] = {0, 4, 8, 2, 2, 1, 1, 4, 8, 1, 0};
    for (int dtype = 0; dtype <= 10; ++dtype) CHECK(tess_dtype_size(dtype) == sizes[dtype]);
    CHECK(tess_dtype_size(-1) == 0);
}

TEST_CASE("tess_dense makes row-major strides") {
    float data[30];
    const int64_t extents[] = {2, 3, 5};
    const TessTensorDesc desc = tess_dense(data, TESS_F32, 3, extents);
    CHECK(desc.data == data);
    CHECK(desc.strides[0] == 15);
    CHECK(desc.strides[1] == 5);
    CHECK(desc.strides[2] == 1);
    CHECK(desc.extents[3] == 0);
    CHECK(desc.dtype == TESS_F32);
    CHECK(desc.rank == 3);
    CHECK(desc.device == TESS_HOST);
    CHECK(desc.reserved == 0);
}

TEST_CASE("tess_dense of a scalar, of nothing, and of too much") {
    CHECK(tess_dense(nullptr, TESS_I8, 0, nullptr).rank == 0);
    const int64_t empty[] = {4, 0, 3};
    CHECK(tess_dense(nullptr, TESS_I8, 3, empty).strides[0] == 3);
    const int64_t huge[] = {2, std::numeric_limits<int64_t>::max(), 1000};
    const TessTensorDesc desc = tess_dense(nullptr, TESS_I8, 3, huge);
    CHECK(desc.strides[1] == 1000);
    CHECK(desc.strides[0] == std::numeric_limits<int64_t>::max());
    const int64_t nine[] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    CHECK(tess_dense(nullptr, TESS_I8, 9, nine).rank == 9);
    CHECK(tess_dense(nullptr, TESS_I8, -1, nullptr).rank == -1);
}

TEST_CASE("tess_context is one thread without workspace") {
    const TessContext context = tess_context();
    CHECK(context.size == sizeof(TessContext));
    CHECK(context.threads == 0);
    CHECK(context.workspace == nullptr);
    CHECK(context.workspace_bytes == 0);
    CHECK(context.pool == nullptr);
}

}  // namespace tessera::test_tessera
