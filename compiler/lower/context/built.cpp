#include "compiler/lower/context/built.h"

#include <iterator>

namespace tessera {

Built &Built::operator+=(Built more) {
    append(body, std::move(more.body));
    has_border_version |= more.has_border_version;
    return *this;
}

void append(TileBody &to, TileBody more) {
    if (to.empty()) to = std::move(more);
    else to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

TileBody in_loop(const std::string &variable, const Expr &count, LoopKind kind, TileBody body) {
    return {tile_node(Loop{variable, count, kind, std::move(body)})};
}

TileBody in_let(const std::string &variable, const Expr &value, TileBody body) {
    return {tile_node(Let{variable, value, std::move(body)})};
}

TileBody in_guard(const Expr &condition, TileBody then, TileBody otherwise) {
    return {tile_node(Guard{condition, std::move(then), std::move(otherwise)})};
}

TileBody in_allocs(const std::vector<Buffer> &buffers, TileBody body) {
    for (auto it = buffers.rbegin(); it != buffers.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    return body;
}

Built in_loop(const std::string &variable, const Expr &count, LoopKind kind, Built inside) {
    return {in_loop(variable, count, kind, std::move(inside.body)), inside.has_border_version};
}

Built in_let(const std::string &variable, const Expr &value, Built inside) {
    return {in_let(variable, value, std::move(inside.body)), inside.has_border_version};
}

Built in_guard(const Expr &condition, Built then, Built otherwise) {
    return {in_guard(condition, std::move(then.body), std::move(otherwise.body)), then.has_border_version || otherwise.has_border_version};
}

Built in_allocs(const std::vector<Buffer> &buffers, Built inside) {
    return {in_allocs(buffers, std::move(inside.body)), inside.has_border_version};
}

}  // namespace tessera
