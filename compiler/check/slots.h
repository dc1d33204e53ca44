// Slots of a ring: buffers whose first axis goes over slices that are filled ahead (compiler/lower/loops/ring.h). Two places whose slots
// differ do not meet in the buffer.
#pragma once
#include <compare>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

// The slot (variable + offset) % of, or the constant offset where there is no variable; of 0: any of the buffer.
struct Slot {
    std::string buffer;
    std::string variable = {};
    int64_t offset = 0, of = 0;

    Slot(std::string name) : buffer(std::move(name)) {}
    Slot(std::string name, std::string base, int64_t at, int64_t slots)
        : buffer(std::move(name)), variable(std::move(base)), offset((at % slots + slots) % slots), of(slots) {}
    friend auto operator<=>(const Slot &, const Slot &) = default;
};

// Whether both may be one, at one value of their variables.
bool may_be_same(const Slot &a, const Slot &b);

// The slot of an element at the index, where that is (v + c) % slots of a variable for which `is_uniform` holds: all threads have one
// value of it. `slots`: that the buffer has, for constants; 0: not known.
Slot slot_of(const std::string &buffer, const std::vector<Expr> &index, const std::function<bool(const std::string &)> &is_uniform,
             int64_t slots = 0);

}  // namespace tessera
