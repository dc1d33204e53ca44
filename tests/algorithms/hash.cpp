#include "algorithms/text/hash.h"
#include "support/text/sha256.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/functions/functions.h"
#include "algorithms/text/json.h"
#include "tests/algorithms/samples.h"

#include <nlohmann/json.hpp>

namespace tessera::test_hash {

using namespace tessera::test;

static Expr v(const std::string &name) { return variable(name); }

TEST_CASE("hash: SHA-256 gives the digests of FIPS 180-4") {
    CHECK(sha256("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256(std::string(1000000, 'a')) == "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("hash: renaming keeps the semantic hash and changes the surface hash") {
    for (const Algorithm &a : samples()) {
        INFO(a.name);
        Algorithm other = renamed(a, "zz_");
        CHECK(semantic_text(other) == semantic_text(a));
        CHECK(semantic_hash(other) == semantic_hash(a));
        CHECK(surface_hash(other) != surface_hash(a));
        CHECK(semantic_text(a).find("unknown") == std::string::npos);
        CHECK(semantic_text(a).find("cycle") == std::string::npos);
    }
}

TEST_CASE("hash: both hashes depend on the content alone") {
    for (const Algorithm &a : samples()) {
        Algorithm copy = algorithm_from_json(to_json(a));
        CHECK(semantic_hash(copy) == semantic_hash(a));
        CHECK(surface_hash(copy) == surface_hash(a));
    }
}

TEST_CASE("hash: different algorithms have different hashes") {
    std::set<std::string> semantic, surface;
    for (const Algorithm &a : samples()) semantic.insert(semantic_hash(a)), surface.insert(surface_hash(a));
    CHECK(semantic.size() == samples().size());
    CHECK(surface.size() == samples().size());
}

TEST_CASE("hash: every change of meaning changes the semantic hash") {
    auto differs = [](const Algorithm &base, auto change) {
        Algorithm changed = base;
        change(changed);
        return semantic_hash(changed) != semantic_hash(base);
    };
    auto reduce = [](Algorithm &a, size_t i) -> Reduce & { return std::get<Reduce>(a.stages()[i].body); };
    Algorithm m = matmul();
    CHECK(differs(m, [](Algorithm &a) { a.dims[0].max = 4095; }));
    CHECK(differs(m, [](Algorithm &a) { a.dims[0].min = 2; }));
    CHECK(differs(m, [](Algorithm &a) { a.dims[1].multiple_of = 8; }));
    CHECK(differs(m, [](Algorithm &a) { a.dims[1].equals = "M"; }));
    CHECK(differs(m, [](Algorithm &a) { a.dims[2].value = 767; }));
    CHECK(differs(m, [](Algorithm &a) { a.dims[2] = symbolic_dim("K"); }));
    CHECK(differs(m, [](Algorithm &a) { a.tensors[0].dtype = DType::f64; }));
    CHECK(differs(m, [](Algorithm &a) { a.tensors[0].role = Role::state; }));
    CHECK(differs(m, [](Algorithm &a) { std::swap(a.tensors[0], a.tensors[1]); }));
    CHECK(differs(m, [](Algorithm &a) { std::swap(a.tensors[0].dims[0], a.tensors[0].dims[1]); }));
    CHECK(differs(m, [](Algorithm &a) { a.tensors.push_back({"unused", DType::f32, {"M"}, Role::input, {}}); }));
    CHECK(differs(m, [](Algorithm &a) { std::swap(a.stages()[0].dims[0], a.stages()[0].dims[1]); }));
    CHECK(differs(m, [](Algorithm &a) { a.outputs = {"acc"}; }));
    CHECK(differs(m, [](Algorithm &a) { a.outputs.push_back("acc"); }));
    CHECK(differs(m, [](Algorithm &a) { a.numerics.accumulate = DType::f64; }));
    CHECK(differs(m, [](Algorithm &a) { a.numerics.rounding = Rounding::toward_zero; }));
    CHECK(differs(m, [](Algorithm &a) { a.updates_state = true; }));
    CHECK(differs(m, [&](Algorithm &a) { std::swap(reduce(a, 0).inputs[0], reduce(a, 0).inputs[1]); }));
    CHECK(differs(m, [&](Algorithm &a) { reduce(a, 0).where = v("K") < 5; }));
    CHECK(differs(m, [&](Algorithm &a) { reduce(a, 0).at = {v("M"), v("N")}; }));
    CHECK(differs(m, [&](Algorithm &a) { reduce(a, 0).monoid.parts[0].identity = Scalar::of_real(DType::f32, -0.0); }));
    CHECK(differs(m, [&](Algorithm &a) { reduce(a, 0).monoid.commutative = false; }));
    CHECK(
        differs(m, [&](Algorithm &a) { reduce(a, 0).monoid.step[0] = left(0, DType::f32) + input(0, DType::f32) * input(1, DType::f32); }));
    CHECK(differs(m, [&](Algorithm &a) { reduce(a, 0).monoid.batch[0].monoid = "sum"; }));
    CHECK(differs(m, [](Algorithm &a) {
        a.stages()[1].body = Map{gelu_tanh(load("acc", DType::f32, {v("M"), v("N")}) + load("b", DType::f32, {v("N")}))};
    }));
    CHECK(differs(prefix_sums(), [](Algorithm &a) { std::get<Scan>(a.stages()[0].body).inclusive = true; }));
    CHECK(differs(prefix_sums(), [](Algorithm &a) { std::get<Scan>(a.stages()[0].body).dim = "M"; }));
    CHECK(differs(prefix_sums(), [](Algorithm &a) { std::get<Scan>(a.stages()[0].body).direction = ScanDirection::backward; }));
    CHECK(differs(prefix_sums(), [](Algorithm &a) { std::get<Scan>(a.stages()[0].body).segments = v("N") == 3; }));
    CHECK(differs(suffix_maxima(), [](Algorithm &a) { std::get<Scan>(a.stages()[0].body).segments = v("N") == 3; }));
    CHECK(differs(layernorm(), [](Algorithm &a) { a.parameters.insert(a.parameters.begin(), {"zero", DType::f32}); }));
    CHECK(differs(attention(), [&](Algorithm &a) { reduce(a, 1).monoid.parts[2].dims = {"D"}; }));
    CHECK(differs(segmented_sum(), [](Algorithm &a) { a.dims[3].size = a.dims[3].size + 1; }));
    CHECK(differs(histogram(), [&](Algorithm &a) { reduce(a, 0).where = {}; }));
    CHECK(differs(ring_buffer(), [](Algorithm &a) { std::get<Map>(a.stages()[2].body).values[0].value = constant(DType::f32, 0); }));
    CHECK(differs(feed_forward(), [](Algorithm &a) { std::swap(a.calls()[0].tensors["w"], a.calls()[1].tensors["w"]); }));
    CHECK(differs(feed_forward(), [](Algorithm &a) { a.calls()[0].dims["M"] = "E"; }));
    CHECK(differs(feed_forward(), [](Algorithm &a) {
        auto callee = std::make_shared<Algorithm>(*a.calls()[0].callee);
        callee->stages()[1].body = Map{load("acc", DType::f32, {v("M"), v("N")})};
        a.calls()[0].callee = callee;
    }));
}

TEST_CASE("hash: every constant of an expression counts") {
    std::set<std::string> hashes;
    size_t count = 0;
    for (double value : {0.0, -0.0, 1.0, 0x1p-149, static_cast<double>(INFINITY), static_cast<double>(NAN)})
        for (DType type : {DType::f32, DType::f64}) {
            Algorithm a = softmax();
            a.stages()[3].body = Map{constant(type, value)};
            hashes.insert(semantic_hash(a));
            count++;
        }
    CHECK(hashes.size() == count);
}

TEST_CASE("hash: the order of declarations that no result depends on does not count") {
    Algorithm a = attention(), b = a;
    std::reverse(b.dims.begin(), b.dims.end());
    std::swap(b.steps[0], b.steps[2]);
    CHECK(semantic_hash(b) == semantic_hash(a));
    CHECK(surface_hash(b) == surface_hash(a));
    b = a;
    b.steps.push_back(Stage{"unused", {"Q"}, Map{constant(DType::f32, 1)}});
    CHECK(semantic_hash(b) == semantic_hash(a));
    CHECK(surface_hash(b) != surface_hash(a));
    Algorithm f = feed_forward(), g = f;
    std::swap(g.steps[0], g.steps[1]);
    CHECK(semantic_hash(g) == semantic_hash(f));
}

TEST_CASE("hash: the order of updates and of what reads the state counts") {
    Algorithm a = ring_buffer(), b = a, c = a;
    std::swap(b.steps[0], b.steps[1]);
    std::swap(c.steps[1], c.steps[2]);
    CHECK(semantic_hash(b) != semantic_hash(a));
    CHECK(semantic_hash(c) != semantic_hash(a));
    CHECK(semantic_hash(b) != semantic_hash(c));
}

TEST_CASE("hash: the surface is what a schedule can address, not the sizes, types or formulas") {
    auto surface = [](Algorithm a, auto change) {
        change(a);
        return surface_hash(a);
    };
    Algorithm m = matmul();
    std::string base = surface_hash(m);
    CHECK(surface(m, [](Algorithm &a) { a.dims[1] = fixed_dim("N", 3072); }) == base);
    CHECK(surface(m, [](Algorithm &a) { a.tensors[0].dtype = DType::bf16; }) == base);
    CHECK(surface(m, [](Algorithm &a) { a.stages()[1].body = Map{constant(DType::f32, 0)}; }) == base);
    CHECK(surface(m, [](Algorithm &a) { a.name = "other"; }) == base);
    CHECK(surface(m, [](Algorithm &a) { a.stages()[1].name = "out"; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.stages()[1].dims = {"N", "M"}; }) != base);
    CHECK(surface(m, [](Algorithm &a) { std::get<Reduce>(a.stages()[0].body).dims = {}; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.tensors[1].dims = {"N", "K"}; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.tensors[1].name = "w2"; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.tensors[1].role = Role::state; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.outputs = {"acc"}; }) != base);
    CHECK(surface(m, [](Algorithm &a) { a.dims.push_back(symbolic_dim("P")); }) != base);
    Algorithm o = attention(), f = feed_forward();
    CHECK(surface(o, [](Algorithm &a) { std::get<Reduce>(a.stages()[1].body).monoid.parts[2].name = "sum"; }) != surface_hash(o));
    CHECK(surface(f, [](Algorithm &a) { a.calls()[0].scope = "up"; }) != surface_hash(f));
}

// Published artifacts name these: a change here is a change of format.
TEST_CASE("hash: hashes stay what they are") {
    CHECK(surface_hash(softmax()) == sha256("dim 1'M'\ndim 1'N'\noutput 1'y'\n"
                                            "stage 1'e'[1'M' 1'N' ] map\n"
                                            "stage 1'y'[1'M' 1'N' ] map\n"
                                            "stage 3'top'[1'M' ] reduce [1'N' ] part 0''[]\n"
                                            "stage 5'total'[1'M' ] reduce [1'N' ] part 0''[]\n"
                                            "tensor 1'x'[1'M' 1'N' ] input\n"));
    Algorithm a;
    a.name = "scale", a.dims = {symbolic_dim("M")}, a.parameters = {{"by", DType::f32}};
    a.tensors = {{"x", DType::f32, {"M"}, Role::input, {}}};
    a.steps = {Stage{"y", {"M"}, Map{load("x", DType::f32, {v("M")}) * parameter("by", DType::f32)}}};
    a.outputs = {"y"};
    CHECK(semantic_text(a) ==
          "numerics f32 f32 f32 nearest_even 0\n"
          "parameter f32\n"
          "d0 = dim 1 0 2147483647\n"
          "input f32 [d0 ]\n"
          "e0 = variable d0\n"
          "e1 = load f32 input0 e0\n"
          "e2 = parameter f32 0\n"
          "e3 = mul e1 e2\n"
          "s0 = map [d0 ] e3\n"
          "results s0.0\n");
}

}  // namespace tessera::test_hash
