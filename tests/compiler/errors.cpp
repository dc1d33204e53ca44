// The words of what the compiler refuses.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/abi/c_names.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/emit/emit_library.h"
#include "compiler/emit/spec.h"
#include "compiler/lower/lower.h"
#include "runtime/abi/kernel.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_errors {

using namespace tessera::test;

using Stages = KnobsByStage;

static void refused(const Algorithm &a, const Stages &stages, const std::vector<std::string> &parts) {
    check_words([&] { lower(a, stages, target_named("avx2")); }, parts);
}

static Knobs with(const std::function<void(Knobs &)> &change) {
    Knobs k;
    change(k);
    return k;
}

static Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }
static Knobs split(const std::string &dim, Split::How how, int64_t size) {
    return with([&](Knobs &k) { k.split[dim] = {how, size}; });
}

TEST_CASE("a stage that has as many elements as data says, without a bound") {
    Builder f("unbounded");
    const Tile n = f.input("n", {}, DType::i32);
    const Dim C = f.dim(derived_dim("C", cast(DType::index, n.value())));
    const Tile at = cast(DType::i32, f.index(C)), squares = (at * at).named("squares");
    refused(f.output("y", sum(cast(DType::f32, squares), C), DType::f32).build(), {},
            {"error[schedule.place]: squares: it has the dim 'C', whose extent is data without a bound, so no storage can be set aside; "
             "declare the dim by counted_dim, which has one, or inline the stage."});
}

TEST_CASE("knobs that a CPU does not have") {
    Algorithm a = library::matmul({});
    refused(a, {{"y", with([](Knobs &k) { k.warps = 4; })}},
            {"error[schedule.cpu]: y: 'warps' is for GPU targets; delete it (null) in the schedule of a CPU."});
    check_words(
        [&] {
            lower(a, {{"y", with([](Knobs &k) { k.prefetch["w"] = {"y", "K", 2}; })}}, target_named("opencl"));
        },
        {"error[schedule.gpu]: y: 'prefetch' is not for opencl; delete it (null)."});
    refused(
        a, {{"y", with([](Knobs &k) { k.instruction = "wgmma"; })}},
        {"error[schedule.instruction]: y: there is no instruction family 'wgmma'; the families are fma, mul_add, dot2, dot4, amx_bf16, "
         "amx_u8s8, amx_s8s8, smmla, usmmla, bfmmla, mma_bf16, mma_f16, mma_s8, mma_u8s8: fma "
         "and mul_add on every target, the others where a processor has the instruction. Choose one of them, or delete the knob (null)."});
    refused(a, {{"y", with([](Knobs &k) { k.instruction = "mma_bf16"; })}},
            {"error[schedule.instruction]: y: the instruction family mma_bf16 needs tensor cores by CUDA, which target 'avx2' has not; its "
             "families are fma, mul_add, dot4; delete the knob (null)."});
    refused(a, {{"y", with([](Knobs &k) { k.instruction = "dot2"; })}},
            {"error[schedule.instruction]: y: the instruction family dot2 needs avx512_bf16, which target 'avx2' has not; its families are "
             "fma, mul_add, dot4; generate for 'znver4', or delete the knob (null)."});
    check_words(
        [&] {
            lower(a, {{"y", with([](Knobs &k) { k.instruction = "dot4"; })}}, target_named("znver4"));
        },
        {"error[schedule.instruction]: y: the instruction family dot4 sums products of u8 and i8 elements in i32, each cast once and "
         "unconditionally; this stage is no such sum."});
    check_words(
        [&] {
            lower(a, {{"y", with([](Knobs &k) { k.instruction = "dot2"; })}}, target_named("opencl"));
        },
        {"y: the instruction family dot2 needs avx512_bf16, which target 'opencl' has not; its families are fma, mul_add; delete the knob "
         "(null)."});
    refused(library::softmax({}), {{"y", with([](Knobs &k) { k.instruction = "fma"; })}},
            {"error[schedule.instruction]: y: the instruction family fma sums products, each added with one rounding; this stage is no "
             "such sum. Delete the knob (null)."});
    for (const Algorithm &no_sum : {library::softmax({}), library::matmul_u8s8({})})
        refused(no_sum, {{"y", with([](Knobs &k) { k.instruction = "mul_add"; })}},
                {"error[schedule.instruction]: y: the instruction family mul_add sums products of floats, each product and each sum with a "
                 "rounding; this stage is no such sum. Delete the knob (null)."});
    refused(a, {{"y", with([](Knobs &k) { k.call = "once"; })}},
            {"error[schedule.call]: y: the knob 'call' is for the scope of a call; the scopes of matmul are none."});
}

