#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_arguments {

using namespace tessera::test;

namespace {

constexpr int64_t huge = std::numeric_limits<int64_t>::max();

/// y(M, N) = x(M, K) · w(K, N), N a multiple of 16
const std::vector<int64_t> matmul = toy_spec({{}, {-1, 0, -1, 16}, {}}, {{TESS_ROLE_INPUT, {0, 2}, TESS_F32, TESS_FLAG_LAST_STRIDE_1},
                                                                         {TESS_ROLE_INPUT, {2, 1}, TESS_F32, TESS_FLAG_LAST_STRIDE_1},
                                                                         {TESS_ROLE_OUTPUT, {0, 1}, TESS_F32, TESS_FLAG_LAST_STRIDE_1}});

float x[64], w[512], y[512];

std::vector<Tensor> good() { return {dense(x, {3, 4}), dense(w, {4, 32}), dense(y, {3, 32})}; }

std::string fails(const std::vector<Tensor> &args) { return words(check(matmul, args), {"x", "w", "y"}); }

/// One tensor over dims of its own.
int32_t check_one(const Tensor &arg, int64_t role = TESS_ROLE_INPUT, int64_t flags = 0) {
    std::vector<int64_t> axes;
    for (int32_t axis = 0; axis < arg.rank; ++axis) axes.push_back(axis);
    return check(toy_spec(std::vector<ToyDim>(axes.size()), {{role, axes, arg.type.code | arg.type.bits << 8, flags}}), {arg});
}

}  // namespace

TEST_CASE("good arguments run") { CHECK(check(matmul, good()) == TESS_OK); }

TEST_CASE("null descriptors, ranks, types and devices are refused") {
    const auto args = good();
    std::vector<const TessTensor *> holes = {&args[0], nullptr, &args[2]};
    const int32_t status = tess_abi2_call(matmul.data(), nullptr, succeed, holes.data(), nullptr, nullptr);
    CHECK(words(status) == "argument 1: the tensor is null");
    CHECK(words(tess_abi2_call(matmul.data(), nullptr, succeed, nullptr, nullptr, nullptr)) == "argument 0: the tensor is null");

    auto bad = good();
    bad[1] = dense(w, {4, 32, 1});
    CHECK(fails(bad) == "argument 1 ('w'): rank must be 2, not 3");
    bad[1] = dense(w, {4, 32});
    bad[1].rank = -7;
    CHECK(fails(bad) == "argument 1 ('w'): rank must be 2, not -7");
    bad = good();
    bad[2] = dense(y, {3, 32}, TESS_F64);
    CHECK(fails(bad) == "argument 2 ('y'): dtype must be f32, not f64");
    bad[2].type = {9, 4, 1};
    CHECK(fails(bad) == "argument 2 ('y'): dtype must be f32, not code 9 with 4 bits");
    bad[2] = dense(y, {3, 32});
    bad[2].type.lanes = 4;
    CHECK(fails(bad) == "argument 2 ('y'): the type's lanes must be 1, not 4");
    bad = good();
    bad[0].device = {TESS_CUDA, 0};
    CHECK(fails(bad) == "argument 0 ('x'): the tensor must be on the host, not on a CUDA device");
    bad[0].device = {0x99, 0};
    CHECK(fails(bad) == "argument 0 ('x'): the tensor must be on the host, not on device type 153");
    bad[0].device = {TESS_CUDA_HOST, 7};
    CHECK(check(matmul, bad) == TESS_OK);
    bad = good();
    bad[2].extents = nullptr;
    CHECK(fails(bad) == "argument 2 ('y'): extents are null, but the tensor has a rank");
}

