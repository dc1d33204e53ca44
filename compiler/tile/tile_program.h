// A TileProgram is an algorithm with its schedule applied: every loop, extent, tail, copy, register tile and reduction
// tree, written out. Emitters translate it and change nothing; the interpreter (interpret.h) runs it and gives the bits
// that emitted code must give.
//
//   TileProgram := name, target, dims, parameters, buffers (arguments and constants), node*, TileProgram*
//   node        := Loop | Compute | Copy | Prefetch | Barrier | Commit | Await | Guard | Let | Alloc | Invoke | Move | Fragment
//   Loop        := variable, count, kind, node*      serial, unrolled, vector, streamed, parallel, block, warp, thread
//   Compute     := buffer[index…] = value where guard
//   Copy        := the same for a value that is one load; asynchronous: it arrives when it is awaited
//   Commit      := the asynchronous copies since the last one are a group
//   Await       := all groups but the youngest `pending` have arrived
//   Prefetch       := buffer[index…]                      asks for a cache line; the element need not exist
//   Alloc       := buffer, space, node*              lives for its nodes
//   Guard       := condition, node*, node*           full and tail versions, or a skipped store
//   Invoke      := program, views of buffers, extents, parameters
//   Move        := view of a buffer <- view of a buffer | zeros      a fragment from memory, or to it
//   Fragment    := family, accumulator += a * b                      all of them fragments
//
// Expressions are those of algorithms/expr/expr.h: a variable is a loop's or a Let's, a load names a buffer and has one index for
// each of its axes. An argument's axes have run-time strides (the last is 1), unless it is packed; any other buffer is dense and
// row-major. A loop runs its variable over 0 ..= count - 1. Iterations of vector, parallel, block, warp and thread loops are independent
// (verify_tiles.h); the interpreter runs them in order. An unrolled loop is a serial one written out. A streamed one is a serial one over
// one Copy of elements that lie side by side, by stores past the caches; other threads see what it wrote after the outermost loop around
// it, or after the iteration of a parallel one. A buffer in `fragment` space is one register of an instruction family that has fragments
// (instruction.h): only Moves and Fragments touch it, and what they mean is ordinary loops (fragments.h).
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/index/bounds.h"
#include "compiler/tile/kinds.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct TileNode;
using TileBody = std::vector<std::shared_ptr<const TileNode>>;

// How rows of a shared buffer lie, so that the same elements of neighbouring rows are in other banks: each row, which is the last axis, is
// made of chunks of so many elements, and chunk c of row r (counted over all axes before) lies where chunk c ^ (r / phase % rows) would.
// No value depends on it. `rows` is a power of two, and rows have a multiple of chunk * rows elements.
struct Swizzle {
    int64_t chunk = 1, rows = 1, phase = 1;
    friend bool operator==(const Swizzle &, const Swizzle &) = default;
    // Where in its row the element lies, of the row and element that it is in order.
    int64_t place(int64_t row, int64_t element) const { return (element / chunk ^ (row / phase % rows)) * chunk + element % chunk; }
};

struct Buffer {
    std::string name;
    DType dtype = DType::f32;
    std::vector<Expr> extents;  // outermost axis first; over extents of dims and, below the top, nothing else
    Space space = Space::argument;
    std::optional<Swizzle> swizzle = {};  // in shared memory
};

struct Loop {
    std::string variable;
    Expr count;
    LoopKind kind = LoopKind::serial;
    TileBody body;
};

struct Compute {
    std::string buffer;
    std::vector<Expr> index;
    Expr value;
    Expr guard;  // undefined: always
};

struct Copy {
    std::string buffer;
    std::vector<Expr> index;
    Expr value;  // a load, possibly guarded
    Expr guard;
    // On a GPU, to shared memory: the element is there when each thread has awaited its group (Await), and for other threads when they have
    // met at a barrier after that.
    bool is_asynchronous = false;
};

// Asks the processor to bring the cache line of an element near. It changes no value, and nothing is read where there is no
// element.
struct Prefetch {
    std::string buffer;
    std::vector<Expr> index;
};

// All threads of a block get here before one of them goes on, and see what the others stored to shared memory.
struct Barrier {};

// On a GPU, by each thread of a block: the asynchronous copies that it has issued since its last Commit are a group, which may be empty.
struct Commit {};

// On a GPU, by each thread of a block: waits until all of its groups but the youngest `pending` have arrived.
struct Await {
    int pending = 0;
};

struct Guard {
    Expr condition;
    TileBody then, otherwise;
};

struct Let {
    std::string variable;
    Expr value;
    TileBody body;
};

struct Alloc {
    Buffer buffer;
    TileBody body;
};

// A box of a buffer: the element at i, j, … is the buffer's at `first` + i * axes[0].step along axes[0].of + … No two axes need move
// different axes of the buffer. A whole buffer is given by its name alone.
struct BufferView {
    struct Axis {
        size_t of = 0;  // the buffer's axis
        Expr step;      // 0: it moves nothing
    };
    std::string buffer;
    std::vector<Expr> first = {};
    std::vector<Axis> axes = {};
    BufferView() = default;
    BufferView(std::string whole) : buffer(std::move(whole)) {}
    BufferView(const char *whole) : buffer(whole) {}
    BufferView(std::string of, std::vector<Expr> begin, std::vector<Axis> moved)
        : buffer(std::move(of)), first(std::move(begin)), axes(std::move(moved)) {}
    bool is_whole() const { return first.empty(); }
};

