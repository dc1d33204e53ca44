#include "autotune/space/search_space.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/space/decisions_from_schedule.h"
#include "bench/measure/inputs.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "compiler/rewrite/split.h"
#include "schedules/artifact/callee_schedules.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/merge.h"
#include "schedules/check/check.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/written_out.h"
#include "support/text/error.h"
#include "tests/autotune/kernels.h"
#include "tests/support/words.h"

namespace tessera::test_search_space {

using namespace tessera::test;

static Extents fitting(const Algorithm &a, const Extents &extents) {
    Extents symbolic;
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic) {
            auto e = extents.find(d.equals.empty() ? d.name : d.equals);
            if (e == extents.end()) e = extents.find(d.name);
            symbolic[d.name] = e == extents.end() ? 1 : e->second;
        }
    return symbolic;
}

static TileProgram lowered(const Algorithm &a, const KnobsByStage &stages, const Target &target) {
    ResolvedSchedule schedule;
    schedule.name = "sampled";
    schedule.stages = stages;
    check(schedule, a);
    check_stages(schedule, -1, apply_splits(inline_calls(a), stages));
    TileProgram program = lower(a, stages, target);
    if (const std::vector<std::string> assumed = verify(program); !assumed.empty()) throw UserError("schedule.unproved", assumed.front());
    return program;
}

// The outputs differ from the reference by no more than another order of additions explains.
static std::string difference(const Algorithm &a, const TileProgram &program, const Extents &symbolic) {
    const Extents extents = all_extents(a, symbolic);
    const Inputs inputs = random_inputs(program, extents, 7);
    EvaluationOptions exact;
    exact.precision = Precision::f64, exact.extents = symbolic;
    const auto expected = evaluate(a, inputs.tensors, inputs.parameters, exact);
    std::map<std::string, Array> arrays;
    std::map<std::string, TensorView> views;
    for (const Argument &arg : program.arguments)
        arrays.emplace(arg.tensor.name,
                       arg.read ? inputs.tensors.at(arg.tensor.name) : Array(arg.tensor.dtype, shape_of(arg.tensor, extents)));
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    interpret(program, views, extents, inputs.parameters);
    for (const Argument &arg : program.arguments) {
        if (!arg.written) continue;
        const std::vector<double> got = arrays.at(arg.tensor.name).values(), want = expected.at(arg.tensor.name).values();
        double largest = 1e-6;
        for (double w : want) largest = std::max(largest, std::abs(w));
        const double near = is_float(arg.tensor.dtype) ? (size_of(arg.tensor.dtype) == 2 ? 2e-2 : 1e-4) * largest : 0;
        for (size_t i = 0; i < got.size(); i++)
            if (!(std::abs(got[i] - want[i]) <= near))
                return arg.tensor.name + "[" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", not " + std::to_string(want[i]);
    }
    return "";
}

// What nearly every schedule of a space is: legal, safe, and a way to compute the same.
static int check_space(const SearchSpace &space, int samples, uint64_t seed) {
    RandomNumbers random(seed);
    int refused = 0;
    std::string why;
    for (int i = 0; i < samples; i++) {
        Trace trace;
        const auto stages = realize(space, recording(sampling(random), trace));
        std::string text;
        for (const auto &[name, value] : trace) text += name + "=" + value + " ";
        INFO(space.algorithm.name << " " << text);
        std::optional<TileProgram> program;
        try {
            program = lowered(space.algorithm, stages, space.target);
        } catch (const UserError &error) {
            why += std::string("\n") + error.what();
            refused++;
        }
        if (program) CHECK(difference(space.algorithm, *program, space.extents) == "");
    }
    INFO(space.algorithm.name << ": " << refused << " of " << samples << " refused" << why);
    CHECK((samples < 4 || refused < samples));
    return refused;
}

TEST_CASE("every schedule of a space that lowers computes what the algorithm says") {
    uint64_t seed = 3;
    int refused = 0, made = 0;
    for (const char *target : {"avx2", "avx512"})
        for (const SmallKernel &k : small_kernels()) {
            const Extents symbolic = fitting(k.algorithm, k.extents);
            const int samples = k.name == "encoder" ? 8 : 4;  // calls refuse much of what single kernels allow
            refused += check_space({bind_extents(k.algorithm, symbolic), target_named(target), {}, 1, {}, {}}, samples, seed++);
            refused += check_space({k.algorithm, target_named(target), symbolic, 2, {}, {}}, 1, seed++);
            made += samples + 1;
        }
    INFO(refused << " of " << made);
    CHECK(refused * 5 <= made);
}

