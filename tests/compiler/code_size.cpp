#include "compiler/check/code_size.h"

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_code_size {

using namespace tessera::test;

static const Target avx512 = target_named("avx512");

static Knobs tile(int64_t m, int64_t n, int64_t lanes = 16) {
    Knobs k;
    k.micro = {{"M", m}, {"N", n}};
    if (lanes > 1) k.vector = {{"N", lanes}};
    return k;
}

static std::vector<std::string> checked(const Algorithm &a, const KnobsByStage &stages, const Target &target = avx512) {
    return check_code_size(lower(a, stages, target), stages, target);
}

TEST_CASE("a register tile's code: a load, a broadcast, an accumulator and its store for each vector") {
    const CodeSize size = code_size(lower(library::matmul({}), {{"y", tile(8, 48)}}, avx512), avx512);
    CHECK(size.instructions == 8 * 3 * 5);
    CHECK(size.computes == "y.acc");
    CHECK(size.registers == 24);
    CHECK(size.keeps == "y.acc");
    Knobs unrolled = tile(8, 48);
    unrolled.unroll = {{"K", 4}};
    CHECK(code_size(lower(library::matmul({}), {{"y", unrolled}}, avx512), avx512).instructions == 4 * 8 * 3 * 5);
    CHECK(code_size(lower(library::matmul({}), {{"y", tile(8, 48, 1)}}, avx512), avx512).registers == 8 * 48);
    CHECK(code_size(lower(library::matmul({}), {}, avx512), avx512).registers == 1);
}

TEST_CASE("an instruction of a family is one") {
    Knobs k = tile(3, 32);
    k.instruction = "dot2";
    const Target target = target_named("znver4");
    const Algorithm a = bind_extents(library::matmul_wide(numerics_named("bf16")), {{"K", 64}});
    CHECK(code_size(lower(a, {{"y", k}}, target), target).instructions == 3 * 2 * (1 + 4 + 1 + 1));
    // And four where it is two products of words and their sums.
    k.instruction = "dot4", k.vector = {{"N", 8}};
    const Algorithm bytes = bind_extents(library::matmul_u8s8({}), {{"K", 64}});
    auto instructions = [&](const Target &on) { return code_size(lower(bytes, {{"y", k}}, on), on).instructions; };
    CHECK(instructions(target_named("avx512")) == instructions(target_named("znver4")) + 3 * 4 * 3);
}

TEST_CASE("register tiles that take minutes to compile are refused, and the knobs named") {
    CHECK(checked(library::matmul({}), {{"y", tile(8, 48)}}).empty());
    CHECK(checked(library::matmul({}), {{"y", tile(16, 64)}}) ==
          std::vector<std::string>{"matmul.y: its register tile (micro: 16 of M * 64 of N; vector: 16 of N) keeps 64 values at a time, and "
                                   "avx512 has 32 registers, so some go through memory"});
    check_words(
        [] {
            checked(library::matmul({}), {{"y", tile(64, 64)}});
        },
        {"error[schedule.register-tile]: matmul.y: its register tile (micro: 64 of M * 64 of N; vector: 16 of N) keeps 256 values at a "
         "time, and avx512 has 32 registers; expected fewer "
         "than 256, since compiling takes minutes beyond. Make micro smaller, or vector wider."});
    check_words(
        [] {
            checked(library::softmax({}), {{"exp", tile(32, 64)}});
        },
        {"error[schedule.register-tile]: softmax.exp: ",
         " instructions are written out in a row (micro: 32 of M * 64 of N; vector: 16 of N); expected at most 1500, since compiling takes "
         "minutes beyond. Make micro or unroll smaller, or vector wider."});
    Knobs unrolled = tile(8, 48);
    unrolled.unroll = {{"K", 100}};
    check_words(
        [&] {
            checked(library::matmul({}), {{"y", unrolled}});
        },
        {"matmul.y: 12000 instructions are written out in a row (micro: 8 of M * 48 of N; unroll: 100 of K; vector: 16 of N)"});
    Knobs blocks = tile(8, 8, 1);
    blocks.block = {{"M", 64}, {"N", 64}};
    CHECK(checked(library::matmul({}), {{"y", blocks}}, target_named("opencl")).empty());
}

TEST_CASE("a wide panel is copied in a loop") {
    Knobs k = tile(8, 48);
    k.pack["w"] = {"root", {{"N", 65536, false}, {"K", 0, false}, {"N", 65536, true}}};
    CHECK(checked(library::matmul({}), {{"y", k}}).empty());
}

}  // namespace tessera::test_code_size