// Runs one of the TileProgram's `programs`.
struct Invoke {
    std::string program;
    std::vector<BufferView> arguments;  // of this program's buffers, one for each argument of that one
    std::map<std::string, Expr> extents;
    std::map<std::string, Expr> parameters;
};

// Moves a box of elements from memory to a fragment or back; or fills a fragment with zeros. The fragment is given whole; of fragments
// that live across the steps of a block's warps, whose first axis is the warp, that warp's (fragment_of_warp, fragments.h).
struct Move {
    BufferView to;
    std::optional<BufferView> from;  // none: zeros
    std::vector<int64_t> box;        // how many elements along each axis of the views
};

// One step of an instruction family: each element of the accumulator becomes the family's meaning of itself, a row of a and a column of b.
struct Fragment {
    std::string family;
    std::string accumulator, a, b;  // buffers
    Expr warp = {};                 // of an accumulator that lives across the steps of a block's warps, its first index; else undefined
};

struct TileNode : std::variant<Loop, Compute, Copy, Prefetch, Barrier, Guard, Let, Alloc, Invoke, Move, Fragment, Commit, Await> {
    using variant::variant;
};

// How an operand is packed ahead of time (prepack.h). The layout has every dim, whole or in two parts.
struct Packing {
    Tensor operand;
    std::vector<LayoutAxis> layout;
};

// An argument in the order of the generated function's signature.
struct Argument {
    Tensor tensor;
    bool written = false;  // an output or a state
    bool read = false;     // an input or a state
    // The tensor is what was packed: one axis for each of the layout, dense, and zero past the ends of the operand. In
    // memory a header stands before it (runtime/abi/tessera.h).
    std::optional<Packing> packed = {};
    bool large = false;  // an element's position may need more than 32 bits (Algorithm::large)
    // What callers pass where the tensor, or the operand that was packed, is in bytes of two elements.
    std::optional<HalfBytes> half_bytes = {};
};

struct TileProgram {
    std::string name;
    std::string target;                 // of schedules/target/target.h
    std::vector<std::string> features;  // CPU features the code may use
    std::vector<Dim> dims;              // every dim of the arguments and what their sizes need
    std::vector<Parameter> parameters;
    std::vector<Argument> arguments;  // inputs, states, outputs
    std::vector<Tensor> constants;
    // Buffers of its own whose elements ascend once they are stored: what is read off the stages that make them.
    std::vector<Ascending> ascending = {};
    TileBody body;
    std::vector<TileProgram> programs;  // that are invoked, each after those that it invokes itself; none has any of its own
};

// What is known of its dims, parameters and buffers.
Bounds facts_of(const TileProgram &program);

template <typename T>
std::shared_ptr<const TileNode> tile_node(T node) {
    return std::make_shared<const TileNode>(std::move(node));
}

// Reaching through nodes. A pass that gives them a meaning uses std::visit with a case for each (support/containers/alternatives.h).

// The nodes that store an element, and all that have no body, for cases that treat them alike.
template <typename Node>
concept StoreNode = std::same_as<Node, Compute> || std::same_as<Node, Copy>;
template <typename Node>
concept FragmentNode = std::same_as<Node, Move> || std::same_as<Node, Fragment>;
template <typename Node>
concept WaitNode = std::same_as<Node, Barrier> || std::same_as<Node, Commit> || std::same_as<Node, Await>;
template <typename Node>
concept LeafNode = StoreNode<Node> || FragmentNode<Node> || WaitNode<Node> || std::same_as<Node, Prefetch> || std::same_as<Node, Invoke>;

// The body of a Loop, Let or Alloc; both bodies of a Guard; none otherwise.
std::vector<const TileBody *> bodies_of(const TileNode &node);
// The node with each of these changed.
TileNode map_bodies(TileNode node, const std::function<TileBody(const TileBody &)> &change);
// Every expression of the node itself.
std::vector<Expr> expressions_of(const TileNode &node);
// The node with each of these changed.
TileNode map_expressions(TileNode node, const std::function<Expr(const Expr &)> &change);
// Calls `visit` on every node, outer ones first.
void walk(const TileBody &body, const std::function<void(const TileNode &)> &visit);

// Whether it is a streamed loop or has one that is in no parallel loop of it.
bool streams(const TileNode &node);

// The index of a load's element.
std::vector<Expr> index_of(const Expr &load);

// What a Compute or a Copy stores, and where; nothing of other nodes.
struct TileStore {
    const std::string &buffer;
    const std::vector<Expr> &index;
    const Expr &value, &guard;
};
std::optional<TileStore> store_of(const TileNode &node);
// The node of a body that is one node of that kind; null of others.
template <typename Node>
const Node *only(const TileBody &body) {
    return body.size() == 1 ? std::get_if<Node>(body.front().get()) : nullptr;
}

// "w[K, N] packed as N/48, K, N%48"
std::string to_string(const Packing &packing);
// ", of i4[N, K]" where callers see half bytes, or ""; and the text form of programs, one node a line, two spaces a level, where
// $0, $1, … name what a line repeats and stand below it.
std::string half_bytes_text(const Argument &argument);
std::string to_text(const TileProgram &program);
std::string to_text(const TileBody &body);
// "sha256:…" of the text form without the program's name: equal for schedules that resolve to the same program.
std::string resolved_hash(const TileProgram &program);

}  // namespace tessera
