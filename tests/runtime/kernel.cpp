#include "runtime/kernel.h"

#include <catch2/catch.hpp>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_kernel {

using namespace tessera::test;

TEST_CASE("the slots of a frame follow each other without gaps") {
    const auto spec = toy_spec({{}, {}, {}}, {{TESS_ROLE_INPUT, {0, 2}}, {TESS_ROLE_INPUT, {}}, {TESS_ROLE_OUTPUT, {0, 1, 2}}}, 2);
    const int64_t *s = spec.data();
    CHECK(int64_t(spec.size()) == tess_spec_words(3, 3));
    CHECK(tess_spec_dim(s, 1) == s + 10);
    CHECK(tess_spec_tensor(s, 1) == s + 5 + 15 + 12);
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
    CHECK(tess_frame_size(s) == 18);
}

TEST_CASE("the largest kernel fills the largest frame") {
    const std::vector<ToyDim> dims(TESS_MAX_DIMS);
    const std::vector<ToyTensor> tensors(TESS_MAX_TENSORS, {TESS_ROLE_INPUT, {0, 1, 2, 3, 4, 5, 6, 7}});
    const auto spec = toy_spec(dims, tensors, TESS_MAX_PARAMETERS);
    CHECK(tess_frame_size(spec.data()) == TESS_MAX_FRAME);
}

TEST_CASE("a status holds kind, argument, dimension and detail, and is positive") {
    for (int kind = 1; kind < TESS_STATUS_KIND_COUNT; ++kind) {
        for (int argument : {-1, 0, TESS_MAX_TENSORS - 1}) {
            for (int dimension : {-1, 0, TESS_MAX_RANK - 1}) {
                for (int64_t detail : {int64_t(-1), int64_t(0), int64_t(TESS_MAX_DETAIL), int64_t(TESS_MAX_DETAIL) + 1, INT64_MAX}) {
                    const int status = tess_abi1_status(kind, argument, dimension, detail);
                    REQUIRE(status > 65535);
                    REQUIRE(tess_status_code(status) == kind);
                    REQUIRE(tess_status_argument(status) == argument);
                    REQUIRE(tess_status_dimension(status) == dimension);
                }
            }
        }
    }
}

}  // namespace tessera::test_kernel
