// Caches of keys and values: layouts give the same bits, what was appended is what a plain attention reads, and data that is hostile.
#include "algorithms/build/cache.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_cache {

namespace {

using Arrays = std::map<std::string, Array>;

constexpr int64_t B = 3, H = 2, G = 2, D = 4, E = 6, room = 24, page = 4, pages = 20;

Array numbers(std::vector<int64_t> shape, double seed, DType type = DType::f32) {
    Array a(type, shape);
    for (int64_t i = 0; i < a.size(); i++) a.set(i, Scalar::of_real(type, std::sin(seed + 0.7 * static_cast<double>(i))));
    return a;
}

Array integers(std::vector<int64_t> shape, const std::vector<double> &values) { return Array(DType::i32, std::move(shape), values); }

Options options_of(const std::vector<Option> &declared, const Options &given) { return complete_options("cache", declared, given); }

// A cache in memory, of one layout and kind of codes.
struct Memory {
    CacheLayout layout;
    Options options;
    int64_t codes;
    Arrays arrays;
    Numerics numerics;

    Memory(CacheLayout layout, int64_t codes, bool channel_scales = false, int64_t sinks = 0, const Numerics &numerics = {})
        : layout(layout), codes(codes), numerics(numerics) {
        options = {{"layout", static_cast<int64_t>(layout)}, {"codes", codes}, {"page", page}, {"channel_scales", channel_scales}};
        if (layout == CacheLayout::ring) options["sinks"] = sinks, options["positions"] = room;
        const bool paged = layout == CacheLayout::paged;
        const int64_t rows = paged ? pages : B, slots = paged ? page : layout == CacheLayout::ring ? 12 + sinks : room;
        const DType type = codes == 0 ? numerics.storage : codes == 1 ? DType::i8 : codes == 2 ? DType::u8 : DType::f8e4m3fn;
        const int64_t half = codes == 2 ? 2 : 1;
        arrays.emplace("cache_keys", Array(type, {rows, H, slots, D / half}));
        arrays.emplace("cache_values", Array(type, {rows, H, slots, E / half}));
        if (codes != 0) {
            arrays.emplace("cache_key_scales", channel_scales ? Array(DType::f32, {H, D}, std::vector<double>(H * D, 1.0 / 127))
                                                              : Array(DType::f32, {rows, H, slots}));
            arrays.emplace("cache_value_scales", Array(DType::f32, {rows, H, slots}));
        }
        arrays.emplace("cache_length", integers({B}, {0, 0, 0}));
        if (paged) {  // pages in no order
            std::vector<double> table;
            for (int64_t i = 0; i < B * room / page; i++) table.push_back(static_cast<double>((7 * i + 3) % pages));
            arrays.emplace("cache_table", integers({B, room / page}, table));
        }
    }

    void take(const Arrays &after) {
        for (auto &[name, array] : arrays)
            if (const auto it = after.find(name); it != after.end()) array = it->second;
    }

    void append(const Array &k, const Array &v, const std::vector<double> &counts) {
        Options o = options;
        o["counts"] = 1;
        Arrays in = arrays;
        in.emplace("k", k), in.emplace("v", v), in.emplace("count", integers({B}, counts));
        take(evaluate(library::cache_append(numerics, options_of(library::cache_append_options(), o)), in));
        std::vector<double> length = arrays.at("cache_length").values();
        for (size_t b = 0; b < length.size(); b++) length[b] += counts[b];
        arrays.at("cache_length") = integers({B}, length);
    }

    Array attended(const Array &q, int64_t window, int64_t sinks) const {
        Options o = options;
        o["window"] = window, o["sinks"] = sinks;
        Arrays in = arrays;
        in.emplace("q", q);
        EvaluationOptions how;
        how.extents = {{"E", E}};  // bytes do not say it
        return evaluate(library::attention_cached(numerics, options_of(library::attention_cached_options(), o)), in, {}, how).at("o");
    }
};

// Rows begin ..< begin + count of each sequence of x[B, room, H, N], as x[B, count, H, N].
Array rows_of(const Array &x, int64_t begin, int64_t count) {
    const int64_t inner = x.extents[2] * x.extents[3];
    Array part(x.dtype, {B, count, x.extents[2], x.extents[3]});
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < count * inner; i++) part.set(b * count * inner + i, x.get((b * room + begin) * inner + i));
    return part;
}

}  // namespace

