// A schedule while it is being decided: the stages with what is settled of each, and the tree that their loops form.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autotune/space/stage_view.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// One loop of a nest, outermost first. `sizes` are what is left of each dim inside it.
struct PlannedLoop {
    std::string text, dim;  // "micro.N", "N"
    int64_t count = 1;
    Extents sizes;
    bool parallel = false;
};

// A position in the tree of loops: inside this loop of this stage.
struct Anchor {
    size_t stage = 0, loop = 0;
    friend auto operator<=>(const Anchor &, const Anchor &) = default;
};
using Path = std::vector<Anchor>;  // from the outermost loop to the innermost

// What becomes of a scan inside a path: no loop there is along the scan; it goes on with the innermost one; or it would begin again in
// each iteration, which lowering refuses.
enum class ScanPlace { whole, goes_on, begins_again };

struct PlannedStage {
    StageView view;
    bool output = false;
    bool is_owned = false;          // it is placed for itself, and computes what belongs to an iteration; others what is needed there
    std::vector<size_t> consumers;  // positions, each after this one
    std::set<std::string> scanned_before;  // the dims along which scans run whose results it reads, itself or by way of other stages
    Path place;                            // the loops around it; empty at root
    Extents sizes;                         // what is needed of each of its dims there; reduced ones whole
    std::vector<PlannedLoop> loops;        // inside which other stages may be placed
};

class Plan {
public:
    Plan(const Algorithm &algorithm, const Extents &extents);
    Plan(const Plan &) = delete;  // stages are pointed to
    Plan &operator=(const Plan &) = delete;

    const Algorithm &algorithm() const { return algorithm_; }
    const Extents &extents() const { return extents_; }
    int64_t extent(const std::string &dim) const;  // a guess where data decides it
    size_t size() const { return stages_.size(); }
    PlannedStage &stage(size_t i) { return stages_[i]; }
    const PlannedStage &stage(size_t i) const { return stages_[i]; }
    const Tensor *tensor(const std::string &name) const;
    // The stage that computes a tensor, or nothing for an argument or a constant.
    const PlannedStage *producer(const std::string &tensor) const;

    // The loops around and of a stage.
    Path path(size_t stage) const;
    // The loops that enclose all consumers of a stage; empty for an output.
    Path around_consumers(size_t stage) const;
    const PlannedLoop &loop(const Anchor &a) const { return stages_[a.stage].loops[a.loop]; }
    std::string text(const Anchor &a) const { return stages_[a.stage].view.stage->name + "." + loop(a).text; }
    // How often the innermost loop's body runs.
    double repetitions(const Path &path) const;
    // What the body of the innermost loop needs of a stage: sizes of its dims.
    const Extents &needed(size_t stage, const Path &path) const;
    // Whether its consumers are known to read rows of their own segments. Who does not is no place for it.
    bool is_read_by_points(size_t stage) const;
    ScanPlace scan_place(size_t stage, const Path &path) const;
    // What it needs of a tensor that stage `reader` loads, axis by axis.
    std::vector<int64_t> needed_of(const std::string &tensor, size_t reader, const Path &path) const;

private:
    Algorithm algorithm_;
    Extents extents_;
    std::vector<PlannedStage> stages_;
    std::map<std::string, size_t> defined_by_;
    std::map<std::string, Tensor> tensors_;
    // What was asked before: the loops of a path are settled, and so are those of a stage's consumers.
    mutable std::map<std::pair<size_t, Path>, Extents> needed_;
    void note_rows();
    const Extents &sizes_in(size_t stage, const Path &path) const;
    Extents find_needed(size_t stage, const Path &path) const;
};

}  // namespace tessera
