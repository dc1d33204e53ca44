// Reading and writing at positions that data tells, and sums of products by the names of dims. Positions are tiles of integers.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

// Positions that may count from the end, -1 being the last of `in`, as positions from the beginning.
Tile from_end(const Tile &position, const Dim &in, Span caller = std::source_location::current());

// x read along each of these dims at the position that stands beside it; positions outside become the nearest inside. Other dims of x stay,
// and those of the positions come in front: of x (V, D) at ids (T) along V it is a lookup (T, D); at ids (T, D), which name x's D too, it
// takes an element for each. What is read along has an element: declare the dim with a minimum of 1. What is computed becomes a stage
// "gathered" before. UserError shape.gather where x lacks a dim, shape.type where a position is no integer.
struct Position {
    Dim along;
    Tile at;
};
Tile gather(const Tile &x, const std::vector<Position> &at, Span caller = std::source_location::current());

// Tiles of `on` where the class is the element's number, of `off` elsewhere; an id outside of the classes has `off` everywhere. The dim
// `classes` comes last. UserError shape.type where ids are no integers.
Tile one_hot(const Tile &id, const Dim &classes, const Tile &on, const Tile &off, Span caller = std::source_location::current());

// x with updates combined into it by a monoid of one part, each at the position that `at` gives for each of x's dims; positions outside
// are dropped. A dim whose position is its own index is not folded, as in Builder::scatter. Stage "scattered". UserError algorithm.scatter,
// algorithm.parts, shape.type.
Tile scatter_into(const Tile &x, const Monoid &monoid, const Tile &updates, const std::vector<Tile> &at,
                  Span caller = std::source_location::current());
// The same with updates in place of what x has. Of several at one position the last one stays, in the order of the updates' dims.
Tile replace_at(const Tile &x, const Tile &updates, const std::vector<Tile> &at, Span caller = std::source_location::current());

// The last element that was given: parts value and given, which is false where there was none. It is not commutative.
Monoid last_monoid(DType type);

// The sum over all dims that `result` lacks of the product of the operands, as Einstein writes it by letters: of a (I, J), b (J, K) and
// result (I, K) their matrix product. Operands are multiplied from the left; a dim is summed as soon as no later one has it. UserError
// shape.einsum where there is no operand, or none has a dim of the result.
Tile einsum(const std::vector<Tile> &operands, const std::vector<Dim> &result, Span caller = std::source_location::current());

}  // namespace tessera
