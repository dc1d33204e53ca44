#include "bench/measure/integer_inputs.h"

#include <catch2/catch.hpp>

#include <set>

#include "algorithms/build/builder.h"
#include "algorithms/build/cache.h"
#include "algorithms/build/option.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "bench/measure/inputs.h"

namespace tessera::test_integer_inputs {

using Meanings = std::map<std::string, IntegerMeaning>;
constexpr auto positions = IntegerMeaning::Kind::positions, lengths = IntegerMeaning::Kind::lengths;

std::vector<int64_t> integers(const Array &array) {
    std::vector<int64_t> all;
    for (double v : array.values()) all.push_back(static_cast<int64_t>(v));
    return all;
}

TEST_CASE("integer inputs: what they mean is read off the algorithm") {
    CHECK(integer_meanings(library::embedding({})) == Meanings{{"ids", {positions, "V"}}});
    CHECK(integer_meanings(library::histogram({})) == Meanings{{"ids", {positions, "V"}}});
    CHECK(integer_meanings(library::embedding_gradient({})) == Meanings{{"ids", {positions, "V"}}});
    CHECK(integer_meanings(library::segmented_sum({})).empty());  // offsets, which ascend
    CHECK(integer_meanings(library::matmul({})).empty());
    const auto layout = static_cast<int64_t>(CacheLayout::paged);
    const Algorithm cached =
        library::attention_cached({}, complete_options("attention_cached", library::attention_cached_options(), {{"layout", layout}}));
    const Meanings found = integer_meanings(cached);
    REQUIRE(found.size() == 2);
    CHECK(found.at("cache_length").kind == lengths);
    CHECK(found.at("cache_table") == IntegerMeaning{positions, "cache_pages"});
}

TEST_CASE("integer inputs: meanings go through calls and through stages of integers") {
    Builder f("outer");
    const Dim T = f.dim("N"), V = f.dim("W"), D = f.dim("C");
    const Tile words = f.input("words", {T}, DType::i32), table = f.input("rows", {V, D});
    const Tile many = f.input("many", {T}, DType::i32);
    const Tile y = f.call("look", library::embedding({}), {words, table})[0];
    const Tile twice = (many * 2).named("twice");
    f.output("z", select(f.index(D) < cast(DType::index, twice), y, f.scalar(DType::f32, 0)));
    CHECK(integer_meanings(f.build()) == Meanings{{"words", {positions, "W"}}, {"many", {lengths, "C"}}});
}

TEST_CASE("integer inputs: rows come once before one comes again, lengths reach from 0 to all") {
    const Algorithm embedding = library::embedding({});
    const Extents extents = all_extents(embedding, {{"T", 250}, {"V", 100}, {"D", 3}});
    const StatedInputs made = with_integer_inputs(embedding, extents, {}, 5);
    const std::vector<int64_t> ids = integers(made.arrays.at("ids"));
    for (size_t from : {0, 100}) CHECK(std::set<int64_t>(ids.begin() + from, ids.begin() + from + 100).size() == 100);
    CHECK(!std::is_sorted(ids.begin(), ids.begin() + 100));
    CHECK(made.arrays == with_integer_inputs(embedding, extents, {}, 5).arrays);
    // What somebody states stays.
    StatedInputs stated;
    stated.ranges["ids"] = {3, 3};
    CHECK(with_integer_inputs(embedding, extents, stated, 5).arrays.empty());
    // A dim without points has no positions.
    CHECK(with_integer_inputs(embedding, all_extents(embedding, {{"T", 5}, {"V", 0}, {"D", 3}}), {}, 5).arrays.empty());

    Builder f("masked");
    const Dim B = f.dim("B"), T = f.dim("T");
    const Tile x = f.input("x", {B, T}), n = f.input("n", {B}, DType::i64);
    f.output("y", sum(select(f.index(T) < cast(DType::index, n), x, f.scalar(DType::f32, 0)), T));
    const Algorithm masked = f.build();
    const std::vector<int64_t> drawn =
        integers(with_integer_inputs(masked, all_extents(masked, {{"B", 1000}, {"T", 4}}), {}, 5).arrays.at("n"));
    CHECK(std::set<int64_t>(drawn.begin(), drawn.end()) == std::set<int64_t>{0, 1, 2, 3, 4});
}

}  // namespace tessera::test_integer_inputs
