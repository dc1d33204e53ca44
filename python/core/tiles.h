// Tiles of Python. Each keeps the builder alive that made it.
#pragma once
#include "python/core/errors.h"
#include "python/core/types.h"

#include <memory>

#include "algorithms/build/builder.h"
#include "support/text/error.h"

namespace tessera::python {

struct TileHandle {
    Tile tile;
    std::shared_ptr<Builder> owner;
};

// Builders by their addresses, so that a tile that C++ returns finds its owner.
std::shared_ptr<Builder> make_builder(const std::string &name, const Numerics &numerics);
TileHandle handle_of(const Tile &tile);

// A dim by its name, of the builder of that tile.
inline Dim dim_of(const Tile &tile, const std::string &name) { return tile.builder().dim_named(name); }
std::vector<Dim> dims_of(Builder &builder, const std::vector<std::string> &names);

// The choice with this name. UserError `id` where there is none.
template <class Choice, size_t count>
Choice chosen(const char *id, const char *what, const char *const (&names)[count], const std::string &name) {
    for (size_t i = 0; i < count; i++)
        if (name == names[i]) return static_cast<Choice>(i);
    const std::vector<std::string> all(std::begin(names), std::end(names));
    throw UserError(id, std::string("there is no ") + what + " '" + name + "'; there are " + join(all) + "." + did_you_mean(name, all));
}

void declare_expressions(nb::module_ &m);
void declare_monoids(nb::module_ &m);
void declare_tiles(nb::module_ &m);      // Tile and Builder
void declare_functions(nb::module_ &m);  // those over tiles
void declare_caches(nb::module_ &m);     // of keys and values
void declare_recurrences(nb::module_ &m);
void declare_windows(nb::module_ &m);  // convolutions, pools, resizing

}  // namespace tessera::python

namespace nanobind::detail {

template <>
struct type_caster<tessera::Tile> {
    NB_TYPE_CASTER(tessera::Tile, const_name("tessera._core.Tile"))

    // None is a tile that is not given, where one may be left out.
    bool from_python(handle source, uint8_t, cleanup_list *) noexcept {
        if (source.is_none()) return true;
        if (!isinstance<tessera::python::TileHandle>(source) || !inst_ready(source)) return false;
        value = inst_ptr<tessera::python::TileHandle>(source)->tile;
        return true;
    }

    static handle from_cpp(const tessera::Tile &tile, rv_policy, cleanup_list *) noexcept {
        if (!static_cast<bool>(tile)) return none().release();
        return cast(tessera::python::handle_of(tile)).release();
    }
};

}  // namespace nanobind::detail
