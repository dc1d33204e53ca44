/** A program of a mesh as data: run kernel i, start collective j, wait, free. A table without addresses, which may lie in a file; kernels
 *  are given when it is made ready. C99 and C++20; the library is tessera_mesh.
 *
 *      tess_program_verify(&table, 1, ranks, &fault);                       once, by who made it or who does not trust it
 *      tess_program_make(&table, kernels, n, mesh, &program, &fault);       on every rank, in the same order
 *      tess_mesh_run(program, buffers, arena, &context, &fault);            as often as wanted; allocates nothing after the first run
 *      tess_program_destroy(program);
 *
 *  One table serves all ranks where they run the same; a pipeline has one for each. Numbers have the machine's byte order; offsets are in
 *  bytes. Which bytes a table has: a TessProgramHeader, and the five lists that it names, each a row of the structs below. */
#ifndef TESSERA_MESH_PROGRAM_H
#define TESSERA_MESH_PROGRAM_H

#include "runtime/mesh/mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of tables that this library makes ready. */
#define TESS_PROGRAM_TABLE 1

/** A list in a table: `count` structs from byte `at` on, which is a multiple of 8. */
typedef struct TessProgramList {
    uint64_t at;
    int32_t count;
    int32_t reserved; /**< 0 */
} TessProgramList;

/** The first bytes of a table, which are aligned to 8. */
typedef struct TessProgramHeader {
    char magic[8];                       /**< "TESSPROG" */
    uint32_t version;                    /**< TESS_PROGRAM_TABLE */
    uint32_t header;                     /**< sizeof(TessProgramHeader) */
    uint64_t bytes;                      /**< of the whole table */
    uint64_t hash;                       /**< of the program; the same in the tables of all its ranks */
    uint64_t arena_bytes;                /**< memory for local buffers, aligned to 64 */
    int32_t kernels;                     /**< how many are given when it is made ready */
    int32_t rank;                        /**< whose table it is; -1: every rank's */
    int32_t axes;                        /**< of the mesh, 0 ..= TESS_MESH_MAX_AXES; 0: any number of ranks, without axes */
    int32_t extents[TESS_MESH_MAX_AXES]; /**< 0 beyond the axes */
    int32_t reserved;                    /**< 0 */
    TessProgramList buffers, tensors, arguments, collectives, operations;
} TessProgramHeader;

/** Whose memory a buffer is, and what is done with it. */
typedef enum TessProgramMemory {
    TESS_PROGRAM_INPUT = 0,  /**< the caller's, read */
    TESS_PROGRAM_OUTPUT = 1, /**< the caller's, written before it is read, whole at the end */
    TESS_PROGRAM_STATE = 2,  /**< the caller's, read and written */
    TESS_PROGRAM_LOCAL = 3   /**< in the arena, from the first write to its `free` or the end */
} TessProgramMemory;

typedef struct TessProgramBuffer {
    uint64_t bytes;
    uint64_t at;      /**< in the arena, a multiple of 64, of a local one; else 0 */
    int32_t memory;   /**< a TessProgramMemory */
    int32_t reserved; /**< 0 */
} TessProgramBuffer;

/** A row-major tensor without gaps in a buffer. */
typedef struct TessProgramTensor {
    int32_t buffer, dtype, rank;
    int32_t reserved; /**< 0 */
    uint64_t at;      /**< first byte in the buffer, aligned to the element */
    int64_t extents[TESS_MAX_RANK];
} TessProgramTensor;

/** What an operation does with a tensor. */
typedef struct TessProgramArgument {
    int32_t tensor; /**< -1: none, of a collective without an input or a result on this rank */
    int32_t role;   /**< TESS_ROLE_INPUT, _OUTPUT or _INOUT */
} TessProgramArgument;

/** A collective as TessCollective says, without memory. */
typedef struct TessProgramCollective {
    uint32_t flags;
    int32_t kind;
    int32_t axis; /**< ranks along this axis; -1: all */
    int32_t dtype, monoid, chunks, peer, distance;
    uint32_t id;
    uint32_t reserved; /**< 0 */
    int64_t count;
} TessProgramCollective;

