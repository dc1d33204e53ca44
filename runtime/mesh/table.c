#include <stdlib.h>
#include <string.h>

#include "runtime/mesh/inside.h"
#include "runtime/mesh/table.h"

/* ---- the bytes of a table */

static int list_fits(const TessProgramTable *table, const TessProgramList *list, uint64_t size) {
    return list->count >= 0 && list->reserved == 0 && list->at % 8 == 0 && list->at >= sizeof(TessProgramHeader) &&
           list->at <= table->bytes && (table->bytes - list->at) / size >= (uint64_t)list->count;
}

static const void *list_of(const TessProgramTable *table, const TessProgramList *list) {
    return (const unsigned char *)table->data + list->at;
}

int32_t tess_program_open(const TessProgramTable *table, TessProgramParts *parts, TessFault *fault) {
    const TessProgramHeader *header;
    int32_t a;
    if (table == NULL || table->data == NULL) return tess_mesh_refuse_plainly(fault, TESS_NULL_ARGUMENT);
    if ((uintptr_t)table->data % 8 != 0 || table->bytes < sizeof *header) return tess_mesh_refuse_plainly(fault, TESS_PROGRAM_FORMAT);
    header = table->data;
    if (memcmp(header->magic, "TESSPROG", 8) != 0) return tess_mesh_refuse_plainly(fault, TESS_PROGRAM_FORMAT);
    if (header->version != TESS_PROGRAM_TABLE)
        return tess_mesh_refuse(fault, TESS_PROGRAM_VERSION, -1, TESS_PROGRAM_TABLE, header->version);
    if (header->header != sizeof *header || header->bytes != table->bytes || header->reserved != 0 || header->kernels < 0 ||
        header->rank < -1 || header->rank >= TESS_MESH_MAX_RANKS || header->axes < 0 || header->axes > TESS_MESH_MAX_AXES ||
        header->arena_bytes > (UINT64_C(1) << 46))
        return tess_mesh_refuse_plainly(fault, TESS_PROGRAM_FORMAT);
    for (a = 0; a < TESS_MESH_MAX_AXES; ++a)
        if (a < header->axes ? header->extents[a] < 1 || header->extents[a] > TESS_MESH_MAX_RANKS : header->extents[a] != 0)
            return tess_mesh_refuse_plainly(fault, TESS_PROGRAM_FORMAT);
    if (!list_fits(table, &header->buffers, sizeof(TessProgramBuffer)) || !list_fits(table, &header->tensors, sizeof(TessProgramTensor)) ||
        !list_fits(table, &header->arguments, sizeof(TessProgramArgument)) ||
        !list_fits(table, &header->collectives, sizeof(TessProgramCollective)) ||
        !list_fits(table, &header->operations, sizeof(TessProgramOperation)))
        return tess_mesh_refuse_plainly(fault, TESS_PROGRAM_FORMAT);
    parts->header = header;
    parts->buffers = list_of(table, &header->buffers);
    parts->tensors = list_of(table, &header->tensors);
    parts->arguments = list_of(table, &header->arguments);
    parts->collectives = list_of(table, &header->collectives);
    parts->operations = list_of(table, &header->operations);
    return TESS_OK;
}

/* ---- entries of the lists, each by itself */

static int32_t check_buffers(const TessProgramParts *parts, TessFault *fault) {
    int32_t i;
    for (i = 0; i < parts->header->buffers.count; ++i) {
        const TessProgramBuffer *buffer = &parts->buffers[i];
        if (buffer->memory < TESS_PROGRAM_INPUT || buffer->memory > TESS_PROGRAM_LOCAL || buffer->reserved != 0 ||
            buffer->bytes > (UINT64_C(1) << 46))
            return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, buffer->memory);
        if (buffer->memory != TESS_PROGRAM_LOCAL) {
            if (buffer->at != 0) return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, (int64_t)(buffer->at & INT64_MAX));
        } else if (buffer->at % 64 != 0 || buffer->at > parts->header->arena_bytes ||
                   buffer->bytes > parts->header->arena_bytes - buffer->at) {
            return tess_mesh_refuse(fault, TESS_PROGRAM_OVERLAP, -1, TESS_NO_NUMBER, i);
        }
    }
    return TESS_OK;
}

