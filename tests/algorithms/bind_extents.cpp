#include "algorithms/transform/bind_extents.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "tests/support/words.h"

namespace tessera::test_bind_extents {

using namespace tessera::test;

TEST_CASE("extents that do not fit") {
    Algorithm a = library::matmul({});
    check_words(
        [&] {
            bind_extents(a, {{"Z", 4}});
        },
        {"error[shape.unknown-dim]: matmul: there is no dim 'Z' to give an extent; the symbolic dims are M, N, K."});
    CHECK_THROWS_WITH(bind_extents(a, {{"Q", 1}}), !Catch::Contains("Did you mean"));
    CHECK_THROWS_WITH(bind_extents(a, {{"n", 1}}), Catch::Contains("Did you mean 'N'?"));
    check_words(
        [] {
            bind_extents(library::conv2d_nhwc({}, {{"stride", 1}, {"padding", 0}}), {{"P", 3}});
        },
        {"error[shape.unknown-dim]: conv2d_nhwc: dim P is derived, as ", "|H|",
         "; the symbolic dims are N, H, W, C, R, S, O. Give extents to those that it is derived of."});
    check_words(
        [] {
            bind_extents(bind_extents(library::matmul({}), {{"N", 16}}), {{"N", 7}});
        },
        {"error[shape.constraint]: matmul: dim N, dimension 1 of 'w': extent must be 16, not 7. It is fixed, by its declaration and "
         "options "
         "or by --shape; the symbolic dims are M, K. Leave it out."});
    a.dims[0].min = 4, a.dims[0].max = 64, a.dims[0].multiple_of = 4;
    check_words(
        [&] {
            bind_extents(a, {{"M", 2}});
        },
        {"error[shape.constraint]: matmul: dim M, dimension 0 of 'x': extent must be at least 4, not 2."});
    check_words(
        [&] {
            bind_extents(library::matmul({}), {{"M", 1 << 16}, {"K", 1 << 15}});
        },
        {"error[shape.too-large]: matmul: 'x' of M=65536, K=32768 is too large: expected a tensor of at most 2147418111 elements. Fix "
         "smaller extents, or leave dims open."});
    check_words([&] { bind_extents(a, {{"M", 68}}); }, {"dim M, dimension 0 of 'x': extent must be at most 64, not 68."});
    check_words([&] { bind_extents(a, {{"M", 10}}); }, {"dim M, dimension 0 of 'x': extent must be a multiple of 4, not 10."});
    a.dims[1].equals = "M";
    check_words([&] { bind_extents(a, {{"M", 8}, {"N", 12}}); }, {"dim N, dimension 1 of 'w': extent must equal that of M, 8, not 12."});
}

}  // namespace tessera::test_bind_extents
