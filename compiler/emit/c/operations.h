// The operations that a generated C file defines at its top: small inline functions on scalars and on GNU vectors. Each
// has a portable definition, which says what it means; on x86-64 the few that compilers do not find by themselves
// (fma, minima, roots, masked access) have one intrinsic instead.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "algorithms/expr/expr.h"
#include "compiler/instructions/instruction.h"
#include "schedules/target/target.h"

namespace tessera::emit_c {

// A scalar (lanes 0) or a vector. A bool is an int that is 0 or 1, or lanes of 32 bits that are 0 or -1; bf16 and f16 are
// their bits; an index is 64 bits wide.
struct CType {
    DType element = DType::f32;
    int lanes = 0;
};

int bytes_of(DType element);                    // of a lane
const char *c_element(DType element);           // "float"
std::string short_name(CType type);             // "f32", "f32x16"
const char *sign_of(Op op);                     // " + ", where C has an operator for it
std::string scalar_builtin(Op op, DType type);  // "__builtin_fmaf", where C has a function for it

// The text with what "$name" stands for, by name; each is made where the text has it.
using Names = std::vector<std::pair<std::string, std::function<std::string()>>>;
std::string with_names(std::string text, const Names &names);

// The definitions that were asked for, in an order in which C can read them. Every function gives the name to call.
class Operations {
public:
    explicit Operations(const Target &target) : target_(target) {}

    std::string type(CType type);         // "float", "f32x16"
    std::string stored_type(DType type);  // of an element in memory: "float", "uint8_t"
    std::string splat(CType vector);
    std::string lanes(int count);  // the vector of indices 0, 1, …
    std::string first(int count);  // of bools: the first n are true
    std::string any(int count);    // whether one of the bools is true
    std::string unary(Op op, CType type);
    std::string binary(Op op, CType type);
    std::string one_comparison(bool least, CType type);  // of two floats, as emit/one_comparison.h has it
    std::string fma(CType type);
    std::string select(CType vector);
    std::string choose(CType type);  // a select by a comparison of floats
    std::string compare(Op op, CType vector);
    std::string cast(DType to, CType from, Rounding rounding, bool saturate);
    std::string bitcast(DType to, CType from);
    // Access to `type` at a pointer: "" for lanes side by side, "strided" with a stride, "indexed" with an index for each lane.
    std::string load(CType type, const std::string &how, bool masked);
    std::string store(CType type, const std::string &how, bool masked);
    std::string prefetch(bool for_store);  // of the line that holds element `position` of a pointer
    // A step of an instruction family that states its C, on an accumulator and two operands, 32 bits for each lane.
    std::string group_step(const Instruction &family, CType accumulator);
    // The macro of a step of a family that states how its fragments are computed: of the number of a register and the name of an array, for
    // each of the accumulator, a and b. The macros that declare and move fragments come with it.
    std::string fragment_step(const Instruction &family);
    std::string words(CType type);  // of i32: what lies at an address
    const Target &target() const { return target_; }
    std::string round_up();  // bytes to a multiple of the workspace's alignment

    bool defines(const std::string &name) const { return known_.count(name); }
    // Every definition, with the macros that they need.
    std::string text() const;

private:
    const Target &target_;
    std::map<std::string, bool> known_;
    std::string types_, functions_;

    bool fresh(const std::string &name) { return known_.emplace(name, true).second; }
    void define(const std::string &result, const std::string &name, const std::string &parameters, const std::string &body, bool machine);
    std::string with_emitter_names(const std::string &body);  // "$fma" and the like
    std::string raw_type(const std::string &element, int bytes, int lanes);
    std::string unsigned_type(CType type);
    std::string mask_type(int lanes) { return type({DType::i32, lanes}); }
    std::string each_lane(CType result, const std::string &call);
    void define_native(const std::string &name, CType type, int operands, const std::string &each, const std::string &operation);
    void define_exact_fma(const std::string &name, CType type);
    std::string convert_scalar(DType to, DType from, Rounding rounding, bool saturate);
    std::string half(DType to, DType from, int lanes);
    std::string machine_mask(int lanes) const;
    std::string masked_access(CType type, bool store) const;
};

}  // namespace tessera::emit_c
