// Tensors that are declared large: in text, JSON and hashes, and in calls.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

namespace tessera::test_large {

namespace {

// y[M, N] = x[M, N] + 1; of rows only where `rank` is 1.
Algorithm plus_one(const std::set<std::string> &large, size_t rank = 2) {
    Builder f("plus_one");
    std::vector<Dim> dims;
    if (rank == 2) dims.push_back(f.dim("M"));
    dims.push_back(f.dim("N"));
    f.output("y", f.input("x", dims) + 1);
    for (const std::string &name : large) f.large(name);
    return f.build();
}

// A call of it, or one for each row, on what is large.
Algorithm caller(const Algorithm &callee, const std::set<std::string> &large, bool of_rows = false, bool carried = false) {
    Builder f("caller");
    const Dim A = f.dim("A"), B = f.dim("B");
    const Tile p = f.input("p", {A, B});
    if (carried) f.output("q", f.repeat("each", callee, {f.dim("R").name, {{"x", "y"}}}, {p})[0]);
    else if (of_rows) f.output("q", f.repeat("each", callee, {"A", {}, {"y"}}, {p})[0]);
    else f.output("q", f.call("each", callee, {p})[0]);
    for (const std::string &name : large) f.large(name);
    return f.build();
}

}  // namespace

TEST_CASE("large: the word is in texts and documents, and in hashes where it is") {
    const Algorithm plain = plus_one({}), x = plus_one({"x"}), y = plus_one({"y"}), both = plus_one({"x", "y"});
    CHECK_THAT(to_text(both), Catch::Contains("  outputs y\n  large x, y\n"));
    CHECK(to_text(plain).find("large") == std::string::npos);
    CHECK(to_json(both).at("large") == nlohmann::json{"x", "y"});
    CHECK_FALSE(to_json(plain).contains("large"));
    for (const Algorithm &a : {plain, x, y, both}) CHECK(to_text(algorithm_from_json(to_json(a))) == to_text(a));
    CHECK(std::set<std::string>{semantic_hash(plain), semantic_hash(x), semantic_hash(y), semantic_hash(both)}.size() == 4);
    CHECK(surface_hash(plain) == surface_hash(both));  // a schedule of one fits the other
}

TEST_CASE("large: only inputs, states and outputs are") {
    CHECK_THROWS_WITH(plus_one({"z"}), Catch::Contains("error[algorithm.large]: plus_one.z: it is declared large and is no input, state or "
                                                       "output; those are y, x."));
}

TEST_CASE("large: what a callee takes of a large tensor is large too, or lies along the last axis") {
    CHECK_THROWS_WITH(
        caller(plus_one({}), {"p"}),
        Catch::Contains("error[algorithm.call]: caller.each: 'x' of plus_one is bound to 'p', which is large, and is not large "
                        "itself; declare it large too, or bind a view that goes along the last axis only."));
    CHECK_THROWS_WITH(caller(plus_one({"x"}), {"p", "q"}), Catch::Contains("'y' of plus_one is bound to 'q', which is large"));
    CHECK_NOTHROW(caller(plus_one({"x"}), {"p"}));
    CHECK_NOTHROW(caller(plus_one({"x", "y"}), {"p", "q"}));
    CHECK_NOTHROW(caller(plus_one({"x", "y"}), {}));
    CHECK_NOTHROW(caller(plus_one({}, 1), {"p", "q"}, true));
    // A round takes what the one before wrote to the result.
    CHECK_THROWS_WITH(caller(plus_one({"y"}), {"q"}, false, true), Catch::Contains("'x' of plus_one is bound to 'q', which is large"));
    CHECK_NOTHROW(caller(plus_one({"x", "y"}), {"q"}, false, true));
}

TEST_CASE("large: inlined and renamed algorithms keep it") {
    const Algorithm inlined = inline_calls(caller(plus_one({"x", "y"}), {"q"}));
    CHECK(inlined.large == std::set<std::string>{"q"});
    const Algorithm whole = caller(plus_one({"x", "y"}), {"p", "q"});
    CHECK(renamed(whole.calls()[0], [](const std::string &) { return false; }).large == std::set<std::string>{"p", "q"});
}

}  // namespace tessera::test_large
