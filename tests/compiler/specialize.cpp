// A variant's program is made for the extents at which its conditions hold; and where no load of a tile needs its guard, it has none.
#include "compiler/compile/specialize.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "schedules/knobs/condition.h"
#include "tests/compiler/harness.h"

namespace tessera::test_specialize {

using namespace tessera::test;

static Condition is(const std::string &dim, const std::string &relation, int64_t bound, int64_t modulus = 0) {
    return {dim, "", modulus, relation, bound};
}

static const Options same = {{"stride", 1}, {"padding", 1}, {"dilation", 1}}, strided = {{"stride", 2}, {"padding", 2}, {"dilation", 1}};

static Knobs windows() {
    Knobs k;
    k.micro = {{"C", 8}, {"P", 2}, {"Q", 2}}, k.vector = {{"C", 4}}, k.unroll = {{"R", 3}, {"S", 3}};
    k.loops = {"N", "micro.P", "micro.C", "micro.Q", "R", "S"};
    return k;
}

static KnobsByStage convolution() {
    Knobs inlined;
    inlined.place = Place{Place::Kind::inlined, "", ""};
    return {{"padded", inlined}, {"y", windows()}};
}

struct VariantCase {
    std::string name;
    Algorithm algorithm;
    KnobsByStage stages;
    std::vector<std::vector<Condition>> variants;  // a last one without conditions is added
    std::vector<Extents> shapes;
};

static std::vector<VariantCase> variant_cases() {
    std::vector<Extents> images;
    for (int64_t size : {0, 1, 2, 5, 8, 13})
        for (int64_t window : {1, 2, 3, 4})
            for (int64_t channels : {3, 8, 24})
                images.push_back({{"N", 1}, {"H", size + 1}, {"W", size}, {"C", channels}, {"R", window}, {"S", 3}});
    const std::vector<std::vector<Condition>> three = {
        {is("R", "==", 3), is("S", "==", 3), is("C", "==", 0, 8)}, {is("R", "==", 3)}, {is("C", "<", 8)}};
    Knobs product;
    product.micro = {{"M", 4}, {"N", 8}}, product.vector = {{"N", 4}},
    product.pack["w"] = {"root", {{"N", 8, false}, {"K", 0, false}, {"N", 8, true}}};
    std::vector<Extents> products;
    for (int64_t m : {0, 1, 4, 5, 9})
        for (int64_t n : {1, 8, 15, 16}) products.push_back({{"M", m}, {"N", n}, {"K", m + n % 3}});
    Builder f("scores");  // of as many queries as keys
    const Dim S = f.dim("S"), D = f.dim("D");
    Dim T = symbolic_dim("T");
    T.equals = "S";
    const Algorithm scores = f.output("y", dot(f.input("q", {S, D}), transpose(f.input("k", {f.dim(T), D})))).build();
    Knobs rows;
    rows.micro = {{"S", 4}, {"T", 4}}, rows.vector = {{"T", 4}};
    std::vector<Extents> squares;
    for (int64_t s : {0, 1, 3, 4, 8, 11}) squares.push_back({{"S", s}, {"T", s}, {"D", 5}});
    // A tile of the update may lie beyond the last point: its host's vectors cover more points.
    Builder g("grown");
    const Dim M = g.dim("M"), N = g.dim("N");
    const Tile x = g.input("x", {M, N}), s = g.state("s", {M, N});
    g.update("grow", s, {g.index(M), g.index(N)}, x + s);
    const Algorithm grown = g.output("y", x * 2.0).build();
    Knobs grow, host;
    grow.micro = {{"N", 3}}, grow.place = Place{Place::Kind::beside, "y", "N"}, host.vector = {{"N", 4}};
    std::vector<Extents> rows_of;
    for (int64_t n : {0, 1, 2, 3, 4, 5, 6, 9}) rows_of.push_back({{"M", n / 2}, {"N", n}});
    return {{"windows", library::depthwise_conv2d_nhwc({}, same), convolution(), three, images},
            {"strided_windows", library::depthwise_conv2d_nhwc({}, strided), convolution(), three, images},
            {"product",
             library::matmul({}),
             {{"y", product}},
             {{is("M", "==", 0)}, {is("M", "<=", 4), is("N", "==", 0, 8)}, {is("N", ">=", 9), is("M", ">", 1), is("N", "!=", 15)}},
             products},
            {"scores", scores, {{"y", rows}}, {{is("T", "==", 4)}, {is("S", "<=", 3), is("T", ">=", 5)}, {is("S", "==", 0, 4)}}, squares},
            {"grown", grown, {{"grow", grow}, {"y", host}}, {{is("N", "==", 3)}, {is("N", "<=", 2)}, {is("N", "<", 6)}}, rows_of}};
}

static Kernel kernel_of(const VariantCase &c, const Target &target) {
    Kernel kernel{c.name, {}};
    auto add = [&](const std::vector<Condition> &when) {
        kernel.variants.push_back({when, lower_variant(c.algorithm, when, c.stages, target)});
        kernel.variants.back().program.name = c.name;
        CHECK(verify(kernel.variants.back().program).empty());
    };
    for (const auto &when : c.variants) add(when);
    add({});
    return kernel;
}

static size_t chosen(const VariantCase &c, const Extents &shape) {
    const auto first = std::find_if(c.variants.begin(), c.variants.end(), [&](const auto &when) {
        return std::all_of(when.begin(), when.end(), [&](const Condition &condition) { return holds(condition, shape.at(condition.dim)); });
    });
    return static_cast<size_t>(first - c.variants.begin());
}

// Every shape runs as the variant that its extents choose.
static void check(const Target &target, const Build &build = {}, const std::set<std::string> &names = {}) {
    std::vector<VariantCase> cases = variant_cases();
    if (!names.empty()) std::erase_if(cases, [&](const VariantCase &c) { return !names.count(c.name); });
    std::vector<Kernel> kernels;
    for (const VariantCase &c : cases) kernels.push_back(kernel_of(c, target));
    const Loaded code({{target, kernels}}, build);
    for (size_t k = 0; k < cases.size(); k++) {
        const VariantCase &c = cases[k];
        std::set<size_t> run;
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            const size_t v = chosen(c, shape);
            run.insert(v);
            INFO(target.name << " " << c.name << " variant " << v << " " << Catch::Detail::stringify(shape));
            seed++;
            const Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 3 == 0);
            const Arrays expected = run_interpreter(kernels[k].variants[v].program, shape, inputs, {});
            if (seed % 3) CHECK(differ(expected, run_reference(c.algorithm, shape, inputs, {}), 1e-4) == "");
            for (const Layout &layout : {Layout{}, Layout{false, 1, 3, 2}})
                CHECK(differ_in_bits(code.run(kernels[k].general(), shape, inputs, {}, layout), expected) == "");
        }
        CHECK(run.size() == c.variants.size() + (c.name == "scores" ? 0 : 1));  // one that can never hold is never run
    }
}

