// Who carries something along with the values of an interpreted tile program, such as a bound on their errors (running_error.h).
#pragma once
#include "algorithms/evaluate/tape.h"

namespace tessera {

struct Instruction;

// Values are known by their registers. The program of an Invoke has registers of its own, and memory of its caller's.
class Follower {
public:
    virtual ~Follower() = default;
    // An expression to run in place of this one: of the same type and bits.
    virtual Expr prepared(const Expr &e) { return e; }
    // A program begins, with so many registers, inside of the one that invokes it; and it ends. Of `passed`, each is a register of the
    // caller's whose value is in a register of the program's: its parameters.
    virtual void begins(size_t registers, const std::vector<std::pair<int, int>> &passed) = 0;
    virtual void ends() = 0;
    // A buffer begins to live, at `view`, and holds nothing.
    virtual void allocated(const TensorView &view) = 0;
    // A tape has run.
    virtual void evaluated(const Tape &tape, const Register *frame, const TensorView *tensors) = 0;
    // A step of fragments of the family begins, whose elements are evaluated one by one; null: it ends.
    virtual void steps(const Instruction *) {}
    // What runs, or what is stored where, depends on this register.
    virtual void depends_on(int slot) = 0;
    // A register's value was stored.
    virtual void stored(const std::byte *address, int slot) = 0;
};

}  // namespace tessera
