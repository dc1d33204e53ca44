// Kinds of loops and spaces of memory, with what passes ask of each as a column, so that none compares several kinds by itself. A new kind
// does not compile without its row.
#pragma once
#include <array>
#include <cstdint>

namespace tessera {

enum class LoopKind : uint8_t { serial, unrolled, vector, streamed, parallel, block, warp, thread };
enum class Space : uint8_t { argument, constant, registers, stack, workspace, shared, fragment };

struct LoopTraits {
    LoopKind kind;
    const char *name;  // in texts
    bool at_once;      // its iterations may run at once, and in any order
    bool written_out;  // its iterations stand beside each other in code, so their number is constant
    bool may_call;     // programs may be invoked in it
    bool of_parts;     // an iteration is a part of the work, as large as others: some of them tell of all
    bool on_cpu, on_gpu;
    int threads;  // of a block that take one iteration together, where the loop is a step that the block takes; else 0
};

inline constexpr std::array loop_traits = {
    LoopTraits{LoopKind::serial, "for", false, false, true, true, true, true, 0},
    LoopTraits{LoopKind::unrolled, "unrolled", false, true, false, false, true, true, 0},
    LoopTraits{LoopKind::vector, "vector", true, true, false, false, true, true, 0},
    LoopTraits{LoopKind::streamed, "streamed", true, false, false, false, true, false, 0},
    LoopTraits{LoopKind::parallel, "parallel", true, false, true, true, true, false, 0},
    LoopTraits{LoopKind::block, "block", true, false, false, true, false, true, 0},
    LoopTraits{LoopKind::warp, "warp", true, false, false, false, false, true, 32},
    LoopTraits{LoopKind::thread, "thread", true, false, false, false, false, true, 1},
};
static_assert(loop_traits.size() == static_cast<size_t>(LoopKind::thread) + 1, "each kind of loop has its row");

constexpr const LoopTraits &traits_of(LoopKind kind) { return loop_traits[static_cast<size_t>(kind)]; }
constexpr const char *name_of(LoopKind kind) { return traits_of(kind).name; }

struct SpaceTraits {
    Space space;
    const char *name;
    bool given;      // the program does not set it up: a wrong index reads or writes what is not its own
    bool of_thread;  // each thread has its own, beside its code: registers and stack
    bool in_memory;  // lines of it may be fetched ahead
};

inline constexpr std::array space_traits = {
    SpaceTraits{Space::argument, "argument", true, false, true},    SpaceTraits{Space::constant, "constant", true, false, true},
    SpaceTraits{Space::registers, "registers", false, true, false}, SpaceTraits{Space::stack, "stack", false, true, false},
    SpaceTraits{Space::workspace, "workspace", false, false, true}, SpaceTraits{Space::shared, "shared", false, false, false},
    SpaceTraits{Space::fragment, "fragment", false, true, false},
};
static_assert(space_traits.size() == static_cast<size_t>(Space::fragment) + 1, "each space has its row");

constexpr const SpaceTraits &traits_of(Space space) { return space_traits[static_cast<size_t>(space)]; }
constexpr const char *name_of(Space space) { return traits_of(space).name; }

static_assert(
    [] {
        for (size_t i = 0; i < loop_traits.size(); i++)
            if (loop_traits[i].kind != static_cast<LoopKind>(i)) return false;
        for (size_t i = 0; i < space_traits.size(); i++)
            if (space_traits[i].space != static_cast<Space>(i)) return false;
        return true;
    }(),
    "rows stand in the order of the enumerators");

}  // namespace tessera
