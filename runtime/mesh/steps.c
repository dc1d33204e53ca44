#include "runtime/mesh/steps.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/tree.h"

enum {
    PIECE = 128 << 10, /* bytes that are folded at once: they stay in a second-level cache */
    LARGEST = 1 << 20, /* bytes of a message without a fold, where others wait to pass it on */
    AHEAD = 3,         /* receives that are posted before they are needed */
    POSTED = 12,       /* sends that are posted before the receives beside them, so that ranks need not keep step */
    SCRATCH = 1 << 20, /* bytes of all that is received at once */
    LITTLE = 16 << 10  /* bytes up to which everybody sends everything: one step in place of many */
};

#define BLOCK (INT64_C(64) << 20) /* bytes that one list handles */

static TessStep *add(TessSteps *steps, int32_t kind) {
    if (steps->count == steps->capacity) {
        const int64_t capacity = steps->capacity == 0 ? 64 : 2 * steps->capacity;
        TessStep *grown = steps->failed ? NULL : realloc(steps->step, sizeof(TessStep) * (size_t)capacity);
        if (grown == NULL) {
            steps->failed = 1;
            return &steps->nowhere;
        }
        steps->step = grown;
        steps->capacity = capacity;
    }
    memset(&steps->step[steps->count], 0, sizeof(TessStep));
    steps->step[steps->count].kind = kind;
    return &steps->step[steps->count++];
}

void tess_mesh_free_steps(TessSteps *steps) {
    free(steps->step);
    free(steps->channel);
    free(steps->free_slot);
    free(steps->nodes);
    memset(steps, 0, sizeof *steps);
}

/* ---- messages */

enum { NONE = -1 };

static int32_t message(TessSteps *steps, int32_t kind, int32_t peer, TessPlace place, uint64_t bytes) {
    int32_t *channel = &steps->channel[2 * peer + (kind == TESS_STEP_RECEIVE)];
    TessStep *step;
    if (bytes == 0) return NONE;
    step = add(steps, kind);
    step->peer = peer;
    step->bytes = bytes;
    step->slot = steps->frees > 0 ? steps->free_slot[--steps->frees] : steps->slots++;
    if (kind == TESS_STEP_RECEIVE) step->to = place;
    else step->left = place;
    if (steps->failed) return NONE;
    if (*channel < 0) {
        step->first = 1;
        *channel = (int32_t)(steps->count - 1);
    }
    steps->step[*channel].total += bytes;
    return step->slot;
}

static int32_t send(TessSteps *steps, int32_t to, TessPlace from, uint64_t bytes) {
    return message(steps, TESS_STEP_SEND, to, from, bytes);
}

static int32_t receive(TessSteps *steps, int32_t from, TessPlace to, uint64_t bytes) {
    return message(steps, TESS_STEP_RECEIVE, from, to, bytes);
}

static void wait(TessSteps *steps, int32_t slot) {
    if (slot == NONE) return;
    add(steps, TESS_STEP_WAIT)->slot = slot;
    if (steps->frees == steps->free_capacity) {
        const int32_t capacity = steps->free_capacity == 0 ? 16 : 2 * steps->free_capacity;
        int32_t *grown = realloc(steps->free_slot, sizeof(int32_t) * (size_t)capacity);
        if (grown == NULL) {
            steps->failed = 1;
            return;
        }
        steps->free_slot = grown;
        steps->free_capacity = capacity;
    }
    steps->free_slot[steps->frees++] = slot;
}

/* Waits for all that was begun and not waited for, from step `since` on. */
static void wait_for_sends(TessSteps *steps, int64_t since) {
    const int64_t end = steps->count;
    int64_t i;
    for (i = since; i < end; ++i)
        if (steps->step[i].kind == TESS_STEP_SEND) wait(steps, steps->step[i].slot);
}

static void copy(TessSteps *steps, TessPlace to, TessPlace from, uint64_t bytes) {
    TessStep *step;
    if (to == from || bytes == 0) return;
    step = add(steps, TESS_STEP_COPY);
    step->to = to;
    step->left = from;
    step->bytes = bytes;
}

