// The names of one tile program. Every variable and buffer has one of its own; this is what changes while nests are built.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

class Names {
public:
    // The algorithm's dims, tensors and stages have their names already.
    explicit Names(const Algorithm &algorithm);
    // `name`, or with the first number from 2 that makes it new.
    std::string unique(const std::string &name);
    // The names that `unique` gave, in that order.
    const std::vector<std::string> &made() const { return made_; }
    // Makes the names that came after the first `count` free again; gives them.
    std::vector<std::string> forget(size_t count);
    // Takes names that were forgotten, unless somebody else has them.
    void take(const std::vector<std::string> &names);

private:
    std::set<std::string> taken_;
    std::vector<std::string> made_;
};

}  // namespace tessera
