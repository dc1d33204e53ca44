/** Arguments against the spec: what tess_abi1_run checks before it plans, and the frame that it
 *  fills on the way. For this library's own sources. */
#ifndef TESSERA_ARGUMENTS_H
#define TESSERA_ARGUMENTS_H

#include "runtime/kernel.h"

/** Bytes [begin, begin + bytes); addresses wrap, so that no descriptor, however wrong, is
 *  undefined behaviour. */
typedef struct TessSpan {
    uint64_t begin, bytes;
} TessSpan;

/** A call's arguments tied to its kernel. */
typedef struct TessBinding {
    const int64_t *spec;
    const TessTensorDesc *const *args;
    int64_t *frame;                 /**< TESS_MAX_FRAME slots */
    int64_t tail;                   /**< slot of the workspace pointer */
    int16_t carrier[TESS_MAX_DIMS]; /**< tess_abi1_place of the axis that gave the dim, or -1 */
    TessSpan spans[TESS_MAX_TENSORS];
} TessBinding;

/** Slots after the workspace pointer. */
enum {
    TESS_TAIL_SHARED_BYTES = 1,
    TESS_TAIL_WORKER_BYTES = 2,
    TESS_TAIL_WORKERS = 3,
    TESS_TAIL_FEATURES = 4
};

static inline int tess_abi1_fault(int kind, int64_t tensor, int64_t axis, int64_t detail) {
    return tess_abi1_status(kind, (int)tensor, (int)axis, detail);
}

static inline int tess_abi1_share_memory(TessSpan a, TessSpan b) {
    return a.bytes != 0 && b.bytes != 0 &&
           (b.begin - a.begin < a.bytes || a.begin - b.begin < b.bytes);
}

/** Checks all but where the data is, given spec, args and frame; fills the frame (no workspace
 *  yet), the tail and the spans (relative to the data). Features come first: not even a kernel's
 *  plan may run without them. */
int tess_abi1_bind(TessBinding *binding, const int64_t *parameter_bits, const TessContext *context);

/** Checks data pointers, alignment and overlap after tess_abi1_bind, and makes the spans
 *  absolute. */
int tess_abi1_check_data(TessBinding *binding);

#endif