TEST_CASE("a register tile that a CPU's loops leave out") {
    refused(library::matmul({}), {{"y", with([](Knobs &k) {
                                       k.block = {{"N", 8}}, k.micro = {{"N", 4}}, k.loops = {"block.N"};
                                   })}},
            {"error[schedule.loops]: y: the tile 'micro.N' is in no loop; the loops are block.N. Add it to them, or delete the tile: only "
             "on a GPU is it a thread's part of block.N."});
}

TEST_CASE("schedules that a GPU cannot follow") {
    Algorithm a = library::matmul({});
    auto refused = [&](const std::function<void(Knobs &)> &change, const std::vector<std::string> &parts) {
        check_words([&] { lower(a, {{"y", with(change)}}, target_named("opencl")); }, parts);
    };
    refused([](Knobs &k) { k.parallel = {"M"}; }, {"error[schedule.gpu]: y: 'parallel' is not for opencl; delete it (null). Blocks and "
                                                   "threads come from block and micro, and shared memory from pack and place."});
    refused(
        [](Knobs &k) {
            k.block = {{"M", 8}}, k.tail["M"] = Tail::loop;
        },
        {"error[schedule.gpu]: y: 'tail' with the policy loop is not for opencl"});
    refused(
        [](Knobs &k) {
            k.block = {{"M", 8}}, k.micro = {{"M", 4}}, k.tail["M"] = Tail::narrow;
        },
        {"error[schedule.gpu]: y: 'tail' with the policy narrow is not for opencl; delete it (null). Blocks and threads come from block "
         "and micro, and shared memory from pack and place."});
    refused(
        [](Knobs &k) {
            k.pack["w"] = {"micro", {}};
        },
        {"error[schedule.gpu]: y: a pack of 'w' in micro, a thread's part of a block's tile and no loop, is not for opencl"});
    refused(
        [](Knobs &k) {
            k.micro = {{"M", 2}}, k.loops = {"micro.M", "N"};
        },
        {"error[schedule.threads]: y: 'loops' lists 'micro.M', and on opencl micro is a thread's part of a block's tile and no loop; list "
         "block.M or delete 'loops'."});
    refused(
        [](Knobs &k) {
            k.block = {{"M", 10}}, k.micro = {{"M", 4}};
        },
        {"error[schedule.threads]: y: block M = 10 must be a multiple of micro M = 4, which is one thread's part of it."});
    refused(
        [](Knobs &k) {
            k.block = {{"N", 12}}, k.micro = {{"N", 6}}, k.vector = {{"N", 4}};
        },
        {"error[schedule.threads]: y: micro N = 6 must be a multiple of vector N = 4."});
    refused(
        [](Knobs &k) {
            k.block = {{"M", 64}}, k.warps = 1;
        },
        {"error[schedule.threads]: y: block needs 64 threads and warps = 1 gives 32; make micro larger, block smaller or warps more."});
    refused(
        [](Knobs &k) {
            k.block = {{"M", 512}};
        },
        {"error[schedule.threads]: y: a block of 512 threads is more than the 256 of opencl; make micro larger or block smaller."});
}

TEST_CASE("loops in an order that cannot accumulate") {
    refused(library::matmul({}), {{"y", with([](Knobs &k) {
                                       k.loops = {"M", "K", "N"};
                                   })}},
            {"error[schedule.loops]: y: the loop 'K' is a single point of the fold and stands outside the loop 'N'; the order is M, K, N. "
             "Put it after the stage's own dims, or cut the dim into slices ('k')."});
    refused(
        library::cumulative_sum({}), {{"y", with([](Knobs &k) {
                                           k.loops = {"M", "N"};
                                       })}},
        {"error[schedule.loops]: y: the loop 'N' runs along the scan", "Leave the scanned dim out of 'loops': it is innermost by itself."});
    refused(library::matmul({}), {{"y", with([](Knobs &k) {
                                       k.directives = {{"v", "", "vectorize", "N", 0}};
                                   })}},
            {"error[schedule.factor]: y: directive 'v' (vectorize) has no factor; say by how much, as in \"factor\": 8."});
    refused(library::matmul({}), {{"y", with([](Knobs &k) {
                                       k.k = {{"K", 8}}, k.directives = {{"u", "", "unroll", "k.K", 4}};
                                   })}},
            {"error[schedule.directive]: y: directive 'u' (unroll) names 'k.K', a loop over tiles, and only a loop point by point can be "
             "unrolled; name a dim ('K')"});
}

