#include "algorithms/evaluate/monoid_laws.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/functions/functions.h"
#include "support/text/error.h"

namespace tessera::test_monoid_laws {

namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32, boolean = DType::boolean;

Scalar real(double value) { return Scalar::of_real(f32, value); }
Expr number(double value) { return constant(f32, value); }

Monoid of_one_part(Scalar identity, Expr lift, Expr combine, Expr step) {
    Monoid m;
    m.name = "mine", m.parts = {{"value", identity, {}}}, m.inputs = {identity.type};
    m.lift = {lift}, m.combine = {combine}, m.step = {step};
    return m;
}

std::string law_of(const Monoid &m) { return broken_law(m).value_or("none"); }

const Expr l = left(0, f32), r = right(0, f32), x = input(0, f32);

}  // namespace

TEST_CASE("monoid_laws: the monoids of the vocabulary keep them") {
    std::vector<Monoid> all;
    for (DType type : {DType::f32, DType::f64})
        for (const Monoid &m :
             {sum_monoid(type), product_monoid(type), dot_monoid(type), welford_monoid(type), moments_monoid(type), max_monoid(type),
              min_monoid(type), max_number_monoid(type), argmax_monoid(type), online_softmax_monoid(type, "V")})
            all.push_back(m);
    for (DType type : {DType::i32, DType::i64})
        for (const Monoid &m : {sum_monoid(type), product_monoid(type), dot_monoid(type), max_monoid(type), min_monoid(type),
                                max_number_monoid(type), argmax_monoid(type)})
            all.push_back(m);
    for (size_t i = 0, n = all.size(); i < n; i++) all.push_back(segmented_monoid(all[i]));
    for (const Monoid &m : all) {
        INFO(m.name << " of " << name_of(m.inputs[0]));
        CHECK(law_of(m) == "none");
    }
}

TEST_CASE("monoid_laws: honest monoids of floats keep them, whatever they round and wherever they are infinite") {
    // The logarithm of a sum of exponentials: -inf is the sum of nothing.
    Monoid log_sum = online_softmax_monoid(f32, "V");
    log_sum.name = "log_sum", log_sum.parts.resize(2), log_sum.inputs = {f32};
    for (auto *list : {&log_sum.lift, &log_sum.combine, &log_sum.step}) list->resize(2);
    log_sum.batch.clear(), log_sum.batch_parts.clear();
    CHECK(law_of(log_sum) == "none");
    // The length of a vector, without a square that overflows where the length does not.
    const auto length = [](const Expr &a, const Expr &b) { return sqrt(a * a + b * b); };
    CHECK(law_of(of_one_part(real(0), abs(x), length(l, r), length(l, x))) == "none");
    // The logarithm of a negative number is NaN on both sides.
    CHECK(law_of(of_one_part(real(0), log(x), l + r, l + log(x))) == "none");
    // A decaying average as a composition of affine maps: not commutative.
    Monoid affine;
    affine.name = "affine", affine.commutative = false, affine.inputs = {f32, f32};
    affine.parts = {{"scale", real(1), {}}, {"shift", real(0), {}}};
    affine.lift = {input(0, f32), input(1, f32)};
    affine.combine = {left(0, f32) * right(0, f32), fma(left(1, f32), right(0, f32), right(1, f32))};
    affine.step = {left(0, f32) * input(0, f32), fma(left(1, f32), input(0, f32), input(1, f32))};
    CHECK(law_of(affine) == "none");
    affine.commutative = true;
    CHECK_THAT(law_of(affine), Catch::StartsWith("combine is not commutative, as the monoid is declared: for a = (scale "));
    // A product of matrices: 0 * NaN and 0 * inf of the identity spread them.
    Monoid product;
    product.name = "product", product.commutative = false;
    for (int i = 0; i < 4; i++) {
        product.parts.push_back({"p" + std::to_string(i), real(i % 3 == 0), {}}), product.inputs.push_back(f32);
        product.lift.push_back(input(i, f32));
    }
    const auto times = [](auto right_of) {
        std::vector<Expr> all;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) all.push_back(left(2 * i, f32) * right_of(j, f32) + left(2 * i + 1, f32) * right_of(2 + j, f32));
        return all;
    };
    product.combine = times([](int i, DType type) { return right(i, type); });
    product.step = times([](int i, DType type) { return input(i, type); });
    CHECK(law_of(product) == "none");
    // The two largest, by choices only: equal to the bit, also where one is infinite.
    Monoid two;
    two.name = "two", two.inputs = {f32};
    two.parts = {{"first", real(-INFINITY), {}}, {"second", real(-INFINITY), {}}};
    const auto second = [](const Expr &a, const Expr &b, const Expr &c, const Expr &d) { return max(min(a, b), max(c, d)); };
    two.lift = {x, number(-INFINITY)};
    two.combine = {max(l, r), second(l, r, left(1, f32), right(1, f32))};
    two.step = {max(l, x), second(l, x, left(1, f32), left(1, f32))};
    CHECK(law_of(two) == "none");
    CHECK(law_of(of_one_part(Scalar::of_integer(boolean, 0), input(0, boolean), left(0, boolean) || right(0, boolean),
                             left(0, boolean) || input(0, boolean))) == "none");
}

