// The loops and conditions around the place of a tile program where a walk through it stands, each loop at its middle, and what depends on
// them.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/tile/tile_program.h"
#include "costmodel/features/index_value.h"
#include "costmodel/features/iteration_sum.h"

namespace tessera {

class LoopNest {
public:
    using Mask = LoopMask;  // of loops, the outermost one's bit first; none beyond the 64th
    struct Frame {
        std::string variable;
        LoopKind kind = LoopKind::serial;
        int64_t last = 0;  // iteration
        double count = 1;  // in the mean, over all times that it is reached
        size_t node = 0;   // of the tree of loops, whose root 0 is the whole program
        Expr iterations;
        Mask depends = 0;  // the loops that its iterations depend on

        bool is_inside() const { return traits_of(kind).written_out; }
    };

    LoopPositions at;

    static bool has(Mask mask, size_t loop) { return loop < 64 && (mask >> loop & 1); }

    // `count` iterations in the mean.
    void enter(const Loop &loop, double count);
    void leave();
    // From here on the condition holds, or does not, as it does for this part of the iterations.
    void suppose(const Expr &condition, bool holds, double part);
    void forget();
    void bind(const Let &let);
    void unbind(const Let &let);

    const std::vector<Frame> &frames() const { return frames_; }
    size_t nodes() const { return nodes_; }  // of the tree so far
    // The loop that is neither unrolled nor vector and nearest to the place.
    std::optional<size_t> innermost() const;

    // For which part of all iterations the conditions around the place are as they have to be.
    double likely() const { return suppositions_.empty() ? 1 : suppositions_.back().likely; }
    // How often the place is reached.
    double turns() const;
    // How often, where all iterations together of each of these loops count as one, as long as there are any.
    double turns_without(Mask loops) const;
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
    // The mean over all times that the place is reached.
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
    struct Supposition {
        double likely = 1;      // with those before
        size_t conditions = 0;  // that it found
        size_t number = 0;      // of all
    };
    std::vector<Supposition> suppositions_;
    size_t supposed_ = 0;
    std::vector<SummedCondition> conditions_;
    mutable std::map<std::array<uint64_t, 3>, double> shares_;

    Reach reach_of(const Expr &e) const;
    Reach reach_of(const Expr &e, AddressMap<Reach> *known) const;
    // As several where it says that several hold; those that vary.
    void add_each(const Expr &condition, bool holds, std::vector<SummedCondition> &conditions) const;
    // Over these loops, those that they, or conditions around them, depend on, and those that depend on them. All iterations together of a
    // shared loop count as one.
    IterationSum sum_of(const Expr &e, Mask used, Mask shared) const;
    IterationSum sum_where(const Expr &e, const std::vector<SummedLoop> &loops, std::vector<SummedCondition> &conditions,
                           std::vector<Expr> &one_fails) const;
};

}  // namespace tessera