TEST_CASE("every schedule of a GPU's space that lowers computes what the algorithm says") {
    uint64_t seed = 101;
    int refused = 0, made = 0;
    for (const SmallKernel &k : small_kernels()) {
        if (k.name == "encoder") continue;  // it repeats calls
        const Extents symbolic = fitting(k.algorithm, k.extents);
        refused += check_space({bind_extents(k.algorithm, symbolic), target_named("opencl"), {}, 1, {}, {}}, 4, seed++);
        refused += check_space({k.algorithm, target_named("cuda-sm80"), symbolic, 1, {}, {}}, 1, seed++);
        made += 5;
    }
    INFO(refused << " of " << made);
    CHECK(refused * 5 <= made);
}

TEST_CASE("nearly all samples of a GPU's space lower at real sizes, and are proved safe") {
    for (const char *target : {"opencl", "cuda-sm80"})
        for (const SmallKernel &k : small_kernels()) {
            if (k.name != "matmul" && k.name != "softmax" && k.name != "linear_gelu" && k.name != "conv2d_nhwc" && k.name != "column_sum")
                continue;
            Extents large = fitting(k.algorithm, k.extents);
            for (auto &[dim, extent] : large)
                if (extent > 3) extent = 480;
            const SearchSpace space{bind_extents(k.algorithm, large), target_named(target), {}, 1, {}, {}};
            RandomNumbers random(17);
            int refused = 0;
            std::string why;
            for (int i = 0; i < 40; i++) {
                Trace trace;
                const auto stages = realize(space, recording(sampling(random), trace));
                try {
                    lowered(space.algorithm, stages, space.target);
                } catch (const UserError &error) {
                    why += std::string("\n") + error.what();
                    for (const auto &[name, value] : trace) why += "\n  " + name + "=" + value;
                    refused++;
                }
            }
            INFO(k.name << " on " << target << ": " << refused << " of 40 refused" << why);
            CHECK(refused <= 4);
        }
}

TEST_CASE("instruction families are in the space of a target that has them") {
    const Algorithm a = bind_extents(library::matmul_wide(numerics_named("bf16")), {{"M", 24}, {"N", 64}, {"K", 32}});
    const SearchSpace space{a, target_named("znver4"), {}, 1, parse_restrictions({"instruction=dot2"}), {}};
    check_space(space, 6, 3);
    RandomNumbers random(1);
    const auto stages = realize(space, sampling(random));
    CHECK(stages.at("y").instruction == "dot2");
}

TEST_CASE("fragments are in the space of a target that has them, as many as there are registers for") {
    const Algorithm wide = library::matmul_wide(numerics_named("bf16")), rounded = library::matmul(numerics_named("bf16"));
    const Target amx = target_named("amx");
    const Extents small = {{"M", 40}, {"N", 72}, {"K", 70}}, large = {{"M", 256}, {"N", 768}, {"K", 768}};
    const SearchSpace space{bind_extents(wide, small), amx, {}, 1, parse_restrictions({"instruction=amx_bf16"}), {}};
    check_space(space, 8, 5);
    check_space({bind_extents(rounded, small), amx, {}, 1, parse_restrictions({"dot.instruction=amx_bf16"}), {}}, 8, 6);
    // What is most likely is what is best nearly everywhere.
    for (const Algorithm &a : {bind_extents(wide, large), bind_extents(rounded, large)}) {
        const auto stages = realize({a, amx, {}, 1, {}, {}}, most_likely);
        const Knobs &fold = stages.at(a.name == "matmul" ? "dot" : "y");
        INFO(a.name);
        CHECK(fold.instruction == "amx_bf16");
        CHECK(fold.micro == Extents{{"M", 32}, {"N", 32}});
        CHECK(fold.vector.empty());
        CHECK(fold.pack.size() == 2);
        for (const auto &[operand, pack] : fold.pack) CHECK(pack.layout.empty());
        lowered(a, stages, amx);
    }
    const SearchSpace whole{bind_extents(wide, large), amx, {}, 1, {}, {}};
    std::set<std::pair<int64_t, int64_t>> grids;
    RandomNumbers random(4);
    for (int i = 0; i < 300; i++) {
        const auto stages = realize(whole, sampling(random));
        const Knobs &fold = stages.at("y");
        if (fold.instruction == "amx_bf16") grids.emplace(fold.micro.at("M") / 16, fold.micro.at("N") / 16);
        if (i < 40) CHECK(realize(whole, decisions_from_schedule(stages, most_likely)) == stages);
    }
    CHECK(grids == std::set<std::pair<int64_t, int64_t>>{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}, {3, 1}});
}