/* Bytes of a tensor; UINT64_MAX where they are more than any buffer's. */
static uint64_t bytes_of(const TessProgramTensor *tensor) {
    uint64_t elements = 1;
    int32_t axis, empty = 0;
    for (axis = 0; axis < tensor->rank; ++axis) {
        if (tensor->extents[axis] == 0) empty = 1;
        else if (elements > (UINT64_C(1) << 46) / (uint64_t)tensor->extents[axis]) return UINT64_MAX;
        else elements *= (uint64_t)tensor->extents[axis];
    }
    return empty ? 0 : tess_bytes(tensor->dtype, tensor->rank, tensor->extents);
}

static int32_t check_tensors(const TessProgramParts *parts, TessFault *fault) {
    int32_t i, axis;
    for (i = 0; i < parts->header->tensors.count; ++i) {
        const TessProgramTensor *tensor = &parts->tensors[i];
        const uint64_t size = tess_dtype_size(tensor->dtype);
        uint64_t bytes, room;
        if (tensor->buffer < 0 || tensor->buffer >= parts->header->buffers.count || tensor->reserved != 0 ||
            (size == 0 && !tess_is_half_byte(tensor->dtype)) || tensor->rank < 0 || tensor->rank > TESS_MAX_RANK)
            return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, tensor->buffer);
        for (axis = 0; axis < TESS_MAX_RANK; ++axis)
            if (tensor->extents[axis] < 0 || (axis >= tensor->rank && tensor->extents[axis] != 0))
                return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, tensor->extents[axis]);
        bytes = bytes_of(tensor);
        room = parts->buffers[tensor->buffer].bytes;
        if (tensor->at > room || bytes > room - tensor->at || (size > 1 && tensor->at % size != 0))
            return tess_mesh_refuse(fault, TESS_PROGRAM_TENSOR, -1, i, tensor->buffer);
    }
    for (i = 0; i < parts->header->arguments.count; ++i) {
        const TessProgramArgument *argument = &parts->arguments[i];
        if (argument->tensor < -1 || argument->tensor >= parts->header->tensors.count || argument->role < TESS_ROLE_INPUT ||
            argument->role > TESS_ROLE_INOUT)
            return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, argument->tensor);
    }
    for (i = 0; i < parts->header->collectives.count; ++i) {
        const TessProgramCollective *collective = &parts->collectives[i];
        if (collective->axis < -1 || collective->axis >= parts->header->axes || collective->reserved != 0)
            return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, collective->axis);
    }
    return TESS_OK;
}

static int32_t check_operation(const TessProgramParts *parts, int32_t i, TessFault *fault) {
    const TessProgramOperation *operation = &parts->operations[i];
    const TessProgramHeader *header = parts->header;
    int32_t below = 0, a;
    switch (operation->kind) {
    case TESS_PROGRAM_RUN: below = header->kernels; break;
    case TESS_PROGRAM_START: below = header->collectives.count; break;
    case TESS_PROGRAM_WAIT: below = i; break;
    case TESS_PROGRAM_FREE: below = header->buffers.count; break;
    default: return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, operation->kind);
    }
    if (operation->index < 0 || operation->index >= below)
        return tess_mesh_refuse(fault, operation->kind == TESS_PROGRAM_WAIT ? TESS_PROGRAM_WAIT_OTHER : TESS_PROGRAM_FIELD, -1, i,
                                operation->index);
    if (operation->first < 0 || operation->count < 0 || operation->first > header->arguments.count ||
        operation->count > header->arguments.count - operation->first)
        return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, operation->first);
    if (operation->kind >= TESS_PROGRAM_WAIT && (operation->first != 0 || operation->count != 0))
        return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, operation->first);
    if (operation->kind == TESS_PROGRAM_START && operation->count != 2)
        return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, operation->count);
    for (a = 0; a < operation->count; ++a) {
        const TessProgramArgument *argument = &parts->arguments[operation->first + a];
        const int start = operation->kind == TESS_PROGRAM_START;
        if (argument->tensor < 0 ? !start : start && argument->role != (a == 0 ? TESS_ROLE_INPUT : TESS_ROLE_OUTPUT))
            return tess_mesh_refuse(fault, TESS_PROGRAM_FIELD, -1, i, argument->tensor);
    }
    return TESS_OK;
}

