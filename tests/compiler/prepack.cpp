// Operands packed ahead of time: the same bits as without, in every layout and at every shape; what is refused.
#include "compiler/rewrite/prepack.h"
#include "compiler/emit/spec.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/verify/verify.h"
#include "compiler/emit/header.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "schedules/knobs/notation.h"
#include "tests/compiler/cases.h"
#include "tests/support/words.h"

namespace tessera::test_prepack {

using namespace tessera::test;

using Stages = KnobsByStage;

static std::vector<LayoutAxis> layout(const std::vector<std::string> &axes) {
    std::vector<LayoutAxis> result;
    for (const std::string &text : axes) result.push_back(*parse_axis(text));
    return result;
}

// Packs ahead of time what the schedule packs at a loop.
static Stages ahead(Stages stages) {
    const Stages before = stages;
    for (auto &[name, knobs] : before)
        for (auto &[operand, pack] : knobs.pack) {
            stages[name].pack[operand].at = "prepack";
            stages.erase(name + "." + operand + ".packed");
        }
    return stages;
}

static Knobs product_knobs(int64_t lanes, int64_t panel, const std::vector<std::string> &axes, bool parallel = true) {
    Knobs k;
    k.micro = {{"M", 4}, {"N", panel}}, k.vector = {{"N", lanes}}, k.loops = {"micro.N", "micro.M"};
    if (parallel) k.parallel = {"micro.N"};
    k.pack["w"] = {"micro.N", layout(axes)};
    return k;
}

// The schedules pack at loops; `ahead` gives the others.
static std::vector<Case> packed_cases(int64_t L) {
    const Numerics f32, bf16 = numerics_named("bf16");
    std::vector<Extents> mnk;
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {0, 5, 3}, {3, 0, 2}, {2, 3, 0}, {1, 1, 1}, {7, 2 * L + 1, 5}, {5, 3 * L - 1, 17}, {13, 31, 33}, {9, 2 * L, 1}, {4, 50, 16}})
        mnk.push_back({{"M", m}, {"N", n}, {"K", k}});
    const std::string panel = std::to_string(2 * L);
    std::vector<Case> cases = {
        {"panels", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel})}}, mnk},
        {"rows", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {})}}, mnk},
        {"columns", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"N", "K"})}}, mnk},
        {"prime", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"K/3", "N/7", "K%3", "N%7"})}}, mnk},
        {"pairs", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K/2", "N%" + panel, "K%2"})}}, mnk},
        {"groups", library::matmul_u8s8(f32), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K/4", "N%" + panel, "K%4"})}}, mnk},
        {"digits", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K/8", "K%8/2", "N%" + panel, "K%2"})}}, mnk},
        {"halves", library::matmul_wide(bf16), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel})}}, mnk},
        {"fixed",
         bind_extents(library::matmul(f32), {{"N", 3 * L}, {"K", 5}}),
         {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel})}},
         {{{"M", 0}}, {{"M", 3}}, {{"M", 9}}}},
    };
    // Both operands, one of them in a stage that is placed.
    Case gelu{"placed", library::linear_gelu(f32), {{"acc", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel}, false)}}, mnk};
    gelu.stages["acc"].pack["x"] = {"micro.M", layout({"M/4", "K", "M%4"})};
    gelu.stages["acc"].loops = {"micro.M", "micro.N"};
    cases.push_back(gelu);
    Case asked{"asked_ahead", library::matmul(f32), {{"y", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel})}}, mnk};
    asked.stages["y"].prefetch["w"] = {"y", "micro.N", 1};
    cases.push_back(asked);
    // Two stages that read one operand, one of them in lanes that a split made.
    Case twice{"twice", library::matmul_s8s8(f32), {{"acc", product_knobs(L, 2 * L, {"N/" + panel, "K", "N%" + panel})}}, mnk};
    twice.stages["excess"].split["K"] = {Split::How::chunks, 4};
    twice.stages["excess.partial"].pack["w"] = {"root", layout({"N/" + panel, "K", "N%" + panel})};
    cases.push_back(twice);
    // A dim that is derived of another, which the operand alone has.
    Builder pairs("neighbours");
    const Dim n = pairs.dim("N"), n1 = pairs.dim(derived_dim("N1", extent("N") + 1));
    pairs.input("w", {n1});
    const Tile sums = pairs.tile(load("w", DType::f32, {variable("N")}) + load("w", DType::f32, {variable("N") + 1}), {n});
    Case derived{"derived", pairs.output("y", sums).build(), {}, {{{"N", 0}}, {{"N", 1}}, {{"N", 7}}, {{"N", 16}}}};
    derived.stages["y"].pack["w"] = {"root", layout({"N1/4", "N1%4"})};
    cases.push_back(derived);
    // Two codes in a byte, of rows of odd length too.
    Builder codes("nibbles");
    const Dim m = codes.dim("M"), columns = codes.dim("N"), inner = codes.dim("K");
    const Tile x = codes.input("x", {m, inner}), w = codes.input("w", {columns, inner}, DType::i4);
    Case half_bytes{"half_bytes", codes.output("y", dot(x, cast(DType::f32, w), {inner})).build(), {}, mnk};
    half_bytes.stages["dot_operand"].place = Place{Place::Kind::inlined, "", ""};
    half_bytes.stages["y"] = product_knobs(L, 2 * L, {"N/" + panel, "K.bytes", "N%" + panel});
    cases.push_back(half_bytes);
    half_bytes.name = "half_bytes_in_pieces",
    half_bytes.stages["y"].pack["w"].layout = layout({"N/" + panel, "K.bytes/3", "N%" + panel, "K.bytes%3"});
    cases.push_back(half_bytes);
    // Windows read inputs beyond their ends, and weights have four dims.
    Options window = {{"stride", 2}, {"padding", 1}, {"dilation", 1}};
    Case conv{"window", library::conv2d_nhwc(f32, window), {}, {}};
    Knobs k;
    k.micro = {{"Q", 3}, {"O", L}}, k.vector = {{"O", L}};
    k.pack["w"] = {"root", layout({"O/" + std::to_string(L), "R", "S", "C", "O%" + std::to_string(L)})};
    k.pack["x"] = {"root", layout({"N", "C", "H", "W"})};
    conv.stages["y"] = k;
    conv.stages["padded"].place = Place{Place::Kind::inlined, "", ""};
    for (int64_t n : {0, 1, 2})
        conv.shapes.push_back({{"N", n}, {"H", 5}, {"W", 7}, {"C", n == 1 ? 1 : 3}, {"O", 2 * L - n}, {"R", 3}, {"S", 3}});
    cases.push_back(conv);
    // Callees that are emitted once: of a caller's input, and of a slice of it in each round.
    for (Case &c : library_cases(L)) {
        const bool repeats = c.name == "layers_repeated_tiled";
        if (!repeats && c.name != "feed_forward_once") continue;
        Knobs &acc = c.stages[repeats ? "layers.acc" : "down.acc"];
        const std::string out = repeats ? "K" : "D";
        acc.micro = {{out, 2 * L}, {"M", 2}}, acc.vector = {{out, L}}, acc.loops = {"micro." + out, "micro.M"};
        acc.pack[repeats ? "w" : "w_down"] = {"micro." + out, layout({out + "/" + panel, repeats ? "D" : "F", out + "%" + panel})};
        c.stages[repeats ? "layers" : "up"].call = "once";
        c.stages.erase("up.acc");
        cases.push_back(std::move(c));
    }
    return cases;
}

