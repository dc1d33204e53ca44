#include "compiler/abi/workspace.h"

#include <algorithm>

#include "runtime/abi/kernel.h"

namespace tessera {

Expr workspace_bytes(const Buffer &buffer) {
    constexpr int64_t beyond = int64_t{TESS_MAX_ELEMENTS} + 1;  // where counting stops: products of three extents have no type
    const Expr refused = Expr(int64_t{TESS_MAX_WORKSPACE_BYTES} * 2);
    int64_t fixed = 1;
    Expr count;
    for (const Expr &e : buffer.extents)
        if (e.is_constant()) fixed = std::min(beyond, fixed * std::max<int64_t>(0, e->value.integer));
    for (const Expr &e : buffer.extents)
        if (!e.is_constant()) count = count.defined() ? min(count, Expr(beyond)) * max(e, Expr(0)) : max(e, Expr(0));
    const int64_t size = size_of(buffer.dtype);
    if (!count.defined() || fixed == 0) return fixed < beyond ? Expr(fixed * size) : refused;
    if (fixed > 1) count = min(count, Expr(beyond)) * fixed;
    return select(count < Expr(beyond), size == 1 ? count : count * size, refused);
}

int64_t aligned(int64_t bytes) { return (bytes + TESS_WORKSPACE_ALIGNMENT - 1) / TESS_WORKSPACE_ALIGNMENT * TESS_WORKSPACE_ALIGNMENT; }

}  // namespace tessera