/* ---- what happens to bytes, one operation after the other */

typedef struct Range {
    uint64_t begin, end;
} Range;

/* Bytes of a buffer that were written: ranges in order, apart from each other. */
typedef struct Written {
    Range *range;
    int32_t count, capacity;
} Written;

typedef struct Use {
    int32_t buffer, writes, start; /* start: the operation that began it */
    Range range;
} Use;

typedef struct Walk {
    const TessProgramParts *parts;
    Written *written; /* by buffer */
    char *live;       /* by buffer: a local one that was written and not freed */
    char *waited;     /* by operation */
    Use *use;         /* in flight */
    int32_t uses;
} Walk;

/* 0 without memory. */
static int add_range(Written *written, Range range) {
    int32_t first = 0, last;
    while (first < written->count && written->range[first].end < range.begin) ++first;
    for (last = first; last < written->count && written->range[last].begin <= range.end; ++last) {
        if (written->range[last].begin < range.begin) range.begin = written->range[last].begin;
        if (written->range[last].end > range.end) range.end = written->range[last].end;
    }
    if (last == first && written->count == written->capacity) {
        const int32_t capacity = written->capacity == 0 ? 4 : 2 * written->capacity;
        Range *grown = realloc(written->range, sizeof(Range) * (size_t)capacity);
        if (grown == NULL) return 0;
        written->range = grown;
        written->capacity = capacity;
    }
    memmove(written->range + first + 1, written->range + last, sizeof(Range) * (size_t)(written->count - last));
    written->count += 1 - (last - first);
    written->range[first] = range;
    return 1;
}

static int has_range(const Written *written, Range range) {
    int32_t i;
    if (range.begin == range.end) return 1;
    for (i = 0; i < written->count; ++i)
        if (written->range[i].begin <= range.begin && range.end <= written->range[i].end) return 1;
    return 0;
}