TEST_CASE("places that are none") {
    Algorithm two = library::rmsnorm({});
    two.outputs = {"scale", "y"};
    refused(two, {{"scale", with([](Knobs &k) { k.place = at("y", "M"); })}},
            {"error[schedule.place]: scale: an output must be placed at root, or beside another stage."});
    refused(library::rmsnorm({}), {{"scale", with([](Knobs &k) { k.place = at("squares", "M"); })}},
            {"scale: it is placed at squares.M, and nothing there loads it; place it where its consumer is."});
    Builder f("mirrored");
    Dim N = f.dim("N");
    Tile s = relu(f.input("x", {N})).named("s");
    Algorithm mirrored = f.output("y", s + s.at({{"N", extent("N") - 1 - variable("N")}}, {"N"})).build();
    refused(mirrored, {{"s", with([](Knobs &k) { k.place = at("y", "N"); })}},
            {"s: how much of dim 'N' is needed at its place has no bound that is free of loop variables, so no storage can be set aside; "
             "place it at root or further in."});
    refused(library::linear({}), {{"acc", with([](Knobs &k) {
                                       k.place = Place{Place::Kind::inlined, "", ""};
                                   })}},
            {"error[schedule.inline]: acc: cannot be inlined: only a map of one value can be substituted into its consumers; place it at a "
             "consumer's "
             "loop or at root."});
    refused(library::linear({}), {{"y", with([](Knobs &k) {
                                       k.place = Place{Place::Kind::inlined, "", ""};
                                   })}},
            {"y: cannot be inlined: it is an output"});
    const Algorithm transform = library::fft({}, {{"points", 262144}});
    KnobsByStage inlined;
    for (const Stage &stage : transform.stages())
        if (stage.name != transform.outputs[0]) inlined[stage.name].place = Place{Place::Kind::inlined, "", ""};
    refused(transform, inlined,
            {"error[schedule.inline]: fft.", "what is inlined into it makes ",
             " operations and operands of each of its points; expected at most 20000. Place 'fft."});
    refused(library::softmax({}), {{"max", with([](Knobs &k) { k.place = at("y", "M"); })}},
            {"error[schedule.place]: exp: it loads 'max', which is computed inside another stage's loops and is not there any more; place "
             "the producer at "
             "root or at a loop around all its consumers."});
}

TEST_CASE("loops that cannot be parallel") {
    Algorithm a = library::matmul({});
    refused(a, {{"y", with([](Knobs &k) { k.parallel = {"N"}; })}},
            {"error[schedule.parallel]: y: the loops N cannot be parallel: parallel loops must be the outermost ones; the stage's loops "
             "are, outermost first, M, N, K."});
    refused(a, {{"y", with([](Knobs &k) {
                     k.loops = {"K", "M", "N"}, k.parallel = {"K"};
                 })}},
            {"'K' carries the fold; split the reduction across threads instead"});
    refused(library::linear({}), {{"acc", with([](Knobs &k) { k.place = at("y", "M"), k.parallel = {"M"}; })}},
            {"the stage is placed inside another stage's loops; only a stage at root has parallel loops"});
    refused(library::ring_append({}), {{"append", with([](Knobs &k) {
                                            k.loops = {"T", "B", "D"}, k.parallel = {"T"};
                                        })}},
            {"append: iterations of 'T' may write the same element of 'cache', so they cannot run in parallel; parallel dims of an update "
             "are those that index its "
             "state directly."});
}

TEST_CASE("dims that vary with an outer one") {
    refused(library::segmented_sum({}), {{"y", with([](Knobs &k) {
                                              k.block = {{"B", 4}}, k.loops = {"block.B", "R", "B", "N"};
                                          })}},
            {"error[schedule.ragged]: y: the size of dim 'R' varies with outer indices",
             "so their loops must go point by point outside it; do not tile or vectorise those dims."});
}

TEST_CASE("a ragged dim inside a fold to a computed destination") {
    Algorithm a = library::segmented_sum({});
    std::get<Reduce>(a.stages()[0].body).at = {variable("R"), variable("N")};
    refused(a, {}, {"error[schedule.ragged]: y: the size of dim 'R' varies with outer indices"});
}

TEST_CASE("splits that a fold does not have") {
    Algorithm matmul = library::matmul({}), scan = library::cumulative_sum({});
    refused(matmul, {{"y", split("M", Split::How::chunks, 4)}},
            {"error[schedule.split]: y: cannot split dim 'M': the stage folds over K."});
    refused(matmul, {{"z", split("K", Split::How::chunks, 4)}}, {"z: cannot split dim 'K': there is no such stage."});
    refused(matmul, {{"y", split("K", Split::How::chunks, 0)}}, {"it needs a size of at least 1."});
    Algorithm plain = library::gemv({});
    std::get<Reduce>(plain.stages()[0].body).monoid.batch.clear();
    refused(plain, {{"y", split("K", Split::How::passes, 0)}}, {"the monoid 'dot' has no batch form; use chunks."});
    refused(scan, {{"y", split("N", Split::How::lanes, 4)}}, {"a scan splits in chunks or across threads."});
    refused(scan, {{"y", split("N", Split::How::chunks, 0)}}, {"it needs a size of at least 1."});
    Algorithm ordered = library::gemv({});
    std::get<Reduce>(ordered.stages()[0].body).monoid.commutative = false;
    refused(ordered, {{"y", split("K", Split::How::lanes, 4)}}, {"lanes reorder elements and the monoid 'dot' is not commutative."});
    Algorithm scatter = library::column_sum({});
    std::get<Reduce>(scatter.stages()[0].body).at = {variable("M")};
    refused(scatter, {{"y", split("M", Split::How::passes, 4)}},
            {"its destination is computed, and only copies of the result are folded apart (chunks, threads, lanes)."});
    Algorithm both = library::column_sum({});
    both.stages()[0].dims.clear();
    std::get<Reduce>(both.stages()[0].body).dims = {"M", "N"};
    refused(both, {{"y", split("M", Split::How::online, 4)}}, {"an online split needs a reduction over one dim."});
    Algorithm pairs = library::cumulative_sum({});
    std::get<Scan>(pairs.stages()[0].body).monoid.parts.push_back(std::get<Scan>(pairs.stages()[0].body).monoid.parts[0]);
    refused(pairs, {{"y", split("N", Split::How::chunks, 4)}}, {"only a scan of one part can be split."});
}