TEST_CASE("each variant of a kernel computes what the algorithm says") {
    for (const Target &target : targets()) check(target);
}

TEST_CASE("each variant of a kernel computes what the algorithm says: C") {
    for (const Build &build : c_builds("-O1 -march=x86-64-v3")) check(target_named("avx2"), build);
}

TEST_CASE("each variant of a kernel computes what the algorithm says: opencl", "[.][gpu]") {
    if (has_opencl()) check(target_named("opencl"), {}, {"scores"});
}

TEST_CASE("each variant of a kernel computes what the algorithm says: arm64", "[.][arm64]") {
    if (const Target target = target_named("arm64"); can_emulate(target)) check(target);
}

TEST_CASE("conditions of a variant are constraints of dims") {
    Builder f("equal_rows");
    Dim T = symbolic_dim("T");
    T.equals = "S", T.multiple_of = 6;
    const Dim S = f.dim("S"), K = f.dim("K", 4);
    const Tile x = f.input("x", {S, K}), y = f.input("y", {f.dim(T), K});
    const Algorithm a = f.output("z", dot(x, transpose(y))).build();
    const Algorithm c = constrained(
        a, {is("T", "<=", 40), is("S", ">", 3), is("T", "==", 0, 4), is("S", "!=", 12), is("K", "==", 4), {"", "avx2", 0, "", 0}});
    for (const char *name : {"S", "T"}) {
        CHECK(c.dim(name).min == 4);
        CHECK(c.dim(name).max == 40);
    }
    CHECK(c.dim("S").multiple_of == 4);
    CHECK(c.dim("T").multiple_of == 12);
    CHECK(c.dim("K").kind == DimKind::fixed);
    const Algorithm others = constrained(a, {is("S", "<", 9), is("S", ">=", 5), is("S", "==", 1, 2), is("S", "<", 1, 5)});
    CHECK(others.dim("S").min == 5);
    CHECK(others.dim("S").max == 8);
    CHECK(others.dim("S").multiple_of == 5);
}