TEST_CASE("a product reads an operand that lies across its lanes from a copy, whoever made it") {
    for (bool is_made : {false, true}) {
        CAPTURE(is_made);
        Builder f("product");
        const Dim M = f.dim("M", 256), N = f.dim("N", 256), K = f.dim("K", 256);
        const Tile x = f.input("x", {M, K});
        Tile w = f.input("w", {N, K});
        if (is_made) w = exp(w).named("made");
        const SearchSpace space{f.output("y", dot(x, w, {K})).build(), target_named("avx2"), {}, 1, {}, {}};
        RandomNumbers random(7);
        int along = 0, copied = 0;
        for (int i = 0; i < 200; i++) {
            const auto stages = realize(space, sampling(random));
            const auto y = stages.find("y"), made = stages.find("made");
            if (y == stages.end() || !y->second.vector.count("N")) continue;
            const bool is_made_so = made != stages.end() && (made->second.place || !made->second.layout.empty());
            along++, copied += is_made_so || y->second.pack.count("made") || y->second.pack.count("w");
        }
        CHECK(along > 60);
        CHECK(copied * 10 > along * 9);
    }
}

TEST_CASE("an algorithm that nobody has seen gets a space") {
    Builder f("scaled_distance", {});
    const Dim A = f.dim("A"), B = f.dim("B"), D = f.dim("D");
    const Tile x = f.input("x", {A, D}), y = f.input("y", {B, D});
    const Tile gap = (x - y).named("gap");
    const Algorithm a = bind_extents(f.output("d", sqrt(sum(gap * gap, D))).build(), {{"A", 29}, {"B", 35}, {"D", 40}});
    check_space({a, target_named("avx2"), {}, 1, {}, {}}, 12, 5);
}

TEST_CASE("a schedule's answers make it again") {
    const Algorithm a =
        GENERATE(bind_extents(library::linear_gelu({}), {{"M", 96}, {"N", 192}, {"K", 64}}),
                 bind_extents(library::softmax({}), {{"M", 64}, {"N", 512}}), bind_extents(library::gemv({}), {{"M", 64}, {"K", 512}}),
                 bind_extents(library::layernorm({}), {{"M", 96}, {"N", 768}}),
                 bind_extents(library::attention({}), {{"H", 2}, {"S", 96}, {"T", 96}, {"D", 64}, {"E", 64}}));
    const Target target = target_named(GENERATE("avx512", "arm64"));
    const SearchSpace space{a, target, {}, 1, {}, {}};
    CAPTURE(a.name, target.name);
    CHECK(realize(space, decisions_from_schedule(realize(space, most_likely), most_likely)) == realize(space, most_likely));
    RandomNumbers random(11);
    for (int i = 0; i < 20; i++) {
        Trace trace, again;
        const auto stages = realize(space, recording(sampling(random), trace));
        CHECK(realize(space, recording(replaying(trace, most_likely), again)) == stages);
        CHECK(again == trace);
        CHECK(realize(space, decisions_from_schedule(stages, most_likely)) == stages);
    }
}

TEST_CASE("a number of lanes that the space has not becomes the nearest") {
    const SearchSpace space{bind_extents(library::gemv({}), {{"M", 64}, {"K", 512}}), target_named("avx512"), {}, 1, {}, {}};
    for (const auto &[asked, nearest] : {std::pair<int64_t, int64_t>{8, 16}, {16, 16}, {48, 64}, {4096, 128}}) {
        KnobsByStage stages;
        stages["y"].split["K"] = {Split::How::lanes, asked};
        const auto image = realize(space, decisions_from_schedule(stages, most_likely));
        REQUIRE(image.count("y"));
        REQUIRE(image.at("y").split.count("K"));
        CHECK(image.at("y").split.at("K").size == nearest);
    }
}

TEST_CASE("a result stands in a loop of a later one that reads what it does") {
    Builder f("kept_total");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
    const Tile total = (x + r).named("total"), most = max(total, {N}).named("most");  // (M, N), (M)
    Algorithm a = f.output("y", exp(total - most)).build();
    a.outputs.push_back("total");
    const SearchSpace space{bind_extents(a, {{"M", 512}, {"N", 512}}), target_named("avx2"), {}, 1, {}, {}, {}};
    const KnobsByStage likely = realize(space, most_likely);
    REQUIRE(likely.at("total").place);
    CHECK(to_string(*likely.at("total").place).starts_with("beside y in "));
    CHECK_NOTHROW(verify(lower(space.algorithm, likely, space.target)));
    const KnobsByStage again = realize(space, decisions_from_schedule(likely, most_likely));
    CHECK(to_text(lower(space.algorithm, again, space.target)) == to_text(lower(space.algorithm, likely, space.target)));
}