// The inputs, and what the programs pack of them. `shape` has the extents of all dims: an operand's stand alone.
static Arrays with_packed(Arrays inputs, const std::vector<TileProgram> &packings, const Extents &shape) {
    for (const TileProgram &p : packings)
        for (auto &[name, array] : run_interpreter(p, shape, inputs, {})) inputs[name] = array;
    return inputs;
}

struct Both {
    TileProgram per_call, main;
    std::vector<TileProgram> packings;
};

static Both both(const Case &c, const Target &target) {
    return {lowered(c.name + "_per_call", c.algorithm, c.stages, target), lowered(c.name, c.algorithm, ahead(c.stages), target),
            lowered_packings(c.name, c.algorithm, ahead(c.stages), target)};
}

TEST_CASE("operands packed ahead of time give the bits of those that are packed at each call") {
    const Target target = target_named("avx2");
    for (const Case &c : packed_cases(8)) {
        const Both programs = both(c, target);
        for (const TileProgram &p : programs.packings) CHECK(p.arguments.size() == 2);
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            INFO(c.name << " " << Catch::Detail::stringify(shape));
            seed++;
            const Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 2 == 0);
            const Arrays expected = run_interpreter(programs.per_call, shape, inputs, {});
            const Arrays packed = with_packed(inputs, programs.packings, complete(c.algorithm, shape));
            CHECK(differ_in_bits(run_interpreter(programs.main, shape, packed, {}), expected) == "");
        }
    }
}

