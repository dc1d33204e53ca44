#include "compiler/rewrite/join.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/inline_calls.h"
#include "algorithms/verify/verify.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/support/words.h"

namespace tessera::test_join {

using test::check_words;

namespace {

KnobsByStage beside(const std::vector<std::pair<std::string, std::string>> &pairs) {
    KnobsByStage stages;
    for (const auto &[guest, host] : pairs) stages[guest].place = Place{Place::Kind::beside, host, ""};
    return stages;
}

Algorithm joined(const Algorithm &a, const std::vector<std::pair<std::string, std::string>> &pairs) {
    KnobsByStage stages = beside(pairs);
    return join_stages(a, stages);
}

void refused(const Algorithm &a, const std::vector<std::pair<std::string, std::string>> &pairs, const std::string &words) {
    CHECK_THROWS_WITH(lower(a, beside(pairs), target_named("x86-64")), "error[schedule.join]: " + words);
}

}  // namespace

TEST_CASE("updates that are joined read every array once") {
    const Algorithm a = joined(library::adamw({}, {{"narrow", 0}}),
                               {{"first", "update_w"}, {"second", "update_w"}, {"update_m", "first"}, {"update_v", "second"}});
    verify(a);
    REQUIRE(a.stages().size() == 1);
    CHECK(a.stages()[0].name == "update_w");
    CHECK(a.stages()[0].results == std::vector<std::string>{"", "", "", "", ""});
    const std::vector<Value> &values = std::get<Map>(a.stages()[0].body).values;
    CHECK(to_string(values[2].value) == "w[N]*$decay - $step*(left.0/(sqrt(left.1)*$scale + $epsilon))");
    CHECK((to_string(values[3].value) == "left.0" && values[3].to->state == "m"));
    CHECK((to_string(values[4].value) == "left.1" && values[4].to->state == "v"));
}

TEST_CASE("what is joined keeps its meaning where states are read and written in turn") {
    Builder f("turns");
    const Dim N = f.dim("N");
    const Tile s = f.state("s", {N}), t = f.state("t", {N}), x = f.input("x", {N});
    f.update("first", s, {f.index(N)}, s + x);
    f.update("second", t, {f.index(N)}, s * t);  // s as it is after the first
    const Tile old = (s * 2.0).named("old");
    f.update("third", x.builder().state("u", {N}), {f.index(N)}, old + t);
    const Algorithm a = f.build();
    const Algorithm one = joined(a, {{"first", "third"}, {"second", "third"}, {"old", "third"}});
    REQUIRE(one.stages().size() == 1);
    const auto run = [&](const Algorithm &algorithm) {
        std::map<std::string, Array> all = {{"x", Array(DType::f32, {3}, {1, 2, 3})},
                                            {"s", Array(DType::f32, {3}, {4, 5, 6})},
                                            {"t", Array(DType::f32, {3}, {7, 8, 9})},
                                            {"u", Array(DType::f32, {3}, {0, 0, 0})}};
        const auto results = evaluate(algorithm, all);
        std::vector<std::vector<double>> values;
        for (const char *name : {"s", "t", "u"}) values.push_back(results.at(name).values());
        return values;
    };
    CHECK(run(one) == run(a));
    CHECK(run(a)[1] == std::vector<double>{35, 56, 81});
}

TEST_CASE("stages that cannot share loops are refused with words") {
    Builder f("mixed");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), s = f.state("s", {N}), v = f.input("v", {N});
    const Tile sums = sum(x, N).named("sums"), shares = (x / sums).named("shares");          // (M), (M, N)
    const Tile columns = sum(shares, M).named("columns"), v2 = (v * v).named("v2");          // (N), (N)
    const Tile next = v2.at({{"N", extent("N") - 1 - variable("N")}}, {"N"}).named("next");  // (N)
    const Tile far = f.tile(load("s", DType::f32, {extent("N") - 1 - variable("N")}), {N});  // (N)
    f.update("put", s, {f.index(N)}, v);
    const Algorithm a = f.output("y", shares).output("z", columns + next).output("reversed", far * v2).build();
    refused(a, {{"sums", "shares"}},
            "sums: it cannot share the loops of 'shares': one of them is a fold and the other is not, or they fold differently. Place it "
            "at root.");
    refused(a, {{"sums", "columns"}},
            "columns: it cannot share the loops of 'sums': it needs 'shares', which needs one of the two and "
            "would run after both. Place it at root.");
    refused(a, {{"shares", "v2"}},
            "shares: it cannot share the loops of 'v2': its dims are M, N, and the other's are N. Place it at root.");
    refused(a, {{"next", "v2"}},
            "next: it cannot share the loops of 'v2': it reads v2[|N| - 1 - N], which is of another point. Place it "
            "at root.");
    refused(a, {{"put", "reversed"}},
            "reversed: it cannot share the loops of 'put': it reads s[|N| - 1 - N] after 's' was written, "
            "which is another element. Place it at root.");
    refused(a, {{"put", "none"}},
            "put: it cannot share the loops of 'none': there is no such stage. The schedule's stages are those of its "
            "algorithm.");
    refused(a, {{"v2", "next"}, {"next", "v2"}},
            "v2: it cannot share the loops of 'v2': they are beside each other in a circle. Give one of "
            "them loops of its own.");
}

