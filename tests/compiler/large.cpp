// Tensors that are declared large: the same bits with rows that are further apart than 32 bits count, in every emitter, and a pool of pages
// of 16 GiB. What memory they span is address space; pages that nobody touches are not there.
#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <array>
#include <cstring>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/bind_extents.h"
#include "compiler/emit/emit_gpu.h"
#include "compiler/emit/header.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/passes/fuse_parallel.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"
#include "tests/support/thorough.h"

namespace tessera::test_large {

using namespace tessera::test;

namespace {

constexpr DType f32 = DType::f32;

// Inputs (unless one may be packed ahead of time), states and outputs are large, those of callees too.
Algorithm made_large(Algorithm a, bool with_inputs) {
    for (const Tensor &t : a.tensors)
        if (t.role == Role::state || (t.role == Role::input && with_inputs)) a.large.insert(t.name);
    a.large.insert(a.outputs.begin(), a.outputs.end());
    for (Call &c : a.calls()) c.callee = std::make_shared<const Algorithm>(made_large(*c.callee, with_inputs));
    return a;
}

bool packs_ahead(const KnobsByStage &stages) {
    for (const auto &[stage, k] : stages)
        for (const auto &[operand, pack] : k.pack)
            if (pack.is_ahead()) return true;
    return false;
}

// Every so many-th case with large tensors.
std::vector<Case> large_cases(const std::vector<Case> &all, size_t first, size_t each) {
    std::vector<Case> cases;
    for (size_t i = first; i < all.size(); i += each) {
        cases.push_back(all[i]);
        cases.back().algorithm = made_large(all[i].algorithm, !packs_ahead(all[i].stages));
    }
    return cases;
}

void check_apart(const Target &target, const Build &build, size_t first, size_t each) {
    if (!runs_here(target)) return;
    std::vector<Case> cases;
    std::vector<TileProgram> programs;
    for (const Case &c : large_cases(library_cases(target.vector_bytes / 4), first, each)) {
        TileProgram program = lowered(c, target);
        if (!build.compiler.empty() && !program.programs.empty()) continue;
        programs.push_back(std::move(program)), cases.push_back(c);
    }
    const Loaded library(programs, target, build);
    INFO(build.compiler << " " << build.options);
    check_code(cases, programs, library, [](uint32_t number) {
        return std::vector<Layout>{number % 2 ? Layout{true, 0, 0, 1, 0, false, true} : Layout{false, 2, 1, 2, 0, true, true}};
    });
}

}  // namespace

TEST_CASE("rows of large tensors may be far apart: x86-64") { check_apart(target_named("x86-64"), {}, 0, every(3) * 4); }
TEST_CASE("rows of large tensors may be far apart: avx2") { check_apart(target_named("avx2"), {}, 0, every(4)); }
TEST_CASE("rows of large tensors may be far apart: avx512") { check_apart(target_named("avx512"), {}, 1, every(3) * 2); }
TEST_CASE("rows of large tensors may be far apart: C") {
    size_t first = 0;
    for (const Build &build : c_builds("-O2")) check_apart(target_named("avx2"), build, first++, every(3) * 6);
}

// A device has copies of what tensors span, so that rows are not apart here.
TEST_CASE("large tensors give the same bits: opencl", "[.][gpu]") {
    if (!has_opencl()) {
        WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
        return;
    }
    const Target target = target_named("opencl");
    const std::vector<Case> cases = large_cases(gpu_cases(), 0, every(2) * 2);
    std::vector<TileProgram> programs;
    for (const Case &c : cases) programs.push_back(lowered(c, target));
    const Loaded library(programs, target);
    check_code(cases, programs, library, [](uint32_t number) { return std::vector<Layout>{Layout{number % 2 == 0, 0, 3, 1}}; });
}

namespace {

// An axis with an element to which a position can be clamped.
Dim at_least_one(Builder &f, const std::string &name) {
    Dim d = symbolic_dim(name);
    d.min = 1;
    return f.dim(d);
}

// y[B, L, S, D] are the pages of a pool that a table names.
Algorithm gather(bool is_large = true, DType type = f32) {
    Builder f("gather");
    const Dim P = at_least_one(f, "P"), S = f.dim("S"), D = f.dim("D"), B = f.dim("B"), L = f.dim("L");
    const Tile pool = f.input("pool", {P, S, D}, type), table = f.input("table", {B, L}, DType::i32);
    const Expr page = bounded(cast(DType::index, table.value()), 0, extent("P"));
    f.output("y", pool.at({{"P", page}}, {"B", "L", "S", "D"}), type);  // (B, L, S, D)
    if (is_large) f.large("pool");
    return f.build();
}

// pool[page[b], slot[b], d] = x[b, d]
Algorithm append() {
    Builder f("append");
    const Dim P = at_least_one(f, "P"), S = at_least_one(f, "S"), D = f.dim("D"), B = f.dim("B");
    const Tile pool = f.state("pool", {P, S, D}), x = f.input("x", {B, D});
    const Tile page = f.input("page", {B}, DType::i32), slot = f.input("slot", {B}, DType::i32);
    auto inside = [&](const Tile &t, const char *dim) { return Tile(&f, bounded(cast(DType::index, t.value()), 0, extent(dim)), {"B"}); };
    f.update("write", pool, {inside(page, "P"), inside(slot, "S"), f.index(D)}, x);
    return f.large("pool").build();
}

KnobsByStage in_vectors(const std::string &stage, int64_t lanes, bool parallel) {
    KnobsByStage k;
    k[stage].micro = {{"D", 2 * lanes}}, k[stage].vector = {{"D", lanes}};
    if (parallel) k[stage].parallel = {"B"};
    return k;
}

constexpr int64_t pages = 1 << 20, slots = 16, width = 256, page_size = slots * width;  // 2^32 elements

// 16 GiB of zeros.
class Pool {
public:
    Pool() : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (memory_ == MAP_FAILED) throw std::runtime_error("no address space");
    }
    ~Pool() { munmap(memory_, bytes); }
    Pool(const Pool &) = delete;
    float *at(int64_t page) const { return static_cast<float *>(memory_) + page * page_size; }
    void fill(int64_t page) const {
        for (int64_t i = 0; i < page_size; i++) at(page)[i] = static_cast<float>(page % 100003) + static_cast<float>(i) / page_size;
    }
    static constexpr size_t bytes = static_cast<size_t>(pages * page_size) * sizeof(float);

private:
    void *memory_;
};

// What each emitter makes of a program; `run` is given the program and how to call it.
void with_each_emitter(const Algorithm &a, const std::string &stage, bool parallel,
                       const std::function<void(const TileProgram &, const Loaded &)> &run) {
    for (const Target &target : targets()) {
        const TileProgram program = lowered(a.name, a, in_vectors(stage, target.vector_bytes / 4, parallel), target);
        std::vector<Build> builds = {{}};
        if (target.name == "avx2") builds.insert(builds.end(), {{"gcc", "-O2"}, {"gcc", "-O1 -DTESS_PORTABLE"}});
        for (const Build &build : builds) {
            INFO(target.name << " " << build.compiler << " " << build.options);
            run(program, Loaded({program}, target, build));
        }
    }
}

// Named pages, one of which the table names by a number that is far outside.
constexpr std::array<int32_t, 6> named = {0, (1 << 19) - 1, 1 << 19, 3 * (1 << 18) + 1, pages - 1, INT32_MAX};

}  // namespace