TEST_CASE("cache: three layouts give the same bits, whatever the codes, windows and lengths") {
    const Array k = numbers({B, room, H, D}, 1), v = numbers({B, room, H, E}, 2);
    for (int64_t codes : {0, 1, 2, 3})
        for (const auto &[window, sinks] : {std::pair<int64_t, int64_t>{5, 0}, {5, 2}, {9, 1}}) {
            INFO("codes " << codes << " window " << window << " sinks " << sinks);
            Memory contiguous(CacheLayout::contiguous, codes), ring(CacheLayout::ring, codes, false, sinks),
                paged(CacheLayout::paged, codes);
            for (const std::vector<double> &counts : {std::vector<double>{3, 0, 1}, {5, 0, 5}, {2, 0, 4}, {5, 0, 3}}) {
                // All sequences get the same tokens; a shorter one is behind.
                for (Memory *m : {&contiguous, &ring, &paged}) {
                    const auto begin = static_cast<int64_t>(m->arrays.at("cache_length").values()[0]);
                    m->append(rows_of(k, begin, 5), rows_of(v, begin, 5), counts);
                }
                for (int64_t S : {1, 4}) {
                    const Array q = numbers({B, H, G, S, D}, 3);
                    const Array a = contiguous.attended(q, window, sinks);
                    CHECK(ring.attended(q, window, sinks) == a);
                    CHECK(paged.attended(q, window, sinks) == a);
                    for (int64_t i = 0; i < H * G * S * E; i++) CHECK(a.get(H * G * S * E + i).real == 0);  // of no keys
                }
            }
        }
}

TEST_CASE("cache: layouts of bf16 give the same bits") {
    const Numerics bf16 = numerics_named("bf16");
    const Array k = numbers({B, 5, H, D}, 1, DType::bf16), v = numbers({B, 5, H, E}, 2, DType::bf16);
    const Array q = numbers({B, H, G, 2, D}, 3, DType::bf16);
    for (int64_t codes : {0, 1}) {
        std::vector<Array> made;
        for (const CacheLayout layout : {CacheLayout::contiguous, CacheLayout::ring, CacheLayout::paged}) {
            Memory cache(layout, codes, false, 0, bf16);
            for (int i = 0; i < 3; i++) cache.append(k, v, {5, 0, 3});
            made.push_back(cache.attended(q, 9, 0));
        }
        CHECK(made[0].dtype == DType::bf16);
        CHECK(made[1] == made[0]);
        CHECK(made[2] == made[0]);
    }
}

// Appends and attends.
Algorithm layer() {
    Builder f("layer");
    const CacheDims dims = {f.dim("B"), f.dim("H"), f.dim("D"), f.dim("E")};
    const Dim G = f.dim("G"), S = f.dim("S");
    const Tile q = f.input("q", {dims.sequences, dims.heads, G, S, dims.key}), k = f.input("k", {dims.sequences, S, dims.heads, dims.key});
    const Tile v = f.input("v", {dims.sequences, S, dims.heads, dims.value});
    KVCache cache = kv_cache(f, "cache", dims, {.layout = CacheLayout::paged, .page = page});
    const Tile first = cache.length();
    cache.append(k, v);
    return f.output("o", attend(q, cache, first + f.index(S))).build();
}