TEST_CASE("extents must agree and satisfy their constraints") {
    auto bad = good();
    bad[1] = dense(w, {5, 32});
    CHECK(fails(bad) == "argument 1 ('w'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1, 4, not 5");
    bad = good();
    bad[1] = dense(w, {4, 24});
    bad[2] = dense(y, {3, 24});
    CHECK(fails(bad) == "argument 1 ('w'), dimension 1: extent must be a multiple of 16, not 24");
    bad = good();
    bad[0] = dense(x, {-1, 4});
    CHECK(fails(bad) == "argument 0 ('x'), dimension 0: extent must be at least 0, not -1");

    const auto bounded = toy_spec({{-1, 2, 8}}, {{TESS_ROLE_INPUT, {0}}});
    CHECK(words(check(bounded, {dense(x, {1})})) == "argument 0, dimension 0: extent must be at least 2, not 1");
    CHECK(check(bounded, {dense(x, {2})}) == TESS_OK);
    CHECK(check(bounded, {dense(x, {8})}) == TESS_OK);
    CHECK(words(check(bounded, {dense(x, {9})})) == "argument 0, dimension 0: extent must be at most 8, not 9");

    const auto fixed = toy_spec({{768}}, {{TESS_ROLE_INPUT, {0}}});
    CHECK(words(check(fixed, {dense(x, {767})})) == "argument 0, dimension 0: extent must be 768, not 767");
    const auto none = toy_spec({{0}}, {{TESS_ROLE_INPUT, {0}}});
    CHECK(words(check(none, {dense(x, {1})})) == "argument 0, dimension 0: extent must be 0, not 1");
}

TEST_CASE("a dim may equal another") {
    const auto square = toy_spec({{}, {-1, 0, -1, 1, 0}}, {{TESS_ROLE_INPUT, {0, 1}}});
    CHECK(check(square, {dense(x, {3, 3})}) == TESS_OK);
    CHECK(words(check(square, {dense(x, {3, 4})})) ==
          "argument 0, dimension 1: extent must equal that of argument 0, dimension 0, 3, not 4");
    const auto as_fixed = toy_spec({{7}, {-1, 0, -1, 1, 0}}, {{TESS_ROLE_INPUT, {1}}});
    CHECK(check(as_fixed, {dense(x, {7})}) == TESS_OK);
    CHECK(words(check(as_fixed, {dense(x, {8})})) == "argument 0, dimension 0: extent must be 7, not 8");
}

TEST_CASE("a dim that no tensor carries must be known") {
    CHECK(check(toy_spec({{5}}, {}), {}) == TESS_OK);
    CHECK(check(toy_spec({{}, {-1, 0, -1, 1, 0}}, {{TESS_ROLE_INPUT, {0}}}), {dense(x, {3})}) == TESS_OK);
    CHECK(tess_status_code(check(toy_spec({{}}, {}), {})) == TESS_KERNEL);
}

TEST_CASE("a table that this library cannot read is refused") {
    const auto refused = [](std::vector<int64_t> spec, size_t word, int64_t value) {
        spec[word] = value;
        return tess_status_code(check(spec, good())) == TESS_KERNEL;
    };
    for (int64_t other : {-1, 2}) CHECK(refused(matmul, TESS_SPEC_VERSION, TESS_SPEC_ABI2 + other));
    for (size_t word : {TESS_SPEC_N_DIMS, TESS_SPEC_N_TENSORS, TESS_SPEC_N_PARAMETERS, TESS_SPEC_N_CODE, TESS_SPEC_N_LAYOUTS})
        for (int64_t many : {int64_t(-1), int64_t(1) << 20, huge}) CHECK(refused(matmul, word, many));
    for (int64_t slots : {int64_t(-1), int64_t(0), huge}) CHECK(refused(matmul, TESS_SPEC_FRAME_WORDS, slots));
    const size_t record = size_t(tess_spec_tensor(matmul.data(), 1) - matmul.data());
    CHECK(refused(matmul, record + TESS_SPEC_TENSOR_RANK, 9));
    CHECK(refused(matmul, record + TESS_SPEC_TENSOR_AXES, 3));
    CHECK(refused(matmul, record + TESS_SPEC_TENSOR_AXES, -1));
    CHECK(refused(matmul, TESS_SPEC_HEADER + TESS_SPEC_DIM_EQUAL_TO, 3));
    CHECK(tess_status_code(tess_abi2_call(nullptr, nullptr, succeed, nullptr, nullptr, nullptr)) == TESS_KERNEL);
}

