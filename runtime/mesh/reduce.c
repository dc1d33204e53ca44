#include "runtime/mesh/reduce.h"

#include "runtime/mesh/tree.h"

enum {
    PIECE = 128 << 10, /* bytes that are folded at once: they stay in a second-level cache */
    AHEAD = 3,         /* receives that are posted before they are needed */
    POSTED = 12,       /* sends that are posted before the receives beside them, so that ranks need not keep step */
    SCRATCH = 1 << 20, /* bytes of all that is received at once */
    LITTLE = 16 << 10  /* bytes up to which everybody sends everything: one step in place of many */
};

/* ---- the tree over nodes that are there */

/* A tile of a reduction: `bytes` bytes of each node. Nodes are in ascending order. */
typedef struct Tree {
    TessSteps *steps;
    const TessNode *nodes;
    int32_t count;
    uint64_t bytes, tile; /* of this tile, and of the largest one */
    TessPlace work;       /* the last of the scratch: a tile for each depth that is wanted */
} Tree;

static const TessNode *find(const Tree *tree, int32_t lo, int32_t hi) {
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
    const TessNode *node = find(tree, lo, hi);
    TessPlace left, right, to;
    int32_t middle;
    if (node != NULL || hi - lo < 2) return node != NULL ? node->place : tree->work;
    middle = tess_mesh_split(lo, hi);
    left = subtree(tree, lo, middle, depth);
    right = subtree(tree, middle, hi, depth + 1);
    to = tree->work + tree->tile * (uint64_t)depth;
    tess_list_reach(tree->steps, to, tree->tile);
    tess_list_fold(tree->steps, to, left, right, tree->bytes);
    return to;
}