TEST_CASE("a fold's own dims stay apart from those that the joined stage goes over") {
    Builder f("apart");
    Dim L = symbolic_dim("L");
    L.equals = "K";
    const Dim M = f.dim("M"), K = f.dim("K");
    L = f.dim(L);
    const Tile x = f.input("x", {M, K}), y = f.input("y", {M, L}), z = f.input("z", {L, K});
    const Tile a = sum(x, K).named("a");  // (M)
    Monoid rows = dot_monoid(DType::f32);
    rows.name = "rows", rows.parts[0].dims = {"K"}, rows.batch.clear(), rows.batch_parts.clear();
    const Tile b = f.fold(rows, {y, z}, {"L"})[0].named("b");  // (M, K)
    const Algorithm all = f.output("p", a + a).output("q", b + b).build();
    const std::string words = "b: it cannot share the loops of '";
    const std::string why = "': its part 'value' has the dim 'K' of its own, which one of them goes over. Place it at root.";
    refused(all, {{"b", "a"}}, words + "a" + why);
    refused(all, {{"a", "b"}}, words + "b" + why);
}

TEST_CASE("the element that is written may be a value of the point") {
    Builder f("indexed");
    Dim M = symbolic_dim("M");
    M.min = 1;
    const Dim N = f.dim("N");
    M = f.dim(M);
    const Tile p = f.input("p", {N}, DType::i32), x = f.input("x", {N}), s = f.state("s", {M});
    const Tile h = (p + f.scalar(DType::i32, 1)).named("h");  // (N)
    f.update("put", s, {bounded(h, 0, extent("M"))}, x);
    const Algorithm a = f.build();
    const TileProgram program = lower(a, beside({{"h", "put"}}), target_named("x86-64"));
    CHECK(is_proved(program));
}

TEST_CASE("places that lead in a circle are refused") {
    Builder f("circle");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), a = (x + 1.0).named("a"), b = (a * 2.0).named("b"), c = (x - 1.0).named("c");
    const Algorithm circle = f.output("y", b + c).output("z", c).build();
    KnobsByStage stages;
    stages["a"].place = Place{Place::Kind::at, "b", "N"}, stages["b"].place = Place{Place::Kind::at, "a", "N"};
    stages["z"].place = Place{Place::Kind::beside, "y", "N"};
    check_words([&] { lower(circle, stages, target_named("avx2")); },
                {"error[schedule.place]: a: it is placed in loops of", "lead back to it. Place one of them at root."});
}

TEST_CASE("what dims and the order of steps keep apart is refused, and other Reduces are joined") {
    int apart = 0, refused_still = 0, joins = 0;
    for (const auto &cases : {test::library_cases(8), test::beside_cases(8), test::scatter_cases(8), test::repeat_cases(8)})
        for (const test::Case &c : cases) {
            const Algorithm a = inline_calls(c.algorithm);
            KeptApart kept_apart(a);
            for (auto guest = a.stages().begin(); guest != a.stages().end(); ++guest)
                for (auto host = std::next(guest); host != a.stages().end(); ++host) {
                    INFO(c.name << ": " << guest->name << " beside " << host->name);
                    bool is_refused = false;
                    try {
                        joined(a, {{guest->name, host->name}});
                    } catch (const UserError &) { is_refused = true; }
                    if (kept_apart(*guest, *host)) {
                        apart++;
                        CHECK(is_refused);
                    } else {
                        (is_refused ? refused_still : joins)++;
                    }
                    if (std::holds_alternative<Reduce>(host->body)) CHECK(kept_apart(*guest, *host) == is_refused);
                }
        }
    CHECK(apart > 100);
    CHECK(refused_still > 0);
    CHECK(joins > 0);
}

}  // namespace tessera::test_join