TEST_CASE("pages are gathered from a pool of 16 GiB") {
    const Pool pool;
    for (const int32_t page : named)
        if (page < pages) pool.fill(page);
    std::vector<float> got(named.size() * page_size);
    std::array<int64_t, 3> pool_extents = {pages, slots, width};
    std::array<int64_t, 2> table_extents = {2, 3};
    std::array<int64_t, 4> y_extents = {2, 3, slots, width};
    std::array<int32_t, 6> table = named;
    auto check = [&] {
        for (size_t i = 0; i < named.size(); i++)
            CHECK(std::memcmp(got.data() + i * page_size, pool.at(std::min<int64_t>(named[i], pages - 1)), page_size * sizeof(float)) == 0);
        std::fill(got.begin(), got.end(), -1.0f);
    };
    with_each_emitter(gather(), "y", true, [&](const TileProgram &program, const Loaded &code) {
        const std::vector<TessTensor> tensors = {tess_dense(pool.at(0), TESS_F32, 3, pool_extents.data()),
                                                 tess_dense(table.data(), TESS_I32, 2, table_extents.data()),
                                                 tess_dense(got.data(), TESS_F32, 4, y_extents.data())};
        CHECK(code.call(program, tensors, {}, Layout{}) == TESS_OK);
        check();
        auto view = [](const TessTensor &t, DType type) {
            const std::vector<int64_t> extents(t.extents, t.extents + t.rank);
            return TensorView{"", type, static_cast<std::byte *>(t.data), extents, row_major_strides(extents)};
        };
        interpret(program, {{"pool", view(tensors[0], f32)}, {"table", view(tensors[1], DType::i32)}, {"y", view(tensors[2], f32)}});
        check();
    });
}

