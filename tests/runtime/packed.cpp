// Packed operands: the header that the runtime writes, and every way in which one that it reads can be wrong.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/toy_kernel.h"

namespace tessera::test_packed {

using namespace tessera::test;

namespace {

constexpr uint64_t hash = 0xfedcba9876543210u, other_hash = 0x0123456789abcdefu;

constexpr int64_t flags = TESS_FLAG_LAST_STRIDE_1 | TESS_FLAG_PACKED;
const std::vector<int64_t> panels = {1, 4, 0, 0, 1, -4};  // N/4, K, N%4

// w(K, N), packed(K, N) and y(M, N) = x(M, K) packed(K, N).
const std::vector<int64_t> packing =
    toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {0, 1}, TESS_F32, flags}}, 0, 0, {{0, hash, panels}});
const std::vector<int64_t> product =
    toy_spec({{}, {}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_INPUT, {1, 2}, TESS_F32, flags}, {TESS_ROLE_OUTPUT, {0, 2}}}, 0, 0,
             {{0, hash, panels}});
const std::vector<const char *> names = {"x", "w.packed", "y"};

struct alignas(64) Bytes {
    unsigned char at[1024] = {};
};

// 3 rows of 5 columns are 2 panels of 3 rows of 4.
constexpr int64_t K = 3, N = 5, payload = 2 * 3 * 4 * 4;

Bytes packed() {
    Bytes bytes;
    std::memset(bytes.at, 0xee, sizeof bytes.at);
    float w[K * N] = {};
    REQUIRE(check(packing, {dense(w, {K, N}), packed_operand(bytes.at, 128 + payload)}) == TESS_OK);
    return bytes;
}

float x[2 * K], y[2 * N];

int run(const Bytes &bytes, uint64_t n = 128 + payload) {
    return check(product, {dense(x, {2, K}), packed_operand(const_cast<unsigned char *>(bytes.at), n), dense(y, {2, N})});
}

std::string refusal(const Bytes &bytes) { return words(run(bytes), names); }

// The packed operand with the bytes at `where` replaced.
std::string refusal(size_t where, const std::vector<unsigned char> &what) {
    Bytes bytes = packed();
    std::memcpy(bytes.at + where, what.data(), what.size());
    return refusal(bytes);
}

const std::string pack_it = "; pack it with this kernel's packing function";

}  // namespace

TEST_CASE("the header of a packed operand is what tessera.h says, byte by byte") {
    const Bytes bytes = packed();
    const unsigned char expected[128] = {'T',
                                         'E',
                                         'S',
                                         'S',
                                         'P',
                                         'A',
                                         'C',
                                         'K',
                                         2,
                                         0,
                                         0,
                                         0,
                                         128,
                                         0,
                                         0,
                                         0,
                                         0x10,
                                         0x32,
                                         0x54,
                                         0x76,
                                         0x98,
                                         0xba,
                                         0xdc,
                                         0xfe,
                                         TESS_F32 & 255,
                                         TESS_F32 >> 8,
                                         0,
                                         0,
                                         2,
                                         0,
                                         0,
                                         0,
                                         payload,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         K,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         N};
    CHECK(std::memcmp(bytes.at, expected, sizeof expected) == 0);
    for (size_t i = 128; i < sizeof bytes.at; ++i) REQUIRE(bytes.at[i] == 0xee);  // what the body leaves, and what lies behind
    CHECK(run(bytes) == TESS_OK);
}

TEST_CASE("the size of a packed operand, without anything to write to") {
    auto size = [](const std::vector<Tensor> &args, uint64_t *bytes) {
        std::vector<const TessTensor *> all = pointers(args);
        all.push_back(nullptr);
        const TessContext context = telling();
        return tess_abi2_packed_bytes(packing.data(), all.data(), &context, bytes);
    };
    uint64_t bytes = 1;
    CHECK(size({dense(nullptr, {K, N})}, &bytes) == TESS_OK);
    CHECK(bytes == 128 + payload);
    CHECK(size({dense(nullptr, {0, N})}, &bytes) == TESS_OK);
    CHECK(bytes == 128);
    CHECK(size({dense(nullptr, {K, 4})}, &bytes) == TESS_OK);
    CHECK(bytes == 128 + 3 * 4 * 4);
    CHECK(words(size({dense(nullptr, {1 << 20, 1 << 10})}, &bytes)) == "ok");
    CHECK(words(size({dense(nullptr, {2000000000, 1})}, &bytes)) ==
          "argument 1, dimension 1: more than 2147418111 elements, or as many from the lowest to the highest address: 8000000000");
    CHECK(bytes == 0);
    CHECK(words(size({dense(nullptr, {-1, N})}, &bytes)) == "argument 0, dimension 0: extent must be at least 0, not -1");
    CHECK(words(size({dense(nullptr, {K, N})}, nullptr)) == "a pointer to what is given or for a result is null");
    CHECK(words(tess_abi2_packed_bytes(product.data(),
                                       pointers({dense(x, {2, K}), packed_operand(packed().at, 128 + payload), dense(y, {2, N})}).data(),
                                       nullptr, &bytes))
              .find("does not fit this runtime") != std::string::npos);
}

