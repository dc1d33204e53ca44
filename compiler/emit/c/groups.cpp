// Steps of the instruction families that take a group of elements for each lane, in C. See expressions.h.
#include <algorithm>

#include "algorithms/index/prove.h"
#include "compiler/emit/c/expressions.h"
#include "compiler/instructions/families.h"

namespace tessera::emit_c {

static bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

namespace {

// Bytes (x >> shift) & mask of bytes x, where the mask takes no bit of a neighbour when x is a part of a word.
struct Bits {
    std::vector<Expr> bytes;
    int64_t shift = 0, mask = 0;
};

}  // namespace

static std::optional<Bits> bits_of_bytes(const std::vector<Expr> &elements) {
    Bits all;
    for (const Expr &e : elements) {
        if (e.kind() != ExprKind::cast || e.type() != DType::u8 || !e->args[0].is_operation(Op::bit_and)) return {};
        Expr x = e->args[0]->args[0];
        const Expr &mask = e->args[0]->args[1], shift = x.is_operation(Op::shr) ? x->args[1] : constant_int(DType::i32, 0);
        if (x.is_operation(Op::shr)) x = x->args[0];
        if (!mask.is_constant() || !shift.is_constant() || x.kind() != ExprKind::cast || x->args[0].type() != DType::u8) return {};
        const int64_t m = mask->value.integer, n = shift->value.integer;
        if (n < 0 || n > 7 || m < 0 || m << n > 255) return {};
        if (!all.bytes.empty() && (m != all.mask || n != all.shift)) return {};
        all.bytes.push_back(x->args[0]), all.shift = n, all.mask = m;
    }
    return all;
}

// 32 bits for each lane: constants, one group for all lanes, the lanes' groups one after the other, or bits of such bytes.
std::optional<Run::Value> Run::words_of(const std::vector<Expr> &elements) {
    const Expr &first = elements[0];
    const CType words{DType::i32, lanes_->count};
    if (const std::optional<Bits> bits = bits_of_bytes(elements)) {
        std::optional<Value> value = words_of(bits->bytes);
        if (!value) return {};
        auto all = [&](int64_t word) { return widened(emit(constant_int(DType::i32, word)), words.lanes); };
        if (bits->shift) value = call(words, operations_.binary(Op::shr, words), {*value, all(bits->shift)});
        return infix(words, *value, " & ", all(bits->mask * 0x01010101), conditional, prefix, prefix);
    }
    if (first.is_constant()) {
        if (!is_byte(first.type()) || !std::all_of(elements.begin(), elements.end(), [&](const Expr &e) { return equal(e, first); }))
            return {};
        const uint32_t four = (static_cast<uint32_t>(first->value.integer) & 0xffu) * 0x01010101u;
        return widened(emit(constant_int(DType::i32, static_cast<int32_t>(four))), words.lanes);
    }
    auto position = [&](const Expr &e) { return flat(scope_.place(e->name), e->name, e->args); };
    for (const Expr &e : elements)
        if (e.kind() != ExprKind::load || e->guarded || e->name != first->name || scope_.place(e->name).named || has_load(position(e)))
            return {};
    for (size_t i = 1; i < elements.size(); i++)
        if (!simplify(position(elements[i]) - position(first), {}).is_constant(static_cast<int64_t>(i))) return {};
    const auto line = linear(position(first));
    if (!line) return {};
    const Expr step = simplify(line->step, {});
    const bool same = step.is_constant(0);
    if (!same && !step.is_constant(static_cast<int64_t>(elements.size()))) return {};
    const CType type = same ? CType{DType::i32, 0} : words;
    std::vector<Piece> pieces = {{operations_.words(type) + "(" + scope_.pointer(first->name), -1, 0}};
    if (!line->base.is_constant(0)) pieces.push_back({" + ", -1, 0}), pieces.push_back(operand(emit(line->base), sum));
    pieces.push_back({")", -1, 0});
    const std::string version = first->name + "@" + std::to_string(versions_[first->name]);
    return widened(make(type, std::move(pieces), primary, false, identifier(first->name), version), words.lanes);
}

// The value, where it is a step of a family that the target has; all that it reads is side by side.
std::optional<Run::Value> Run::grouped(const Expr &e) {
    if (!lanes_ || context_.term >= 0) return {};
    for (const Instruction &family : families()) {
        if (family.c.portable.empty() || !is_on(family, operations_.target())) continue;
        const std::vector<Expr> operands = match(family, e);
        if (operands.empty()) continue;
        std::vector<Expr> pair[2];
        for (size_t i = 1; i < operands.size(); i++) pair[1 - i % 2].push_back(operands[i]);
        const auto a = words_of(pair[0]), b = words_of(pair[1]);
        if (!a || !b) continue;
        const CType type{family.accumulator, lanes_->count};
        return call(type, operations_.group_step(family, type), {widened(emit(operands[0]), type.lanes), *a, *b});
    }
    return {};
}

}  // namespace tessera::emit_c
