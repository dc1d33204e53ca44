#include "algorithms/build/cache.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

enum class Codes : uint8_t { storage, i8, i4, f8e4m3fn };

std::vector<Option> formats() {
    return {{"layout", "where a position lies", 0, 0, 2, {"contiguous", "ring", "paged"}},
            {"codes", "of keys and values", 0, 0, 3, {"storage", "i8", "i4", "f8e4m3fn"}},
            yes_or_no("channel_scales", "keys of i8 have scales for each head and channel, which are an input"),
            {"page", "positions of a page; 0: any number, the same in each call", 16, 0, 65536},
            {"sinks", "first positions that queries see beside a window, and that a ring keeps", 0, 0, 65536},
            {"positions", "of a ring: so long a sequence may become", 4096, 1, 1 << 30}};
}

struct Heads {
    Dim B, H, D, E;
};

Dim elements(const std::string &name, const Options &o) {
    Dim d = symbolic_dim(name);
    if (static_cast<Codes>(o.at("codes")) == Codes::i4) d.multiple_of = 2;
    return d;
}

Heads heads(Builder &f, const Options &o) { return {f.dim("B"), f.dim("H"), f.dim(elements("D", o)), f.dim(elements("E", o))}; }

CacheFormat format(const Options &o) {
    CacheFormat cache{
        .layout = static_cast<CacheLayout>(o.at("layout")), .channel_scales = o.at("channel_scales") != 0, .page = o.at("page")};
    switch (static_cast<Codes>(o.at("codes"))) {
    case Codes::storage: break;
    case Codes::i8: cache.codes = DType::i8; break;
    case Codes::i4: cache.codes = DType::i4; break;
    case Codes::f8e4m3fn: cache.codes = DType::f8e4m3fn; break;
    }
    if (cache.layout == CacheLayout::ring) cache.sinks = o.at("sinks"), cache.positions = o.at("positions");
    return cache;
}

}  // namespace

std::vector<Option> cache_append_options() {
    std::vector<Option> all = formats();
    all.push_back(yes_or_no("counts", "count[B] is an input: how many of the rows of each sequence are appended"));
    return all;
}

std::vector<Option> attention_cached_options() {
    std::vector<Option> all = formats();
    all.push_back({"window", "of the keys up to its own, how many a query sees; 0: all", 0, 0, INT32_MAX});
    all.push_back(yes_or_no("begins", "begin[B] is an input: the first position of each sequence that was not pruned"));
    return all;
}

Algorithm cache_append(const Numerics &n, const Options &o) {
    Builder f("cache_append", n);
    const auto [B, H, D, E] = heads(f, o);
    const Dim S = f.dim("S");
    KVCache cache = kv_cache(f, "cache", {B, H, D, E}, format(o));
    const Tile k = f.input("k", {B, S, H, D}), v = f.input("v", {B, S, H, E});
    cache.append(k, v, o.at("counts") ? f.input("count", {B}, DType::i32) : Tile());
    return f.build();
}

Algorithm attention_cached(const Numerics &n, const Options &o) {
    Builder f("attention_cached", n);
    const auto [B, H, D, E] = heads(f, o);
    const Dim G = f.dim("G"), S = f.dim("S");
    const Tile q = f.input("q", {B, H, G, S, D});
    CacheFormat how = format(o);
    how.begins = o.at("begins") != 0;
    const KVCache cache = kv_cache(f, "cache", {B, H, D, E}, how);
    const Tile position = cache.length() - f.tile(extent(S.name), {}) + f.index(S);  // (B, S)
    return f.output("o", attend(q, cache, position, {.window = o.at("window"), .sinks = o.at("sinks")})).build();
}

Algorithm cache_copy_pages(const Numerics &n) {
    Builder f("cache_copy_pages", n);
    Dim P = symbolic_dim("P");
    P.min = 1;
    const Tile pages = f.state("pages", {f.dim(P), f.dim("X")}, DType::u8);
    copy_pages(pages, f.input("pairs", {f.dim("N"), f.dim("two", 2)}, DType::i32));
    return f.build();
}

}  // namespace tessera::library
