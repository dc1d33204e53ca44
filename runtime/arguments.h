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

/** Checks all but where the data is, given spec, args, frame and sizing; fills the frame (no workspace
 *  yet), the tail and the spans (relative to the data). Features come first: not even a kernel's
 *  plan may run without them. */
int tess_abi1_bind(TessBinding *binding, const int64_t *parameter_bits, const TessContext *context);

/** Whether the tensor is packed (packed.c). */
static inline int tess_abi1_is_packed(const TessBinding *b, int64_t tensor) {
    return (tess_spec_tensor(b->spec, tensor)[TESS_SPEC_TENSOR_FLAGS] & TESS_FLAG_PACKED) != 0;
}

/** Checks the descriptor of a packed tensor and, where the kernel reads it, its header, which may be
 *  anything. */
int tess_abi1_check_packed(const TessBinding *binding, int64_t tensor);

/** The extent of the operand that the header of a packed tensor states. */
int64_t tess_abi1_packed_extent(const TessBinding *binding, int64_t tensor, int64_t axis);

/** Checks the bytes of a packed tensor against the dims, and sets its span and its slot. */
int tess_abi1_bind_packed(TessBinding *binding, int64_t tensor, int64_t slot);

/** Takes the header off what the kernel is to write; puts it there once all is written. */
void tess_abi1_clear_packed(const TessBinding *binding);
void tess_abi1_head_packed(const TessBinding *binding);

/** Checks data pointers, alignment and overlap after tess_abi1_bind, and makes the spans
 *  absolute. */
int tess_abi1_check_data(TessBinding *binding);

#endif
