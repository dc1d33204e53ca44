#include "compiler/instructions/vector_form.h"

namespace tessera::vector_form {

static VectorForm made(VectorOp op, std::vector<VectorForm> args, LaneType type = {}, int64_t number = 0, int each = 1) {
    return VectorForm({op, std::move(args), type, number, each});
}

VectorForm sum() { return made(VectorOp::sum, {}); }
VectorForm a() { return made(VectorOp::a, {}); }
VectorForm b() { return made(VectorOp::b, {}); }
VectorForm constant(LaneType type, int64_t value, int each) { return made(VectorOp::constant, {}, type, value, each); }
VectorForm cast(LaneType type, VectorForm x) { return made(VectorOp::cast, {std::move(x)}, type); }
VectorForm bits_as(LaneType type, VectorForm x) { return made(VectorOp::bits_as, {std::move(x)}, type); }
VectorForm widened_product(VectorForm x, VectorForm y, LaneType type) {
    return made(VectorOp::widened_product, {std::move(x), std::move(y)}, type);
}
VectorForm added_up(VectorForm x, int each) { return made(VectorOp::added_up, {std::move(x)}, {}, 0, each); }
VectorForm added_up_saturated(VectorForm x, int each) { return made(VectorOp::added_up_saturated, {std::move(x)}, {}, 0, each); }
VectorForm operator+(VectorForm x, VectorForm y) { return made(VectorOp::add, {std::move(x), std::move(y)}); }
VectorForm operator-(VectorForm x, VectorForm y) { return made(VectorOp::subtract, {std::move(x), std::move(y)}); }
VectorForm operator*(VectorForm x, VectorForm y) { return made(VectorOp::multiply, {std::move(x), std::move(y)}); }
VectorForm operator&(VectorForm x, VectorForm y) { return made(VectorOp::bit_and, {std::move(x), std::move(y)}); }
VectorForm operator^(VectorForm x, VectorForm y) { return made(VectorOp::bit_xor, {std::move(x), std::move(y)}); }
VectorForm operator<<(VectorForm x, int bits) { return made(VectorOp::shift_left, {std::move(x)}, {}, bits); }
VectorForm operator>>(VectorForm x, int bits) { return made(VectorOp::shift_right, {std::move(x)}, {}, bits); }

}  // namespace tessera::vector_form
