/** States of training in one file: named tensors, the step, the seed, and the hash of what they are states of. C99 and C++20; the library
 *  is tessera_state.
 *
 *  A file is there whole or not at all: it is written beside its name, forced to the disk and renamed, so whoever is killed while saving
 *  leaves the file that was there before. It is a file of safetensors, whose metadata have the rest and a checksum over everything. */
#ifndef TESSERA_STATE_CHECKPOINT_H
#define TESSERA_STATE_CHECKPOINT_H

#include "runtime/abi/tessera.h"
#include "runtime/state/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a semantic hash with its zero: "sha256:" and 64 digits, as manifests of kernels have it, have room. */
enum { TESS_STATE_HASH_BYTES = 80 };

/** What is stored beside the tensors. */
typedef struct TessStateHead {
    char semantic_hash[TESS_STATE_HASH_BYTES]; /**< of the algorithm that makes a step, zero-terminated; "" for none */
    int64_t step;                              /**< that was made last */
    uint64_t seed;
} TessStateHead;

/** A tensor by its name: on the host, row-major without gaps, of a type that safetensors has a name for (TESS_F32, TESS_F64, TESS_F16,
 *  TESS_BF16, TESS_I8, TESS_U8, TESS_I32, TESS_I64, TESS_BOOL, and floats of one byte but TESS_F8E4M3). */
typedef struct TessNamedTensor {
    const char *name; /**< UTF-8, not empty */
    TessTensor tensor;
} TessNamedTensor;

/** Writes a file in place of the one that is there. TESS_STATE_ARGUMENT: a name comes twice or is "__metadata__", a tensor is not as above,
 *  what is there is no regular file;
 *  TESS_STATE_MEMORY, TESS_STATE_FILE, TESS_STATE_SPACE; TESS_STATE_BUSY where somebody else writes the same file now. After any of them
 *  the file that was there before is still there, but for a folder that could not be forced to the disk. */
TessStateStatus tess_state_save(const char *path, const TessStateHead *head, const TessNamedTensor *tensors, int32_t count,
                                TessStateError *error);

/** Reads a file into tensors that the caller has made. *head is filled in; where its semantic hash is not "" on entry, the file has to
 *  have the same one. The file has to have exactly these names, types and extents. Nothing is written to the tensors before the whole file
 *  was found right. TESS_STATE_FILE, TESS_STATE_MEMORY; TESS_STATE_DAMAGED where it is cut or its checksum is another; TESS_STATE_FOREIGN;
 *  TESS_STATE_MISMATCH. */
TessStateStatus tess_state_load(const char *path, TessStateHead *head, const TessNamedTensor *tensors, int32_t count,
                                TessStateError *error);

/** A tensor of a file, for who does not know them beforehand. */
typedef struct TessStoredTensor {
    const char *name;
    int32_t dtype; /**< a TessDType */
    int32_t rank;
    int64_t extents[TESS_MAX_RANK];
} TessStoredTensor;

/** Looks through a file: fills in *head, which may be null, and calls `each` for every tensor with `state`, in the order of the file, until
 *  it gives something else than 0. `name` is valid during the call. The checksum is compared first. Statuses as of tess_state_load. */
TessStateStatus tess_state_look(const char *path, TessStateHead *head, int32_t (*each)(void *state, const TessStoredTensor *tensor),
                                void *state, TessStateError *error);

#ifdef __cplusplus
}
#endif
#endif
