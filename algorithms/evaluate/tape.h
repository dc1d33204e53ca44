// Expressions compiled to a flat list of instructions over 8-byte registers: what both interpreters run. The meaning of
// every operation is that of scalar.h, bit for bit (any NaN counts as any other).
//
// A frame is an array of registers. The caller owns its first part (loop indices, extents, parameters, a monoid's
// operands) and says by a resolver which register holds which leaf; a tape appends its constants and results after it.
// Registers hold float for f32, bf16 and f16 values, double for f64, and int64 for everything else.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/evaluate/elements_on_demand.h"
#include "algorithms/expr/expr.h"

namespace tessera {

union Register {
    int64_t integer;
    double f64;
    float f32;
};

// Whether a register holds it as a float.
inline bool is_in_f32(DType type) { return is_float(type) && size_of(type) <= 4; }

Register to_register(const Scalar &value);
Scalar to_scalar(DType type, Register value);
Register load_register(DType type, const std::byte *address);
void store_register(DType type, std::byte *address, Register value);

// A tensor's memory: element (i, j) is at data + (i * strides[0] + j * strides[1]) * size_of(dtype).
struct TensorView {
    std::string name;
    DType dtype = DType::f32;
    std::byte *data = nullptr;
    std::vector<int64_t> extents, strides;  // strides in elements
    ElementsOnDemand *on_demand = nullptr;  // which makes elements before they are used; row-major from `data` on
    // The address of an element that is there; InternalError naming the tensor and the index when it is outside.
    std::byte *address(const int64_t *index) const;
};
std::vector<int64_t> row_major_strides(const std::vector<int64_t> &extents);

struct TapeResolver {
    std::function<int(const Expr &leaf)> slot;             // of a variable, extent, parameter, left, right or input
    std::function<int(const std::string &tensor)> tensor;  // position in the table given to run()
};

class Tape {
public:
    Tape() = default;
    // Uses the registers from `first` on.
    Tape(const std::vector<Expr> &roots, const TapeResolver &resolver, int first);

    int end() const { return next_; }     // one past the last register used
    void prepare(Register *frame) const;  // writes the constants; once for each frame
    // Operands are evaluated once, even those of the branch that a select does not take; a guarded load whose guard is
    // false evaluates no index. A load outside its tensor throws InternalError.
    void run(Register *frame, const TensorView *tensors) const;
    int result(size_t root) const { return results_[root]; }  // its register
    DType type(size_t root) const { return types_[root]; }
    Scalar value(const Register *frame, size_t root) const { return to_scalar(types_[root], frame[results_[root]]); }

    // What it is made of, for who carries something along with the values. Every register but a guarded load's has one instruction that
    // writes it, so after run() all values are still there.
    struct Instruction {
        uint16_t code;
        int target, a = 0, b = 0, c = 0;  // registers
        int detail = 0;                   // see tape_codes.h
    };
    // A function that the expressions had by name: the instructions first ..= last - 1 are its definition. Nothing else uses what
    // they write, but for the target.
    struct Application {
        size_t first, last;
        int target;
        std::vector<int> arguments;  // registers
        DType type;
        FunctionRef function;
    };
    const std::vector<Instruction> &instructions() const { return code_; }
    const int *access(const Instruction &load) const { return &accesses_[static_cast<size_t>(load.detail)]; }  // tensor, rank, registers
    const std::vector<Application> &applications() const { return applications_; }  // by where they begin, outer ones first

private:
    class Compiler;
    void load(const Instruction &i, Register *frame, const TensorView *tensors) const;
    std::vector<Instruction> code_;
    std::vector<int> accesses_;  // of each load: tensor, rank, index registers
    std::vector<Application> applications_;
    std::vector<std::pair<int, Register>> constants_;
    std::vector<int> results_;
    std::vector<DType> types_;
    int next_ = 0;
};

}  // namespace tessera
