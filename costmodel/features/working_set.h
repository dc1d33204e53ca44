// What the caches have to bring for the accesses of a program: a loop whose body touches less than a cache holds finds there
// again what earlier iterations brought; what its outermost such loop touches is brought anew for each time that it runs (the
// working-set argument of Wolf and Lam, PLDI 1991). Rows that lie a multiple of a cache's way apart share its sets, and need
// as much of it as if they were a way long each.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "schedules/target/target.h"

namespace tessera {

// A loop: how often it turns, in the mean, and its place in the tree of loops, whose root 0 is the whole program.
struct Turns {
    double count = 1;
    size_t node = 0;
};

// Where an access goes while the loops around it turn.
struct Walk {
    std::vector<Turns> loops;      // outermost first
    std::vector<double> movement;  // by loop and axis: elements, over all of its iterations
    std::vector<double> extents;   // of the buffer's axes; it is dense, and the last one is contiguous
    double element = 4;            // bytes
};

// For the loops from one on: bytes and pages touched while they run, and what those need of the first and the second level.
struct Touched {
    double bytes = 0, pages = 0;
    double span = 0;  // bytes from the first to the last
    double rows = 0;  // that lie apart
    std::array<double, 2> needs{};
};

// One for each loop to begin with, and for none.
std::vector<Touched> touched_by(const Walk &walk);

// One place of a program that touches memory.
struct Access {
    size_t buffer = 0;
    bool store = false;
    double likely = 1;             // of the conditions around it
    double middle = 0;             // bytes from the begin of the buffer
    std::vector<Turns> loops;      // as in its Walk
    std::vector<Touched> touched;  // by it
};

class WorkingSets {
public:
    // `nodes` is how many the tree of loops has.
    WorkingSets(const std::vector<Access> &accesses, size_t nodes, const Target &target);

    // Bytes that one iteration of the loop touches, and rows of them; of node 0, all that the program touches.
    double bytes_in(size_t node) const { return in_[node].bytes; }
    double rows_in(size_t node) const { return in_[node].rows; }
    // Bytes that come from outside the first, second and third level, in a call that follows others: what a level holds whole is there.
    std::array<double, 3> traffic() const;
    // Pages whose address the first level of translation has not.
    double translations() const;

private:
    const std::vector<Access> &accesses_;
    std::array<double, 3> sizes_;
    std::vector<Touched> in_;  // by node, of all buffers

    bool holds(size_t level, size_t node) const;
    template <class Holds, class Amount>
    double brought(const Holds &holds, const Amount &amount) const;
};

}  // namespace tessera
