#include "algorithms/evaluate/elements_on_demand.h"

#include <algorithm>

namespace tessera {

void ElementsOnDemand::make_chunk(int64_t chunk) {
    const int64_t first = chunk << chunk_log2_;
    made_[static_cast<size_t>(chunk)] = 1;
    make_(first, std::min(elements_ - first, int64_t{1} << chunk_log2_));
}

std::vector<std::pair<int64_t, int64_t>> ElementsOnDemand::made() const {
    std::vector<std::pair<int64_t, int64_t>> all;
    for (size_t chunk = 0; chunk < made_.size(); chunk++) {
        if (!made_[chunk]) continue;
        const int64_t first = static_cast<int64_t>(chunk) << chunk_log2_, end = std::min(elements_, first + (int64_t{1} << chunk_log2_));
        if (!all.empty() && all.back().first + all.back().second == first) all.back().second = end - all.back().first;
        else all.emplace_back(first, end - first);
    }
    return all;
}

}  // namespace tessera
