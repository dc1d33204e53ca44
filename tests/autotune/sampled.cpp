#include "autotune/measure/sampled.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <optional>

#include "autotune/space/search_space.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_sampled {

using namespace tessera::test;

static std::map<std::string, Array> interpreted(const TileProgram &program, const Extents &extents) {
    const Inputs inputs = random_inputs(program, extents, 3);
    std::map<std::string, Array> arrays;
    std::map<std::string, TensorView> views;
    for (const Argument &a : program.arguments) {
        arrays.emplace(a.tensor.name, a.read ? inputs.tensors.at(a.tensor.name) : Array(a.tensor.dtype, shape_of(a.tensor, extents)));
        if (!a.read) std::memset(arrays.at(a.tensor.name).data.data(), 0xa5, arrays.at(a.tensor.name).data.size());
    }
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    InterpretOptions options;
    options.checked = false;
    interpret(program, views, extents, inputs.parameters, options);
    return arrays;
}

// A random schedule's program; nothing for one that is refused before anything runs it.
static std::optional<TileProgram> lowered(const Algorithm &a, const Target &target, RandomNumbers &random,
                                          const Restrictions &restrictions = {}) {
    try {
        const TileProgram program = lower(a, realize({a, target, {}, 1, restrictions, {}}, sampling(random)), target);
        if (verify(program).empty()) return program;
    } catch (const UserError &) {}
    return std::nullopt;
}

static void check_blocks(const TileProgram &program, const TileProgram &blocks, const Extents &extents) {
    const auto whole = interpreted(program, extents), part = interpreted(blocks, extents);
    INFO(to_text(program));
    for (const Argument &arg : program.arguments) {
        if (!arg.written) continue;
        const Array &w = whole.at(arg.tensor.name), &p = part.at(arg.tensor.name);
        const size_t size = static_cast<size_t>(size_of(arg.tensor.dtype));
        const std::vector<std::byte> untouched(size, std::byte{0xa5});
        size_t compared = 0;
        for (size_t at = 0; at < w.data.size(); at += size) {
            if (std::memcmp(&p.data[at], untouched.data(), size) == 0) continue;
            compared++;
            if (std::memcmp(&w.data[at], &p.data[at], size) != 0) FAIL_CHECK(arg.tensor.name << " differs at " << at / size);
        }
        CHECK(compared > 0);
    }
}

TEST_CASE("what a sampled program computes is what the whole one computes there") {
    const Target target = target_named("avx2");
    RandomNumbers random(9);
    double all = 0, some = 0;
    for (const SmallKernel &k : small_kernels()) {
        Extents symbolic;
        for (const Dim &d : k.algorithm.dims)
            if (d.kind == DimKind::symbolic)
                symbolic[d.name] = k.extents.count(d.name) ? k.extents.at(d.name) : k.extents.count(d.equals) ? k.extents.at(d.equals) : 1;
        const Algorithm a = bind_extents(k.algorithm, symbolic);
        const Extents extents = all_extents(a, {});
        for (int i = 0; i < 3; i++) {
            const std::optional<TileProgram> found = lowered(a, target, random);
            if (!found) continue;
            const TileProgram &program = *found;
            const TileProgram blocks = sampled(program, extents, random.next());
            all += steps_of(program, extents), some += steps_of(blocks, extents);
            check_blocks(program, blocks, extents);
        }
    }
    CHECK(some < all / 2);
}

TEST_CASE("a sampled program by fragments folds all that the whole one folds") {
    const Algorithm a = bind_extents(library::matmul_wide(numerics_named("bf16")), {{"M", 64}, {"N", 96}, {"K", 96}});
    RandomNumbers random(5);
    int made = 0;
    for (int i = 0; i < 4; i++) {
        const std::optional<TileProgram> program = lowered(a, target_named("amx"), random, parse_restrictions({"instruction=amx_bf16"}));
        if (!program) continue;
        made++;
        check_blocks(*program, sampled(*program, all_extents(a, {}), random.next()), all_extents(a, {}));
    }
    CHECK(made > 1);
}

}  // namespace tessera::test_sampled
