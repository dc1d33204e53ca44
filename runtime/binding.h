/** A call's arguments as they are tied to the kernel's spec. For this library's own sources. */
#ifndef TESSERA_BINDING_H
#define TESSERA_BINDING_H

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
    int64_t packed_bytes;           /**< of the elements that a packing kernel writes; -1 for any other */
    uint64_t features;              /**< that the call may use */
    int sizing;                     /**< 1 where nothing but packed_bytes is asked for: what is written may be null */
    int16_t carrier[TESS_MAX_DIMS]; /**< tess_abi1_place of the axis that gave the dim, or -1 */
    TessSpan spans[TESS_MAX_TENSORS];
} TessBinding;

/** Slots after the workspace pointer. */
enum { TESS_TAIL_SHARED_BYTES = 1, TESS_TAIL_WORKER_BYTES = 2, TESS_TAIL_WORKERS = 3, TESS_TAIL_FEATURES = 4 };

static inline int tess_abi1_fault(int kind, int64_t tensor, int64_t axis, int64_t detail) {
    return tess_abi1_status(kind, (int)tensor, (int)axis, detail);
}

static inline int tess_abi1_share_memory(TessSpan a, TessSpan b) {
    return a.bytes != 0 && b.bytes != 0 && (b.begin - a.begin < a.bytes || a.begin - b.begin < b.bytes);
}

/** Whether the tensor is packed (packed.h). */
static inline int tess_abi1_is_packed(const TessBinding *b, int64_t tensor) {
    return (tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_PACKED) != 0;
}

#endif
