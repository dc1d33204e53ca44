#include "costmodel/model/counted_samples.h"

#include <fmt/format.h>

#include <string>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/lower/lower.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

Algorithm product(DType first, DType second, DType result) {
    Builder f("product", Numerics{});
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    return bind_extents(f.output("y", dot(f.input("x", {M, K}, first), f.input("w", {K, N}, second)), result).build(),
                        {{"M", 200}, {"N", 15000}, {"K", 300}});
}

Algorithm shares() {
    Builder f("shares", Numerics{});
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), weights = exp(x).named("weights");
    return bind_extents(f.output("y", weights / sum(weights, N).named("total")).build(), {{"M", 60}, {"N", 1001}});
}

}  // namespace

std::vector<Featured> counted_samples() {
    std::vector<Featured> all;
    const auto add = [&](const Algorithm &algorithm, const KnobsByStage &stages, const std::string &name, int threads) {
        const Target target = target_named(name);
        const TileProgram program = lower(algorithm, stages, target);
        all.push_back(features_of(profile_of(program, {}, target, threads), work_of(algorithm, program, all_extents(algorithm, {})), target,
                                  threads));
    };
    const Algorithm floats = product(DType::f32, DType::f32, DType::f32);
    add(floats, {}, "x86-64", 1);
    Knobs tiles;
    tiles.block = {{"M", 48}}, tiles.micro = {{"M", 8}, {"N", 48}}, tiles.vector = {{"N", 16}}, tiles.unroll = {{"K", 4}};
    tiles.loops = {"block.M", "micro.N", "micro.M"}, tiles.parallel = {"block.M"},
    tiles.pack["w"] = {"root", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}};
    add(floats, {{"y", tiles}}, "avx512", 3);
    Knobs columns;
    columns.vector = {{"M", 8}};
    add(floats, {{"y", columns}}, "avx2", 1);
    Knobs bytes;
    bytes.micro = {{"M", 4}, {"N", 32}}, bytes.vector = {{"N", 16}}, bytes.instruction = "dot4";
    add(product(DType::u8, DType::i8, DType::i32), {{"y", bytes}}, "znver4", 1);
    Knobs lanes;
    lanes.vector = {{"N", 16}};
    add(shares(), {}, "avx2", 1);
    add(shares(), {{"y", lanes}}, "avx512", 1);
    return all;
}

std::string feature_hash() {
    static const std::string hash = [] {
        std::string text;
        for (const Feature &f : feature_table()) text += f.name + "\t" + f.unit + "\t" + f.meaning + "\n";
        // Five digits: the last ones of a logarithm differ from one library of mathematics to another.
        for (const Featured &f : counted_samples())
            for (const float value : f.values) text += fmt::format("{:.5g}\n", value);
        return sha256(text);
    }();
    return hash;
}

}  // namespace tessera