TEST_CASE("a scatter has lanes along what lies side by side, and a copy of a small result for each thread") {
    const auto likely = [](const Algorithm &a, const Extents &extents, int threads) {
        const SearchSpace space{bind_extents(a, extents), target_named("avx2"), {}, threads, {}, {}, {}};
        const KnobsByStage stages = realize(space, most_likely);
        CHECK_NOTHROW(verify(lower(space.algorithm, stages, space.target)));
        return stages;
    };
    CHECK(likely(library::embedding_gradient({}), {{"T", 512}, {"V", 1000}, {"D", 64}}, 1).at("grad").vector == Extents{{"D", 8}});
    const KnobsByStage counts = likely(library::histogram({}), {{"N", 1 << 20}, {"V", 100}}, 2);
    CHECK(counts.at("counts").split.at("N").how == Split::How::threads);
    CHECK(counts.at("counts.partial").parallel == std::vector<std::string>{"N.o"});
}

// A tile program's text with its loops numbered in the order in which they stand there: loops are called after the levels they are of.
static std::string without_loop_names(const std::string &text) {
    static const std::regex loop("\\b(?:for|vector|unrolled|parallel|block|thread) ([A-Za-z_][A-Za-z0-9_.]*) <");
    std::map<std::string, std::string> names;
    for (std::sregex_iterator at(text.begin(), text.end(), loop), end; at != end; ++at)
        names.emplace((*at)[1], "loop" + std::to_string(names.size()));
    static const std::regex name("[0-9][0-9.]*(?:e[-+]?[0-9]+)?|[A-Za-z_][A-Za-z0-9_.]*");
    std::string all;
    size_t done = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
        all += text.substr(done, static_cast<size_t>(at->position()) - done);
        auto known = names.find(at->str());
        all += known == names.end() ? at->str() : known->second;
        done = static_cast<size_t>(at->position() + at->length());
    }
    return all + text.substr(done);
}

// Extents at which the variant is the one that runs: those of its conditions that `large` does not meet decide theirs.
static Extents meeting(const Variant &variant, Extents large) {
    for (const Condition &c : variant.when) {
        int64_t &extent = large.at(c.dim);
        if (c.modulus) extent = extent / c.modulus * c.modulus + c.bound;
        else if (c.relation == "<=" || c.relation == "==") extent = c.bound;
    }
    return large;
}

TEST_CASE("a space has the schedules that ship") {
    const std::string axes = "the axis of the pieces, of which one is stored, stands elsewhere in the layout of two sums: the same memory";
    const std::string rows =
        "blocks of rows around tiles of two rows, neither of which divides the image: of most such, races cannot be disproved";
    const std::string lanes = "lanes of a fold that has a batch form, for which the space has chunks and passes";
    const std::string shared = "partial sums of two folds in one loop, which no decision of the space asks for";
    const std::map<std::string, std::string> others = {{"layernorm/avx2", shared},
                                                       {"layernorm/avx512", shared},
                                                       {"residual_layernorm/avx2", shared},
                                                       {"residual_layernorm/avx512", shared},
                                                       {"feed_forward/avx2", shared},
                                                       {"feed_forward/avx512", shared},
                                                       {"conv2d_nhwc/avx512", rows},
                                                       {"conv2d_nhwc/prepacked_avx512", rows},
                                                       {"attention/avx2", axes},
                                                       {"attention/avx512", axes},
                                                       {"attention_causal/avx2", axes},
                                                       {"attention_causal/avx512", axes},
                                                       {"encoder/avx2", axes},
                                                       {"encoder/avx512", axes},
                                                       {"rmsnorm/avx2", lanes},
                                                       {"rmsnorm/avx512", lanes},
                                                       {"rmsnorm/opencl", lanes}};
    Library library;
    library.add_folder(std::filesystem::path(TESSERA_SOURCE_DIR) / "schedules/library");
    const std::vector<std::string> names = library.names();
    for (const SmallKernel &k : small_kernels())
        for (const char *target : {"avx2", "avx512", "opencl"}) {
            for (const std::string &name : {k.name + "/" + target, k.name + "/prepacked_" + target}) {
                if (std::find(names.begin(), names.end(), name) == names.end()) continue;
                Extents large = fitting(k.algorithm, k.extents);
                for (auto &[dim, extent] : large)
                    if (extent > 3)
                        extent = large.count("H") && large.count("W") ? 768 : 1536;  // an image is no larger than a call may have
                const ResolvedSchedule schedule =
                    written_out(resolve_program(library.find(name), k.algorithm, {}, library, {}).resolved, k.algorithm);
                auto is_there = [&](const KnobsByStage &stages, const Extents &extents) {
                    const SearchSpace space{bind_extents(k.algorithm, extents), target_named(target), {}, 1, {}, {}, {"w"}};
                    const TileProgram program = lower(space.algorithm, stages, space.target),
                                      image = lower(space.algorithm, realize(space, decisions_from_schedule(stages, most_likely)),
                                                    space.target);
                    return without_loop_names(to_text(program)) == without_loop_names(to_text(image));
                };
                INFO(name);
                CHECK(is_there(schedule.stages, large) == !others.count(name));
                for (const Variant &variant : schedule.variants) {
                    INFO("where " << to_string(variant.when[0]));
                    CHECK(is_there(variant.stages, meeting(variant, large)) == !others.count(name));
                }
            }
        }
}