TEST_CASE("missing processor features come before everything else") {
    const auto spec = toy_spec({{}}, {{TESS_ROLE_INPUT, {0}}}, 0, UINT64_C(1) << 62);
    CHECK(tess_status_code(tess_abi2_call(spec.data(), nullptr, succeed, nullptr, nullptr, nullptr)) == TESS_CPU);
}

TEST_CASE("empty tensors and scalars are legal") {
    CHECK(check(matmul, {dense(x, {3, 0}), dense(nullptr, {0, 32}), dense(y, {3, 32})}) == TESS_OK);
    CHECK(check(matmul, {dense(nullptr, {0, 4}), dense(w, {4, 32}), dense(nullptr, {0, 32})}) == TESS_OK);
    CHECK(check_one(dense(x, {})) == TESS_OK);
    CHECK(check_one(dense(y, {}), TESS_ROLE_OUTPUT) == TESS_OK);
    CHECK(words(check_one(dense(nullptr, {}))) == "argument 0: data is null, but the tensor has elements");
    CHECK(check_one(strided(nullptr, {0, 5}, {huge, -huge}), TESS_ROLE_OUTPUT, 1) == TESS_OK);
}

TEST_CASE("null data is refused where there are elements") {
    auto bad = good();
    bad[2].data = nullptr;
    CHECK(fails(bad) == "argument 2 ('y'): data is null, but the tensor has elements");
}

TEST_CASE("strides") {
    CHECK(words(check_one(strided(x, {2, 3}, {6, 2}), 0, TESS_FLAG_LAST_STRIDE_1)) ==
          "argument 0, dimension 1: stride must be 1, not 2; copy the tensor to rows without gaps");
    CHECK(check_one(strided(x, {2, 3}, {6, 2})) == TESS_OK);
    CHECK(check_one(strided(x, {2, 1}, {6, huge}), 0, TESS_FLAG_LAST_STRIDE_1) == TESS_OK);
    CHECK(words(check_one(strided(x + 8, {2, 3}, {6, -1}))) ==
          "argument 0, dimension 1: stride must not be negative in the last dimension");
    CHECK(check_one(strided(x + 8, {2, 3}, {-6, 1}), TESS_ROLE_OUTPUT, 1) == TESS_OK);
    CHECK(check_one(strided(x, {1, 3}, {std::numeric_limits<int64_t>::min(), 1}), TESS_ROLE_OUTPUT) == TESS_OK);
}

TEST_CASE("stride 0 is for inputs") {
    CHECK(check_one(strided(x, {5, 3}, {0, 1})) == TESS_OK);
    CHECK(check_one(strided(x, {5, 3}, {0, 0})) == TESS_OK);
    for (int64_t role : {TESS_ROLE_OUTPUT, TESS_ROLE_INOUT}) {
        CHECK(words(check_one(strided(x, {5, 3}, {0, 1}), role)) ==
              "argument 0: strides are too small: elements of an output would share memory");
    }
}

TEST_CASE("an output must not overlap itself") {
    const auto overlaps = [](std::vector<int64_t> extents, std::vector<int64_t> strides) {
        const int status = check_one(strided(x + 32, extents, strides), TESS_ROLE_OUTPUT);
        if (status != TESS_OK) REQUIRE(tess_status_code(status) == TESS_SELF_OVERLAP);
        return status != TESS_OK;
    };
    CHECK_FALSE(overlaps({2, 3}, {3, 1}));
    CHECK(overlaps({2, 3}, {2, 1}));
    CHECK(overlaps({3, 3}, {1, 1}));
    CHECK_FALSE(overlaps({3, 2}, {1, 3}));
    CHECK(overlaps({3, 2}, {1, 2}));
    CHECK_FALSE(overlaps({2, 3, 4}, {-12, 4, 1}));
    CHECK(overlaps({2, 3, 4}, {-11, 4, 1}));
    CHECK_FALSE(overlaps({2, 2, 2}, {2, 4, 1}));
    CHECK(overlaps({2, 2, 2}, {2, 2, 1}));
}

