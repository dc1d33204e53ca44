// Classes of operations: what analyses ask of an operation, a column each, so that they need no list of their own. A new operation does not
// compile without its row.
#pragma once
#include "algorithms/expr/op.h"

namespace tessera {

// What of a processor one takes where it is on floats.
enum class OpUnit : uint8_t {
    simple,
    fma,
    slow,  // divisions and roots
    choice
};

// Which operands make a result of data, and when it may need 64 bits, where operands made of data fit 32 (data_positions.h).
enum class OpWidth : uint8_t {
    grows,      // made of data, it may be wider
    keeps,      // it is one of its operands
    quotient,   // by a constant above 0 it keeps, otherwise it grows
    remainder,  // it is as its divisor, and less
};

struct OpClasses {
    Op op;
    bool only_chooses;  // each result is an operand, or made of truths and bits: nothing is rounded
    OpUnit unit;
    bool makes_positions;  // lowering makes positions with it, of numbers of type index
    OpWidth width;
};

inline constexpr std::array<OpClasses, op_count> op_classes = {{
    {Op::neg, false, OpUnit::simple, true, OpWidth::grows},     {Op::abs, false, OpUnit::simple, true, OpWidth::grows},
    {Op::sqrt, false, OpUnit::slow, false, OpWidth::grows},     {Op::floor, false, OpUnit::simple, false, OpWidth::grows},
    {Op::ceil, false, OpUnit::simple, false, OpWidth::grows},   {Op::round, false, OpUnit::simple, false, OpWidth::grows},
    {Op::trunc, false, OpUnit::simple, false, OpWidth::grows},  {Op::logical_not, true, OpUnit::simple, true, OpWidth::grows},
    {Op::add, false, OpUnit::simple, true, OpWidth::grows},     {Op::sub, false, OpUnit::simple, true, OpWidth::grows},
    {Op::mul, false, OpUnit::simple, true, OpWidth::grows},     {Op::div, false, OpUnit::slow, true, OpWidth::quotient},
    {Op::mod, false, OpUnit::simple, true, OpWidth::remainder}, {Op::min, true, OpUnit::simple, true, OpWidth::keeps},
    {Op::max, true, OpUnit::simple, true, OpWidth::keeps},      {Op::bit_and, true, OpUnit::simple, true, OpWidth::grows},
    {Op::bit_or, true, OpUnit::simple, true, OpWidth::grows},   {Op::bit_xor, true, OpUnit::simple, true, OpWidth::grows},
    {Op::shl, false, OpUnit::simple, false, OpWidth::grows},    {Op::shr, false, OpUnit::simple, false, OpWidth::grows},
    {Op::eq, true, OpUnit::simple, true, OpWidth::grows},       {Op::ne, true, OpUnit::simple, true, OpWidth::grows},
    {Op::lt, true, OpUnit::simple, true, OpWidth::grows},       {Op::le, true, OpUnit::simple, true, OpWidth::grows},
    {Op::fma, false, OpUnit::fma, false, OpWidth::grows},       {Op::select, true, OpUnit::choice, true, OpWidth::keeps},
}};
static_assert(
    [] {
        for (size_t i = 0; i < op_count; i++)
            if (op_classes[i].op != static_cast<Op>(i)) return false;
        return true;
    }(),
    "each operation has its classes, in the order of the enumerators");

constexpr const OpClasses &classes_of(Op op) { return op_classes[static_cast<size_t>(op)]; }

}  // namespace tessera