TEST_CASE("cache: layers share a pool, and each has the bits that it has alone") {
    constexpr int64_t L = 3, S = 2;
    const Algorithm alone = layer();
    Builder f("layers");
    const CacheDims dims = {f.dim("B"), f.dim("H"), f.dim("D"), f.dim("E")};
    const Dim Layers = f.dim("L"), Group = f.dim("G"), Rows = f.dim("S");
    const Tile q = f.input("q", {Layers, dims.sequences, dims.heads, Group, Rows, dims.key}),
               k = f.input("k", {Layers, dims.sequences, Rows, dims.heads, dims.key});
    const Tile v = f.input("v", {Layers, dims.sequences, Rows, dims.heads, dims.value});
    const CacheTensors pool = cache_tensors(f, "cache", dims, {.layout = CacheLayout::paged, .page = page}, {Layers});
    std::vector<Tile> arguments = {q, k, v};
    for (const Tile &t : pool.arguments()) arguments.push_back(t);
    f.output("o", f.repeat("layers", alone, {.dim = "L", .stacked = {"o"}}, arguments)[0]);
    const Algorithm all = f.build();

    const Memory paged(CacheLayout::paged, 0);
    Arrays whole = {{"q", numbers({L, B, H, G, S, D}, 1)}, {"k", numbers({L, B, S, H, D}, 2)}, {"v", numbers({L, B, S, H, E}, 3)}};
    whole.emplace("cache_length", integers({B}, {5, 0, 3})), whole.emplace("cache_table", paged.arrays.at("cache_table"));
    whole.emplace("cache_keys", numbers({L, pages, H, page, D}, 4)), whole.emplace("cache_values", numbers({L, pages, H, page, E}, 5));
    const Arrays made = evaluate(all, whole);
    const auto part = [&](const Array &stack, int64_t l) {
        Array one(stack.dtype, {stack.extents.begin() + 1, stack.extents.end()});
        for (int64_t i = 0; i < one.size(); i++) one.set(i, stack.get(l * one.size() + i));
        return one;
    };
    for (int64_t l = 0; l < L; l++) {
        Arrays own = whole;
        for (const char *name : {"q", "k", "v", "cache_keys", "cache_values"}) own.at(name) = part(whole.at(name), l);
        const Arrays expected = evaluate(alone, own);
        for (const char *name : {"o", "cache_keys", "cache_values"}) CHECK(part(made.at(name), l) == expected.at(name));
    }
}

TEST_CASE("cache: what was appended piece by piece is what a plain attention has at once") {
    const int64_t length = 11;
    Memory cache(CacheLayout::paged, 0);
    const Array k = numbers({B, room, H, D}, 4), v = numbers({B, room, H, E}, 5), q = numbers({B, H, G, 3, D}, 6);
    cache.append(rows_of(k, 0, 7), rows_of(v, 0, 7), {7, 7, 7});
    cache.append(rows_of(k, 7, 4), rows_of(v, 7, 4), {4, 4, 4});
    const Array o = cache.attended(q, 0, 0);
    const Algorithm plain = library::attention_grouped({}, complete_options("a", library::grouped_attention_options(), {{"causal", 1}}));
    for (int64_t b = 0; b < B; b++) {
        Array own_q(DType::f32, {H, G, 3, D}), own_k(DType::f32, {H, length, D}), own_v(DType::f32, {H, length, E});
        for (int64_t i = 0; i < own_q.size(); i++) own_q.set(i, q.get(b * own_q.size() + i));
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < length; t++) {
                for (int64_t d = 0; d < D; d++) own_k.set((h * length + t) * D + d, k.get(((b * room + t) * H + h) * D + d));
                for (int64_t e = 0; e < E; e++) own_v.set((h * length + t) * E + e, v.get(((b * room + t) * H + h) * E + e));
            }
        const Array expected =
            evaluate(plain, {{"q", own_q}, {"k", own_k}, {"v", own_v}}, {{"position", Scalar::of_integer(DType::i32, length - 3)}}).at("o");
        for (int64_t i = 0; i < expected.size(); i++) CHECK(o.get(b * expected.size() + i).real == expected.get(i).real);
    }
}

TEST_CASE("cache: codes with scales are near what they are of") {
    const Array k = numbers({B, room, H, D}, 7), v = numbers({B, room, H, E}, 8), q = numbers({B, H, G, 1, D}, 9);
    const auto attended = [&](int64_t codes, bool channel_scales) {
        Memory cache(CacheLayout::contiguous, codes, channel_scales);
        cache.append(rows_of(k, 0, 13), rows_of(v, 0, 13), {13, 1, 6});
        return cache.attended(q, 0, 0).values();
    };
    const std::vector<double> exact = attended(0, false);
    const auto error = [&](const std::vector<double> &got) {
        double most = 0;
        for (size_t i = 0; i < got.size(); i++) most = std::max(most, std::abs(got[i] - exact[i]));
        return most;
    };
    CHECK(error(attended(1, false)) < 0.01);
    CHECK(error(attended(1, true)) < 0.01);
    CHECK(error(attended(2, false)) < 0.15);
    CHECK(error(attended(3, false)) < 0.06);
    CHECK(error(attended(2, false)) > 0);
}