static int meet(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

static int32_t touch(Walk *walk, int32_t i, int32_t number, int32_t role, int32_t start, TessFault *fault) {
    const TessProgramTensor *tensor = &walk->parts->tensors[number];
    const TessProgramBuffer *buffer = &walk->parts->buffers[tensor->buffer];
    const Range range = {tensor->at, tensor->at + bytes_of(tensor)};
    const int writes = role != TESS_ROLE_INPUT;
    int32_t other;
    for (other = 0; other < walk->uses; ++other) {
        const Use *use = &walk->use[other];
        if (use->buffer == tensor->buffer && use->start != start && (use->writes || writes) && meet(use->range, range))
            return tess_mesh_refuse(fault, TESS_PROGRAM_BUSY, -1, i, tensor->buffer);
    }
    if (role != TESS_ROLE_OUTPUT && !has_range(&walk->written[tensor->buffer], range))
        return tess_mesh_refuse(
            fault, buffer->memory == TESS_PROGRAM_LOCAL && walk->live[tensor->buffer] == 2 ? TESS_PROGRAM_FREED : TESS_PROGRAM_UNDEFINED,
            -1, i, tensor->buffer);
    if (writes) {
        if (buffer->memory == TESS_PROGRAM_INPUT) return tess_mesh_refuse(fault, TESS_PROGRAM_READ_ONLY, -1, i, tensor->buffer);
        if (buffer->memory == TESS_PROGRAM_LOCAL && walk->live[tensor->buffer] != 1) {
            const Range mine = {buffer->at, buffer->at + buffer->bytes};
            for (other = 0; other < walk->parts->header->buffers.count; ++other) {
                const TessProgramBuffer *there = &walk->parts->buffers[other];
                const Range theirs = {there->at, there->at + there->bytes};
                if (walk->live[other] == 1 && meet(mine, theirs))
                    return tess_mesh_refuse(fault, TESS_PROGRAM_OVERLAP, -1, i, tensor->buffer);
            }
            walk->live[tensor->buffer] = 1;
        }
        if (range.end > range.begin && !add_range(&walk->written[tensor->buffer], range))
            return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    }
    if (start >= 0) {
        Use *use = &walk->use[walk->uses++];
        use->buffer = tensor->buffer;
        use->writes = writes;
        use->start = start;
        use->range = range;
    }
    return TESS_OK;
}

/* Reads come before writes: an operation may not read what only it writes. */
static int32_t touch_all(Walk *walk, int32_t i, TessFault *fault) {
    const TessProgramOperation *operation = &walk->parts->operations[i];
    const int32_t start = operation->kind == TESS_PROGRAM_START ? i : -1;
    int32_t pass, a, status;
    for (pass = 0; pass < 2; ++pass) {
        for (a = 0; a < operation->count; ++a) {
            const TessProgramArgument *argument = &walk->parts->arguments[operation->first + a];
            if (argument->tensor < 0 || (argument->role == TESS_ROLE_OUTPUT) != pass) continue;
            status = touch(walk, i, argument->tensor, argument->role, start, fault);
            if (status != TESS_OK) return status;
        }
    }
    return TESS_OK;
}

static int32_t wait_for(Walk *walk, int32_t i, TessFault *fault) {
    const int32_t start = walk->parts->operations[i].index;
    int32_t kept = 0, u;
    if (walk->parts->operations[start].kind != TESS_PROGRAM_START || walk->waited[start])
        return tess_mesh_refuse(fault, TESS_PROGRAM_WAIT_OTHER, -1, i, start);
    walk->waited[start] = 1;
    for (u = 0; u < walk->uses; ++u)
        if (walk->use[u].start != start) walk->use[kept++] = walk->use[u];
    walk->uses = kept;
    return TESS_OK;
}

static int32_t give_back(Walk *walk, int32_t i, TessFault *fault) {
    const int32_t buffer = walk->parts->operations[i].index;
    int32_t u;
    if (walk->parts->buffers[buffer].memory != TESS_PROGRAM_LOCAL || walk->live[buffer] != 1)
        return tess_mesh_refuse(fault, TESS_PROGRAM_FREED, -1, i, buffer);
    for (u = 0; u < walk->uses; ++u)
        if (walk->use[u].buffer == buffer) return tess_mesh_refuse(fault, TESS_PROGRAM_BUSY, -1, i, buffer);
    walk->live[buffer] = 2;
    walk->written[buffer].count = 0;
    return TESS_OK;
}

static int32_t walk_operations(Walk *walk, TessFault *fault) {
    const TessProgramHeader *header = walk->parts->header;
    int32_t i, status = TESS_OK;
    for (i = 0; i < header->buffers.count; ++i) {
        const TessProgramBuffer *buffer = &walk->parts->buffers[i];
        const Range whole = {0, buffer->bytes};
        if ((buffer->memory == TESS_PROGRAM_INPUT || buffer->memory == TESS_PROGRAM_STATE) && buffer->bytes > 0 &&
            !add_range(&walk->written[i], whole))
            return tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    }
    for (i = 0; i < header->operations.count && status == TESS_OK; ++i) {
        status = check_operation(walk->parts, i, fault);
        if (status != TESS_OK) break;
        switch (walk->parts->operations[i].kind) {
        case TESS_PROGRAM_WAIT: status = wait_for(walk, i, fault); break;
        case TESS_PROGRAM_FREE: status = give_back(walk, i, fault); break;
        default: status = touch_all(walk, i, fault); break;
        }
    }
    if (status != TESS_OK) return status;
    for (i = 0; i < header->operations.count; ++i)
        if (walk->parts->operations[i].kind == TESS_PROGRAM_START && !walk->waited[i])
            return tess_mesh_refuse(fault, TESS_PROGRAM_WAIT_OTHER, -1, i, i);
    for (i = 0; i < header->buffers.count; ++i) {
        const Range whole = {0, walk->parts->buffers[i].bytes};
        if (walk->parts->buffers[i].memory == TESS_PROGRAM_OUTPUT && !has_range(&walk->written[i], whole))
            return tess_mesh_refuse(fault, TESS_PROGRAM_RESULT, -1, TESS_NO_NUMBER, i);
    }
    return TESS_OK;
}

int32_t tess_program_check(const TessProgramTable *table, TessFault *fault) {
    TessProgramParts parts;
    Walk walk;
    int32_t status, i;
    size_t buffers, operations;
    if (tess_mesh_bad_fault(fault)) return TESS_FAULT_SIZE;
    status = tess_program_open(table, &parts, fault);
    if (status == TESS_OK) status = check_buffers(&parts, fault);
    if (status == TESS_OK) status = check_tensors(&parts, fault);
    if (status != TESS_OK) return status;
    buffers = (size_t)parts.header->buffers.count;
    operations = (size_t)parts.header->operations.count;
    walk.parts = &parts;
    walk.written = calloc(buffers + 1, sizeof(Written));
    walk.live = calloc(buffers + 1, 1);
    walk.waited = calloc(operations + 1, 1);
    walk.use = malloc(sizeof(Use) * (2 * operations + 1));
    walk.uses = 0;
    if (walk.written != NULL && walk.live != NULL && walk.waited != NULL && walk.use != NULL) status = walk_operations(&walk, fault);
    else status = tess_mesh_refuse_plainly(fault, TESS_MESH_MEMORY);
    for (i = 0; walk.written != NULL && i < parts.header->buffers.count; ++i) free(walk.written[i].range);
    free(walk.written);
    free(walk.live);
    free(walk.waited);
    free(walk.use);
    return status;
}

TessCollective tess_program_collective(const TessProgramCollective *said) {
    TessCollective collective = tess_collective(TESS_ALL_REDUCE);
    collective.flags = said->flags;
    collective.kind = said->kind;
    collective.dtype = said->dtype;
    collective.monoid = said->monoid;
    collective.chunks = said->chunks;
    collective.peer = said->peer;
    collective.distance = said->distance;
    collective.id = said->id;
    collective.count = said->count;
    return collective;
}

int tess_program_fits(const TessProgramParts *parts, const TessProgramOperation *operation, const TessTask *task) {
    int64_t rows[2];
    int32_t a;
    tess_mesh_rows_of(task, &rows[0], &rows[1]);
    for (a = 0; a < 2; ++a) {
        const int32_t number = parts->arguments[operation->first + a].tensor;
        const uint64_t wanted = (uint64_t)rows[a] * (uint64_t)task->collective.count * task->element;
        if (number < 0) {
            if (rows[a] > 0) return 0;
            continue;
        }
        if (parts->tensors[number].dtype != task->collective.dtype || (rows[a] > 0 && bytes_of(&parts->tensors[number]) != wanted))
            return 0;
    }
    return 1;
}

int32_t tess_program_fits_mesh(const TessProgramHeader *header, int32_t rank, int32_t ranks) {
    int64_t product = 1;
    int32_t a;
    for (a = 0; a < header->axes && product <= TESS_MESH_MAX_RANKS; ++a) product *= header->extents[a];
    return (header->rank < 0 || header->rank == rank) && (header->axes == 0 || product == ranks);
}