TEST_CASE("operands and layouts that are not there") {
    Algorithm a = library::linear({});
    refused(a, {{"acc", with([](Knobs &k) {
                     k.pack["b"] = {"root", {}};
                 })}},
            {"error[schedule.pack]: acc: cannot pack 'b': the stage does not load it."});
    refused(a, {{"acc", with([](Knobs &k) {
                     k.pack["q"] = {"root", {}};
                 })}},
            {"acc: cannot pack 'q': no tensor of that name is stored when the stage runs; an inlined stage is not, nor is one that a split "
             "has replaced."});
    refused(a, {{"acc", with([](Knobs &k) {
                     k.layout = {{"K", 0, false}};
                 })}},
            {"error[schedule.layout]: acc: the layout names dim 'K', and 'acc' has dims M, N."});
}

TEST_CASE("folds to a computed destination have parts of one element") {
    Algorithm a = library::attention({});
    for (Stage &s : a.stages())
        if (is_fold(s) && monoid_of(s).name == "online_softmax") std::get<Reduce>(s.body).at.assign(s.dims.size(), variable("T"));
    CHECK_THROWS_WITH(
        lower(a, {}, target_named("avx2")),
        Catch::Contains("error[schedule.scatter]") && Catch::Contains("a fold with a computed destination has parts of one element; "
                                                                      "the part"));
}

TEST_CASE("what a library cannot hold") {
    check_words([] { check_c_name("2x"); }, {"error[emit.name]: a kernel's name must be a C identifier (letters, digits and _, not a "
                                             "keyword), got '2x'; give another one with --name."});
    check_words([] { check_c_name(std::string(201, 'a')); },
                {"error[emit.name]: a kernel's name must have at most 200 characters, since files are named after it; "
                 "'aaaaaaaaaaaaaaaaaaaa…' has 201. Give another one with --name."});
    TileProgram many = lower(library::matmul({}), {}, target_named("avx2"));
    many.parameters.resize(17);
    many.arguments.resize(100, many.arguments[0]);
    CHECK(spec_of(many).at(TESS_SPEC_FRAME_WORDS) == 3 + 100 * 3 + 17 + TESS_TAIL_WORDS);
    many.parameters.resize(65537);
    check_words([&] { spec_of(many); }, {"error[emit.abi]: matmul: it has 65537 parameters; a kernel may have 65536."});
}

static void not_emitted(const TileProgram &p, const std::string &part) {
    check_words(
        [&] {
            emit_library({{"k", {{{}, p}}}}, target_named("x86-64"), {std::filesystem::temp_directory_path() / "libtessera-refused.a", {}});
        },
        {part});
}

TEST_CASE("what a CPU cannot run") {
    TileProgram p;
    p.name = "k";
    p.body = {tile_node(Barrier{})};
    not_emitted(p, "error[emit.cpu]: k: barriers are not for a CPU target.");
    p.body = {tile_node(Loop{"t", Expr(4), LoopKind::thread, {}})};
    not_emitted(p, "k: thread loops are not for a CPU target.");
    p.body = {tile_node(Alloc{{"b", DType::f32, {Expr(4)}, Space::shared}, {}})};
    not_emitted(p, "k: shared memory is not for a CPU target.");
}

TEST_CASE("a kernel for a GPU whose constant has no values: the words") {
    TileProgram p;
    p.name = "k", p.target = "opencl";
    p.constants = {{"c", DType::f32, {"c.n"}, Role::constant, {}}};
    check_words(
        [&] {
            kernels_of({{"k", {{{}, p}}}}, target_named("opencl"));
        },
        {"error[emit.constant]: k: the constant 'c' has no values; pass it as an input."});
}

}  // namespace tessera::test_errors
