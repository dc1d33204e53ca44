#pragma once
#include <algorithm>

namespace tessera {

template <typename Container, typename Value>
bool contains(const Container &all, const Value &value) {
    return std::find(all.begin(), all.end(), value) != all.end();
}

}  // namespace tessera