TEST_CASE("cache: hostile tables and lengths write nothing that has no place") {
    const Array k = numbers({B, room, H, D}, 1), v = numbers({B, room, H, E}, 2), q = numbers({B, H, G, 1, D}, 3);
    Memory cache(CacheLayout::paged, 0);
    const Array before = cache.arrays.at("cache_keys");
    cache.arrays.at("cache_table") = integers({B, room / page}, std::vector<double>(B * room / page, -1));
    cache.append(rows_of(k, 0, 5), rows_of(v, 0, 5), {5, 5, 5});
    CHECK(cache.arrays.at("cache_keys") == before);
    cache.arrays.at("cache_table") = integers({B, room / page}, std::vector<double>(B * room / page, pages));
    cache.append(rows_of(k, 0, 5), rows_of(v, 0, 5), {-1, 99, 1e9});
    CHECK(cache.arrays.at("cache_keys") == before);
    cache.arrays.at("cache_table") = integers({B, room / page}, std::vector<double>(B * room / page, 2));
    for (const std::vector<double> &length : {std::vector<double>{INT32_MIN, -1, INT32_MAX}, {room, room + 1, room - 1}}) {
        cache.arrays.at("cache_length") = integers({B}, length);
        cache.append(rows_of(k, 0, 5), rows_of(v, 0, 5), {0, 0, 0});
        const Array o = cache.attended(q, 3, 0);
        for (int64_t i = 0; i < o.size(); i++) CHECK(std::isfinite(o.get(i).real));
    }
}

TEST_CASE("cache: pages are copied as they were before, and pairs without a page are dropped") {
    const Array bytes(DType::u8, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const Arrays after =
        evaluate(library::cache_copy_pages({}), {{"pages", bytes}, {"pairs", integers({4, 2}, {0, 1, 1, 2, -1, -1, 9, 0})}});
    CHECK(after.at("pages").values() == std::vector<double>{1, 2, 1, 2, 3, 4, 7, 8});
}

TEST_CASE("cache: what is refused") {
    Builder f("refused");
    const Dim b = f.dim("B"), h = f.dim("H"), d = f.dim("D"), e = f.dim("E");
    const auto refused = [](const auto &make) -> std::string {
        try {
            make();
        } catch (const UserError &error) { return error.id(); }
        return "";
    };
    CHECK(refused([&] { kv_cache(f, "a", {b, h, d, e}, {.codes = DType::i32}); }) == "cache.format");
    CHECK(refused([&] { kv_cache(f, "a", {b, h, d, e}, {.codes = DType::i4}); }) == "cache.format");
    CHECK(refused([&] { kv_cache(f, "a", {b, h, d, e}, {.channel_scales = true}); }) == "cache.format");
    KVCache cache = kv_cache(f, "c", {b, h, d, e});
    const Tile q = f.input("q", {b, h, d}), k = f.input("k", {b, h, e});
    CHECK(refused([&] { cache.append(k, k); }) == "cache.append");
    CHECK(refused([&] { cache.copy_pages(f.input("pairs", {b, h}, DType::i32)); }) == "cache.pages");
    CHECK(refused([&] { attend(k, cache, cache.length()); }) == "cache.attend");
    CHECK(refused([&] { attend(q, cache, q); }) == "cache.attend");
    CHECK(refused([&] { KVCache(cache.tensors(), CacheLayout::paged); }) == "cache.tensors");
    const KVCache ring = kv_cache(f, "r", {b, h, d, e}, {.layout = CacheLayout::ring, .sinks = 1});
    CHECK(refused([&] { attend(q, ring, ring.length(), {.sinks = 2}); }) == "cache.attend");
}

}  // namespace tessera::test_cache