TEST_CASE("an operand that was packed wrong is refused, field by field") {
    CHECK(refusal(0, {'t'}) == "argument 1 ('w.packed'): the bytes are no packed operand" + pack_it);
    CHECK(refusal(7, {0}) == "argument 1 ('w.packed'): the bytes are no packed operand" + pack_it);
    const std::string version =
        "argument 1 ('w.packed'): the operand was packed in a version of the format that this library does not know" + pack_it;
    CHECK(refusal(8, {1}) == version);
    CHECK(refusal(8, {3}) == version);
    CHECK(refusal(11, {1}) == version);
    CHECK(refusal(12, {64}) == version);
    const std::string layout =
        "argument 1 ('w.packed'): the operand was packed in another layout, for another schedule or processor" + pack_it;
    CHECK(refusal(16, {0x11}) == layout);
    CHECK(refusal(23, {0x7e}) == layout);
    const std::string dtype = "argument 1 ('w.packed'): the packed operand has elements of another type or another rank" + pack_it;
    CHECK(refusal(24, {0}) == dtype);
    CHECK(refusal(25, {0x40}) == dtype);
    CHECK(refusal(27, {1}) == dtype);
    CHECK(refusal(28, {3}) == dtype);
    CHECK(refusal(28, {255, 255, 255, 255}) == dtype);
    const std::string bytes =
        "argument 1 ('w.packed'): not as many bytes as an operand of these extents has when it is packed; ask the packing function's size "
        "query";
    CHECK(refusal(32, {payload + 1}) == bytes);
    CHECK(refusal(39, {128}) == bytes);
    const std::string extent =
        "argument 1 ('w.packed'): the packed operand has extents that no tensor has, or other ones than in the plan" + pack_it;
    CHECK(refusal(55, {128}) == extent);             // negative
    CHECK(refusal(48, {0, 0, 255, 127}) == extent);  // above the limit
    CHECK(refusal(64, {1}) == extent);               // beyond the rank
    for (size_t unused : {40, 47, 112, 127}) CHECK(refusal(unused, {1}) == version);
    CHECK(refusal(48, {K + 1}) ==
          "argument 1 ('w.packed'), dimension 0: extent must equal that of argument 0 ('x'), dimension 1, 3, not 4");
    CHECK(refusal(56, {N + 1}) ==
          "argument 2 ('y'), dimension 1: extent must equal that of argument 1 ('w.packed'), dimension 1, 6, not 5");
}

TEST_CASE("extents of a header count for dims that nothing else has") {
    const std::vector<int64_t> alone = toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}, TESS_F32, flags}}, 0, 0, {{0, hash, panels}});
    Bytes bytes = packed();
    auto run_alone = [&](uint64_t n) { return words(check(alone, {packed_operand(bytes.at, n)})); };
    CHECK(run_alone(128 + payload) == "ok");
    bytes.at[48] = 4;  // more rows than there are bytes for
    CHECK(run_alone(128 + payload).find("not as many bytes") != std::string::npos);
    bytes.at[32] = 2 * 4 * 4 * 4;
    CHECK(run_alone(128 + payload).find("not as many bytes") != std::string::npos);
    CHECK(run_alone(128 + 2 * 4 * 4 * 4) == "ok");
    const unsigned char many[4] = {255, 255, 254, 127};  // the most that one extent may be
    std::memcpy(bytes.at + 56, many, sizeof many);
    CHECK(run_alone(128 + 2 * 4 * 4 * 4).find("more than 2147418111 elements") != std::string::npos);
}

