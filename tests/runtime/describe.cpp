#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_describe {

using namespace tessera::test;

namespace {

const std::vector<int64_t> spec =
    toy_spec({{768}, {-1, 1, 4096, 16, 0}},
             {{TESS_ROLE_INPUT, {0, 1}, TESS_BF16, TESS_FLAG_LAST_STRIDE_1 | TESS_FLAG_LARGE}, {TESS_ROLE_INOUT, {}, TESS_F64}}, 3, 5);

}  // namespace

TEST_CASE("a kernel says what it is") {
    const TessKernel kernel = kernel_of(spec, nullptr, succeed);
    CHECK((kernel.abi == TESS_ABI && kernel.spec == spec.data() && kernel.body == succeed));
    TessKernelInfo info;
    info.size = sizeof info;
    REQUIRE(tess_kernel_info(&kernel, &info) == TESS_OK);
    CHECK(std::string(info.name) == "toy");
    CHECK((info.tensors == 2 && info.dims == 2 && info.parameters == 3 && info.code == 1));
    CHECK((info.parameter_bytes == 24 && info.cpu_features == 5 && info.device.type == TESS_HOST && info.flags == 0));
    TessTensorInfo tensor;
    tensor.size = sizeof tensor;
    REQUIRE(tess_kernel_tensor(&kernel, 0, &tensor) == TESS_OK);
    CHECK(std::string(tensor.name) == "t0");
    CHECK((tensor.rank == 2 && tensor.role == TESS_ROLE_INPUT && tensor.type.code == 4 && tensor.type.bits == 16));
    CHECK((tensor.dims[0] == 0 && tensor.dims[1] == 1 && tensor.dims[2] == -1 &&
           tensor.flags == (TESS_FLAG_LAST_STRIDE_1 | TESS_FLAG_LARGE)));
    REQUIRE(tess_kernel_tensor(&kernel, 1, &tensor) == TESS_OK);
    CHECK((tensor.rank == 0 && tensor.role == TESS_ROLE_INOUT && tensor.type.bits == 64 && tensor.flags == 0));
    TessDimInfo dim;
    dim.size = sizeof dim;
    REQUIRE(tess_kernel_dim(&kernel, 0, &dim) == TESS_OK);
    CHECK((dim.fixed == 768 && dim.max == -1 && dim.multiple_of == 1 && dim.equal_to == -1));
    REQUIRE(tess_kernel_dim(&kernel, 1, &dim) == TESS_OK);
    CHECK(std::string(dim.name) == "d1");
    CHECK((dim.fixed == -1 && dim.min == 1 && dim.max == 4096 && dim.multiple_of == 16 && dim.equal_to == 0));
    TessParameterInfo parameter;
    parameter.size = sizeof parameter;
    REQUIRE(tess_kernel_parameter(&kernel, 2, &parameter) == TESS_OK);
    CHECK(std::string(parameter.name) == "p2");
    CHECK((parameter.offset == 16 && parameter.type.code == 0 && parameter.type.bits == 64));
    TessCodeInfo code;
    code.size = sizeof code;
    REQUIRE(tess_kernel_code(&kernel, 0, &code) == TESS_OK);
    CHECK(std::string(code.target) == "plain");
    CHECK(std::string(code.when).empty());
    CHECK(std::string(code.hash) == "sha256:0");
    CHECK(code.cpu_features == 5);
}

TEST_CASE("there is nothing beyond the count") {
    const TessKernel kernel = kernel_of(spec, nullptr, succeed);
    TessTensorInfo tensor;
    tensor.size = sizeof tensor;
    for (int32_t index : {-1, 2, INT32_MAX, INT32_MIN})
        CHECK(tess_status_code(tess_kernel_tensor(&kernel, index, &tensor)) == TESS_NO_SUCH);
    TessCodeInfo code;
    code.size = sizeof code;
    CHECK(tess_status_code(tess_kernel_code(&kernel, 1, &code)) == TESS_NO_SUCH);
    CHECK(tess_status_code(tess_kernel_tensor(nullptr, 0, &tensor)) == TESS_NULL_ARGUMENT);
    CHECK(tess_status_code(tess_kernel_tensor(&kernel, 0, nullptr)) == TESS_NULL_ARGUMENT);
}

TEST_CASE("structs of other versions: too small is refused, and what is beyond is 0") {
    const TessKernel kernel = kernel_of(spec, nullptr, succeed);
    TessTensorInfo small;
    small.size = sizeof small - 8;
    CHECK(tess_status_code(tess_kernel_tensor(&kernel, 0, &small)) == TESS_STRUCT_SIZE);
    struct {
        TessTensorInfo known;
        uint64_t more[3];
    } newer;
    std::memset(&newer, 0x5a, sizeof newer);
    newer.known.size = sizeof newer;
    REQUIRE(tess_kernel_tensor(&kernel, 0, &newer.known) == TESS_OK);
    CHECK((newer.known.rank == 2 && newer.known.size == sizeof newer && newer.more[0] == 0 && newer.more[2] == 0));
    newer.known.size = 0x40000000;
    CHECK(tess_status_code(tess_kernel_tensor(&kernel, 0, &newer.known)) == TESS_STRUCT_SIZE);
    struct {
        TessKernel known;
        uint64_t more;
    } longer = {kernel, 0};
    longer.known.size = sizeof longer, newer.known.size = sizeof newer;
    CHECK(tess_kernel_tensor(&longer.known, 0, &newer.known) == TESS_OK);
    longer.more = 7;
    CHECK(tess_status_code(tess_kernel_tensor(&longer.known, 0, &newer.known)) == TESS_KERNEL);
    TessKernel old = tess_kernel();
    old.size = 16;
    CHECK(tess_status_code(tess_abi2_describe(spec.data(), nullptr, succeed, &old)) == TESS_STRUCT_SIZE);
    CHECK(tess_status_code(tess_abi2_describe(spec.data(), nullptr, succeed, nullptr)) == TESS_NULL_ARGUMENT);
    TessKernel other = kernel;
    other.abi = 3;
    CHECK(tess_status_code(tess_kernel_tensor(&other, 0, &newer.known)) == TESS_KERNEL);
    other = kernel;
    std::vector<int64_t> later = spec;
    later[TESS_SPEC_VERSION] = TESS_SPEC_ABI2 + 2;
    other.spec = later.data();
    uint64_t bytes;
    CHECK(words(tess_plan_bytes(&other, &bytes)) == "the kernel does not fit this runtime library; link the one that came with it");
}

}  // namespace tessera::test_describe