TEST_CASE("a dim of one extent is a number in the variant's program, which has the arguments of all") {
    const Algorithm a = library::depthwise_conv2d_nhwc({}, {{"stride", 1}, {"padding", 0}, {"dilation", 1}});
    const Target target = target_named("avx2");
    const TileProgram general = lower(a, convolution(), target);
    const TileProgram three = lower_variant(a, {is("R", "==", 3), is("S", "==", 3)}, convolution(), target);
    const std::string body = to_text(three.body);
    CHECK(to_text(general.body).find("|R|") != std::string::npos);
    CHECK(body.find("|R|") == std::string::npos);
    CHECK(body.find("|S|") == std::string::npos);
    CHECK(to_text(three).find("  dim R = 3\n") == std::string::npos);
    REQUIRE(three.dims.size() == general.dims.size());
    for (size_t i = 0; i < three.dims.size(); i++) {
        CHECK(three.dims[i].name == general.dims[i].name);
        CHECK(three.dims[i].kind == general.dims[i].kind);
    }
    CHECK(verify(three).empty());
    const std::string divided = to_text(lower_variant(a, {is("C", "==", 0, 8)}, convolution(), target).body);
    CHECK(divided.find("<= |C|") == std::string::npos);  // no tile runs past the last channel
}

TEST_CASE("conditions that help no proof change nothing") {
    const Algorithm a = library::depthwise_conv2d_nhwc({}, same);
    const Target target = target_named("avx2");
    const std::string general = to_text(lower(a, convolution(), target));
    for (const auto &when :
         {std::vector<Condition>{is("H", "==", 0)}, {is("C", "<", 1)}, {is("R", ">=", 5), is("R", "<=", 4)}, {is("H", "!=", 9)}})
        CHECK(to_text(lower_variant(a, when, convolution(), target)) == general);
    // Windows that are larger than the image.
    const TileProgram large = lower_variant(a, {is("R", ">=", 8), is("H", "<=", 4)}, convolution(), target);
    CHECK(verify(large).empty());
    CHECK(verify(lower_variant(library::matmul({}), {is("M", ">=", INT32_MAX)}, {}, target)).empty());
}

TEST_CASE("loads keep their guards where the verifier cannot follow why none is needed") {
    Knobs inlined, slices;
    inlined.place = Place{Place::Kind::inlined, "", ""};
    slices.micro = {{"Q", 8}}, slices.k = {{"S", 2}}, slices.unroll = {{"S", 2}};
    const Algorithm a = bind_extents(library::depthwise_conv2d_nhwc({}, same), {{"S", 3}});
    const TileProgram program = lower(a, {{"padded", inlined}, {"y", slices}}, target_named("avx2"));
    CHECK(verify(program).empty());
    const Extents shape = {{"N", 1}, {"H", 4}, {"W", 19}, {"C", 2}, {"R", 3}};
    const Arrays inputs = make_inputs(a, shape, 3);
    CHECK(differ(run_interpreter(program, shape, inputs, {}), run_reference(a, shape, inputs, {}), 1e-4) == "");
}

// The loops over windows, and whether each reads under a guard.
static std::vector<bool> guarded_folds(const TileProgram &program) {
    std::vector<bool> all;
    walk(program.body, [&](const TileNode &node) {
        const auto *compute = std::get_if<Compute>(&node);
        if (!compute) return;
        bool reads = false, guarded = false;
        for (const Expr &e : expressions_of(node))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load && n->name == "x") reads = true, guarded |= n->guarded;
            });
        if (reads) all.push_back(guarded);
    });
    return all;
}

TEST_CASE("inside an image no load is guarded, and at its border loops of the fold are not written out") {
    const Algorithm padded = library::depthwise_conv2d_nhwc({}, same);
    const Target target = target_named("avx2");
    auto rolled = convolution();
    rolled["y"].unroll.clear();
    for (const TileProgram &program :
         {lower(padded, rolled, target), lower_variant(padded, {is("R", "==", 3), is("S", "==", 3)}, convolution(), target)}) {
        const std::vector<bool> folds = guarded_folds(program);
        CHECK(std::count(folds.begin(), folds.end(), false) == 1);
        CHECK(std::count(folds.begin(), folds.end(), true) == 2);  // of whole tiles, and of those that run past an end
    }
    // Where every tile is at the border there is nothing to tell apart.
    const std::vector<bool> small =
        guarded_folds(lower(bind_extents(padded, {{"H", 2}, {"W", 2}, {"R", 3}, {"S", 3}}), convolution(), target));
    CHECK(std::count(small.begin(), small.end(), false) == 0);
}

}  // namespace tessera::test_specialize