TEST_CASE("what is appended to a pool of 16 GiB is where it was asked for, and nothing else is") {
    const Pool pool;
    std::array<int32_t, 6> page = named, slot = {0, 15, 3, 7, 15, -5};
    page[5] = 1 << 19;  // slot 0: what is far outside is at the nearest end
    std::array<float, 6 * width> x;
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i + 1);
    std::array<int64_t, 3> pool_extents = {pages, slots, width};
    std::array<int64_t, 2> x_extents = {6, width};
    std::array<int64_t, 1> count = {6};
    with_each_emitter(append(), "write", false, [&](const TileProgram &program, const Loaded &code) {
        const std::vector<TessTensor> tensors = {
            tess_dense(pool.at(0), TESS_F32, 3, pool_extents.data()), tess_dense(x.data(), TESS_F32, 2, x_extents.data()),
            tess_dense(page.data(), TESS_I32, 1, count.data()), tess_dense(slot.data(), TESS_I32, 1, count.data())};
        CHECK(code.call(program, tensors, {}, Layout{}) == TESS_OK);
        for (size_t i = 0; i < page.size(); i++) {
            float *row = pool.at(page[i]) + std::max(slot[i], 0) * width;
            CHECK(std::memcmp(row, x.data() + i * width, width * sizeof(float)) == 0);
            std::memset(row, 0, width * sizeof(float));
        }
        std::vector<unsigned char> there(Pool::bytes / 4096);  // pages of the system that somebody touched
        REQUIRE(mincore(pool.at(0), Pool::bytes, there.data()) == 0);
        CHECK(std::count(there.begin(), there.end(), 1) <= 7);
        for (size_t i = 0; i < there.size(); i++) {
            const float *begin = pool.at(0) + i * 1024;
            if (there[i] & 1) CHECK(std::all_of(begin, begin + 1024, [](float v) { return v == 0; }));
        }
    });
}

