#include "algorithms/evaluate/tape.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "algorithms/evaluate/tape_codes.h"
#include "support/text/error.h"

namespace tessera {

namespace {

float bf16_rounded(float v) {
    auto bits = std::bit_cast<uint32_t>(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return v;
    bits += 0x7fff + (bits >> 16 & 1);
    return std::bit_cast<float>(bits & 0xffff0000);
}

float f16_rounded(float v) {
    float magnitude = std::fabs(v);
    if (!(magnitude < 65520)) return magnitude >= 65520 ? std::copysign(INFINITY, v) : v;
    if (magnitude < 0x1p-14f) return std::copysign((magnitude + 0.75f) - 0.75f, v);  // an ulp of 0.75 is 2^-24
    auto bits = std::bit_cast<uint32_t>(v);
    bits += 0xfff + (bits >> 13 & 1);
    return std::bit_cast<float>(bits & 0xffffe000);
}

float half_value(DType type, uint16_t bits) {
    if (type == DType::bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

template <typename T>
T read(const std::byte *p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

template <typename T>
void write(std::byte *p, T value) {
    std::memcpy(p, &value, sizeof value);
}

int64_t wrapped(Kind kind, uint64_t v) {
    if (kind == Kind::i32) return static_cast<int32_t>(v);
    if (kind == Kind::boolean) return v != 0;
    return static_cast<int64_t>(v);
}

constexpr DType type_of(Kind kind) { return kind == Kind::i32 ? DType::i32 : kind == Kind::boolean ? DType::boolean : DType::i64; }

template <Op op, Kind kind>
[[gnu::always_inline]] inline void operate(Register &t, Register a, Register b, Register c) {
    constexpr OpRow row = row_of(op);
    if constexpr (kind == Kind::f32 || kind == Kind::f64) {
        if constexpr (!row.floats) undefined_on(op, "floats");
        else if constexpr (kind == Kind::f32 && row.compares) t.integer = compared(op, a.f32, b.f32);
        else if constexpr (kind == Kind::f64 && row.compares) t.integer = compared(op, a.f64, b.f64);
        else if constexpr (kind == Kind::f32) t.f32 = real_value(op, a.f32, b.f32, c.f32);
        else t.f64 = real_value(op, a.f64, b.f64, c.f64);
    } else {
        if constexpr (kind == Kind::boolean ? !row.truths : !row.integers) undefined_on(op, "integers");
        else if constexpr (row.compares) t.integer = compared(op, a.integer, b.integer);
        else t.integer = wrapped(kind, integer_value(op, type_of(kind), a.integer, b.integer, c.integer));
    }
}

}  // namespace

Register to_register(const Scalar &s) {
    Register r{.integer = 0};
    if (is_in_f32(s.type)) r.f32 = static_cast<float>(s.real);
    else if (s.type == DType::f64) r.f64 = s.real;
    else r.integer = s.integer;
    return r;
}

Scalar to_scalar(DType type, Register r) {
    if (is_float(type)) return Scalar::of_real(type, is_in_f32(type) ? static_cast<double>(r.f32) : r.f64);
    return Scalar::of_integer(type, r.integer);
}

Register load_register(DType type, const std::byte *p) {
    Register r{.integer = 0};
    switch (held_as(type)) {
    case Held::f32: r.f32 = read<float>(p); break;
    case Held::f64: r.f64 = read<double>(p); break;
    case Held::half: r.f32 = half_value(type, read<uint16_t>(p)); break;
    case Held::i8: r.integer = read<int8_t>(p); break;
    case Held::u8:
        if (is_coded(type)) return to_register(load_scalar(type, p));
        r.integer = read<uint8_t>(p);
        break;
    case Held::truth: r.integer = read<uint8_t>(p) != 0; break;
    case Held::i32: r.integer = read<int32_t>(p); break;
    case Held::i64: r.integer = read<int64_t>(p); break;
    case Held::position: throw InternalError("an index is never stored");
    }
    return r;
}

void store_register(DType type, std::byte *p, Register r) {
    switch (held_as(type)) {
    case Held::f32: return write(p, r.f32);
    case Held::f64: return write(p, r.f64);
    case Held::u8:
        if (is_coded(type)) return store_scalar(p, to_scalar(type, r));
        return write(p, static_cast<uint8_t>(r.integer));
    case Held::i8:
    case Held::truth: return write(p, static_cast<uint8_t>(r.integer));
    case Held::i32: return write(p, static_cast<int32_t>(r.integer));
    case Held::i64: return write(p, r.integer);
    case Held::half:
    case Held::position: return store_scalar(p, to_scalar(type, r));
    }
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t> &extents) {
    std::vector<int64_t> strides(extents.size(), 1);
    for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    return strides;
}

[[noreturn]] static void outside(const TensorView &t, const int64_t *index) {
    std::vector<std::string> at, of;
    for (size_t i = 0; i < t.extents.size(); i++) {
        at.push_back(std::to_string(index[i]));
        of.push_back(std::to_string(t.extents[i]));
    }
    throw InternalError(t.name + "[" + join(at) + "] is outside of its extents (" + join(of) + ")");
}

std::byte *TensorView::address(const int64_t *index) const {
    int64_t offset = 0;
    for (size_t i = 0; i < extents.size(); i++) {
        if (static_cast<uint64_t>(index[i]) >= static_cast<uint64_t>(extents[i])) outside(*this, index);
        offset += index[i] * strides[i];
    }
    if (on_demand) on_demand->use(offset);
    return data + offset * size_of(dtype);
}

void Tape::load(const Instruction &i, Register *r, const TensorView *tensors) const {
    const int *access = &accesses_[static_cast<size_t>(i.detail)];
    const TensorView &t = tensors[access[0]];
    int rank = access[1];
    int64_t offset = 0;
    for (int k = 0; k < rank; k++) {
        int64_t index = r[access[2 + k]].integer;
        if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(t.extents[static_cast<size_t>(k)])) [[unlikely]] {
            std::vector<int64_t> at;
            for (int n = 0; n < rank; n++) at.push_back(r[access[2 + n]].integer);
            outside(t, at.data());
        }
        offset += index * t.strides[static_cast<size_t>(k)];
    }
    if (t.on_demand) [[unlikely]]
        t.on_demand->use(offset);
    if (t.dtype == DType::f32) r[i.target].f32 = read<float>(t.data + offset * 4);
    else r[i.target] = load_register(t.dtype, t.data + offset * size_of(t.dtype));
}

void Tape::prepare(Register *frame) const {
    for (const auto &[slot, value] : constants_) frame[slot] = value;
}

// All but select, which has a code of its own.
#define EACH_OP(X)                                                                                                                        \
    X(neg)                                                                                                                                \
    X(abs)                                                                                                                                \
    X(sqrt)                                                                                                                               \
    X(floor)                                                                                                                              \
    X(ceil)                                                                                                                               \
    X(round) X(trunc) X(logical_not) X(add) X(sub) X(mul) X(div) X(mod) X(min) X(max) X(bit_and) X(bit_or) X(bit_xor) X(shl) X(shr) X(eq) \
        X(ne) X(lt) X(le) X(fma)
#define ONE_OP(OP) +1
static_assert(EACH_OP(ONE_OP) + 1 == static_cast<int>(op_count), "each operation has its cases");
#define OP_KIND(OP, KIND)                        \
    case code(Op::OP, Kind::KIND):               \
        operate<Op::OP, Kind::KIND>(t, a, b, c); \
        break;
#define OP_CASES(OP) OP_KIND(OP, f32) OP_KIND(OP, f64) OP_KIND(OP, i64) OP_KIND(OP, i32) OP_KIND(OP, boolean)

void Tape::run(Register *r, const TensorView *tensors) const {
    const Instruction *i = code_.data(), *last = i + code_.size();
    for (; i < last; i++) {
        Register a = r[i->a], b = r[i->b], c = r[i->c];
        Register &t = r[i->target];
        switch (i->code) {
            EACH_OP(OP_CASES)
        case code_select: t = a.integer ? b : c; break;
        case code_move:
        case code_f64_bits: t = a; break;
        case code_clamp: t.integer = std::max(std::min(a.integer, c.integer - 1), b.integer); break;
        case code_load: load(*i, r, tensors); break;
        case code_skip_unless:
            if (!a.integer) i += i->detail;
            break;
        case code_f32_to_f64: t.f64 = a.f32; break;
        case code_f64_to_f32: t.f32 = static_cast<float>(a.f64); break;
        case code_f32_to_bf16: t.f32 = bf16_rounded(a.f32); break;
        case code_f32_to_f16: t.f32 = f16_rounded(a.f32); break;
        case code_integer_to_f32: t.f32 = static_cast<float>(a.integer); break;
        case code_integer_to_f64: t.f64 = static_cast<double>(a.integer); break;
        case code_f32_bits: t.integer = std::bit_cast<int32_t>(a.f32); break;
        case code_f32_of_bits: t.f32 = std::bit_cast<float>(static_cast<int32_t>(a.integer)); break;
        case code_convert: {
            const Scalar value = to_scalar(static_cast<DType>(i->detail & 63), a);
            const auto rounding = static_cast<Rounding>(i->detail >> 12 & 3);
            t = to_register(convert(static_cast<DType>(i->detail >> 6 & 63), rounding, (i->detail >> 14 & 1) != 0, value));
            break;
        }
        case code_bitcast:
            t = to_register(bitcast(static_cast<DType>(i->detail >> 6 & 63), to_scalar(static_cast<DType>(i->detail & 63), a)));
            break;
        default: throw InternalError("a tape holds an unknown instruction");
        }
    }
}

}  // namespace tessera