static void check_code(const Target &target, const Build &build = {}) {
    if (!runs_here(target)) return;
    const std::vector<Case> cases = packed_cases(target.vector_bytes / 4);
    std::vector<TileProgram> programs;
    std::vector<Both> all;
    for (const Case &c : cases) {
        all.push_back(both(c, target));
        programs.push_back(all.back().main);
        programs.insert(programs.end(), all.back().packings.begin(), all.back().packings.end());
    }
    const Loaded code(programs, target, build);
    for (size_t i = 0; i < cases.size(); i++) {
        uint32_t seed = 0;
        for (const Extents &shape : cases[i].shapes) {
            INFO(build.compiler << " " << target.name << " " << cases[i].name << " " << Catch::Detail::stringify(shape));
            seed++;
            const Arrays inputs = make_inputs(cases[i].algorithm, shape, seed, seed % 2 == 0);
            const Extents extents = complete(cases[i].algorithm, shape);
            const Arrays packed = with_packed(inputs, all[i].packings, extents);
            for (const Layout &layout : {Layout{}, Layout{false, 1, 3, 2}}) {
                Arrays own = inputs;
                for (const TileProgram &p : all[i].packings)
                    for (auto &[name, array] : code.run(p, extents, inputs, {}, layout)) {
                        CHECK(differ_in_bits({{name, array}}, {{name, packed.at(name)}}) == "");
                        own[name] = array;
                    }
                CHECK(differ_in_bits(code.run(all[i].main, shape, own, {}, layout), run_interpreter(all[i].per_call, shape, inputs, {})) ==
                      "");
            }
        }
    }
}

TEST_CASE("compiled packing and the compiled kernel give the bits of their tile programs") {
    for (const char *name : {"x86-64", "avx2", "avx512"}) check_code(target_named(name));
}

TEST_CASE("C that packs and C that takes what was packed give the bits of their tile programs") {
    for (const Build &build : c_builds("-O1")) check_code(target_named("avx2"), build);
}

// "matmul/bf16/prepacked_znver4", and what it stands beside: "matmul/bf16/znver4". So does a schedule for small extents.
struct ShippedPair {
    std::string name, beside, target;
    Algorithm algorithm;
};

static std::vector<ShippedPair> shipped_pairs(const Library &library) {
    const Options padding = {{"padding", 1}}, groups = {{"group", 8}, {"half_scale", 0}, {"zeros", 0}};
    const std::map<std::string, std::function<Algorithm(const Numerics &)>> algorithms = {
        {"matmul", library::matmul},
        {"matmul_wide", library::matmul_wide},
        {"matmul_u8s8", library::matmul_u8s8},
        {"matmul_s8s8", library::matmul_s8s8},
        {"matmul_qint4", [&](const Numerics &n) { return library::matmul_qint4(n, groups); }},
        {"matmul_dynamic_qint4", [&](const Numerics &n) { return library::matmul_dynamic_qint4(n, groups); }},
        {"matmul_dynamic_qint8", library::matmul_dynamic_qint8},
        {"linear_dynamic_qint8", library::linear_dynamic_qint8},
        {"matmul_mxfp8",
         [](const Numerics &n) {
             return library::matmul_mxfp8(n, {{"e5m2", 0}});
         }},
        {"matmul_mxfp4", library::matmul_mxfp4},
        {"matmul_nvfp4", library::matmul_nvfp4},
        {"linear", library::linear},
        {"linear_gelu", library::linear_gelu},
        {"lstm", [](const Numerics &n) { return library::lstm(n, complete_options("lstm", library::lstm_options(), {})); }},
        {"gru", [](const Numerics &n) { return library::gru(n, complete_options("gru", library::gru_options(), {})); }},
        {"conv2d_nhwc", [&](const Numerics &n) { return library::conv2d_nhwc(n, padding); }},
        {"conv2d_bias_relu_nhwc", [&](const Numerics &n) { return library::conv2d_bias_relu_nhwc(n, padding); }},
        {"conv2d_fused_nhwc", [&](const Numerics &n) { return library::conv2d_fused_nhwc(n, padding); }},
        {"conv2d_nchw", [&](const Numerics &n) { return library::conv2d_nchw(n, padding); }}};
    std::vector<ShippedPair> pairs;
    const std::string mark = "/prepacked_";
    for (const std::string &name : library.names()) {
        const size_t at = name.find(mark);
        if (at == std::string::npos) continue;
        const std::string small = "small_", rest = name.substr(at + mark.size()),
                          target = rest.substr(rest.starts_with(small) ? small.size() : 0), folder = name.substr(0, at);
        const size_t slash = folder.find('/');
        const Numerics numerics = slash == std::string::npos ? Numerics() : numerics_named(folder.substr(slash + 1));
        INFO(name << ": no algorithm for it here");
        const auto found = algorithms.find(folder.substr(0, slash));
        REQUIRE(found != algorithms.end());
        pairs.push_back({name, folder + "/" + target, target, found->second(numerics)});
    }
    return pairs;
}

