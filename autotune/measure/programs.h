// Candidates as programs: the one that measures, with a candidate's kernel beside the base's, built side by side in processes with limits.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "autotune/measure/measurement.h"
#include "autotune/measure/measurement_task.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

class Programs {
public:
    // Builds what all programs share, and one in which the base stands on both sides, which tells a runner that fails from a
    // candidate that does. Throws as LimitedProcess; UserError command.cc. Once `stopped` says so, nothing is built any further.
    Programs(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base, const std::function<bool()> &stopped);
    ~Programs();

    // Those that are not refused. Where one cannot be built, its result says why. UserError output.write when the disk is full,
    // output.temporary when its files are gone, machine.exhausted when there can be no more processes or open files.
    void build(const std::vector<TileProgram> &programs, std::vector<Measurement> &results) const;
    std::filesystem::path folder() const;  // goes with this object
    std::filesystem::path base() const;
    std::filesystem::path candidate(size_t i) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera
