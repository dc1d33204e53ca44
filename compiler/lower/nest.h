// The loop nest of one stage and of everything placed inside it.
#pragma once
#include <optional>
#include <set>

#include "compiler/lower/region.h"
#include "compiler/tile/tile_program.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// Where a tensor's values are while they are needed: a buffer, the tensor index that its origin stands for, and how the
// axes of the buffer are made of the tensor's.
struct Realized {
    Buffer buffer;
    std::vector<Expr> origin;        // one for each dim of the tensor
    std::vector<std::string> dims;   // of the tensor
    std::vector<LayoutAxis> layout;  // empty: one axis for each dim, in order
    int depth = 0;                   // the loop depth at which it was realised; 0 for arguments and root stages
    bool roomy = false;              // an argument with room past the ends of its operand
    std::set<std::string> whole;     // dims of which it has all and nothing past the end, though it was realised inside a tile
};

struct Instruction;

class Nests {
public:
    // `borders`: tiles at the border of an image are told from those inside, which need no guards.
    Nests(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target, bool borders);
    bool told_borders_apart() const { return told_apart; }

    // Tensors that exist outside every nest.
    void add_argument(const Tensor &tensor, bool roomy = false);
    // The loops that compute `stage` in full. Results that are no arguments must have been allocated.
    TileBody root(const Stage &stage);
    // A workspace buffer for all of a root stage's result, and its registration.
    Buffer allocate_root(const Stage &stage, const Tensor &result);
    // The same for the result of a call, row-major.
    Buffer allocate_result(const Tensor &tensor);
    // Where a tensor is, if it is there in full; else null.
    const Realized *find(const std::string &tensor) const;
    Expr extent_of(const std::string &dim) const;

private:
    struct State;  // of one stage's nest at one loop depth

    const Algorithm &algorithm;
    const KnobsByStage &schedule;
    const Target &target;
    const bool borders;
    bool told_apart = false;
    Bounds facts;
    std::map<std::string, Realized> realized;
    std::set<std::string> names;
    std::vector<std::string> made;  // of them, those that `unique` gave, in that order
    // In which order the parts of an accumulator step. A part goes in place once nobody else reads its old value; those that read
    // one another's go together, by way of a second set of accumulators.
    struct FoldOrder {
        std::vector<size_t> alone, together;
    };
    struct Seen {  // of one stage, found once
        std::vector<Tensor> results;
        std::vector<Expr> loads;  // of each of its expressions, operands first
        FoldOrder order;
        std::vector<std::vector<Expr>> invariants;  // of each part of its fold
    };
    std::map<const Stage *, Seen> seen;
    std::map<std::string, const Stage *> producers;           // by tensor
    const Stage *at_root = nullptr;                           // the stage in whose loops everything is, while its nest is made
    std::vector<std::pair<std::string, std::string>> around;  // "stage.loop" and its variable, of the loops that are open
    // On a GPU, of the root stage's nest: threads of a block, bytes of shared memory that are left, and the knobs of each
    // stage in it with every tile written out.
    int64_t threads = 1, shared_left = 0;
    KnobsByStage shared_out;

    const Knobs &knobs_of(const std::string &stage) const;
    std::string unique(const std::string &name);
    std::string plain(const std::string &dim) const;  // as a schedule calls it
    // Makes the names that came after the first `count` free again; gives them.
    std::vector<std::string> forget_names(size_t count);
    const std::vector<Tensor> &results_by(const Stage &stage) const { return seen.at(&stage).results; }
    // Decides the tile that the threads of a block compute of a stage at one time.
    void share_out(const Stage &stage, const Pieces &pieces, bool root);
    Space space_of(const Buffer &buffer);                                       // of a buffer of one block
    Expr written_out(const Expr &e) const;                                      // with the extents of fixed and derived dims
    Expr resolve(const Expr &e) const;                                          // the same, simplified
    Expr at_point(const Expr &e, const std::map<std::string, Expr> &at) const;  // the same, where the dims are that
    Piece whole(const std::string &dim, const Pieces &outer) const;
    std::vector<LoopName> loops_of(const Stage &stage) const;
    std::optional<int64_t> tile_of(const Stage &stage, const LoopName &loop) const;

    // The same where its loop begins. UserError schedule.ragged: its size varies with loops that do not go point by point outside.
    Piece whole_at_loop(const Stage &stage, const std::string &dim, const Pieces &outer) const;
    Piece whole_under_where(const Stage &stage, const std::string &dim, const Pieces &outer) const;
    static bool writes_apart(const Stage &stage, const std::string &dim);
    void check_update_is_parallel(const State &state) const;
    LoopKind kind_at(const State &state, size_t position) const;
    bool has_producers(const State &state, size_t position) const;
    std::string loop_variable(const LoopName &loop);
    // The same, known as the loop of the stage while what is inside it is made.
    std::string open_loop(const State &state, const LoopName &loop);

