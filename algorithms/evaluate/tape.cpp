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

float half_value(uint16_t bits) {
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

int64_t quotient(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

template <typename T>
T real_operation(Op op, T a, T b, T c) {
    switch (op) {
    case Op::neg: return -a;
    case Op::abs: return std::fabs(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::floor: return std::floor(a);
    case Op::ceil: return std::ceil(a);
    case Op::round: return std::nearbyint(a);
    case Op::trunc: return std::trunc(a);
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::min: return a < b ? a : b;
    case Op::max: return a > b ? a : b;
    case Op::fma: return std::fma(a, b, c);
    default: __builtin_unreachable();
    }
}

template <typename T>
bool compared(Op op, T a, T b) {
    switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    default: return a <= b;
    }
}

uint64_t integer_operation(Op op, Kind kind, int64_t a, int64_t b, int64_t c) {
    auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
    unsigned width = kind == Kind::i32 ? 31 : 63;
    switch (op) {
    case Op::neg: return -u(a);
    case Op::abs: return a < 0 ? -u(a) : u(a);
    case Op::logical_not: return kind == Kind::boolean ? !a : ~u(a);
    case Op::add: return u(a) + u(b);
    case Op::sub: return u(a) - u(b);
    case Op::mul: return u(a) * u(b);
    case Op::div: return u(quotient(a, b));
    case Op::mod: return b == 0 ? 0 : u(a) - u(quotient(a, b)) * u(b);
    case Op::min: return u(a < b ? a : b);
    case Op::max: return u(a > b ? a : b);
    case Op::bit_and: return u(a) & u(b);
    case Op::bit_or: return u(a) | u(b);
    case Op::bit_xor: return u(a) ^ u(b);
    case Op::shl: return u(a) << (u(b) & width);
    case Op::shr: return u(a >> (u(b) & width));
    case Op::fma: return u(a) * u(b) + u(c);
    default: __builtin_unreachable();
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
    switch (type) {
    case DType::f32: r.f32 = read<float>(p); break;
    case DType::f64: r.f64 = read<double>(p); break;
    case DType::bf16: r.f32 = std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(p)) << 16); break;
    case DType::f16: r.f32 = half_value(read<uint16_t>(p)); break;
    case DType::i8: r.integer = read<int8_t>(p); break;
    case DType::u8: r.integer = read<uint8_t>(p); break;
    case DType::boolean: r.integer = read<uint8_t>(p) != 0; break;
    case DType::i32: r.integer = read<int32_t>(p); break;
    case DType::i64: r.integer = read<int64_t>(p); break;
    case DType::index: throw InternalError("an index is never stored");
    }
    return r;
}

void store_register(DType type, std::byte *p, Register r) {
    switch (type) {
    case DType::f32: return write(p, r.f32);
    case DType::f64: return write(p, r.f64);
    case DType::i8:
    case DType::u8:
    case DType::boolean: return write(p, static_cast<uint8_t>(r.integer));
    case DType::i32: return write(p, static_cast<int32_t>(r.integer));
    case DType::i64: return write(p, r.integer);
    case DType::bf16:
    case DType::f16:
    case DType::index: return store_scalar(p, to_scalar(type, r));
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
    if (t.dtype == DType::f32) r[i.target].f32 = read<float>(t.data + offset * 4);
    else r[i.target] = load_register(t.dtype, t.data + offset * size_of(t.dtype));
}

void Tape::prepare(Register *frame) const {
    for (const auto &[slot, value] : constants_) frame[slot] = value;
}

#define REAL_CASE(OP)                                                                                \
    case code(Op::OP, Kind::f32): t.f32 = real_operation<float>(Op::OP, a.f32, b.f32, c.f32); break; \
    case code(Op::OP, Kind::f64):                                                                    \
        t.f64 = real_operation<double>(Op::OP, a.f64, b.f64, c.f64);                                 \
        break;
#define INTEGER_KIND(OP, KIND)                                                                                   \
    case code(Op::OP, Kind::KIND):                                                                               \
        t.integer = wrapped(Kind::KIND, integer_operation(Op::OP, Kind::KIND, a.integer, b.integer, c.integer)); \
        break;
#define INTEGER_CASE(OP) INTEGER_KIND(OP, i64) INTEGER_KIND(OP, i32) INTEGER_KIND(OP, boolean)
#define COMPARE_CASE(OP)                                                             \
    case code(Op::OP, Kind::f32): t.integer = compared(Op::OP, a.f32, b.f32); break; \
    case code(Op::OP, Kind::f64): t.integer = compared(Op::OP, a.f64, b.f64); break; \
    case code(Op::OP, Kind::i64):                                                    \
    case code(Op::OP, Kind::i32):                                                    \
    case code(Op::OP, Kind::boolean): t.integer = compared(Op::OP, a.integer, b.integer); break;

void Tape::run(Register *r, const TensorView *tensors) const {
    const Instruction *i = code_.data(), *last = i + code_.size();
    for (; i < last; i++) {
        Register a = r[i->a], b = r[i->b], c = r[i->c];
        Register &t = r[i->target];
        switch (i->code) {
            REAL_CASE(sqrt)
            REAL_CASE(floor)
            REAL_CASE(ceil)
            REAL_CASE(round) REAL_CASE(trunc) REAL_CASE(neg) INTEGER_CASE(neg) REAL_CASE(abs) INTEGER_CASE(abs) REAL_CASE(add)
                INTEGER_CASE(add) REAL_CASE(sub) INTEGER_CASE(sub) REAL_CASE(mul) INTEGER_CASE(mul) REAL_CASE(div) INTEGER_CASE(div)
                    REAL_CASE(min) INTEGER_CASE(min) REAL_CASE(max) INTEGER_CASE(max) REAL_CASE(fma) INTEGER_CASE(fma)
                        INTEGER_CASE(logical_not) INTEGER_CASE(mod) INTEGER_CASE(bit_and) INTEGER_CASE(bit_or) INTEGER_CASE(bit_xor)
                            INTEGER_CASE(shl) INTEGER_CASE(shr) COMPARE_CASE(eq) COMPARE_CASE(ne) COMPARE_CASE(lt)
                                COMPARE_CASE(le) case code_select : t = a.integer ? b : c;
            break;
        case code_move: t = a; break;
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
            Scalar value = to_scalar(static_cast<DType>(i->detail & 15), a);
            auto rounding = i->detail & 512 ? Rounding::toward_zero : Rounding::nearest_even;
            t = to_register(convert(static_cast<DType>(i->detail >> 4 & 15), rounding, (i->detail & 256) != 0, value));
            break;
        }
        default: throw InternalError("a tape holds an unknown instruction");
        }
    }
}

}  // namespace tessera