static std::vector<Extents> shapes_of(const Algorithm &algorithm) {
    const auto has = [&](const char *dim) {
        return std::any_of(algorithm.dims.begin(), algorithm.dims.end(), [&](const Dim &d) { return d.name == dim; });
    };
    std::vector<Extents> shapes;
    if (has("T"))
        for (auto [t, n, i, h] :
             std::vector<std::array<int64_t, 4>>{{0, 1, 2, 3}, {2, 0, 1, 8}, {1, 1, 7, 5}, {4, 2, 3, 16}, {2, 5, 9, 13}})
            shapes.push_back({{"T", t}, {"N", n}, {"I", i}, {"H", h}});
    else if (!has("W"))
        for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{3, 0, 2}, {2, 3, 0}, {1, 1, 1}, {9, 50, 7}, {13, 96, 8}, {35, 33, 70}})
            shapes.push_back({{"M", m}, {"N", n}, {"K", k * algorithm.dim("K").multiple_of}});
    else
        for (auto [n, h, w, c, o] :
             std::vector<std::array<int64_t, 5>>{{1, 1, 1, 1, 1}, {1, 2, 3, 0, 4}, {1, 15, 9, 3, 33}, {2, 5, 29, 2, 70}})
            shapes.push_back({{"N", n}, {"H", h}, {"W", w}, {"C", c}, {"O", o}, {"R", 3}, {"S", 3}});
    return shapes;
}

TEST_CASE("schedules that ship and pack ahead of time give the bits of those beside them") {
    Library library;
    library.add_folder(TESSERA_SOURCE_DIR "/schedules/library");
    const std::vector<ShippedPair> pairs = shipped_pairs(library);
    CHECK(pairs.size() == 60);
    std::map<std::string, std::vector<Both>> all;
    std::map<std::string, std::vector<TileProgram>> programs;
    std::map<std::string, std::vector<Algorithm>> algorithms;
    for (const ShippedPair &pair : pairs) {
        const Target target = target_named(pair.target);
        const ResolvedSchedule ahead = resolve(library.find(pair.name), library);
        const Stages beside = resolve(library.find(pair.beside), library).stages;
        std::vector<Stages> versions = {ahead.stages};
        const std::set<std::string> decoded = {"matmul_qint4", "matmul_mxfp8", "matmul_mxfp4", "matmul_nvfp4"};
        if (decoded.count(pair.algorithm.name))  // elsewhere for few rows
            for (const Variant &v : ahead.variants) versions.push_back(v.stages);
        for (size_t i = 0; i < versions.size(); i++) {
            std::string name = pair.name + (i ? "_variant" + std::to_string(i) : "");
            std::replace(name.begin(), name.end(), '/', '_');
            const Both one = {lowered(name, pair.algorithm, beside, target), lowered(name, pair.algorithm, versions[i], target),
                              lowered_packings(name, pair.algorithm, versions[i], target)};
            CHECK(!one.packings.empty());
            all[pair.target].push_back(one);
            algorithms[pair.target].push_back(pair.algorithm);
            programs[pair.target].push_back(one.main);
            programs[pair.target].insert(programs[pair.target].end(), one.packings.begin(), one.packings.end());
        }
    }
    for (auto &[target, these] : all) {
        const bool runs = runs_here(target_named(target));
        const std::unique_ptr<Loaded> code = runs ? std::make_unique<Loaded>(programs.at(target), target_named(target)) : nullptr;
        for (size_t i = 0; i < these.size(); i++)
            for (const Extents &shape : shapes_of(algorithms.at(target)[i])) {
                INFO(these[i].main.name << " " << Catch::Detail::stringify(shape));
                const Extents extents = complete(algorithms.at(target)[i], shape);
                const Arrays inputs = make_inputs(algorithms.at(target)[i], shape, 7),
                             packed = with_packed(inputs, these[i].packings, extents);
                const Parameters parameters = make_parameters(algorithms.at(target)[i], 7);
                const Arrays expected = run_interpreter(these[i].per_call, shape, inputs, parameters);
                CHECK(differ_in_bits(run_interpreter(these[i].main, shape, packed, parameters), expected) == "");
                if (!runs) continue;
                Arrays own = inputs;
                for (const TileProgram &packing : these[i].packings)
                    for (auto &[name, array] : code->run(packing, extents, inputs, {}, {})) own[name] = array;
                CHECK(differ_in_bits(code->run(these[i].main, shape, own, parameters, {}), expected) == "");
            }
    }
}

