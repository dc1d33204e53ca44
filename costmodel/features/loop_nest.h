// The loops around the place of a tile program where a walk through it stands, each at its middle, and what depends on them.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/tile/tile_program.h"
#include "costmodel/features/index_value.h"

namespace tessera {

class LoopNest {
public:
    using Mask = uint64_t;  // of loops, the outermost one's bit first; none beyond the 64th
    struct Frame {
        std::string variable;
        LoopKind kind = LoopKind::serial;
        int64_t last = 0;  // iteration
        double count = 1;  // in the mean
        size_t node = 0;   // of the tree of loops, whose root 0 is the whole program

        bool is_inside() const { return kind == LoopKind::unrolled || kind == LoopKind::vector; }
    };

    LoopPositions at;
    double likely = 1;  // how often the conditions around the place hold

    static bool has(Mask mask, size_t loop) { return loop < 64 && (mask >> loop & 1); }

    void enter(const Loop &loop, double count);
    void leave();
    void bind(const Let &let);
    void unbind(const Let &let);

    const std::vector<Frame> &frames() const { return frames_; }
    size_t nodes() const { return nodes_; }  // of the tree so far
    // The loop that is neither unrolled nor vector and nearest to the place.
    std::optional<size_t> innermost() const;

    // How often the place is reached.
    double turns() const;
    // How many instructions of so many bytes compute what depends on these loops, over elements of so many: invariants of the innermost
    // loop are computed before it, and unrolled iterations share what does not vary between them.
    double issues(Mask mask, double element, double vector_bytes) const;
    double lanes() const;
    bool in_lanes(Mask mask) const;
    // Whether several unrolled iterations use what depends on these loops.
    bool is_shared(Mask mask) const;

    Mask loops_of(const Expr &e) const;
    // The loops that a quotient or a remainder in it depends on: what comes in their next iteration may be anywhere.
    Mask wraps(const Expr &e) const;
    // The mean over the iterations of the loops that it depends on: over all of them where they are few, and otherwise over a loop's first,
    // its last and some between.
    double mean_of(const Expr &e);
    // From the first iteration of a loop to its last.
    int64_t moved(const Expr &e, size_t frame);

private:
    std::vector<Frame> frames_;
    struct Reach {
        Mask depends = 0, wraps = 0;
    };
    std::unordered_map<std::string, Reach> varies_;  // by variable, of its value
    size_t nodes_ = 1;

    Reach reach_of(const Expr &e) const;
    double mean_over(const Expr &e, const std::vector<size_t> &loops, size_t first, int64_t most);
};

}  // namespace tessera
