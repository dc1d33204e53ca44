// Functions with names: a user's own is refused, compared, stored and expanded as the standard ones are.
#include "algorithms/expr/function.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "algorithms/evaluate/in_double.h"
#include "algorithms/functions/functions.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json_expr.h"
#include "support/text/error.h"

namespace tessera::test_function {

namespace {

Expr mish_of(const Expr &x) { return x * tanh(softplus(x)); }

FunctionRef mish() {
    return make_function("mish", 1, [](const Operands &x) { return mish_of(x[0]); });
}

std::string code_of(const std::function<void()> &act) {
    try {
        act();
    } catch (const UserError &e) { return e.id(); }
    return "";
}

FunctionRef made(const std::string &name, int arity, const std::function<Expr(const Operands &)> &define) {
    return make_function(name, arity, define);
}

Algorithm algorithm_with(const Expr &value) {
    Algorithm a;
    a.name = "f";
    a.dims = {symbolic_dim("N")};
    a.tensors = {{"x", DType::f32, {"N"}, Role::input, {}}};
    a.steps = {Stage{"y", {"N"}, Map{value}}};
    a.outputs = {"y"};
    return a;
}

Expr element() { return load("x", DType::f32, {variable("N")}); }

}  // namespace

TEST_CASE("make_function refuses what is no function") {
    auto first = [](const Operands &x) { return x[0]; };
    for (const char *name : {"", "2x", "a b", "x-y", "\u00e9"}) {
        INFO("'" << name << "'");
        CHECK(code_of([&] { made(name, 1, first); }) == "function.definition");
    }
    CHECK(code_of([&] { made(std::string(65, 'a'), 1, first); }) == "function.definition");
    CHECK(code_of([&] { make_function("f", 0, input(0, DType::f32), input(0, DType::f64)); }) == "function.definition");
    CHECK(code_of([&] { made("f", max_function_arguments + 1, first); }) == "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &) { return Expr(); }); }) == "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return x[0] < x[0]; }); }) == "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return input(1, x[0].type()); }); }) == "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return cast(x[0].type(), input(0, DType::i32)); }); }) ==
          "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return x[0] + load("t", x[0].type(), {variable("N")}); }); }) ==
          "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return x[0] + cast(x[0].type(), variable("N")); }); }) ==
          "function.definition");
    CHECK(code_of([&] { made("f", 1, [](const Operands &x) { return x[0] + parameter("p", x[0].type()); }); }) == "function.definition");
}

TEST_CASE("a function refuses arguments that are not its own") {
    const Expr x = input(0, DType::f32);
    CHECK(code_of([&] { applied(mish(), Operands()); }) == "functions.type");
    CHECK(code_of([&] { applied(mish(), {x, x}); }) == "functions.type");
    CHECK(code_of([&] { applied(mish(), {input(0, DType::bf16)}); }) == "functions.type");
    CHECK(code_of([&] { applied(mish(), {variable("N")}); }) == "functions.type");
    CHECK(code_of([&] { pow(x, input(1, DType::f64)); }) == "functions.type");
}

TEST_CASE("functions of one name and one definition are equal") {
    const Expr x = input(0, DType::f32);
    CHECK(equal(applied(mish(), {x}), applied(mish(), {x})));
    CHECK(applied(mish(), {x})->hash == applied(mish(), {x})->hash);
    const FunctionRef renamed = made("mish2", 1, [](const Operands &v) { return mish_of(v[0]); });
    const FunctionRef other = made("mish", 1, [](const Operands &v) { return mish_of(-v[0]); });
    CHECK_FALSE(equal(applied(mish(), {x}), applied(renamed, {x})));
    CHECK_FALSE(equal(applied(mish(), {x}), applied(other, {x})));
    CHECK_FALSE(equal(applied(mish(), {x}), applied(mish(), {-x})));
}

TEST_CASE("functions are their JSON") {
    const Expr own = applied(mish(), {element() + constant(DType::f32, 1)});
    const nlohmann::json document = to_json(own);
    CHECK(document[0] == "apply");
    CHECK(document[1].at("name") == "mish");
    CHECK(equal(expr_from_json(document), own));
    CHECK(equal(expr_from_json(nlohmann::json::parse(document.dump())), own));
    for (const FunctionRef &f : standard_functions())
        for (DType type : {DType::f32, DType::f64}) {
            Operands x;
            for (int i = 0; i < f->arity; i++) x.push_back(input(i, type));
            const Expr e = applied(f, x);
            INFO(f->name);
            CHECK(to_json(e)[0] == f->name);
            CHECK(equal(expr_from_json(to_json(e)), e));
            CHECK(equal(expr_from_json(to_json(f->definition(type))), f->definition(type)));
        }
}

TEST_CASE("a function expands to its definition, in the type of its arguments") {
    const Expr x = element(), call = applied(mish(), {x});
    CHECK(equal(definition_of(call), mish_of(x)));
    CHECK(equal(expand_functions(call), expand_functions(mish_of(x))));
    CHECK_FALSE(expand_functions(call)->functions);
    const Expr wide = expand_functions(in_double(call, {"x"}));
    CHECK(equal(wide, expand_functions(mish_of(cast(DType::f64, x)))));
    const Expr folded = applied(mish(), {constant(DType::f64, 0.5)});
    CHECK(folded.is_constant());
}

TEST_CASE("a function's name is no part of what is computed") {
    const Expr x = element();
    CHECK(semantic_hash(algorithm_with(applied(mish(), {x}))) == semantic_hash(algorithm_with(mish_of(x))));
    CHECK(semantic_hash(algorithm_with(applied(mish(), {x}))) == semantic_hash(algorithm_with(expand_functions(mish_of(x)))));
    for (const FunctionRef &f : standard_functions()) {
        Operands operands;
        for (int i = 0; i < f->arity; i++) operands.push_back(x);
        const Expr call = applied(f, operands);
        INFO(f->name);
        CHECK(semantic_hash(algorithm_with(call)) == semantic_hash(algorithm_with(expand_functions(call))));
    }
}

}  // namespace tessera::test_function
