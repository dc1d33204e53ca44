#include "algorithms/transform/roles.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/transform/vmap/vmap.h"

namespace tessera::test_roles {

namespace {

using Names = std::map<std::string, std::string>;

const Numerics f32 = numerics_named("f32"), bf16 = numerics_named("bf16");

std::map<std::string, StageRole> roles(const Algorithm &made, const Algorithm &of) {
    std::map<std::string, StageRole> all;
    for (const StageRole &role : roles_in(inline_calls(made), inline_calls(of))) all[role.stage] = role;
    return all;
}

// The roles that a gradient's products have, each with the dims that are the product's there.
void check_dims(const Algorithm &f, const std::vector<std::string> &by, const std::map<std::string, Names> &expected) {
    const auto all = roles(vjp(f, {by, {}, {}}), f);
    INFO(f.name);
    for (const auto &[stage, dims] : expected) {
        INFO(stage);
        REQUIRE(all.count(stage));
        CHECK(all.at(stage).dims == dims);
    }
    CHECK(all.size() == expected.size());
}

}  // namespace

TEST_CASE("a product's gradients are products of the same dims, with the operands in their roles") {
    const Algorithm linear = library::linear(f32);
    const auto all = roles(vjp(linear), linear);
    REQUIRE(all.size() == 2);
    const StageRole &x = all.at("x.grad"), &w = all.at("w.grad");
    CHECK(x.of == "acc");
    CHECK(x.reader_of == "y");
    CHECK(x.reader.empty());
    CHECK(x.dims == Names{{"M", "M"}, {"N", "K"}, {"K", "N"}});
    CHECK(x.tensors == Names{{"x", "y.grad"}, {"w", "w"}, {"acc", "x.grad"}});
    CHECK(w.dims == Names{{"M", "K"}, {"N", "N"}, {"K", "M"}});
    CHECK(w.tensors == Names{{"x", "x"}, {"w", "y.grad"}, {"acc", "w.grad"}});
}

TEST_CASE("the map that alone reads a product has the role of the one there") {
    const Algorithm matmul = library::matmul(bf16);
    const StageRole role = roles(vjp(matmul), matmul).at("w.grad.dot");
    CHECK(role.reader == "w.grad");
    CHECK(role.reader_of == "y");
    CHECK(role.tensors.at("y") == "w.grad");
}

TEST_CASE("an algorithm's products have their own roles in it") {
    const Algorithm f = library::linear_gelu(f32);
    const auto own = roles(f, f);
    REQUIRE(own.size() == 1);
    CHECK(own.at("acc").dims == Names{{"M", "M"}, {"N", "N"}, {"K", "K"}});
    CHECK(own.at("acc").reader == own.at("acc").reader_of);
    // What a gradient computes again is what it was.
    CHECK(roles(vjp(f), f).at("acc").dims == own.at("acc").dims);
}

TEST_CASE("roles go by rows, columns and folded dims") {
    check_dims(
        library::batched_gemm(f32, complete_options("batched_gemm", library::gemm_options(), {})), {"x", "w"},
        {{"x.grad", {{"B", "B"}, {"M", "M"}, {"N", "K"}, {"K", "N"}}}, {"w.grad", {{"B", "B"}, {"M", "K"}, {"N", "N"}, {"K", "M"}}}});
    const Algorithm attention = library::attention(f32);
    const auto all = roles(vjp(attention), attention);
    for (const char *stage : {"scores", "scaled.grad", "k.grad"}) {
        INFO(stage);
        REQUIRE(all.count(stage));
        CHECK(all.at(stage).dims.at("H") == "H");
    }
    for (const char *stage : {"scores.grad.online_softmax", "v.grad"}) CHECK(!all.count(stage));  // they read nothing that scores reads
    // One dim more: no role.
    const Algorithm matmul = library::matmul(f32);
    CHECK(roles(vmap(matmul, symbolic_dim("B"), {"x"}), matmul).empty());
    CHECK(roles(library::softmax(f32), matmul).empty());
}

}  // namespace tessera::test_roles
