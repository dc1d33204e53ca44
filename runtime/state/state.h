/** What every function of tessera_state says when it does not do what it was asked: a status, and a sentence for people. C99 and C++20. */
#ifndef TESSERA_STATE_H
#define TESSERA_STATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Numbers are never used again. */
typedef enum TessStateStatus {
    TESS_STATE_OK = 0,
    TESS_STATE_ARGUMENT = 1,  /**< a null pointer, or a number outside of what is allowed */
    TESS_STATE_MEMORY = 2,    /**< the system gives no memory or no thread */
    TESS_STATE_SEQUENCE = 3,  /**< no such sequence: never opened, or closed */
    TESS_STATE_SEQUENCES = 4, /**< as many sequences are open as there may be */
    TESS_STATE_FULL = 5,      /**< not enough pages are free; nothing was changed */
    TESS_STATE_LENGTH = 6,    /**< a length that the sequence does not have, or may not have */
    TESS_STATE_RESERVED = 7,  /**< tokens are reserved: commit or truncate first */
    TESS_STATE_PINNED = 8,    /**< a step that was not released reads the sequence */
    TESS_STATE_MOVING = 9,    /**< its pages are on their way: wait */
    TESS_STATE_OUT = 10,      /**< its pages are outside: prefetch */
    TESS_STATE_LOST = 11,     /**< what was outside is missing or damaged; the sequence can only be closed */
    TESS_STATE_STEPS = 12,    /**< as many steps run as there may be: release one */
    TESS_STATE_TIME = 13,     /**< not done within the time that was given */
    TESS_STATE_SPACE = 14,    /**< no room outside: pages, or bytes of the disk */
    TESS_STATE_FILE = 15,     /**< the system refuses to read or write a file */
    TESS_STATE_BUSY = 16,     /**< another cache uses the folder */
    TESS_STATE_DAMAGED = 17,  /**< a file is cut short, or its checksum is another */
    TESS_STATE_FOREIGN = 18,  /**< a file that was not written by tessera_state, or by a later version */
    TESS_STATE_MISMATCH = 19  /**< a file holds other tensors than were asked for */
} TessStateStatus;

/** What is wrong: what it is about, what was expected and what came, what there is, and what to do. */
typedef struct TessStateError {
    TessStateStatus status;
    char text[508]; /**< sentences, zero-terminated, printable ASCII */
} TessStateError;

/** The stable name of a status, such as "state.full"; "ok" for none, "state.unknown" for what is no status. */
const char *tess_state_status_id(TessStateStatus status);

/** A sentence that says what a status means and what to do. */
const char *tess_state_status_message(TessStateStatus status);

#ifdef __cplusplus
}
#endif
#endif
