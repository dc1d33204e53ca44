/** A kernel's arguments as they are tied to its spec, and the plan that comes of it. For this library's own sources. */
#ifndef TESSERA_BINDING_H
#define TESSERA_BINDING_H

#include "runtime/abi/kernel.h"

/** Slots of a frame that a run of a plan copies to its stack; a plan has a second frame where there are more. */
enum { TESS_RUN_WORDS = 256 };

/** A tensor of a plan. Addresses wrap, so that no descriptor, however wrong, is undefined behaviour. */
typedef struct TessPlanTensor {
    uint64_t data;   /**< when the plan was made */
    uint64_t first;  /**< bytes from the data to the first element; for OpenCL 0 */
    uint64_t begin;  /**< bytes from the data to the first byte that is touched */
    uint64_t bytes;  /**< from there on to the last one; 0: there are no elements */
    uint32_t mask;   /**< alignment of the first element, less 1 */
    int32_t slot;    /**< of the data in the frame */
    int32_t written; /**< 1 where the kernel writes */
    int32_t packed;  /**< its number among the packed ones, or -1 */
} TessPlanTensor;

/** What tess_plan_make leaves in the caller's memory. Behind it: the tensors, the frame, for each dim the place that gave its extent (a
 *  tensor * 16 + an axis, or -1), and for each packed tensor the header that it must have. At the end a
 *  second frame where the first has more than TESS_RUN_WORDS. */
struct TessPlan {
    uint64_t mark; /**< of the plan's address, so that one that was moved is noticed */
    const int64_t *spec;
    TessBody body;
    uint64_t features; /**< that the call may use */
    uint64_t workspace_bytes;
    int64_t tail;         /**< slot of the workspace pointer */
    int64_t packed_bytes; /**< of the elements that a packing kernel writes; -1 for any other */
    TessDevice device;
    int32_t tensors, parameters, workers;
    int32_t has_parameters; /**< 1: the frame holds some */
    int32_t busy;           /**< 1 while a run uses the plan's own frame */
    int32_t reserved;
};

static inline TessPlanTensor *tess_plan_tensors(const TessPlan *plan) { return (TessPlanTensor *)(uintptr_t)(plan + 1); }

static inline int64_t *tess_plan_frame(const TessPlan *plan) {
    return (int64_t *)(uintptr_t)(tess_plan_tensors(plan) + plan->spec[TESS_SPEC_N_TENSORS]);
}

static inline int64_t *tess_plan_carriers(const TessPlan *plan) { return tess_plan_frame(plan) + plan->spec[TESS_SPEC_FRAME_WORDS]; }

static inline uint8_t *tess_plan_header(const TessPlan *plan, int64_t packed) {
    return (uint8_t *)(tess_plan_carriers(plan) + plan->spec[TESS_SPEC_N_DIMS]) + packed * TESS_PACKED_HEADER_BYTES;
}

/** Where the frame is copied to for a run, if the stack is not to have it. */
static inline int64_t *tess_plan_own_frame(const TessPlan *plan) {
    return (int64_t *)(uintptr_t)tess_plan_header(plan, plan->spec[TESS_SPEC_N_PACKED]);
}

/** Arguments on their way into a plan. */
typedef struct TessBinding {
    const int64_t *spec;
    const TessTensor *const *args;
    TessPlan *plan;
    TessPlanTensor *tensors; /**< the plan's */
    int64_t *frame;          /**< the plan's */
    int64_t *carrier;        /**< the plan's */
    TessFault *fault;        /**< written when something is wrong */
    int sizing;              /**< 1 where nothing but packed_bytes is asked for: what is written may be null */
} TessBinding;

/** A status, with its details written down. */
static inline int32_t tess_abi2_fault(TessFault *fault, int32_t kind, int64_t argument, int64_t dimension, int64_t expected, int64_t got) {
    fault->kind = kind;
    fault->argument = (int32_t)argument;
    fault->dimension = (int32_t)dimension;
    fault->other_argument = -1;
    fault->other_dimension = -1;
    fault->expected = expected;
    fault->got = got;
    return tess_abi2_status(kind, (int32_t)argument);
}

/** The same without numbers. */
static inline int32_t tess_abi2_plain_fault(TessFault *fault, int32_t kind, int64_t argument) {
    return tess_abi2_fault(fault, kind, argument, -1, TESS_NO_NUMBER, TESS_NO_NUMBER);
}

/** Memory at an address that is no multiple of `alignment`, a power of two: what it got is the largest one of which it is a multiple. */
static inline int32_t tess_abi2_misaligned(TessFault *fault, int32_t kind, int64_t argument, uint64_t address, uint64_t alignment) {
    const uint64_t rest = address & (alignment - 1);
    return tess_abi2_fault(fault, kind, argument, -1, (int64_t)alignment, (int64_t)(rest & (0u - rest)));
}

static inline int tess_abi2_share_memory(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a_bytes != 0 && b_bytes != 0 && (b - a < a_bytes || a - b < b_bytes);
}

#endif
