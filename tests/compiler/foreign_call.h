/* What goes over the socket between foreign.cpp and foreign_main.c: a call, its parameters, and each tensor with its bytes;
 * then a reply and the bytes of each tensor. Both sides are little-endian. */
#ifndef TESSERA_TESTS_FOREIGN_CALL_H
#define TESSERA_TESTS_FOREIGN_CALL_H

#include <stdint.h>

typedef struct ForeignCall {
    int32_t kernel, threads, at_end, tensors, parameters, reserved;
} ForeignCall;

typedef struct ForeignTensor {
    int64_t extents[8], strides[8];
    int32_t dtype, rank, strided, reserved;
    uint64_t bytes, gap, byte_offset;
} ForeignTensor;

typedef struct ForeignReply {
    int32_t status;
    int32_t damaged; /* the tensor beside which memory has changed, n_tensors for the workspace, or -1 */
} ForeignReply;

#endif
