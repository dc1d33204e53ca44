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

struct OpClasses {
    Op op;
    bool only_chooses;  // each result is an operand, or made of truths and bits: nothing is rounded
    OpUnit unit;
    bool makes_positions;  // lowering makes positions with it, of numbers of type index
};

inline constexpr std::array<OpClasses, op_count> op_classes = {{
    {Op::neg, false, OpUnit::simple, true},    {Op::abs, false, OpUnit::simple, true},        {Op::sqrt, false, OpUnit::slow, false},
    {Op::floor, false, OpUnit::simple, false}, {Op::ceil, false, OpUnit::simple, false},      {Op::round, false, OpUnit::simple, false},
    {Op::trunc, false, OpUnit::simple, false}, {Op::logical_not, true, OpUnit::simple, true}, {Op::add, false, OpUnit::simple, true},
    {Op::sub, false, OpUnit::simple, true},    {Op::mul, false, OpUnit::simple, true},        {Op::div, false, OpUnit::slow, true},
    {Op::mod, false, OpUnit::simple, true},    {Op::min, true, OpUnit::simple, true},         {Op::max, true, OpUnit::simple, true},
    {Op::bit_and, true, OpUnit::simple, true}, {Op::bit_or, true, OpUnit::simple, true},      {Op::bit_xor, true, OpUnit::simple, true},
    {Op::shl, false, OpUnit::simple, false},   {Op::shr, false, OpUnit::simple, false},       {Op::eq, true, OpUnit::simple, true},
    {Op::ne, true, OpUnit::simple, true},      {Op::lt, true, OpUnit::simple, true},          {Op::le, true, OpUnit::simple, true},
    {Op::fma, false, OpUnit::fma, false},      {Op::select, true, OpUnit::choice, true},
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