// 2 GiB and a bit, of which PoCL makes a copy. It allows no tensor above a part of the machine's memory.
TEST_CASE("positions on a device have 64 bits where a tensor is large", "[.][gpu]") {
    if (!has_opencl()) {
        WARN("built without OpenCL (ocl-icd-opencl-dev, pocl-opencl-icd): not run");
        return;
    }
    const Algorithm a = gather(true, DType::u8);
    const Target target = target_named("opencl");
    const TileProgram program = lowered("gather", a, {}, target);
    const Loaded code({program}, target);
    constexpr int64_t far = (int64_t{1} << 31) + 64;
    auto *memory =
        static_cast<uint8_t *>(mmap(nullptr, far + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(memory != MAP_FAILED);
    for (int i = 0; i < 64; i++) memory[i] = static_cast<uint8_t>(i), memory[far + i] = static_cast<uint8_t>(200 - i);
    std::array<int64_t, 3> pool_extents = {2, 4, 16}, strides = {far, 16, 1};
    std::array<int64_t, 2> table_extents = {1, 2};
    std::array<int64_t, 4> y_extents = {1, 2, 4, 16};
    std::array<int32_t, 2> table = {1, 0};
    std::array<uint8_t, 128> got = {};
    std::vector<TessTensor> tensors = {tess_dense(memory, TESS_U8, 3, pool_extents.data()),
                                       tess_dense(table.data(), TESS_I32, 2, table_extents.data()),
                                       tess_dense(got.data(), TESS_U8, 4, y_extents.data())};
    tensors[0].strides = strides.data();
    const int status = code.call(program, tensors, {}, Layout{});
    munmap(memory, far + 64);
    if (status == no_room_on_device) {
        WARN("the device has no room for a tensor of 2 GiB: not run");
        return;
    }
    REQUIRE(status == TESS_OK);
    for (int i = 0; i < 64; i++) CHECK((got[static_cast<size_t>(i)] == 200 - i && got[static_cast<size_t>(64 + i)] == i));
}

TEST_CASE("only what is declared large has positions of 64 bits") {
    const Target target = target_named("opencl");
    const TileProgram large = lowered("gather", gather(), {}, target), small = lowered("gather", gather(false), {}, target);
    CHECK_THAT(to_text(large), Catch::Contains("input pool[P, S, D]: f32, large\n") && Catch::Contains("input table[B, L]: i32\n"));
    CHECK(resolved_hash(large) != resolved_hash(small));
    CHECK(to_text(small).find("large") == std::string::npos);
    for (const Target &device : {target, target_named("cuda-sm80")}) {
        const std::string text = kernels_of({{"gather", {{{}, lowered("gather", gather(), {}, device)}}}}, device).kernels;
        CHECK_THAT(text, Catch::Contains("const long pool_stride0 = pool_stride0_argument;") &&
                             Catch::Contains("const int table_stride0 = (int)table_stride0_argument;"));
    }
    const Kernel kernel{"gather", {{{}, large}}};
    const std::string header = header_of("gather", {{target_named("avx2"), {kernel}}});
    CHECK_THAT(header, Catch::Contains(" *    pool: f32 [P, S, D], read, large\n") && Catch::Contains(" *    table: i32 [B, L], read\n"));
}

TEST_CASE("loops that store to a large tensor are one loop over pairs only where these can be counted") {
    auto fused = [](Algorithm a) {
        KnobsByStage k;
        k["y"].parallel = {"B", "L"};
        return to_text(lowered("gather", a, k, target_named("avx2"))).find("parallel b*l <") != std::string::npos;
    };
    Algorithm a = gather();
    CHECK(fused(a));  // it only reads what is large
    a.large.insert("y");
    CHECK_FALSE(fused(a));
    for (Dim &d : a.dims) d.max = 1 << 15;
    CHECK(fused(a));
}

TEST_CASE("fixed extents may make a tensor large that is declared so") {
    const Algorithm a = gather();
    const Extents shape = {{"P", 1 << 20}, {"S", 16}, {"D", 256}};
    CHECK(bind_extents(a, shape).dim("P").value == 1 << 20);
    CHECK_THROWS_WITH(bind_extents(gather(false), shape),
                      Catch::Contains("error[shape.too-large]: gather: 'pool' of P=1048576, S=16, D=256"));
    CHECK_THROWS_WITH(bind_extents(a, {{"P", 1 << 30}, {"S", 1 << 10}, {"D", 1 << 10}}),
                      Catch::Contains("expected a tensor of at most 17592186044416 elements"));
}

TEST_CASE("what is large is not packed ahead of time") {
    Algorithm a = library::matmul({});
    a.large = {"w"};
    KnobsByStage k;
    k["y"].pack["w"] = {"prepack", {}};
    CHECK_THROWS_WITH(
        lowered("matmul", a, k, target_named("avx2")),
        Catch::Contains("error[schedule.prepack]") && Catch::Contains("it is declared large, and what is packed has positions of "
                                                                      "32 bits. Pack it at a loop of the stage."));
}

}  // namespace tessera::test_large