TEST_CASE("the descriptor of a packed operand") {
    const Bytes bytes = packed();
    auto *data = const_cast<unsigned char *>(bytes.at);
    auto given = [&](const Tensor &w) { return words(check(product, {dense(x, {2, K}), w, dense(y, {2, N})}), names); };
    CHECK(words(run(bytes, 127), names) == "argument 1 ('w.packed'): fewer bytes than the header of a packed operand has" + pack_it);
    CHECK(words(run(bytes, 0), names) == "argument 1 ('w.packed'): fewer bytes than the header of a packed operand has" + pack_it);
    for (uint64_t n : {uint64_t{128}, uint64_t{128 + payload - 1}, uint64_t{128 + payload + 1}})
        CHECK(words(run(bytes, n), names).find("not as many bytes") != std::string::npos);
    CHECK(given(packed_operand(data + 32, 128 + payload)) == "argument 1 ('w.packed'): a packed operand must be aligned to 64 bytes");
    CHECK(given(packed_operand(nullptr, 128 + payload)) == "argument 1 ('w.packed'): data is null, but the tensor has elements");
    CHECK(given(packed_operand(data, UINT64_MAX)) == "argument 1 ('w.packed'), dimension 0: extent must be at least 0, not -1");
    CHECK(given(dense(data, {K, N})) == "argument 1 ('w.packed'): rank must be 1, not 2");
    CHECK(given(dense(data, {128 + payload})) == "argument 1 ('w.packed'): dtype must be u8, not f32");
    CHECK(given(strided(data, {128 + payload}, {2}, TESS_U8)) ==
          "argument 1 ('w.packed'), dimension 0: stride must be 1, not 2; copy the tensor to rows without gaps");
    Tensor elsewhere = packed_operand(data, 128 + payload);
    Tensor moved = packed_operand(data, 128 + payload);
    moved.byte_offset = 64;
    CHECK(tess_status_code(check(product, {dense(x, {2, K}), moved, dense(y, {2, N})})) == TESS_PACKED_MISALIGNED);
    elsewhere.device.type = TESS_OPENCL;
    CHECK(given(elsewhere) == "argument 1 ('w.packed'): the tensor must be on the host, not on an OpenCL device");
    const Tensor first = dense(x, {2, K}), last = dense(y, {2, N});
    const TessTensor *missing[] = {&first, nullptr, &last};
    CHECK(words(tess_abi2_call(product.data(), nullptr, succeed, missing, nullptr, nullptr), names) ==
          "argument 1 ('w.packed'): the tensor is null");
    // An output inside of it, and packing an operand onto itself.
    CHECK(words(check(product, {first, packed_operand(data, 128 + payload), dense(data + 128, {2, N})}), names) ==
          "argument 2 ('y'): memory is shared with argument 1 ('w.packed'); an output needs an address range of its own");
    CHECK(
        words(check(packing, {dense(data + 128, {K, N}), packed_operand(data, 128 + payload)})).find("memory is shared with argument 0") !=
        std::string::npos);
    CHECK(words(check(packing, {dense(x, {1, 5}), packed_operand(data, 128 + payload)})).find("not as many bytes") != std::string::npos);
}

TEST_CASE("an operand whose packing fails has no header") {
    Bytes bytes = packed();
    float w[K * N] = {};
    const std::vector<Tensor> args = {dense(w, {K, N}), packed_operand(bytes.at, 128 + payload)};
    auto fail = [](void *, int64_t *) -> int32_t { return -5; };
    const TessContext context = telling();
    CHECK(words(tess_abi2_call(packing.data(), nullptr, fail, pointers(args).data(), nullptr, &context)) ==
          "the kernel's code or the pool failed with code -5");
    CHECK(refusal(bytes) == "argument 1 ('w.packed'): the bytes are no packed operand" + pack_it);
}

TEST_CASE("the kernel finds the elements behind the header") {
    const Bytes bytes = packed();
    static int64_t address;
    auto body = [](void *, int64_t *frame) -> int32_t {
        address = frame[tess_frame_data(product.data(), 1)];
        return 0;
    };
    const std::vector<Tensor> args = {dense(x, {2, K}), packed_operand(const_cast<unsigned char *>(bytes.at), 128 + payload),
                                      dense(y, {2, N})};
    CHECK(tess_abi2_call(product.data(), nullptr, body, pointers(args).data(), nullptr, nullptr) == TESS_OK);
    CHECK(address == int64_t(reinterpret_cast<uintptr_t>(bytes.at)) + 128);
}

TEST_CASE("features decide the layout, as they decide the code") {
    const uint64_t have = tess_cpu_features();
    if (have == 0) return;
    const uint64_t bit = have & -have;
    const std::vector<ToyLayout> layouts = {{bit, other_hash, {1, 8, 0, 0, 1, -8}}, {0, hash, panels}};
    const std::vector<int64_t> both =
        toy_spec({{}, {}}, {{TESS_ROLE_INPUT, {0, 1}}, {TESS_ROLE_OUTPUT, {0, 1}, TESS_F32, flags}}, 0, 0, layouts);
    TessContext without = tess_context();
    without.features_off = bit;
    float w[K * N] = {};
    Bytes bytes;
    const std::vector<Tensor> narrow = {dense(w, {K, N}), packed_operand(bytes.at, 128 + payload)};
    const std::vector<Tensor> wide = {dense(w, {K, N}), packed_operand(bytes.at, 128 + 3 * 8 * 4)};
    CHECK(check(both, wide) == TESS_OK);
    CHECK(bytes.at[16] == 0xef);
    CHECK(check(both, narrow, &without) == TESS_OK);
    CHECK(bytes.at[16] == 0x10);
}

TEST_CASE("a spec that makes no sense is no kernel of this runtime") {
    auto refuses = [](const std::vector<int64_t> &spec) {
        return words(check(spec, {dense(x, {2, K}), packed_operand(packed().at, 128 + payload), dense(y, {2, N})}))
                   .find("does not fit this runtime") != std::string::npos;
    };
    std::vector<int64_t> old = product, none = product, axis = product, alien = product;
    old[TESS_SPEC_N_PACKED] = 0;
    CHECK(refuses(old));
    none[TESS_SPEC_N_LAYOUTS] = 0;
    CHECK(refuses(none));
    axis[size_t(tess_spec_layouts(product.data(), 0) - product.data()) + TESS_SPEC_LAYOUT_AXES] = 2;
    CHECK(refuses(axis));
    alien[TESS_SPEC_VERSION] = TESS_SPEC_ABI2 + 2;
    CHECK(refuses(alien));
}

}  // namespace tessera::test_packed