TEST_CASE("data is aligned to its elements") {
    alignas(8) static unsigned char bytes[64];
    CHECK(words(check_one(dense(bytes + 2, {3}))) == "argument 0: data must be aligned to its element size in bytes, 4, not 2");
    CHECK(tess_status_code(check_one(dense(bytes + 4, {3}, TESS_F64))) == TESS_MISALIGNED);
    CHECK(tess_status_code(check_one(dense(bytes + 1, {3}, TESS_BF16))) == TESS_MISALIGNED);
    CHECK(check_one(dense(bytes + 1, {3}, TESS_U8)) == TESS_OK);
    CHECK(check_one(dense(bytes + 1, {3}, TESS_BOOL)) == TESS_OK);
    CHECK(check_one(dense(bytes + 4, {3})) == TESS_OK);
}

TEST_CASE("whatever does not fit 31 bits with room for a tile is too large") {
    const int64_t most = (int64_t(1) << 31) - (1 << 16) - 1;
    const auto too_large = [](const Tensor &arg) { return tess_status_code(check_one(arg)) == TESS_TOO_LARGE; };
    CHECK(check_one(strided(x, {most}, {0}, TESS_I8)) == TESS_OK);
    CHECK(too_large(strided(x, {most + 1}, {0}, TESS_I8)));
    CHECK(too_large(strided(x, {huge, 0}, {0, 0}, TESS_I8)));
    CHECK(too_large(strided(x, {1 << 16, 1 << 15}, {0, 0}, TESS_I8)));
    CHECK(too_large(dense(x, {most, most, most, most, most, most, most, most}, TESS_F64)));
    CHECK(check_one(strided(x, {2}, {most - 1}, TESS_I8)) == TESS_OK);
    CHECK(too_large(strided(x, {2}, {most}, TESS_I8)));
    CHECK(too_large(strided(x, {2}, {huge}, TESS_I8)));
    CHECK(too_large(strided(x, {2, 2}, {std::numeric_limits<int64_t>::min(), 1}, TESS_I8)));
    CHECK(too_large(strided(x, {2, 2, 2}, {-most / 2 - 1, most / 2 + 1, 1}, TESS_I8)));
    CHECK(words(check_one(strided(x, {2, 2}, {most, 1}, TESS_I8))) ==
          "argument 0: more than 2147418111 elements, or as many from the lowest to "
          "the highest address: 2147418113; a kernel takes more of a tensor that is declared large");
}