static void fold(TessSteps *steps, TessPlace to, TessPlace left, TessPlace right, uint64_t bytes) {
    TessStep *step = add(steps, TESS_STEP_FOLD);
    step->to = to;
    step->left = left;
    step->right = right;
    step->bytes = bytes;
}

/* ---- scratch: whatever is wanted, one after the other */

static TessPlace scratch(TessSteps *steps, uint64_t bytes) {
    const TessPlace place = tess_place(TESS_IN_SCRATCH, steps->scratch);
    steps->scratch += (bytes + 63) / 64 * 64;
    return place;
}

static void at_least(TessSteps *steps, TessPlace place, uint64_t bytes) {
    const uint64_t end = tess_place_at(place) + (bytes + 63) / 64 * 64;
    if (end > steps->scratch) steps->scratch = end;
}

/* ---- the tree over nodes that are there */

typedef struct TessNode {
    int32_t first, chunks;
    TessPlace place;
} Node;

/* Room for so many. Null without memory. */
static Node *nodes_for(TessSteps *steps, int64_t count) {
    Node *grown;
    if (count <= steps->node_capacity) return steps->nodes;
    grown = realloc(steps->nodes, sizeof(Node) * (size_t)count);
    if (grown == NULL) {
        steps->failed = 1;
        return NULL;
    }
    steps->nodes = grown;
    steps->node_capacity = count;
    return grown;
}

/* A tile of a reduction: `bytes` bytes of each node. Nodes are in ascending order. */
typedef struct Tree {
    TessSteps *steps;
    const Node *nodes;
    int32_t count;
    uint64_t bytes, tile; /* of this tile, and of the largest one */
    TessPlace work;       /* the last of the scratch: a tile for each depth that is wanted */
} Tree;

static const Node *find(const Tree *tree, int32_t lo, int32_t hi) {
    int32_t low = 0, high = tree->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (tree->nodes[middle].first < lo) low = middle + 1;
        else high = middle;
    }
    if (low < tree->count && tree->nodes[low].first == lo && tree->nodes[low].chunks == hi - lo) return &tree->nodes[low];
    return NULL;
}

/* Where node [lo, hi) is; what has to be folded is in tile `depth` of the work. */
static TessPlace subtree(const Tree *tree, int32_t lo, int32_t hi, int32_t depth) {
    const Node *node = find(tree, lo, hi);
    TessPlace left, right, to;
    int32_t middle;
    if (node != NULL || hi - lo < 2) return node != NULL ? node->place : tree->work;
    middle = tess_mesh_split(lo, hi);
    left = subtree(tree, lo, middle, depth);
    right = subtree(tree, middle, hi, depth + 1);
    to = tree->work + tree->tile * (uint64_t)depth;
    at_least(tree->steps, to, tree->tile);
    fold(tree->steps, to, left, right, tree->bytes);
    return to;
}

/* Node [lo, hi) to `to`, which may be one of the nodes. */
static void subtree_to(const Tree *tree, int32_t lo, int32_t hi, TessPlace to) {
    const Node *node = find(tree, lo, hi);
    TessPlace left, right;
    int32_t middle;
    if (tree->bytes == 0) return;
    if (node != NULL) {
        copy(tree->steps, to, node->place, tree->bytes);
        return;
    }
    middle = tess_mesh_split(lo, hi);
    left = subtree(tree, lo, middle, 0);
    right = subtree(tree, middle, hi, 1);
    fold(tree->steps, to, left, right, tree->bytes);
}

/* ---- who has what */

/* Chunks of a reduction: `each` a rank, and what rank q sends of them, its subtrees. */
typedef struct Shares {
    int32_t chunks, each, folded;
    int32_t largest; /* most subtrees of a rank */
    int32_t total;   /* of all ranks */
} Shares;

static int32_t subtrees_of(const Shares *shares, int32_t q, TessSubtree *subtrees) {
    return tess_mesh_subtrees(shares->chunks, q * shares->each, (q + 1) * shares->each, subtrees, TESS_MESH_MAX_SUBTREES);
}

