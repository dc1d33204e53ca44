#include "runtime/abi/kernel.h"

#include <catch2/catch.hpp>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_kernel {

using namespace tessera::test;

TEST_CASE("the slots of a frame follow each other without gaps") {
    const auto spec = toy_spec({{}, {}, {}}, {{TESS_ROLE_INPUT, {0, 2}}, {TESS_ROLE_INPUT, {}}, {TESS_ROLE_OUTPUT, {0, 1, 2}}}, 2);
    const int64_t *s = spec.data();
    CHECK(tess_spec_dim(s, 1) == s + 12 + 6);
    CHECK(tess_spec_tensor(s, 1) == s + 12 + 18 + 14);
    CHECK(tess_spec_parameter(s, 0) == s + 12 + 18 + 42);
    CHECK(tess_frame_dim(2) == 2);
    CHECK(tess_frame_data(s, 0) == 3);
    CHECK(tess_frame_stride(s, 0, 1) == 5);
    CHECK(tess_frame_data(s, 1) == 6);
    CHECK(tess_frame_data(s, 2) == 7);
    CHECK(tess_frame_stride(s, 2, 2) == 10);
    CHECK(tess_frame_parameter(s, 0) == 11);
    CHECK(tess_frame_workspace(s) == 13);
    CHECK(tess_frame_shared_bytes(s) == 14);
    CHECK(tess_frame_worker_bytes(s) == 15);
    CHECK(tess_frame_workers(s) == 16);
    CHECK(tess_frame_features(s) == 17);
    CHECK(tess_frame_body(s) == 18);
    CHECK(tess_frame_dimension(s) == 19);
    CHECK(tess_frame_expected(s) == 20);
    CHECK(tess_frame_size(s) == 21);
}

TEST_CASE("a status holds kind and argument, and is positive") {
    for (int32_t kind : {TESS_NULL_ARGUMENT, TESS_KERNEL, TESS_PACKED_BYTES}) {
        for (int32_t argument : {-1, 0, 31, 1000, (1 << 19) - 2}) {
            const int32_t status = tess_abi2_status(kind, argument);
            REQUIRE(status > 256);
            REQUIRE(tess_status_code(status) == kind);
            REQUIRE(tess_status_argument(status) == argument);
        }
    }
}

}  // namespace tessera::test_kernel
