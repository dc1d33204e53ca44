// Bodies as they are built: what comes after a body, and what is put around one.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// A body, and whether it has versions for tiles inside an image and at its border.
struct Built {
    TileBody body;
    bool has_border_version = false;

    Built() = default;
    Built(TileBody b, bool border_version = false) : body(std::move(b)), has_border_version(border_version) {}
    // The other one after this one.
    Built &operator+=(Built more);
};

void append(TileBody &to, TileBody more);

TileBody in_loop(const std::string &variable, const Expr &count, LoopKind kind, TileBody body);
TileBody in_let(const std::string &variable, const Expr &value, TileBody body);
TileBody in_guard(const Expr &condition, TileBody then, TileBody otherwise = {});
// The first buffer outermost.
TileBody in_allocs(const std::vector<Buffer> &buffers, TileBody body);

Built in_loop(const std::string &variable, const Expr &count, LoopKind kind, Built inside);
Built in_let(const std::string &variable, const Expr &value, Built inside);
Built in_guard(const Expr &condition, Built then, Built otherwise = {});
Built in_allocs(const std::vector<Buffer> &buffers, Built inside);

}  // namespace tessera