TEST_CASE("a tensor that is declared large may span more, and its axes may not") {
    const int64_t most = TESS_MAX_LARGE_ELEMENTS, axis = TESS_MAX_ELEMENTS;
    const auto status = [](const Tensor &arg, int64_t role = TESS_ROLE_INPUT) { return check_one(arg, role, TESS_FLAG_LARGE); };
    const auto too_large = [&](const Tensor &arg) { return tess_status_code(status(arg)) == TESS_TOO_LARGE; };
    CHECK(status(dense(x, {1 << 20, 16, 256})) == TESS_OK);
    CHECK(status(dense(x, {1 << 22, 1 << 22}, TESS_F64)) == TESS_OK);
    CHECK(too_large(dense(x, {1 << 22, (1 << 22) + 1}, TESS_F64)));
    CHECK(too_large(dense(x, {axis, axis, axis, axis, axis, axis, axis, axis}, TESS_F64)));
    CHECK(too_large(dense(x, {axis + 1, 0}, TESS_I8)));
    CHECK(status(strided(x, {2, 1}, {most - 1, 1}, TESS_I8)) == TESS_OK);
    CHECK(too_large(strided(x, {2, 1}, {most, 1}, TESS_I8)));
    CHECK(too_large(strided(x, {2, 1}, {huge, 1}, TESS_I8)));
    CHECK(too_large(strided(x, {axis, 1}, {most, 1}, TESS_I8)));
    CHECK(too_large(strided(x, {2, 2, 1}, {-most / 2 - 1, most / 2 + 1, 1}, TESS_I8)));
    CHECK(too_large(strided(x, {2, 2}, {std::numeric_limits<int64_t>::min(), 1}, TESS_I8)));
    CHECK(too_large(strided(x, {axis, axis, 2}, {0, 0, 1}, TESS_I8)));
    const int64_t far = int64_t{1} << 32;
    CHECK(status(strided(x, {3, 4}, {-far, 1}), TESS_ROLE_OUTPUT) == TESS_OK);
    CHECK(tess_status_code(status(strided(x, {3, 2, 4}, {far, 2 * far, 1}), TESS_ROLE_OUTPUT)) == TESS_SELF_OVERLAP);
    CHECK(words(status(strided(x, {2, 2}, {most, 1}, TESS_I8))) ==
          "argument 0: more than 17592186044416 elements, or as many from the lowest to the highest address: 17592186044418");
    CHECK(words(status(dense(x, {1 << 22, 1 << 22, 1 << 22, 1 << 22}, TESS_F64))) ==
          "argument 0: more than 17592186044416 elements, or as many from the lowest to the highest address: 9223372036854775807");
    CHECK(words(status(strided(x, {2, 1}, {huge, 1}, TESS_I8))).ends_with("address: " + std::to_string(huge)));
    CHECK(words(status(dense(x, {axis + 1, 0}, TESS_I8))) ==
          "argument 0, dimension 0: more than 2147418111 elements, or as many from the lowest to the highest address: 2147418112");
}

TEST_CASE("which arguments may share memory") {
    // Two tensors over bytes [a, a + 4) and [b, b + 4) of one buffer, for every pair of roles.
    static float buffer[16];
    const int64_t roles[] = {TESS_ROLE_INPUT, TESS_ROLE_OUTPUT, TESS_ROLE_INOUT};
    for (int64_t first : roles) {
        for (int64_t second : roles) {
            const auto spec = toy_spec({{}}, {{first, {0}}, {second, {0}}});
            const bool written = first != TESS_ROLE_INPUT || second != TESS_ROLE_INPUT;
            for (int offset = -5; offset <= 5; ++offset) {
                const int status = check(spec, {dense(buffer + 6, {4}), dense(buffer + 6 + offset, {4})});
                const bool meet = offset > -4 && offset < 4;
                INFO(first << ' ' << second << ' ' << offset);
                REQUIRE(tess_status_code(status) == (written && meet ? TESS_OVERLAP : TESS_OK));
                if (status == TESS_OK) continue;
                const int blamed = first == TESS_ROLE_INPUT;
                REQUIRE(tess_status_argument(status) == blamed);
            }
        }
    }
}

TEST_CASE("overlap is judged by address ranges, down from the data too") {
    static float buffer[64];
    const auto spec = toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {0, 1}}});
    const auto reversed = strided(buffer + 24, {4, 8}, {-8, 1});  // elements 0 to 31
    CHECK(tess_status_code(check(spec, {reversed, dense(buffer, {4, 8})})) == TESS_OVERLAP);
    CHECK(check(spec, {reversed, dense(buffer + 32, {4, 8})}) == TESS_OK);
    CHECK(tess_status_code(check(spec, {strided(buffer, {4, 8}, {16, 1}), strided(buffer + 8, {4, 8}, {16, 1})})) == TESS_OVERLAP);
    CHECK(check(spec, {dense(buffer, {0, 8}), dense(buffer, {0, 8})}) == TESS_OK);
    CHECK(words(check(spec, {dense(buffer, {4, 8}), dense(buffer + 31, {4, 8})}), {"x", "y"}) ==
          "argument 1 ('y'): memory is shared with argument 0 ('x'); an output needs an address "
          "range of its own");
}

}  // namespace tessera::test_arguments
