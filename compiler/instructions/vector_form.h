// Arithmetic on whole vectors, in the form in which Halide's back end finds an instruction. A family states it (instruction.h), and
// emit/halide/vector_loops translates it. It gives the bits of the family's meaning: it says how, the meaning says what.
//
//     sum() + added_up(widened_product(a(), b(), {'i', 32}), 1)
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

// The type of one element: a float, a bf16, an integer with a sign or without. {'f', 32}, {'b', 16}, {'i', 16}, {'u', 8}.
struct LaneType {
    char kind = 'i';
    int bits = 32;
};

enum class VectorOp : uint8_t {
    sum,  // the accumulators, one for each lane
    a,    // the first elements of the products, K for each lane
    b,    // the second ones
    constant,
    cast,
    bits_as,  // the same bits, of another type
    add,
    subtract,
    multiply,
    widened_product,  // exact, in a type that is wider than the operands'
    bit_and,
    bit_xor,
    shift_left,
    shift_right,
    added_up,           // neighbours, down to so many for each lane
    added_up_saturated  // the same, where what the type cannot hold becomes its end
};

class VectorForm {
public:
    struct Node {
        VectorOp op = VectorOp::sum;
        std::vector<VectorForm> args;
        LaneType type;       // of constant, cast, bits_as, widened_product
        int64_t number = 0;  // of constant: its value; of shifts: by how many bits
        int each = 1;        // of constant and added_up: elements for each lane
    };

    VectorForm() = default;
    explicit VectorForm(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}
    bool defined() const { return node_ != nullptr; }
    const Node *operator->() const { return node_.get(); }

private:
    std::shared_ptr<const Node> node_;
};

namespace vector_form {

VectorForm sum();
VectorForm a();
VectorForm b();
VectorForm constant(LaneType type, int64_t value, int each);
VectorForm cast(LaneType type, VectorForm x);
VectorForm bits_as(LaneType type, VectorForm x);
VectorForm widened_product(VectorForm x, VectorForm y, LaneType type);
VectorForm added_up(VectorForm x, int each);
VectorForm added_up_saturated(VectorForm x, int each);
VectorForm operator+(VectorForm x, VectorForm y);
VectorForm operator-(VectorForm x, VectorForm y);
VectorForm operator*(VectorForm x, VectorForm y);
VectorForm operator&(VectorForm x, VectorForm y);
VectorForm operator^(VectorForm x, VectorForm y);
VectorForm operator<<(VectorForm x, int bits);
VectorForm operator>>(VectorForm x, int bits);

}  // namespace vector_form

}  // namespace tessera
