#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "tests/runtime/headers.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define TESSERA_HAS_DLPACK 1
#endif

namespace tessera::test_tessera {

#ifdef TESSERA_HAS_DLPACK
static_assert(sizeof(TessTensor) == sizeof(DLTensor) && alignof(TessTensor) == alignof(DLTensor));
static_assert(offsetof(TessTensor, data) == offsetof(DLTensor, data) && offsetof(TessTensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(TessTensor, rank) == offsetof(DLTensor, ndim) && offsetof(TessTensor, type) == offsetof(DLTensor, dtype));
static_assert(offsetof(TessTensor, extents) == offsetof(DLTensor, shape) && offsetof(TessTensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(TessTensor, byte_offset) == offsetof(DLTensor, byte_offset));
static_assert(sizeof(TessDevice) == sizeof(DLDevice) && sizeof(TessType) == sizeof(DLDataType));
static_assert(offsetof(TessDevice, id) == offsetof(DLDevice, device_id) && offsetof(TessType, bits) == offsetof(DLDataType, bits));
static_assert(offsetof(TessType, lanes) == offsetof(DLDataType, lanes));
static_assert(int(TESS_HOST) == int(kDLCPU) && int(TESS_CUDA) == int(kDLCUDA) && int(TESS_CUDA_HOST) == int(kDLCUDAHost));
static_assert(int(TESS_OPENCL) == int(kDLOpenCL));
static_assert((TESS_F32 & 255) == int(kDLFloat) && (TESS_BF16 & 255) == int(kDLBfloat) && (TESS_I64 & 255) == int(kDLInt));
static_assert((TESS_U8 & 255) == int(kDLUInt));
#endif

TEST_CASE("the headers mean the same in C99 and C++20") {
    const HeaderView c = headers_as_c99(), cxx = headers_as_cxx20();
    CHECK(c.tensor_size == cxx.tensor_size);
    CHECK(c.context_size == cxx.context_size);
    CHECK(c.pool_size == cxx.pool_size);
    CHECK(c.call_size == cxx.call_size);
    CHECK(c.kernel_size == cxx.kernel_size);
    CHECK(c.info_sizes == cxx.info_sizes);
    CHECK(c.tensor_rank == cxx.tensor_rank);
    CHECK(c.context_pool == cxx.context_pool);
    CHECK(c.call_workers == cxx.call_workers);
    CHECK(c.bool_value == cxx.bool_value);
    CHECK(c.kernel_kind == cxx.kernel_kind);
    CHECK(c.last_feature == cxx.last_feature);
    CHECK(c.parameter_slot == cxx.parameter_slot);
    CHECK(c.status == cxx.status);
    CHECK(std::memcmp(&c.dense, &cxx.dense, sizeof c.dense) == 0);
    CHECK(std::memcmp(&c.context, &cxx.context, sizeof c.context) == 0);
    CHECK(std::memcmp(&c.fault, &cxx.fault, sizeof c.fault) == 0);
    CHECK(std::memcmp(&c.kernel, &cxx.kernel, sizeof c.kernel) == 0);
}

TEST_CASE("the values of the ABI are fixed") {
    CHECK((TESS_F32 == 0x2002 && TESS_F64 == 0x4002 && TESS_BF16 == 0x1004 && TESS_F16 == 0x1002 && TESS_BOOL == 0x0806));
    CHECK((TESS_I8 == 0x0800 && TESS_U8 == 0x0801 && TESS_I32 == 0x2000 && TESS_I64 == 0x4000));
    CHECK((TESS_F8E4M3 == 0x0808 && TESS_F8E4M3FN == 0x080a && TESS_F8E4M3FNUZ == 0x080b));
    CHECK((TESS_F8E5M2 == 0x080c && TESS_F8E5M2FNUZ == 0x080d && TESS_F8E8M0FNU == 0x080e));
    CHECK((TESS_F6E2M3FN == 0x060f && TESS_F6E3M2FN == 0x0610 && TESS_F4E2M1FN == 0x0411 && TESS_I4 == 0x0400 && TESS_U4 == 0x0401));
    CHECK((TESS_HOST == 1 && TESS_CUDA == 2 && TESS_CUDA_HOST == 3 && TESS_OPENCL == 4));
    CHECK((TESS_NULL_ARGUMENT == 0x101 && TESS_DEVICE_ID == 0x10d && TESS_STRIDE_ODD == 0x209 && TESS_WORKSPACE_LARGE == 0x305));
    CHECK((TESS_PLAN_BUSY == 0x410 && TESS_KERNEL == 0x502 && TESS_GPU_STREAM == 0x606 && TESS_PACKED_BYTES == 0x708));
    CHECK(sizeof(TessTensor) == 48);
    CHECK(sizeof(TessContext) == 88);
    CHECK(sizeof(TessFault) == 40);
    CHECK(sizeof(TessPool) == 24);
    CHECK(sizeof(TessKernel) == 32);
    CHECK(sizeof(TessKernelInfo) == 56);
    CHECK(sizeof(TessTensorInfo) == 64);
    CHECK(sizeof(TessDimInfo) == 56);
    CHECK(sizeof(TessParameterInfo) == 48);
    CHECK(sizeof(TessCodeInfo) == 40);
}

TEST_CASE("tess_dtype_size") {
    const std::pair<int, size_t> sizes[] = {{TESS_F32, 4},
                                            {TESS_F64, 8},
                                            {TESS_BF16, 2},
                                            {TESS_F16, 2},
                                            {TESS_I8, 1},
                                            {TESS_U8, 1},
                                            {TESS_I32, 4},
                                            {TESS_I64, 8},
                                            {TESS_BOOL, 1},
                                            {0, 0},
                                            {-1, 0},
                                            {0x2009, 0},
                                            {TESS_F8E4M3FN, 1},
                                            {TESS_F8E8M0FNU, 1},
                                            {TESS_I4, 0},
                                            {TESS_F4E2M1FN, 0},
                                            {TESS_F6E3M2FN, 1}};
    for (const auto &[dtype, size] : sizes) CHECK(tess_dtype_size(dtype) == size);
}

TEST_CASE("tess_bytes: a row of half bytes ends with a byte") {
    const int64_t extents[] = {3, 5};
    CHECK(tess_bytes(TESS_F32, 2, extents) == 60);
    CHECK(tess_bytes(TESS_I4, 2, extents) == 9);
    CHECK(tess_bytes(TESS_F4E2M1FN, 1, extents) == 2);
    CHECK(tess_bytes(TESS_U4, 0, nullptr) == 1);
    CHECK(tess_bytes(TESS_F6E2M3FN, 2, extents) == 15);
    CHECK(tess_bytes(0, 2, extents) == 0);
    CHECK(tess_bytes(0x0402, 2, extents) == 0);  // of 4 bits, and no type
    const int64_t none[] = {3, 0};
    CHECK(tess_bytes(TESS_I4, 2, none) == 0);
}

TEST_CASE("tess_dense points to the caller's extents") {
    float data[30];
    const int64_t extents[] = {2, 3, 5};
    const TessTensor tensor = tess_dense(data, TESS_F32, 3, extents);
    CHECK(tensor.data == data);
    CHECK(tensor.extents == extents);
    CHECK(tensor.strides == nullptr);
    CHECK((tensor.type.code == 2 && tensor.type.bits == 32 && tensor.type.lanes == 1));
    CHECK(tensor.rank == 3);
    CHECK((tensor.device.type == TESS_HOST && tensor.device.id == 0));
    CHECK(tensor.byte_offset == 0);
    const uint64_t bytes = 777;
    const TessTensor packed = tess_packed(data, &bytes);
    CHECK((packed.rank == 1 && packed.extents[0] == 777 && packed.type.code == 1 && packed.type.bits == 8));
}

TEST_CASE("tess_context is one thread without workspace") {
    const TessContext context = tess_context();
    CHECK(context.size == sizeof(TessContext));
    CHECK(context.threads == 0);
    CHECK(context.workspace == nullptr);
    CHECK(context.workspace_bytes == 0);
    CHECK(context.pool == nullptr);
    CHECK((context.stream == nullptr && context.done == nullptr && context.fault == nullptr));
}

}  // namespace tessera::test_tessera