TEST_CASE("monoid_laws: a law that is broken is named, with values that break it") {
    CHECK(law_of(of_one_part(real(0), x, l + r, l + x * number(2))) ==
          "step is not combine after lift: for a = 0.0, x = 0.75, step(a, x) is 1.5, and combine(a, lift(x)) is 0.75. Correct the one that "
          "is wrong; a fold in pieces uses both");
    CHECK_THAT(law_of(of_one_part(real(1), x, l + r, l + x)),
               Catch::StartsWith("the identity changes an element: for a = 1.0, combine(identity, a) is 2.0. Correct its identity, or how "
                                 "combine treats it"));
    CHECK_THAT(law_of(of_one_part(real(0), x, l - r, l - x)), Catch::StartsWith("the identity changes an element: for a = "));
    CHECK_THAT(law_of(of_one_part(real(0), x, l + r + l * r * abs(l - r), l + x + l * x * abs(l - x))),
               Catch::StartsWith("combine is not associative: for a = "));
    // A largest value that begins at 0. One that begins at a finite number is the same under every schedule.
    CHECK_THAT(law_of(of_one_part(real(0), x, max(l, r), max(l, x))), Catch::StartsWith("the identity changes an element: for a = -"));
    CHECK(law_of(of_one_part(real(-1e30), x, max(l, r), max(l, x))) == "none");
    // The position of the largest, the first that is met: which of equals that is depends on the order.
    Monoid first = argmax_monoid(f32);
    const auto pick = [](const Expr &value, const Expr &position) -> std::vector<Expr> {
        return {select(l < value, value, l), select(l < value, position, left(1, DType::i64))};
    };
    first.combine = pick(r, right(1, DType::i64)), first.step = pick(x, input(1, DType::i64));
    CHECK_THAT(law_of(first), Catch::Contains("Set commutative to false, or let combine choose between equals by their values"));
    first.commutative = false;
    CHECK(law_of(first) == "none");
    // A largest value that what comes after a NaN replaces.
    const auto loses = [](const Expr &a, const Expr &b) { return select(b < a, a, b); };
    CHECK_THAT(law_of(of_one_part(real(-INFINITY), x, loses(l, r), loses(l, x))),
               Catch::StartsWith("the identity changes an element: for a = nan"));
    // One that passes over it is the same in every order, whatever a lifted NaN is.
    const auto passes = [](const Expr &a, const Expr &b) { return select(a < b, b, a); };
    CHECK(law_of(of_one_part(real(-INFINITY), x, passes(l, r), passes(l, x))) == "none");
    // A mean without weights: 0 / 0 of two empty pieces.
    Monoid mean = welford_monoid(f32);
    mean.combine[1] = (left(0, f32) * left(1, f32) + right(0, f32) * right(1, f32)) / (left(0, f32) + right(0, f32));
    CHECK_THAT(law_of(mean),
               Catch::StartsWith("the identity changes an element: for a = (n 0.0, mean 0.0, m2 0.0), combine(identity, a) is "
                                 "(n 0.0, mean nan, m2 0.0)"));
}

TEST_CASE("monoid_laws: the batch form is the fold, of nothing too") {
    Monoid m = welford_monoid(f32);
    m.batch[2].values[0] = right(1, f32) / right(0, f32);
    CHECK_THAT(law_of(m), Catch::StartsWith("the batch form is not the fold: of the elements none it gives (n 0.0, mean "));
    m = welford_monoid(f32);
    m.batch_parts = {0, 1, 3};
    CHECK_THAT(law_of(m), Catch::StartsWith("the batch form is not the fold: of the elements ") &&
                              Catch::EndsWith("Correct its passes, or leave the batch form out"));
}

TEST_CASE("monoid_laws: an identity that changes no bit, and one that does") {
    for (DType type : {DType::f32, DType::f64})
        for (const Monoid &m : {sum_monoid(type), product_monoid(type), dot_monoid(type), max_monoid(type), min_monoid(type),
                                max_number_monoid(type), argmax_monoid(type), online_softmax_monoid(type, "V")}) {
            INFO(m.name);
            CHECK(has_exact_identity(m));
        }
    CHECK(has_exact_identity(sum_monoid(i32)));
    // An infinite mean less the mean of nothing.
    CHECK_FALSE(has_exact_identity(welford_monoid(f32)));
    // -0 is what a fold of this begins with, and no number but itself keeps it: 0 + -0 is 0.
    CHECK(has_exact_identity(of_one_part(real(-0.0), x, l + r, l + x)));
    // Rounded away by a detour that changes no value by much.
    const Expr large = number(1e6);
    CHECK_FALSE(has_exact_identity(of_one_part(real(0), x, l + (r + large - large), l + x)));
}

TEST_CASE("monoid_laws: of an algorithm, each monoid is checked, those of its calls too") {
    auto algorithm = [](const Monoid &m) {
        Builder f("inner");
        const Dim M = f.dim("M"), K = f.dim("K");
        return f.output("y", f.fold(m, {f.input("x", {M, K})}, {"K"})[0]).build();
    };
    const Monoid wrong = of_one_part(real(0), x, l + r, l + x * number(2));
    CHECK_NOTHROW(check_monoid_laws(algorithm(sum_monoid(f32))));
    Builder f("outer");
    const Dim A = f.dim("A"), B = f.dim("B");
    const Tile called = f.call("part", algorithm(wrong), {f.input("x", {A, B})})[0];
    CHECK_THROWS_WITH(
        check_monoid_laws(f.output("z", called + 1.0).build()),
        "error[algorithm.monoid-law]: outer.part.y: the monoid 'mine': step is not combine after lift: for a = 0.0, x = 0.75, "
        "step(a, x) is 1.5, and combine(a, lift(x)) is 0.75. Correct the one that is wrong; a fold in pieces uses both. "
        "Elements that never are such may be kept out by lift and step, as in max(x, 0).");
}

}  // namespace tessera::test_monoid_laws
