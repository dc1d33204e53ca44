// What steps read and write, and which of them must stay after which.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

struct Accesses {
    std::set<std::string> loads, results, writes;  // of tensors, sizes of dims among what is loaded; made; of states

    Accesses() = default;
    Accesses(const Step &step, const Algorithm &algorithm);

    // Whether a step needs what an earlier one makes, or would find another state before it.
    bool must_follow(const Accesses &earlier) const;
    void merge(const Accesses &other);
};

// By the positions of two steps, given what each step does: whether the later one must follow one in between that must, directly or by
// way of others, follow the earlier one.
bool needs_by_way_of_others(const std::vector<Accesses> &steps, size_t later, size_t earlier);

}  // namespace tessera
