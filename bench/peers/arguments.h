// Memory and tensors for kernels that are measured.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <list>
#include <new>
#include <random>
#include <vector>

#include "runtime/abi/tessera.h"

// Memory as frameworks hand it out: from a cache line on. malloc's begins 16 bytes into one, and every wide load then touches two.
template <typename T>
struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <typename U>
    CacheAligned(const CacheAligned<U> &) {}
    T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), line)); }
    void deallocate(T *p, size_t) { ::operator delete(p, line); }
    bool operator==(const CacheAligned &) const { return true; }

    static constexpr std::align_val_t line{64};
};
using Floats = std::vector<float, CacheAligned<float>>;

inline Floats random_floats(size_t n) {
    static std::mt19937 engine(1);
    std::uniform_real_distribution<float> values(-1, 1);
    Floats f(n);
    for (float &v : f) v = values(engine);
    return f;
}

// Its extents live as long as the program.
inline TessTensor desc(Floats &data, const std::vector<int64_t> &extents) {
    static std::list<std::vector<int64_t>> shapes;
    return tess_dense(data.data(), TESS_F32, static_cast<int32_t>(extents.size()), shapes.emplace_back(extents).data());
}

inline void check(int32_t status) {
    if (status == TESS_OK) return;
    char message[256];
    tess_status_message(status, nullptr, nullptr, message, sizeof message);
    fmt::print(stderr, "kernel failed: {}\n", message);
    std::exit(1);
}
