// A bundle that is open in this process, with the features of one target.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "generators/bundle/signature.h"
#include "runtime/bundle/replay.h"

namespace tessera {

struct BundledTarget {
    std::string name, arch;
    uint64_t features = 0;
    bool runs_here = false;
};

struct BundledKernel {
    std::string name, target, bits;  // of the chosen code; "" where none runs here
};

// One output of one run.
struct ReplayedOutput {
    uint32_t run = 0;
    std::string kernel, argument, target, bits, got, expected;  // expected is "" where nothing is recorded
    TessReplayOutcome outcome = TESS_REPLAY_NEW;
};

class OpenedBundle {
public:
    // Kernels take the code of a target whose features are among these. With a key the bundle must be signed by it. UserErrors bundle.*.
    explicit OpenedBundle(const std::string &file, const std::optional<KeyBytes> &public_key = {}, uint64_t features = ~uint64_t{0});
    ~OpenedBundle();
    OpenedBundle(const OpenedBundle &) = delete;
    OpenedBundle &operator=(const OpenedBundle &) = delete;

    std::string name() const;
    std::vector<BundledTarget> targets() const;
    std::vector<BundledKernel> kernels() const;
    TessKernel kernel(const std::string &name) const;                              // UserErrors bundle.*
    bool is_weight(const std::string &kernel, const std::string &argument) const;  // UserErrors bundle.hash, bundle.packed
    bool has_record() const;

    // Runs what is recorded, or what `record` says; `threads` of a pool. UserErrors bundle.*.
    std::vector<ReplayedOutput> replay(const std::optional<std::string> &record, int threads) const;

private:
    std::string file_;
    std::vector<uint64_t> memory_;
    TessBundle *bundle_ = nullptr;
};

}  // namespace tessera
