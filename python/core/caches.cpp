// Caches of keys and values (algorithms/build/cache.h), made of tiles that a function takes as arguments.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "algorithms/build/cache.h"
#include "python/core/tiles.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

CacheLayout layout_named(const std::string &name) {
    const std::vector<std::string> names = {"contiguous", "ring", "paged"};
    for (size_t i = 0; i < names.size(); i++)
        if (name == names[i]) return static_cast<CacheLayout>(i);
    throw UserError("cache.layout", "there is no layout '" + name + "'; there are " + join(names) + "." + did_you_mean(name, names));
}

// A cache and the builder that it declares with.
struct CacheHandle {
    KVCache cache;
    std::shared_ptr<Builder> owner;

    Dim counted(const std::optional<std::string> &t) const { return t ? owner->dim_named(*t) : cache.positions(); }
};

}  // namespace

void declare_caches(nb::module_ &m) {
    using Name = std::optional<std::string>;
    nb::class_<CacheHandle>(m, "KVCache", "Keys and values by position, whatever their layout: see algorithms/build/cache.h.")
        .def_prop_ro(
            "positions", [](const CacheHandle &c) { return c.cache.positions().name; }, "The name of the dim of all positions.")
        .def_prop_ro(
            "length", [](const CacheHandle &c) { return c.cache.length(); }, "Tokens of each sequence (B), with those appended here.")
        .def_prop_ro(
            "begin", [](const CacheHandle &c) { return c.cache.begin(); }, "The first position of each sequence that is there.")
        .def(
            "keys", [](const CacheHandle &c, const Name &t) { return c.cache.keys(c.counted(t)); }, nb::arg("t") = nb::none(),
            "(B, H, t, D), numbers at the positions that the dim t counts; of all positions by default.", nb::call_guard<CallingLine>())
        .def(
            "values", [](const CacheHandle &c, const Name &t) { return c.cache.values(c.counted(t)); }, nb::arg("t") = nb::none(),
            "(B, H, t, E)", nb::call_guard<CallingLine>())
        .def(
            "append",
            [](CacheHandle &c, const Tile &k, const Tile &v, const Tile &count, const std::string &prefix) {
                c.cache.append(k, v, count, prefix);
            },
            nb::arg("k"), nb::arg("v"), nb::arg("count") = nb::none(), nb::arg("prefix") = "append_",
            "Writes k (B, H, S, D) and v (B, H, S, E) after what is there, of sequence b the first count[b] rows.",
            nb::call_guard<CallingLine>())
        .def(
            "copy_pages", [](CacheHandle &c, const Tile &pairs) { c.cache.copy_pages(pairs); }, nb::arg("pairs"),
            "Page pairs[n, 1] becomes what page pairs[n, 0] was.", nb::call_guard<CallingLine>());
    m.def(
        "kv_cache",
        [](const Tile &keys, const Tile &values, const Tile &length, const std::string &layout, const Tile &table, const Tile &key_scales,
           const Tile &value_scales, const Tile &begin, int64_t sinks, int64_t positions, const Name &key, const Name &value) {
            CacheTensors t{keys, values, key_scales, value_scales, length, table, begin};
            if (key) t.key = dim_of(keys, *key);
            if (value) t.value = dim_of(keys, *value);
            return CacheHandle{KVCache(t, layout_named(layout), sinks, positions), handle_of(keys).owner};
        },
        nb::arg("keys"), nb::arg("values"), nb::arg("length"), nb::kw_only(), nb::arg("layout") = "contiguous",
        nb::arg("table") = nb::none(), nb::arg("key_scales") = nb::none(), nb::arg("value_scales") = nb::none(),
        nb::arg("begin") = nb::none(), nb::arg("sinks") = 0, nb::arg("positions") = 0, nb::arg("key") = nb::none(),
        nb::arg("value") = nb::none(),
        "A cache of states that the function takes: keys [B, H, T, D], of pages [P, H, Z, D] with table [B, C], of a ring [B, H, W, D] "
        "whose "
        "sequences have at most so many positions; layout 'contiguous', 'ring' or 'paged'. Codes have scales [B, H, T]; u8 has two codes "
        "of i4, of the dims "
        "`key` and `value`.",
        nb::call_guard<CallingLine>());
    m.def(
        "attend",
        [](const Tile &q, const CacheHandle &cache, const Tile &position, int64_t window, int64_t sinks) {
            return attend(q, cache.cache, position, {.window = window, .sinks = sinks});
        },
        nb::arg("q"), nb::arg("cache"), nb::arg("position"), nb::kw_only(), nb::arg("window") = 0, nb::arg("sinks") = 0,
        "Attention of q (B, H, ..., D) to the keys up to `position`, integers over B and other dims of q; 0 where there is none.",
        nb::call_guard<CallingLine>());
    m.def(
        "copy_pages", [](const Tile &pages, const Tile &pairs) { copy_pages(pages, pairs); }, nb::arg("pages"), nb::arg("pairs"),
        "pages[pairs[n, 1]] of a state becomes what pages[pairs[n, 0]] was.", nb::call_guard<CallingLine>());
}

}  // namespace tessera::python