TEST_CASE("what a packing algorithm says") {
    const Algorithm a = library::matmul({});
    const Stages stages = {{"y", product_knobs(8, 16, {"N/16", "K", "N%16"})}};
    const Stages asked = ahead(stages);
    Stages rest = asked;
    std::vector<PackedInput> packed;
    const Algorithm main = prepack(a, rest, packed);
    REQUIRE(packed.size() == 1);
    CHECK(rest.at("y").pack.empty());
    CHECK(main.find_tensor("w") == nullptr);
    CHECK(main.find_tensor("w.packed")->dims == std::vector<std::string>{"N.o16", "K", "N.i16"});
    CHECK(to_string(packed[0].packing) == "w[K, N] packed as N/16, K, N%16");
    verify(main);
    const Algorithm packing = packing_algorithm(a, packed[0]);
    verify(packing);
    CHECK(packing.name == "matmul_pack_w");
    const TileProgram program = lower_packings(a, asked, target_named("avx2"))[0];
    CHECK_THAT(to_text(program),
               Catch::Contains("  input w[K, N]: f32\n  output w.packed[N.o16, K, N.i16]: f32, w[K, N] packed as N/16, K, N%16\n"
                               "  parallel n.o < (|N| + 15)/16\n    for k < |K|\n      for n.i < 2\n        vector N.i.lane < 8\n"
                               "          w.packed[n.o, k, n.i*8 + N.i.lane] <- load_or(w[k, n.o*16 + n.i*8 + N.i.lane], "
                               "n.o*16 + n.i*8 + N.i.lane < |N|, 0.0)\n"));
    // Without a pack there is nothing to do, and neither with one at a loop.
    CHECK(lower_packings(a, {}, target_named("avx2")).empty());
    CHECK(lower_packings(a, stages, target_named("avx2")).empty());
    // A dim that fills its panels needs no test.
    const TileProgram whole = lower_packings(bind_extents(a, {{"N", 48}}), asked, target_named("avx2"))[0];
    CHECK_THAT(to_text(whole), !Catch::Contains("load_or"));
}

TEST_CASE("the dims of an operand stand alone where it is packed") {
    Algorithm a = library::matmul({});
    a.dims[1].equals = "M", a.dims[1].multiple_of = 4;  // N
    const Stages stages = ahead({{"y", product_knobs(8, 16, {"N/16", "K", "N%16"})}});
    const TileProgram packing = lower_packings(a, stages, target_named("avx2"))[0];
    for (const Dim &d : packing.dims) CHECK(d.equals.empty());
    for (const Dim &d : spec_dims(packing)) CHECK((d.name == "K" || d.name == "N" || d.kind == DimKind::fixed));
    CHECK(lower(a, stages, target_named("avx2")).arguments[1].packed.has_value());
}