static Shares shares_of(const TessTask *task) {
    Shares shares;
    int32_t q;
    shares.chunks = task->collective.chunks;
    shares.each = shares.chunks / task->n;
    shares.folded = (task->collective.flags & TESS_COLLECTIVE_FOLDED) != 0;
    shares.largest = shares.total = 0;
    for (q = 0; q < task->n; ++q) {
        const int32_t count = (shares.each & (shares.each - 1)) == 0 ? 1 : subtrees_of(&shares, q, NULL);
        if (count > shares.largest) shares.largest = count;
        shares.total += count;
    }
    return shares;
}

/* This rank's nodes as the input has them: its chunks, or its subtrees where they are folded. `row` bytes apart, from `at` on. */
static int32_t own_nodes(const TessTask *task, const Shares *shares, uint64_t row, uint64_t at, Node *nodes) {
    TessSubtree subtrees[TESS_MESH_MAX_SUBTREES];
    const int32_t count = shares->folded ? subtrees_of(shares, task->r, subtrees) : shares->each;
    int32_t i;
    for (i = 0; i < count; ++i) {
        nodes[i].first = shares->folded ? subtrees[i].first : task->r * shares->each + i;
        nodes[i].chunks = shares->folded ? subtrees[i].chunks : 1;
        nodes[i].place = tess_place(TESS_IN_INPUT, (uint64_t)i * row + at);
    }
    return count;
}