typedef enum TessProgramOperationKind {
    TESS_PROGRAM_RUN = 1,   /**< kernel `index` with arguments [first, first + count) */
    TESS_PROGRAM_START = 2, /**< collective `index`; argument `first` is its input, first + 1 its result, count 2 */
    TESS_PROGRAM_WAIT = 3,  /**< for the collective that operation `index` started; each is waited for once */
    TESS_PROGRAM_FREE = 4   /**< local buffer `index`: its bytes may be another's */
} TessProgramOperationKind;

typedef struct TessProgramOperation {
    int32_t kind, index, first, count; /**< 0 where they say nothing */
} TessProgramOperation;

/** A table in memory, aligned to 8. */
typedef struct TessProgramTable {
    const void *data;
    uint64_t bytes;
} TessProgramTable;

/** Checks a table by itself, whoever made it: TESS_PROGRAM_FORMAT, _VERSION, _FIELD, _TENSOR, _UNDEFINED, _READ_ONLY, _BUSY,
 *  _WAIT_OTHER, _FREED, _OVERLAP, _RESULT. The fault's `expected` is the operation (of _FIELD and _TENSOR the entry of a
 *  list), `got` the number at fault: a buffer, or what the field has. Also TESS_MESH_MEMORY. */
int32_t tess_program_check(const TessProgramTable *table, TessFault *fault);

/** Checks the tables of all ranks, each by itself and then together, by running their messages as if no engine held any: a send is done
 *  when its receive is there. `count` is 1 where all ranks have the same, else `ranks`. TESS_PROGRAM_MESH where the tables are not of one
 *  program and this many ranks; TESS_PROGRAM_ORDER where two ranks do not do the same in the same order, TESS_PROGRAM_DEADLOCK where no
 *  rank can go on; then `expected` is the operation and `got` the rank that waits. A collective that cannot be started (TESS_MESH_CHUNKS
 *  and what else tess_mesh_start refuses) gives that status. */
int32_t tess_program_verify(const TessProgramTable *tables, int32_t count, int32_t ranks, TessFault *fault);

/** A kernel of a program: one of the ABI, or a function. */
typedef struct TessProgramKernel {
    uint32_t size;            /**< sizeof(TessProgramKernel) */
    uint32_t flags;           /**< 0 */
    const TessKernel *kernel; /**< with it, plans are made of it for each operation; or null */
    const void *parameters;   /**< the kernel's, which must live as long as the program; or null */
    /** Without a kernel: called with the address of each argument's first byte. A status, or 0. */
    int32_t (*run)(void *state, void *const *data, const TessContext *context);
    void *state;
} TessProgramKernel;

/** A table that is ready to run on a mesh. */
typedef struct TessProgram TessProgram;

/** Makes a table ready: copies and checks it, makes a group of the mesh for each axis, and a plan for each run of a kernel of the ABI. All
 *  ranks of the mesh make the same programs in the same order. The statuses of tess_program_check; TESS_PROGRAM_MESH where the mesh has
 *  other extents or this is another rank's table; TESS_PROGRAM_KERNEL where kernels are missing or have another number of tensors or other
 *  roles; those of tess_plan_make and of tess_mesh_group. `context` is for plans and may be null. */
int32_t tess_program_make(const TessProgramTable *table, const TessProgramKernel *kernels, int32_t count, TessMesh *mesh,
                          const TessContext *context, TessProgram **program, TessFault *fault);

/** Bytes of workspace that the context of a run needs. */
uint64_t tess_program_workspace(const TessProgram *program);

/** Runs it. buffers[i] is the memory of buffer i, aligned to 64 bytes, and is not looked at for local ones; `arena` has arena_bytes,
 *  aligned to 64.
 *  `context` goes to every kernel and may be null. TESS_NULL_DATA and TESS_MISALIGNED with the buffer as argument, or none for the arena.
 *  Where a kernel fails, its status is returned, and the mesh is broken for all ranks: the others get TESS_MESH_LOST. In the faults of
 *  meshes `expected` is the operation's place in the table. */
int32_t tess_mesh_run(TessProgram *program, void *const *buffers, void *arena, const TessContext *context, TessFault *fault);

/** Before the mesh is destroyed. Null is none. */
void tess_program_destroy(TessProgram *program);

#ifdef __cplusplus
}
#endif

#endif
