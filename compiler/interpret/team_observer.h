// Who looks on while a tile program runs: which iterations run, where threads wait, and which elements are read and stored
// (lockstep.h).
#pragma once
#include "algorithms/evaluate/tape.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

class TeamObserver {
public:
    virtual ~TeamObserver() = default;
    // One place of the program that reads or stores an element, "reads x[k, m] for y[m, n]"; the number by which it is told of.
    virtual int site(const std::string &text) = 0;
    // A loop begins, with its count; it is in an iteration; it ends.
    virtual void enters(const Loop &loop, int64_t count) = 0;
    virtual void iterates(const Loop &loop, int64_t iteration) = 0;
    virtual void leaves(const Loop &loop) = 0;
    virtual void waits(const Barrier &barrier) = 0;
    // An asynchronous copy begins and ends: in between one element is stored, which is in flight from then on. Each thread makes a group of
    // what it has copied so, and waits for groups.
    virtual void copies_ahead(bool begins) = 0;
    virtual void commits() = 0;
    virtual void awaits(const Await &await) = 0;
    // A Move begins and ends; in between it reads and stores the elements of its box, row by row.
    virtual void begins(const Move &move) = 0;
    virtual void ends(const Move &move) = 0;
    // A buffer begins to live, at `view`, and holds nothing.
    virtual void allocated(const Buffer &buffer, const TensorView &view) = 0;
    // An element of the tensor is read or stored. Nothing is told of what a guard keeps from being read or stored.
    virtual void reads(int site, const TensorView &tensor, const std::byte *element) = 0;
    virtual void stores(int site, const TensorView &tensor, const std::byte *element) = 0;
};

}  // namespace tessera