/* TessNode [lo, hi) to `to`, which may be one of the nodes. */
static void subtree_to(const Tree *tree, int32_t lo, int32_t hi, TessPlace to) {
    const TessNode *node = find(tree, lo, hi);
    TessPlace left, right;
    int32_t middle;
    if (tree->bytes == 0) return;
    if (node != NULL) {
        tess_list_copy(tree->steps, to, node->place, tree->bytes);
        return;
    }
    middle = tess_mesh_split(lo, hi);
    left = subtree(tree, lo, middle, 0);
    right = subtree(tree, middle, hi, 1);
    tess_list_fold(tree->steps, to, left, right, tree->bytes);
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
static int32_t own_nodes(const TessTask *task, const Shares *shares, uint64_t row, uint64_t at, TessNode *nodes) {
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

/* ---- all-reduce by halves: n is a power of two, and each rank's chunks are one node. The nearest neighbour comes first, so that the order
 * of folds is the tree's. */

typedef struct Halving {
    const TessTask *task;
    TessSteps *steps;
    const Shares *shares;
    uint64_t row, tile;
    TessNode *nodes;
    TessPlace incoming, work;
    int one; /* the input is one node, and is folded from where it is */
} Halving;

/* Folds this rank's chunks of a tile to the result. */
static void fold_own(const Halving *by, TessSpan part) {
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

static void exchange_half(const Halving *by, int32_t distance, TessSpan keep, TessSpan give) {
    TessSteps *steps = by->steps;
    const int32_t peer = by->task->r ^ distance, lower = (by->task->r & distance) == 0;
    const int from_input = distance == 1 && by->one, to_fold = distance == 1 && !by->one;
    const uint64_t mine = from_input ? TESS_IN_INPUT : TESS_IN_RESULT;
    const uint64_t keeps = tess_tiles(keep, by->tile), gives = tess_tiles(give, by->tile);
    uint64_t t, received = 0, sent = 0;
    const uint64_t ahead = to_fold ? AHEAD : POSTED;
    int32_t slot[AHEAD];
    for (t = 0; t < keeps || t < gives; ++t) {
        for (; received < keeps && received < t + AHEAD; ++received) {
            const TessSpan part = tess_tile_at(keep, by->tile, received);
            slot[received % AHEAD] = tess_list_receive(steps, peer, by->incoming + by->tile * (received % AHEAD), part.end - part.begin);
        }
        for (; sent < gives && sent < t + ahead; ++sent) {
            const TessSpan part = tess_tile_at(give, by->tile, sent);
            if (to_fold) fold_own(by, part);
            tess_list_send(steps, peer, tess_place(mine, part.begin), part.end - part.begin);
        }
        if (t < keeps) {
            const TessSpan part = tess_tile_at(keep, by->tile, t);
            const TessPlace own = tess_place(mine, part.begin), other = by->incoming + by->tile * (t % AHEAD);
            if (to_fold) fold_own(by, part);
            tess_list_wait(steps, slot[t % AHEAD]);
            tess_list_fold(steps, tess_place(TESS_IN_RESULT, part.begin), lower ? own : other, lower ? other : own, part.end - part.begin);
        }
    }
}

static void all_reduce_by_halves(const TessTask *task, const Shares *shares, TessSpan block, TessSteps *steps) {
    Halving by;
    TessSpan keep[13], give[13], range = block; /* 2^12 ranks */
    int32_t levels = 0, distance;
    const int64_t since = steps->count;
    by.task = task;
    by.steps = steps;
    by.shares = shares;
    by.row = (uint64_t)task->collective.count * task->element;
    by.one = shares->folded || shares->each == 1;
    by.tile = tile_of(task, 2 * AHEAD);
    by.nodes = tess_list_nodes(steps, shares->each);
    by.incoming = tess_list_scratch(steps, by.tile * AHEAD);
    by.work = tess_place(TESS_IN_SCRATCH, steps->scratch);
    if (by.nodes == NULL) return;
    if (task->n == 1) {
        uint64_t t;
        for (t = 0; t < tess_tiles(block, by.tile); ++t) fold_own(&by, tess_tile_at(block, by.tile, t));
    }
    for (distance = 1; distance < task->n; distance *= 2, ++levels) {
        const uint64_t half = (range.end - range.begin) / 2 / 64 * 64;
        const uint64_t middle = range.begin + (half > 0 ? half : (range.end - range.begin) / task->element / 2 * task->element);
        const TessSpan low = {range.begin, middle}, high = {middle, range.end};
        keep[levels] = (task->r & distance) == 0 ? low : high;
        give[levels] = (task->r & distance) == 0 ? high : low;
        exchange_half(&by, distance, keep[levels], give[levels]);
        range = keep[levels];
    }
    tess_list_wait_for_sends(steps, since);
    while (levels-- > 0) {
        const int32_t peer = task->r ^ (1 << levels);
        const int32_t from =
            tess_list_receive(steps, peer, tess_place(TESS_IN_RESULT, give[levels].begin), give[levels].end - give[levels].begin);
        const int32_t to =
            tess_list_send(steps, peer, tess_place(TESS_IN_RESULT, keep[levels].begin), keep[levels].end - keep[levels].begin);
        tess_list_wait(steps, from);
        tess_list_wait(steps, to);
    }
}

/* ---- reductions in which every rank sends its nodes to who folds them */

typedef struct Exchange {
    const TessTask *task;
    TessSteps *steps;
    const Shares *shares;
    uint64_t tile;
    TessPlace incoming, outgoing, work;
    TessNode *nodes; /* chunks of this rank, then nodes of all ranks */
    TessNode *all;
} Exchange;

static int begin_exchange(Exchange *by, const TessTask *task, const Shares *shares, uint64_t tile, TessSteps *steps) {
    by->task = task;
    by->steps = steps;
    by->shares = shares;
    by->tile = tile;
    by->nodes = tess_list_nodes(steps, (int64_t)shares->each + shares->total);
    by->all = by->nodes == NULL ? NULL : by->nodes + shares->each;
    by->incoming = tess_list_scratch(steps, tile * (uint64_t)shares->total);
    by->outgoing = tess_list_scratch(steps, tile * (uint64_t)shares->largest * (uint64_t)task->n);
    by->work = tess_place(TESS_IN_SCRATCH, steps->scratch);
    return by->nodes != NULL;
}

/* This rank's subtrees of a tile, from the input where they are there and else folded, from `to` on. */
static int32_t own_subtrees(const Exchange *by, uint64_t row, uint64_t at, uint64_t bytes, TessPlace to, TessNode *subtrees) {
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
        const TessNode *there = find(&tree, lo, hi);
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
            if (q != by->task->r) tess_list_receive(by->steps, q, by->all[count].place, bytes);
        }
    }
    return count;
}

static void place_own(const Exchange *by, int32_t count, const TessNode *own, int32_t own_count) {
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
static void all_reduce_at_once(const TessTask *task, const Shares *shares, TessSpan block, TessSteps *steps) {
    TessNode own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    const uint64_t bytes = block.end - block.begin, row = (uint64_t)task->collective.count * task->element;
    const int64_t since = steps->count;
    int32_t count, own_count, i, t;
    if (!begin_exchange(&by, task, shares, (bytes + 63) / 64 * 64, steps)) return;
    count = receive_subtrees(&by, task->n, bytes);
    own_count = own_subtrees(&by, row, block.begin, bytes, by.outgoing, own);
    for (t = 1; t < task->n; ++t)
        for (i = 0; i < own_count; ++i) tess_list_send(steps, (task->r + t) % task->n, own[i].place, bytes);
    tess_list_wait_for_receives(steps, since);
    tess_list_wait_for_sends(steps, since);
    place_own(&by, count, own, own_count);
    fold_all(&by, count, bytes, tess_place(TESS_IN_RESULT, block.begin));
}

/* Part s of what is reduced, in bytes of a row of the input. */
static TessSpan part_of(const TessTask *task, TessSpan block, int32_t s) {
    TessSpan part;
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
static void reduce_parts(const TessTask *task, const Shares *shares, TessSpan block, TessSteps *steps) {
    const int scatter = task->collective.kind == TESS_REDUCE_SCATTER;
    const uint64_t row = (uint64_t)task->collective.count * task->element * (scatter ? (uint64_t)task->n : 1);
    const uint64_t held = (uint64_t)shares->total + (uint64_t)shares->largest * (uint64_t)task->n;
    const TessSpan mine = part_of(task, block, task->r);
    TessNode own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    uint64_t t, most = 0;
    int32_t s, i;
    if (!begin_exchange(&by, task, shares, tile_of(task, held), steps)) return;
    for (s = 0; s < task->n; ++s) {
        const uint64_t some = tess_tiles(part_of(task, block, s), by.tile);
        if (some > most) most = some;
    }
    for (t = 0; t < most; ++t) {
        const int64_t since = steps->count;
        int32_t count = 0, own_count;
        TessSpan tile = {0, 0};
        if (t < tess_tiles(mine, by.tile)) tile = tess_tile_at(mine, by.tile, t);
        if (tile.end > tile.begin) count = receive_subtrees(&by, task->n, tile.end - tile.begin);
        for (s = 1; s < task->n; ++s) {
            const int32_t to = (task->r + s) % task->n;
            const TessSpan part = part_of(task, block, to);
            TessSpan other;
            if (t >= tess_tiles(part, by.tile)) continue;
            other = tess_tile_at(part, by.tile, t);
            own_count = own_subtrees(&by, row, other.begin, other.end - other.begin,
                                     by.outgoing + by.tile * (uint64_t)shares->largest * (uint64_t)to, own);
            for (i = 0; i < own_count; ++i) tess_list_send(steps, to, own[i].place, other.end - other.begin);
        }
        if (tile.end > tile.begin) {
            own_count = own_subtrees(&by, row, tile.begin, tile.end - tile.begin,
                                     by.outgoing + by.tile * (uint64_t)shares->largest * (uint64_t)task->r, own);
            place_own(&by, count, own, own_count);
            tess_list_wait_for_receives(steps, since);
            fold_all(&by, count, tile.end - tile.begin,
                     tess_place(TESS_IN_RESULT, scatter ? tile.begin - mine.begin + block.begin : tile.begin));
        }
        tess_list_wait_for_sends(steps, since);
    }
}

static void gather_parts(const TessTask *task, TessSpan block, TessSteps *steps) {
    const int64_t since = steps->count;
    const TessSpan mine = part_of(task, block, task->r);
    int32_t t;
    for (t = 1; t < task->n; ++t) {
        const int32_t from = (task->r + task->n - t) % task->n;
        const TessSpan part = part_of(task, block, from);
        tess_list_receive(steps, from, tess_place(TESS_IN_RESULT, part.begin), part.end - part.begin);
    }
    for (t = 1; t < task->n; ++t)
        tess_list_send(steps, (task->r + t) % task->n, tess_place(TESS_IN_RESULT, mine.begin), mine.end - mine.begin);
    tess_list_wait_for_receives(steps, since);
    tess_list_wait_for_sends(steps, since);
}

void tess_mesh_all_reduce_steps(const TessTask *task, TessSpan block, TessSteps *steps) {
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

void tess_mesh_reduce_scatter_steps(const TessTask *task, TessSpan block, TessSteps *steps) {
    const Shares shares = shares_of(task);
    reduce_parts(task, &shares, block, steps);
}

/* ---- exclusive scan: a counter of subtrees goes over the nodes of lower ranks and then over this rank's chunks */

typedef struct Counter {
    const Exchange *by;
    uint64_t bytes;
    TessNode stack[TESS_MESH_MAX_SUBTREES];
    int32_t count;
} Counter;

static TessPlace counter_place(const Counter *counter, int32_t i) {
    const TessPlace place = counter->by->work + counter->by->tile * (uint64_t)i;
    tess_list_reach(counter->by->steps, place, counter->by->tile);
    return place;
}

static void push(Counter *counter, TessNode node) {
    TessNode *stack = counter->stack;
    stack[counter->count++] = node;
    while (counter->count > 1) {
        TessNode *left = &stack[counter->count - 2], *right = &stack[counter->count - 1];
        TessPlace to;
        if (left->chunks != right->chunks || left->first % (2 * left->chunks) != 0) return;
        to = counter_place(counter, counter->count - 2);
        tess_list_fold(counter->by->steps, to, left->place, right->place, counter->bytes);
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
        TessStep *step = tess_list_add(counter->by->steps, TESS_STEP_FILL);
        step->to = to;
        step->bytes = counter->bytes;
        return;
    }
    right = counter->stack[counter->count - 1].place;
    if (counter->count == 1) tess_list_copy(counter->by->steps, to, right, counter->bytes);
    for (i = counter->count - 2; i >= 0; --i) {
        const TessPlace between = i == 0 ? to : counter_place(counter, TESS_MESH_MAX_SUBTREES);
        tess_list_fold(counter->by->steps, between, counter->stack[i].place, right, counter->bytes);
        right = between;
    }
}

void tess_mesh_exclusive_scan_steps(const TessTask *task, TessSpan block, TessSteps *steps) {
    const Shares shares = shares_of(task);
    const uint64_t row = (uint64_t)task->collective.count * task->element;
    const uint64_t held = (uint64_t)shares.total + (uint64_t)shares.largest * (uint64_t)task->n + TESS_MESH_MAX_SUBTREES;
    TessNode own[TESS_MESH_MAX_SUBTREES];
    Exchange by;
    uint64_t t;
    int32_t i, q;
    if (!begin_exchange(&by, task, &shares, tile_of(task, held), steps)) return;
    for (t = 0; t < tess_tiles(block, by.tile); ++t) {
        const int64_t since = steps->count;
        const TessSpan tile = tess_tile_at(block, by.tile, t);
        const uint64_t bytes = tile.end - tile.begin;
        const int32_t before = receive_subtrees(&by, task->r, bytes);
        const int32_t own_count = task->r + 1 < task->n ? own_subtrees(&by, row, tile.begin, bytes, by.outgoing, own) : 0;
        Counter counter;
        for (q = task->r + 1; q < task->n; ++q)
            for (i = 0; i < own_count; ++i) tess_list_send(steps, q, own[i].place, bytes);
        tess_list_wait_for_receives(steps, since);
        counter.by = &by;
        counter.bytes = bytes;
        counter.count = 0;
        for (i = 0; i < before; ++i) push(&counter, by.all[i]);
        own_nodes(task, &shares, row, tile.begin, by.nodes);
        for (i = 0; i < shares.each; ++i) {
            total(&counter, tess_place(TESS_IN_RESULT, (uint64_t)i * row + tile.begin));
            if (i + 1 < shares.each) push(&counter, by.nodes[i]);
        }
        tess_list_wait_for_sends(steps, since);
    }
}
