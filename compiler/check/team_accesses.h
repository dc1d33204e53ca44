// What the threads of a GPU's block touch, step by step. The thread loops of a tile program are the steps that a team takes, one after
// the other; what is outside thread loops (serial loops, conditions) is the same for all threads of a block.
//
// Two steps meet in a buffer when both touch it and one of them writes it. Iterations of one loop do not meet if their elements are
// shown to be apart (verify_races.h). Registers belong to one thread each. Of rings they touch slots, which are told apart within one
// iteration of the loop that goes round them (slots.h); whether copies to them have arrived is another question (awaits.h).
#pragma once
#include <map>
#include <set>

#include "compiler/check/slots.h"
#include "compiler/check/verify_races.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// Buffers that were touched since the last barrier, or that a step touches.
struct TouchedBuffers {
    std::set<Slot> read, written;

    void add(const TouchedBuffers &more);
    void erase(const std::string &buffer);
    // Where the variable, by which slots are told apart, has other values.
    TouchedBuffers without_slots_of(const std::string &variable) const;
    bool empty() const { return read.empty() && written.empty(); }
    // A buffer that both touch and one of them writes, or null.
    const std::string *conflict(const TouchedBuffers &later) const;
};

// What is known on a walk over a body, from the outside in.
class TeamAccesses {
public:
    // `body`: all that is looked at.
    TeamAccesses(const std::vector<Dim> &dims, const TileBody &body);

    // A buffer of registers is each thread's own from here on.
    void enter(const Alloc &alloc);
    // What an expression outside thread loops reads.
    TouchedBuffers read_by(const Expr &expression) const;
    // Everything inside a thread loop; buffers that live there are the thread's own.
    TouchedBuffers touched_in(const TileBody &body) const;
    // What an Await leaves: asynchronous copies of each thread have arrived, and no other one may touch them before a barrier.
    const TouchedBuffers &awaited() const { return awaited_; }
    // The part of what one iteration leaves in which a later one may meet it.
    TouchedBuffers carried(const Loop &loop, TouchedBuffers after_one);

    // Runs `visit` with the scope inside of the loop, of the let, or where the condition holds.
    template <class Node, class Visit>
    void within(const Node &node, const Visit &visit) {
        const EnclosingScope outer = scope_;
        scope_ = inside(outer, node);
        visit();
        scope_ = outer;
    }

private:
    const std::vector<Dim> &dims_;
    EnclosingScope scope_;
    std::set<std::string> private_;  // registers of one thread each
    TouchedBuffers awaited_;
    std::map<std::string, std::set<std::string>> apart_in_;  // by loop variable: buffers in which its iterations do not meet

    static EnclosingScope inside(const EnclosingScope &outer, const Loop &n);
    static EnclosingScope inside(const EnclosingScope &outer, const Expr &condition);
    EnclosingScope inside(const EnclosingScope &outer, const Let &n) const;
    bool is_uniform(const std::string &variable) const;
    Slot slot(const std::string &buffer, const std::vector<Expr> &index) const;
    Slot slot(const BufferView &view) const;
    void read(const Expr &e, TouchedBuffers &touched) const;
    void accesses_of(const Expr &e, const EnclosingScope &scope, std::vector<TileAccess> &all) const;
    void accesses_of(const TileBody &body, const EnclosingScope &scope, std::vector<TileAccess> &all) const;
    const std::set<std::string> &apart_in(const Loop &loop, const TouchedBuffers &candidates);
};

}  // namespace tessera