TEST_CASE("points of a fold are written out, and last tiles go point by point, where there are such") {
    auto realized = [](int64_t n, const std::vector<std::string> &allowed) {
        const Algorithm a = bind_extents(library::matmul({}), {{"M", 24}, {"N", n}, {"K", 36}});
        const SearchSpace space{a, target_named("avx2"), {}, 1, parse_restrictions(allowed), {}};
        check_space(space, 3, 9);
        return realize(space, most_likely).at("y");
    };
    const Knobs whole = realized(32, {"vector=N", "micro.N=16", "micro.M=2,4", "unroll.K=4"});
    CHECK(whole.unroll == Extents{{"K", 4}});
    CHECK(whole.tail.empty());
    const Knobs rest = realized(35, {"vector=N", "micro.N=16", "micro.M=2,4", "tail.N=loop"});
    CHECK(rest.unroll.empty());
    CHECK(rest.tail == std::map<std::string, Tail>{{"N", Tail::loop}});
}

TEST_CASE("operands are packed ahead of time where their caller may, and only one stage reads them") {
    const Algorithm a = bind_extents(library::matmul({}), {{"M", 24}, {"N", 35}, {"K", 36}});
    SearchSpace space{a, target_named("avx2"), {}, 1, parse_restrictions({"vector=N", "micro.M=2,4", "pack.w=ahead"}), {}, {"w"}};
    const Pack pack = realize(space, most_likely).at("y").pack.at("w");
    CHECK(pack.is_ahead());
    const TileProgram program = lowered(a, realize(space, most_likely), space.target);
    CHECK(program.arguments[1].packed.has_value());
    space.ahead.clear();
    check_words([&] { realize(space, most_likely); },
                {"error[tune.space]: --space 'pack.w=ahead': it allows none of the answers to y.pack.w."});

    Builder f("twice", {});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), v = f.input("v", {M, K}), w = f.input("w", {K, N});
    const Tile one = dot(x, w).named("one");
    SearchSpace both{bind_extents(f.output("y", one * dot(v, w).named("two")).build(), {{"M", 24}, {"N", 32}, {"K", 36}}),
                     target_named("avx2"),
                     {},
                     1,
                     {},
                     {},
                     {"w"}};
    std::vector<Decision> asked;
    Trace trace;
    realize(both, recording(most_likely, trace, &asked));
    for (const Decision &d : asked)
        for (const Answer &answer : d.answers) CHECK(answer.value != "ahead");
}

TEST_CASE("restrictions leave only what they allow") {
    const Algorithm a = bind_extents(library::matmul({}), {{"M", 96}, {"N", 192}, {"K", 64}});
    const SearchSpace space{a, target_named("avx512"), {}, 1, parse_restrictions({"vector=N", "micro.M=4,6", "y.micro.N=32"}), {}};
    RandomNumbers random(2);
    for (int i = 0; i < 30; i++) {
        const Knobs k = realize(space, sampling(random)).at("y");
        if (k.vector.count("N")) CHECK(k.micro.at("N") == 32);
        if (k.vector.count("N")) CHECK((k.micro.at("M") == 4 || k.micro.at("M") == 6));
    }
}

TEST_CASE("a mutator of a user's own asks and changes knobs like any other decision") {
    const Algorithm a = bind_extents(library::column_sum({}), {{"M", 64}, {"N", 64}});
    SearchSpace space{a, target_named("avx2"), {}, 1, {}, {}};
    space.mutators.push_back([](const Algorithm &, const Extents &, const auto &ask, KnobsByStage &stages) {
        if (ask({"y", "serial", {{"yes", 1}}}) == "yes") stages["y"].parallel.clear();
    });
    RandomNumbers random(2);
    for (int i = 0; i < 10; i++) CHECK(realize(space, sampling(random)).at("y").parallel.empty());
}

}  // namespace tessera::test_search_space