TEST_CASE("the hash of a layout is that of the type, the axes and the padding") {
    auto packing = [](DType type, const std::vector<std::string> &dims, const std::vector<std::string> &axes) {
        return Packing{{"w", type, dims, Role::input, {}}, layout(axes)};
    };
    const uint64_t hash = layout_hash(packing(DType::f32, {"K", "N"}, {"N/48", "K", "N%48"}));
    CHECK(hash == 0xc65cca0b32fc3864);  // of "packed operand 1\nf32[2]\n1/48\n0\n1%48\nzeros\n"
    CHECK(layout_hash(packing(DType::f32, {"A", "B"}, {"B/48", "A", "B%48"})) == hash);
    for (const Packing &other :
         {packing(DType::i32, {"K", "N"}, {"N/48", "K", "N%48"}), packing(DType::f32, {"K", "N"}, {"N/16", "K", "N%16"}),
          packing(DType::f32, {"K", "N"}, {"K", "N/48", "N%48"}), packing(DType::f32, {"N", "K"}, {"N/48", "K", "N%48"}),
          packing(DType::f32, {"B", "K", "N"}, {"B", "N/48", "K", "N%48"}), packing(DType::f32, {"K", "N"}, {"K", "N"})})
        CHECK(layout_hash(other) != hash);
    // A file stays good when the rest of the schedule changes, or an extent is fixed.
    auto of = [](const Algorithm &a, int64_t rows) {
        Stages stages = ahead({{"y", product_knobs(8, 16, {"N/16", "K", "N%16"})}});
        stages["y"].micro["M"] = rows;
        return layout_hash(*lower(a, stages, target_named("avx2")).arguments[1].packed);
    };
    CHECK(of(library::matmul({}), 4) == of(bind_extents(library::matmul({}), {{"N", 768}}), 6));
}

TEST_CASE("a library for several targets packs for the one that runs, and refuses what was packed for another") {
    std::vector<TargetKernels> all;
    std::vector<Both> programs;
    int64_t panel = 32;
    for (const Target &target : targets_named("avx512,avx2,x86-64")) {
        const std::string n = std::to_string(panel);
        programs.push_back(
            both({"matmul", library::matmul({}), {{"y", product_knobs(target.vector_bytes / 4, panel, {"N/" + n, "K", "N%" + n})}}, {}},
                 target));
        all.push_back({target, {{"matmul", {{{}, programs.back().main}}}, {"matmul_pack_w", {{{}, programs.back().packings[0]}}}}});
        panel /= 2;
    }
    const std::string header = header_of("kernels", all);
    CHECK_THAT(header,
               Catch::Contains(
                   "int32_t matmul(const TessTensor *x, const TessTensor *w_packed, const TessTensor *y, const TessContext *context);"));
    CHECK_THAT(header,
               Catch::Contains("int32_t matmul_pack_w(const TessTensor *w, const TessTensor *w_packed, const TessContext *context);"));
    CHECK_THAT(header, Catch::Contains("int32_t matmul_pack_w_size(const TessTensor *w, const TessContext *context, uint64_t *bytes);"));
    CHECK_THAT(header, Catch::Contains("w_packed: bytes (tess_packed), 'w', f32 [K, N], packed as N/32, K, N%32, hash 0x"));
    CHECK_THAT(header, Catch::Contains(" for avx512; N/16, K, N%16, hash 0x"));
    CHECK_THAT(header, Catch::Contains("Data pointers may be null, but not that of a packed operand, whose header is read."));
    const Loaded code(all);
    const Extents shape = {{"M", 5}, {"N", 37}, {"K", 11}};
    const Arrays inputs = make_inputs(library::matmul({}), shape, 5);
    const uint64_t everything = ~uint64_t{0}, no_avx512 = uint64_t{1} << TESS_CPU_AVX512F;
    const std::vector<uint64_t> off = {0, no_avx512, everything};
    for (size_t t = 0; t < all.size(); t++) {
        if (!runs_here(all[t].target)) continue;
        INFO(all[t].target.name);
        const Layout layout{true, 0, 0, 1, off[t]};
        const Arrays packed = code.run(programs[t].packings[0], shape, inputs, {}, layout);
        CHECK(differ_in_bits(packed, run_interpreter(programs[t].packings[0], shape, inputs, {})) == "");
        Arrays own = inputs;
        own["w.packed"] = packed.at("w.packed");
        const Arrays expected = run_interpreter(programs[t].per_call, shape, inputs, {});
        CHECK(differ_in_bits(code.run(programs[t].main, shape, own, {}, layout), expected) == "");
        // The same bytes, where the processor lacks what they were packed for.
        if (t + 1 < all.size())
            CHECK_THROWS_WITH(code.run(programs[t].main, shape, own, {}, Layout{true, 0, 0, 1, everything}),
                              Catch::Contains("argument 1: the operand was packed in another layout, for another schedule or processor; "
                                              "pack it with this kernel's packing function"));
    }
}

