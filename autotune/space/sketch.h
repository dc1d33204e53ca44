// One walk through a space's decisions, which makes one schedule.
#pragma once
#include <memory>

#include "autotune/space/plan.h"
#include "autotune/space/search_space.h"
#include "compiler/instructions/instruction.h"

namespace tessera {

bool contains(const std::vector<std::string> &names, const std::string &name);

class Sketch {
public:
    Sketch(const SearchSpace &space, const Choose &choose) : space_(space), choose_(choose) {}
    KnobsByStage run();

private:
    const SearchSpace &space_;
    const Choose &choose_;
    KnobsByStage stages_;
    std::unique_ptr<Plan> plan_;

    // A decision of the space's own; one of a mutator's has any name.
    std::string ask(const std::string &stage, const std::string &knob, std::vector<Answer> answers, bool ordered = false);
    std::string answered(const Decision &asked) const;

    std::map<std::string, std::string> splits_;  // by dim
    Algorithm split(const Algorithm &declared);
    void ask_split(const Stage &stage, const Algorithm &algorithm);
    Algorithm join(const Algorithm &algorithm);
    Algorithm inline_maps(const Algorithm &algorithm);

    bool runs_over_pieces(const std::string &dim) const;

    // One stage's decisions, in this order.
    void ask_place(size_t stage);
    void ask_beside(size_t stage);
    std::map<std::string, Path> paths_beside(size_t stage) const;
    void ask_tiles(size_t stage);
    void ask_packs(size_t stage);

    // What ask_tiles settles of a stage.
    struct Tiles {
        int64_t lanes = 1;
        std::string vector;         // the dim in lanes, or ""
        bool reuses = false;        // a register tile over two dims reads less
        bool around_folds = false;  // a Map with such folds as producers
        std::string group;          // the reduced dim that an instruction takes several elements of
        int64_t rows = 1;           // whole ones of the instruction: of a fold by fragments, and of a Map that has one as producer
        const Instruction *fragments = nullptr;  // the family of a fold by fragments
    };
    std::map<size_t, Tiles> tiles_;
    int64_t lanes_of(const PlannedStage &s) const;
    static bool reuses(const PlannedStage &s, const Extents &extents);
    void ask_vector(PlannedStage &s, Tiles &t, Knobs &k);
    std::vector<const Instruction *> families_for(const Reduce &fold) const;
    std::vector<const Instruction *> only_fragments(const PlannedStage &s) const;
    void ask_instruction(PlannedStage &s, Tiles &t, Knobs &k);
    const Instruction *best_fragments(const PlannedStage &s) const;
    void ask_register_tile(PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_fragment_tile(PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_levels(PlannedStage &s, const Tiles &t, Knobs &k);
    std::string ask_scan_inside(const PlannedStage &s, const std::vector<std::string> &free, const std::vector<std::string> &tiled);
    void ask_loops(PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_unrolled(const PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_tails(const PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_parallel(PlannedStage &s, Knobs &k);
    void ask_stream(const PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_prefetches(PlannedStage &s, const Tiles &t, Knobs &k);
    bool may_pack_ahead(const std::string &tensor) const;
    void ask_pack(size_t stage, const Operand &operand);
    std::vector<std::string> ask_order(const std::string &stage, const std::string &level, const std::vector<std::string> &dims);

    // Decisions for GPUs.
    void ask_threads(size_t stage);
    void ask_access(PlannedStage &s, Tiles &t, Knobs &k);
    void ask_team(PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_team_loops(PlannedStage &s, const Tiles &t, Knobs &k);
    void ask_staging(size_t stage);
};

}  // namespace tessera
