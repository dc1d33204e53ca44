/// Ranks that are threads, each with its mesh, for tests.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "runtime/mesh/mesh.h"

namespace tessera::test_mesh {

/// Runs `body` on `n` ranks, each in a thread of its own, and waits for them.
inline void on_ranks(
    int n, const std::function<void(TessMesh *, int)> &body, uint64_t timeout_ns = 20'000'000'000,
    const std::function<uint64_t(int)> &program = [](int) { return uint64_t(7); }) {
    TessThreads *threads = nullptr;
    if (tess_threads_create(n, &threads) != TESS_OK) std::abort();
    std::vector<std::thread> ranks;
    ranks.reserve(size_t(n));
    for (int r = 0; r < n; ++r)
        ranks.emplace_back([=, &body, &program] {
            TessEngine engine;
            TessMesh *mesh = nullptr;
            TessMeshOptions options = tess_mesh_options();
            options.timeout_ns = timeout_ns;
            options.program = program(r);
            if (tess_threads_engine(threads, r, &engine) != TESS_OK) std::abort();
            if (tess_mesh_create(&engine, &options, &mesh, nullptr) != TESS_OK) std::abort();
            body(mesh, r);
            tess_mesh_destroy(mesh);
        });
    for (std::thread &rank : ranks) rank.join();
    tess_threads_destroy(threads);
}

}  // namespace tessera::test_mesh