TEST_CASE("what cannot be packed ahead of time") {
    auto refused = [](const Algorithm &a, const Stages &stages, const std::vector<std::string> &parts, const std::string &target = "avx2") {
        check_words([&] { lower(a, stages, target_named(target)); }, parts);
    };
    auto pack = [](const std::string &operand, const std::vector<std::string> &axes = {}) {
        Knobs k;
        k.pack[operand] = {"prepack", layout(axes)};
        return k;
    };
    const Algorithm gelu = library::linear_gelu({}), s8 = library::matmul_s8s8({});
    refused(gelu, {{"y", pack("acc")}},
            {"error[schedule.prepack]: y: cannot pack 'acc' ahead of time: it is computed by the kernel, and only inputs can be; the "
             "inputs are x, w, b. Pack it at a loop of the stage, or at root."});
    Algorithm reads_state = library::ring_append({});
    reads_state.steps.push_back(Stage{"old", {"B", "D"}, Map{load("cache", DType::f32, {variable("B"), Expr(0), variable("D")})}});
    refused(reads_state, {{"old", pack("cache")}},
            {"error[schedule.prepack]: old: cannot pack 'cache' ahead of time: it is a state, and only inputs can be"});
    refused(s8, {{"acc", pack("w")}},
            {"error[schedule.prepack]: acc: cannot pack 'w' ahead of time: the stage 'excess' reads it too, unpacked; state the same "
             "pack there (\"at\": \"prepack\", layout K, N), or pack it at a loop here."});
    Stages two = {{"acc", pack("w", {"N/4", "K", "N%4"})}, {"excess", pack("w", {"N", "K"})}};
    refused(s8, two,
            {"acc: cannot pack 'w' ahead of time: the stage 'excess' wants it in the layout N, K, this one in N/4, K, N%4; state one "
             "layout in both."});
    two["excess"].pack["w"].at = "root";
    refused(s8, two, {"the stage 'excess' reads it too, and packs it at root; state the same pack there"});
    refused(library::segmented_sum({}), {{"y", pack("offsets")}},
            {"y: cannot pack 'offsets' ahead of time: the extent of dim 'R' is read from it. Pack it at root."});
    refused(gelu, {{"y", pack("w")}}, {"error[schedule.prepack]: y: cannot pack 'w' ahead of time: the stage does not load it."});
    Algorithm scalar = library::matmul({});
    scalar.tensors.push_back({"s", DType::f32, {}, Role::input, {}});
    scalar.steps.push_back(
        Stage{"scaled", {"M", "N"}, Map{load("y", DType::f32, {variable("M"), variable("N")}) * load("s", DType::f32, {})}});
    refused(scalar, {{"scaled", pack("s")}}, {"scaled: cannot pack 's' ahead of time: it has one element, so there is nothing to pack."});
    refused(library::matmul({}), {{"y", pack("w")}},
            {"error[schedule.gpu]: y: packing 'w' ahead of time is not for opencl; delete it (null)."}, "opencl");
    // A call that is emitted once takes what its caller has.
    const Algorithm ffn = library::feed_forward({});
    Stages once = {{"down", {}}, {"down.acc", pack(ffn.calls()[1].tensors.at("x").tensor)}};
    once["down"].call = "once";
    refused(ffn, once,
            {"error[schedule.prepack]: down: cannot pack 'x' of linear ahead of time: what the call takes for it, 'up.y', is not an input "
             "of its caller, so it cannot be packed there. Pack it at a loop of the stage."});
}

}  // namespace tessera::test_prepack
