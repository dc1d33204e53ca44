// What loops bind to on a machine: the one place where building a nest asks which kind of machine it is for. On a CPU these are parallel
// loops, vectors and code written out; on a GPU blocks, threads and shared memory. All functions are pure.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/team.h"
#include "schedules/target/target.h"

namespace tessera {

// A stage's knobs with the tiles that the mapping adds, and the threads that compute one of its tiles together.
struct Assigned {
    Knobs knobs;
    int64_t threads = 1;
};

// Passes over finished bodies, by the names that `show --what lowering` prints. The first is for the nest of one root stage.
struct NestPass {
    const char *name;
    std::function<TileBody(const Stage &stage, const TileBody &nest)> run;
};
struct BodyPass {
    const char *name;
    std::function<TileBody(const TileBody &body)> run;
};

class Mapping {
public:
    virtual ~Mapping() = default;

    // Checks. Both throw UserError where a knob has no meaning on the machine; the first is for knobs that a rewrite would take out.
    virtual void check_before_rewrites(const KnobsByStage &stages) const = 0;
    virtual void check(const std::string &stage, const Knobs &knobs) const = 0;
    // The lanes with which an operand is packed; 0: by threads, without loops of its own.
    virtual int pack_lanes() const = 0;

    // For a stage whose pieces are these, at root (no threads yet) or by the threads of the root stage. UserError schedule.threads.
    virtual Assigned assign(const Lowering &lowering, const Stage &stage, Knobs stated, const Pieces &pieces,
                            std::optional<int64_t> threads) const = 0;
    // Whether the tiles of a level are gone over by a loop, and not by threads.
    virtual bool is_loop(const std::string &level) const = 0;
    // The tiles, by dim, of the level in which the register tile is computed.
    virtual const Extents &innermost_tiles(const Knobs &knobs) const = 0;
    // How many of the outermost loops of a nest are parallel. UserError schedule.parallel.
    virtual size_t parallel_loops(const StageNest &nest) const = 0;
    virtual LoopKind parallel_kind() const = 0;
    // The number of points along a dim that the last tile is made of; a smaller one is rounded up to it.
    virtual int64_t tile_unit(const StageNest &nest, const std::string &dim) const = 0;
    // Whether the one tile that a piece fits is computed without a loop, even where less of it is needed.
    virtual bool runs_once(const Piece &piece, int64_t tile, const Bounds &facts) const = 0;
    // Whether what a value computes at like points of all its runs is computed together (choice.h).
    virtual bool joins_runs() const = 0;
    // Whether full tiles have a version of their own, without tests.
    virtual bool tells_full_from_partial() const = 0;
    // The threads that share a register tile; none where one thread computes all of it.
    virtual std::optional<Team> team(const Cursor &at) const = 0;

    // For storage: to how many points a piece is rounded up along a dim, so that a tile that runs past it stays inside the buffer;
    virtual int64_t storage_unit(const Knobs &knobs, const std::string &dim, const Piece &piece) const = 0;
    // the space of a register tile, and of what a worker keeps near.
    virtual Space register_space(const Buffer &buffer) const = 0;
    virtual Space near_space(const Buffer &buffer) const = 0;

    // Around nests, where calls stand: whether a host that sees no data puts each nest to work, so that counts and the places of views must
    // be known without data;
    virtual bool is_led_by_host() const = 0;
    // the space of a number that is kept from one call to the next;
    virtual Space space_between_calls() const = 0;
    // a Compute or a Copy at each point of a box, whose stores are apart. Points go by variables, the outermost first.
    virtual TileBody over_box(const std::vector<std::pair<std::string, Expr>> &box, const TileNode &store) const = 0;

    // What is done to the nest of each root stage, when all are built, and then to the body of the whole program, pass by pass.
    // `names`: all that were made, in their order. `frame`: the program, whose body may change.
    virtual std::vector<NestPass> nest_passes(const std::vector<std::string> &names, const TileProgram &frame) const = 0;
    virtual std::vector<BodyPass> body_passes(const TileProgram &frame) const = 0;
};

std::shared_ptr<const Mapping> cpu_mapping(const Target &target);
std::shared_ptr<const Mapping> gpu_mapping(const Target &target);
inline std::shared_ptr<const Mapping> mapping_for(const Target &target) {
    return target.is_gpu() ? gpu_mapping(target) : cpu_mapping(target);
}

}  // namespace tessera