    TileBody realize(const Stage &stage, const Pieces &pieces, int depth);
    TileBody emit(const State &state, size_t position);
    TileBody emit_loop(const State &state, size_t position);
    TileBody loop_at(const State &state, size_t position);
    TileBody emit_tiles(State state, size_t position, int64_t tile);
    TileBody emit_points(const State &state, size_t position);
    // `count` iterations from position `first`, as many of them written out as `unroll` says.
    TileBody repeat(const State &state, const LoopName &loop, const Expr &first, const Expr &count, LoopKind kind,
                    const std::function<TileBody(const Expr &)> &at);
    TileBody emit_full_tiles(const State &state, size_t position, int64_t tile);
    TileBody points_from(const State &state, size_t position, const Expr &done, int64_t most);
    TileBody emit_groups(const State &state, size_t position, int group);
    const Instruction *instruction_of(const State &state) const;
    void check_accumulates(const State &state, size_t position) const;
    void take_runs(State &state, const std::string &dim, int64_t &lanes) const;
    TileBody emit_vectors(State state, size_t position, int64_t lanes);
    TileBody after_loop(const State &state, size_t position);
    TileBody place_producers(const State &state, size_t position);
    TileBody fold_begin(const State &state, size_t position);
    TileBody leaf(const State &state);
    TileBody prefetches(const State &state);
    TileBody compute(const State &state);
    TileBody scatter(const Stage &stage, const Reduce &reduce);

    // What is placed in an update's loops reads the state as it was before: of what earlier iterations wrote, nothing.
    void check_reads_of_update(const State &state, size_t position, const Stage &placed, const Pieces &pieces) const;
    std::map<std::string, std::vector<Piece>> regions(const State &state) const;
    bool have_sizes(const std::map<std::string, std::vector<Piece>> &regions) const;  // of 0 or more
    Expr has_points(const State &state) const;
    void touch(const Stage &stage, const Pieces &pieces, std::map<std::string, std::vector<Piece>> &regions) const;
    Buffer allocate(const Stage &stage, const Tensor &result, const Pieces &pieces, int depth);
    std::vector<Expr> locate(const Realized &where, const std::vector<Expr> &index) const;
    std::vector<Expr> locate_at(const Realized &where, std::vector<Expr> index,
                                const std::map<std::string, Expr> &at) const;  // where the dims are that

    struct Point {                        // one element, or one vector of them
        std::map<std::string, Expr> at;   // dim -> index
        std::map<std::string, Expr> own;  // on a GPU: dim -> index within the thread's part of the tile
        std::string thread;               // on a GPU
        std::string vector_dim;
        Pieces padded;  // dims of a part whose last vector may run past the end
    };
    // The threads that compute a tile: how many there are along each dim, and which of them a thread is.
    struct Team {
        int64_t threads = 1;
        std::vector<std::pair<std::string, int64_t>> along;  // dims with more than one, outermost first
        std::string thread;
        std::map<std::string, Expr> digits;
        std::vector<std::string> rests;  // the thread, without the digits before each of `along`
        int64_t of(const std::string &dim) const;
    };
    Team team_of(const State &state) const;
    void name_threads(Team &team);
    TileBody by_threads(const Team &team, TileBody body) const;
    std::vector<Expr> register_extents(const State &state) const;  // of a value for each point of the tile
    Buffer tile_buffer(const State &state, size_t part, const std::string &suffix);
    using Maker = std::function<std::shared_ptr<const TileNode>(const Point &, const Expr &lane_guard)>;
    // Unrolled and vector loops over the register tile, then serial loops over `extra` dims, around what `make` makes.
    // On a GPU a thread loop is around all of it.
    TileBody over_tile(const State &state, const std::vector<std::string> &extra, bool guarded, const Maker &make);
    Expr evaluate(const State &state, const Expr &e, const Point &point) const;
    std::vector<Expr> tile_index(const State &state, const Part *part, const Point &point) const;
    std::shared_ptr<const TileNode> store(const Tensor &result, const Point &point, const Expr &value, const Expr &guard,
                                          bool copy = false);
    bool store_is_guarded(const Tensor &result) const;
    Expr needs_no_guards(const State &state) const;
    TileBody inside_or_at_border(const State &state, size_t position);
    TileBody versions(const Expr &condition, const std::function<TileBody()> &first, const std::function<TileBody()> &second);
    std::vector<std::string> lanes_last(const State &state) const;
    std::vector<std::string> tile_dims(const State &state) const;  // those of more than one point
    TileBody fold_step(const State &state);
    TileBody instruction_step(const State &state, const Instruction &family);
    TileBody begin_segment(const State &state, const Expr &begins);
    static FoldOrder fold_order(const Monoid &monoid);
    static std::vector<Expr> invariants_of(const Monoid &monoid, size_t part, const std::vector<Expr> &inputs);
    TileBody write_parts(const State &state);
    bool has_room(const Realized &where, const std::vector<Expr> &index, const std::map<std::string, Expr> &at) const;
    bool in_bounds(const State &state, const std::vector<Expr> &index, const Realized &where) const;
};

}  // namespace tessera