/* Bytes of a tile where `buffers` of them are held at once. */
static uint64_t tile_of(const TessTask *task, uint64_t buffers) {
    const uint64_t piece = task->piece != 0 ? task->piece : PIECE;
    const uint64_t most = SCRATCH / buffers / 64 * 64;
    return most > piece ? piece / 64 * 64 : most < 64 ? 64 : most;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- all-reduce by halves: n is a power of two, and each rank's chunks are one node. The nearest neighbour comes first, so that the order
 * of folds is the tree's. */

typedef struct Range {
    uint64_t begin, end; /* bytes of a chunk */
} Range;

static uint64_t tiles(Range range, uint64_t tile) { return (range.end - range.begin + tile - 1) / tile; }

static Range tile_at(Range range, uint64_t tile, uint64_t i) {
    Range part;
    part.begin = range.begin + i * tile;
    part.end = least(part.begin + tile, range.end);
    return part;
}

typedef struct Halving {
    const TessTask *task;
    TessSteps *steps;
    const Shares *shares;
    uint64_t row, tile;
    Node *nodes;
    TessPlace incoming, work;
    int one; /* the input is one node, and is folded from where it is */
} Halving;

/* Folds this rank's chunks of a tile to the result. */
static void fold_own(const Halving *by, Range part) {
    Tree tree;
    const int32_t first = by->task->r * by->shares->each;
    tree.steps = by->steps;
    tree.nodes = by->nodes;
    tree.count = own_nodes(by->task, by->shares, by->row, part.begin, by->nodes);
    tree.bytes = part.end - part.begin;
    tree.tile = by->tile;
    tree.work = by->work;
    subtree_to(&tree, first, first + by->shares->each, tess_place(TESS_IN_RESULT, part.begin));
}

static void exchange_half(const Halving *by, int32_t distance, Range keep, Range give) {
    TessSteps *steps = by->steps;
    const int32_t peer = by->task->r ^ distance, lower = (by->task->r & distance) == 0;
    const int from_input = distance == 1 && by->one, to_fold = distance == 1 && !by->one;
    const uint64_t mine = from_input ? TESS_IN_INPUT : TESS_IN_RESULT;
    const uint64_t keeps = tiles(keep, by->tile), gives = tiles(give, by->tile);
    uint64_t t, received = 0, sent = 0;
    const uint64_t ahead = to_fold ? AHEAD : POSTED;
    int32_t slot[AHEAD];
    for (t = 0; t < keeps || t < gives; ++t) {
        for (; received < keeps && received < t + AHEAD; ++received) {
            const Range part = tile_at(keep, by->tile, received);
            slot[received % AHEAD] = receive(steps, peer, by->incoming + by->tile * (received % AHEAD), part.end - part.begin);
        }
        for (; sent < gives && sent < t + ahead; ++sent) {
            const Range part = tile_at(give, by->tile, sent);
            if (to_fold) fold_own(by, part);
            send(steps, peer, tess_place(mine, part.begin), part.end - part.begin);
        }
        if (t < keeps) {
            const Range part = tile_at(keep, by->tile, t);
            const TessPlace own = tess_place(mine, part.begin), other = by->incoming + by->tile * (t % AHEAD);
            if (to_fold) fold_own(by, part);
            wait(steps, slot[t % AHEAD]);
            fold(steps, tess_place(TESS_IN_RESULT, part.begin), lower ? own : other, lower ? other : own, part.end - part.begin);
        }
    }
}

static void all_reduce_by_halves(const TessTask *task, const Shares *shares, Range block, TessSteps *steps) {
    Halving by;
    Range keep[13], give[13], range = block; /* 2^12 ranks */
    int32_t levels = 0, distance;
    const int64_t since = steps->count;
    by.task = task;
    by.steps = steps;
    by.shares = shares;
    by.row = (uint64_t)task->collective.count * task->element;
    by.one = shares->folded || shares->each == 1;
    by.tile = tile_of(task, 2 * AHEAD);
    by.nodes = nodes_for(steps, shares->each);
    by.incoming = scratch(steps, by.tile * AHEAD);
    by.work = tess_place(TESS_IN_SCRATCH, steps->scratch);
    if (by.nodes == NULL) return;
    if (task->n == 1) {
        uint64_t t;
        for (t = 0; t < tiles(block, by.tile); ++t) fold_own(&by, tile_at(block, by.tile, t));
    }
    for (distance = 1; distance < task->n; distance *= 2, ++levels) {
        const uint64_t half = (range.end - range.begin) / 2 / 64 * 64;
        const uint64_t middle = range.begin + (half > 0 ? half : (range.end - range.begin) / task->element / 2 * task->element);
        const Range low = {range.begin, middle}, high = {middle, range.end};
        keep[levels] = (task->r & distance) == 0 ? low : high;
        give[levels] = (task->r & distance) == 0 ? high : low;
        exchange_half(&by, distance, keep[levels], give[levels]);
        range = keep[levels];
    }
    wait_for_sends(steps, since);
    while (levels-- > 0) {
        const int32_t peer = task->r ^ (1 << levels);
        const int32_t from = receive(steps, peer, tess_place(TESS_IN_RESULT, give[levels].begin), give[levels].end - give[levels].begin);
        const int32_t to = send(steps, peer, tess_place(TESS_IN_RESULT, keep[levels].begin), keep[levels].end - keep[levels].begin);
        wait(steps, from);
        wait(steps, to);
    }
}

/* ---- reductions in which every rank sends its nodes to who folds them */

typedef struct Exchange {
    const TessTask *task;
    TessSteps *steps;
    const Shares *shares;
    uint64_t tile;
    TessPlace incoming, outgoing, work;
    Node *nodes; /* chunks of this rank, then nodes of all ranks */
    Node *all;
} Exchange;

static int begin_exchange(Exchange *by, const TessTask *task, const Shares *shares, uint64_t tile, TessSteps *steps) {
    by->task = task;
    by->steps = steps;
    by->shares = shares;
    by->tile = tile;
    by->nodes = nodes_for(steps, (int64_t)shares->each + shares->total);
    by->all = by->nodes == NULL ? NULL : by->nodes + shares->each;
    by->incoming = scratch(steps, tile * (uint64_t)shares->total);
    by->outgoing = scratch(steps, tile * (uint64_t)shares->largest * (uint64_t)task->n);
    by->work = tess_place(TESS_IN_SCRATCH, steps->scratch);
    return by->nodes != NULL;
}

/* This rank's subtrees of a tile, from the input where they are there and else folded, from `to` on. */
static int32_t own_subtrees(const Exchange *by, uint64_t row, uint64_t at, uint64_t bytes, TessPlace to, Node *subtrees) {
    TessSubtree wanted[TESS_MESH_MAX_SUBTREES];
    const int32_t count = subtrees_of(by->shares, by->task->r, wanted);
    Tree tree;
    int32_t i;
    tree.steps = by->steps;
    tree.nodes = by->nodes;
    tree.count = own_nodes(by->task, by->shares, row, at, by->nodes);
    tree.bytes = bytes;
    tree.tile = by->tile;
    tree.work = by->work;
    for (i = 0; i < count; ++i) {
        const int32_t lo = wanted[i].first, hi = lo + wanted[i].chunks;
        const Node *there = find(&tree, lo, hi);
        subtrees[i].first = lo;
        subtrees[i].chunks = wanted[i].chunks;
        subtrees[i].place = there != NULL ? there->place : to + by->tile * (uint64_t)i;
        if (there == NULL) subtree_to(&tree, lo, hi, subtrees[i].place);
    }
    return count;
}

/* Posts receives of the subtrees of ranks [0, end) but this one, and lists them all; this rank's have no place yet. */
static int32_t receive_subtrees(const Exchange *by, int32_t end, uint64_t bytes) {
    TessSubtree subtrees[TESS_MESH_MAX_SUBTREES];
    int32_t q, i, count = 0;
    for (q = 0; q < end; ++q) {
        const int32_t some = subtrees_of(by->shares, q, subtrees);
        for (i = 0; i < some; ++i, ++count) {
            by->all[count].first = subtrees[i].first;
            by->all[count].chunks = subtrees[i].chunks;
            by->all[count].place = by->incoming + by->tile * (uint64_t)count;
            if (q != by->task->r) receive(by->steps, q, by->all[count].place, bytes);
        }
    }
    return count;
}

static void wait_for_receives(TessSteps *steps, int64_t since) {
    const int64_t end = steps->count;
    int64_t i;
    for (i = since; i < end; ++i)
        if (steps->step[i].kind == TESS_STEP_RECEIVE) wait(steps, steps->step[i].slot);
}

static void place_own(const Exchange *by, int32_t count, const Node *own, int32_t own_count) {
    int32_t i, j;
    for (i = 0; i < count; ++i)
        for (j = 0; j < own_count; ++j)
            if (by->all[i].first == own[j].first) by->all[i].place = own[j].place;
}

static void fold_all(const Exchange *by, int32_t count, uint64_t bytes, TessPlace to) {
    Tree tree;
    tree.steps = by->steps;
    tree.nodes = by->all;
    tree.count = count;
    tree.bytes = bytes;
    tree.tile = by->tile;
    tree.work = by->work;
    subtree_to(&tree, 0, by->shares->chunks, to);
}

/* Few bytes: everybody sends its nodes to everybody and folds them all, in one step. */
static void all_reduce_at_once(const TessTask *task, const Shares *shares, Range block, TessSteps *steps) {
    Node own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    const uint64_t bytes = block.end - block.begin, row = (uint64_t)task->collective.count * task->element;
    const int64_t since = steps->count;
    int32_t count, own_count, i, t;
    if (!begin_exchange(&by, task, shares, (bytes + 63) / 64 * 64, steps)) return;
    count = receive_subtrees(&by, task->n, bytes);
    own_count = own_subtrees(&by, row, block.begin, bytes, by.outgoing, own);
    for (t = 1; t < task->n; ++t)
        for (i = 0; i < own_count; ++i) send(steps, (task->r + t) % task->n, own[i].place, bytes);
    wait_for_receives(steps, since);
    wait_for_sends(steps, since);
    place_own(&by, count, own, own_count);
    fold_all(&by, count, bytes, tess_place(TESS_IN_RESULT, block.begin));
}

/* Part s of what is reduced, in bytes of a row of the input. */
static Range part_of(const TessTask *task, Range block, int32_t s) {
    Range part;
    if (task->collective.kind == TESS_REDUCE_SCATTER) {
        const uint64_t before = (uint64_t)s * (uint64_t)task->collective.count * task->element;
        part.begin = before + block.begin;
        part.end = before + block.end;
    } else {
        const uint64_t elements = (block.end - block.begin) / task->element, n = (uint64_t)task->n;
        part.begin = block.begin + elements * (uint64_t)s / n * task->element;
        part.end = block.begin + elements * ((uint64_t)s + 1) / n * task->element;
    }
    return part;
}

/* Rank s folds part s of everything. */
static void reduce_parts(const TessTask *task, const Shares *shares, Range block, TessSteps *steps) {
    const int scatter = task->collective.kind == TESS_REDUCE_SCATTER;
    const uint64_t row = (uint64_t)task->collective.count * task->element * (scatter ? (uint64_t)task->n : 1);
    const uint64_t held = (uint64_t)shares->total + (uint64_t)shares->largest * (uint64_t)task->n;
    const Range mine = part_of(task, block, task->r);
    Node own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    uint64_t t, most = 0;
    int32_t s, i;
    if (!begin_exchange(&by, task, shares, tile_of(task, held), steps)) return;
    for (s = 0; s < task->n; ++s) {
        const uint64_t some = tiles(part_of(task, block, s), by.tile);
        if (some > most) most = some;
    }
    for (t = 0; t < most; ++t) {
        const int64_t since = steps->count;
        int32_t count = 0, own_count;
        Range tile = {0, 0};
        if (t < tiles(mine, by.tile)) tile = tile_at(mine, by.tile, t);
        if (tile.end > tile.begin) count = receive_subtrees(&by, task->n, tile.end - tile.begin);
        for (s = 1; s < task->n; ++s) {
            const int32_t to = (task->r + s) % task->n;
            const Range part = part_of(task, block, to);
            Range other;
            if (t >= tiles(part, by.tile)) continue;
            other = tile_at(part, by.tile, t);
            own_count = own_subtrees(&by, row, other.begin, other.end - other.begin,
                                     by.outgoing + by.tile * (uint64_t)shares->largest * (uint64_t)to, own);
            for (i = 0; i < own_count; ++i) send(steps, to, own[i].place, other.end - other.begin);
        }
        if (tile.end > tile.begin) {
            own_count = own_subtrees(&by, row, tile.begin, tile.end - tile.begin,
                                     by.outgoing + by.tile * (uint64_t)shares->largest * (uint64_t)task->r, own);
            place_own(&by, count, own, own_count);
            wait_for_receives(steps, since);
            fold_all(&by, count, tile.end - tile.begin,
                     tess_place(TESS_IN_RESULT, scatter ? tile.begin - mine.begin + block.begin : tile.begin));
        }
        wait_for_sends(steps, since);
    }
}

static void gather_parts(const TessTask *task, Range block, TessSteps *steps) {
    const int64_t since = steps->count;
    const Range mine = part_of(task, block, task->r);
    int32_t t;
    for (t = 1; t < task->n; ++t) {
        const int32_t from = (task->r + task->n - t) % task->n;
        const Range part = part_of(task, block, from);
        receive(steps, from, tess_place(TESS_IN_RESULT, part.begin), part.end - part.begin);
    }
    for (t = 1; t < task->n; ++t) send(steps, (task->r + t) % task->n, tess_place(TESS_IN_RESULT, mine.begin), mine.end - mine.begin);
    wait_for_receives(steps, since);
    wait_for_sends(steps, since);
}

static void all_reduce(const TessTask *task, Range block, TessSteps *steps) {
    const Shares shares = shares_of(task);
    const int power = (task->n & (task->n - 1)) == 0 && (shares.each & (shares.each - 1)) == 0;
    if (task->n > 1 && (block.end - block.begin) * (uint64_t)shares.total <= LITTLE) {
        all_reduce_at_once(task, &shares, block, steps);
    } else if (power || task->n == 1) {
        all_reduce_by_halves(task, &shares, block, steps);
    } else {
        reduce_parts(task, &shares, block, steps);
        gather_parts(task, block, steps);
    }
}

/* ---- exclusive scan: a counter of subtrees goes over the nodes of lower ranks and then over this rank's chunks */

typedef struct Counter {
    const Exchange *by;
    uint64_t bytes;
    Node stack[TESS_MESH_MAX_SUBTREES];
    int32_t count;
} Counter;

static TessPlace counter_place(const Counter *counter, int32_t i) {
    const TessPlace place = counter->by->work + counter->by->tile * (uint64_t)i;
    at_least(counter->by->steps, place, counter->by->tile);
    return place;
}

static void push(Counter *counter, Node node) {
    Node *stack = counter->stack;
    stack[counter->count++] = node;
    while (counter->count > 1) {
        Node *left = &stack[counter->count - 2], *right = &stack[counter->count - 1];
        TessPlace to;
        if (left->chunks != right->chunks || left->first % (2 * left->chunks) != 0) return;
        to = counter_place(counter, counter->count - 2);
        fold(counter->by->steps, to, left->place, right->place, counter->bytes);
        left->chunks *= 2;
        left->place = to;
        --counter->count;
    }
}

/* The fold of all that was pushed, as the tree over so many chunks has it. */
static void total(const Counter *counter, TessPlace to) {
    TessPlace right;
    int32_t i;
    if (counter->count == 0) {
        TessStep *step = add(counter->by->steps, TESS_STEP_FILL);
        step->to = to;
        step->bytes = counter->bytes;
        return;
    }
    right = counter->stack[counter->count - 1].place;
    if (counter->count == 1) copy(counter->by->steps, to, right, counter->bytes);
    for (i = counter->count - 2; i >= 0; --i) {
        const TessPlace between = i == 0 ? to : counter_place(counter, TESS_MESH_MAX_SUBTREES);
        fold(counter->by->steps, between, counter->stack[i].place, right, counter->bytes);
        right = between;
    }
}

static void exclusive_scan(const TessTask *task, Range block, TessSteps *steps) {
    const Shares shares = shares_of(task);
    const uint64_t row = (uint64_t)task->collective.count * task->element;
    const uint64_t held = (uint64_t)shares.total + (uint64_t)shares.largest * (uint64_t)task->n + TESS_MESH_MAX_SUBTREES;
    Node own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    uint64_t t;
    int32_t i, q;
    if (!begin_exchange(&by, task, &shares, tile_of(task, held), steps)) return;
    for (t = 0; t < tiles(block, by.tile); ++t) {
        const int64_t since = steps->count;
        const Range tile = tile_at(block, by.tile, t);
        const uint64_t bytes = tile.end - tile.begin;
        const int32_t before = receive_subtrees(&by, task->r, bytes);
        const int32_t own_count = task->r + 1 < task->n ? own_subtrees(&by, row, tile.begin, bytes, by.outgoing, own) : 0;
        Counter counter;
        for (q = task->r + 1; q < task->n; ++q)
            for (i = 0; i < own_count; ++i) send(steps, q, own[i].place, bytes);
        wait_for_receives(steps, since);
        counter.by = &by;
        counter.bytes = bytes;
        counter.count = 0;
        for (i = 0; i < before; ++i) push(&counter, by.all[i]);
        own_nodes(task, &shares, row, tile.begin, by.nodes);
        for (i = 0; i < shares.each; ++i) {
            total(&counter, tess_place(TESS_IN_RESULT, (uint64_t)i * row + tile.begin));
            if (i + 1 < shares.each) push(&counter, by.nodes[i]);
        }
        wait_for_sends(steps, since);
    }
}

/* ---- what only moves */

static void all_to_all(const TessTask *task, Range block, TessSteps *steps) {
    const uint64_t row = (uint64_t)task->collective.count * task->element, bytes = block.end - block.begin;
    const int gather = task->collective.kind == TESS_ALL_GATHER;
    const int64_t since = steps->count;
    const uint64_t mine = (uint64_t)task->r * row + block.begin;
    int32_t t;
    for (t = 1; t < task->n; ++t) {
        const int32_t from = (task->r + task->n - t) % task->n;
        receive(steps, from, tess_place(TESS_IN_RESULT, (uint64_t)from * row + block.begin), bytes);
    }
    for (t = 1; t < task->n; ++t) {
        const int32_t to = (task->r + t) % task->n;
        send(steps, to, tess_place(TESS_IN_INPUT, (gather ? 0 : (uint64_t)to * row) + block.begin), bytes);
    }
    copy(steps, tess_place(TESS_IN_RESULT, mine), tess_place(TESS_IN_INPUT, gather ? block.begin : mine), bytes);
    wait_for_receives(steps, since);
    wait_for_sends(steps, since);
}

static void shift(const TessTask *task, Range block, TessSteps *steps) {
    const int64_t n = task->n, r = task->r, distance = task->collective.distance;
    const int open = (task->collective.flags & TESS_COLLECTIVE_OPEN) != 0;
    const int64_t to = open ? r + distance : (((r + distance) % n) + n) % n, from = open ? r - distance : (((r - distance) % n) + n) % n;
    const uint64_t bytes = block.end - block.begin;
    const TessPlace input = tess_place(TESS_IN_INPUT, block.begin), result = tess_place(TESS_IN_RESULT, block.begin);
    int32_t in = NONE, out = NONE;
    if (to == r) {
        copy(steps, result, input, bytes);
        return;
    }
    if (from >= 0 && from < n) {
        in = receive(steps, (int32_t)from, result, bytes);
    } else {
        TessStep *step = add(steps, TESS_STEP_ZERO);
        step->to = result;
        step->bytes = bytes;
    }
    if (to >= 0 && to < n) out = send(steps, (int32_t)to, input, bytes);
    wait(steps, in);
    wait(steps, out);
}

/* A binomial tree of ranks, in pieces, which are passed on as they come. */
static void broadcast(const TessTask *task, Range block, TessSteps *steps) {
    const int32_t n = task->n, v = (task->r - task->collective.peer + n) % n;
    const uint64_t in = v == 0 ? TESS_IN_INPUT : TESS_IN_RESULT;
    const int64_t since = steps->count;
    int32_t mask = 1, child;
    uint64_t t;
    while (mask < n && (v & mask) == 0) mask *= 2;
    if (v != 0) {
        for (t = 0; t < tiles(block, LARGEST); ++t) {
            const Range part = tile_at(block, LARGEST, t);
            receive(steps, (v - mask + task->collective.peer) % n, tess_place(TESS_IN_RESULT, part.begin), part.end - part.begin);
        }
    }
    for (t = 0; t < tiles(block, LARGEST); ++t) {
        const Range part = tile_at(block, LARGEST, t);
        if (v != 0) wait(steps, steps->failed ? NONE : steps->step[since + (int64_t)t].slot);
        for (child = mask / 2; child > 0; child /= 2)
            if (v + child < n) send(steps, (v + child + task->collective.peer) % n, tess_place(in, part.begin), part.end - part.begin);
    }
    if (v == 0) copy(steps, tess_place(TESS_IN_RESULT, block.begin), tess_place(TESS_IN_INPUT, block.begin), block.end - block.begin);
    wait_for_sends(steps, since);
}

static void point_to_point(const TessTask *task, Range block, TessSteps *steps) {
    const uint64_t bytes = block.end - block.begin;
    if (task->collective.kind == TESS_SEND) wait(steps, send(steps, task->collective.peer, tess_place(TESS_IN_INPUT, block.begin), bytes));
    else wait(steps, receive(steps, task->collective.peer, tess_place(TESS_IN_RESULT, block.begin), bytes));
}

int64_t tess_mesh_block(const TessTask *task) {
    const uint64_t rows = task->collective.kind == TESS_REDUCE_SCATTER ? (uint64_t)task->n : 1;
    const int64_t elements = BLOCK / (int64_t)(task->element * rows) / 64 * 64;
    return elements < 64 ? 64 : elements;
}

int tess_mesh_make_steps(const TessTask *task, int64_t begin, int64_t end, TessSteps *steps) {
    const Range block = {(uint64_t)begin * task->element, (uint64_t)end * task->element};
    int32_t *channel = realloc(steps->channel, sizeof(int32_t) * 2 * (size_t)task->n);
    if (channel == NULL) return 0;
    memset(channel, 0xff, sizeof(int32_t) * 2 * (size_t)task->n);
    steps->channel = channel;
    steps->count = 0;
    steps->slots = steps->frees = steps->failed = 0;
    steps->scratch = 0;
    switch (task->collective.kind) {
    case TESS_ALL_REDUCE: all_reduce(task, block, steps); break;
    case TESS_REDUCE_SCATTER: {
        const Shares shares = shares_of(task);
        reduce_parts(task, &shares, block, steps);
        break;
    }
    case TESS_ALL_GATHER:
    case TESS_ALL_TO_ALL: all_to_all(task, block, steps); break;
    case TESS_SHIFT: shift(task, block, steps); break;
    case TESS_BROADCAST: broadcast(task, block, steps); break;
    case TESS_EXCLUSIVE_SCAN: exclusive_scan(task, block, steps); break;
    default: point_to_point(task, block, steps); break;
    }
    return !steps->failed;
}
