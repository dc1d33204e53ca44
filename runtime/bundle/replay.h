/** Runs what a bundle recorded (docs/bundle.md, "replay") and compares the hashes of what comes out. Bits depend on neither threads nor
 *  runs nor processors of one target, so a difference is a defect of the machine or the code. */
#ifndef TESSERA_BUNDLE_REPLAY_H
#define TESSERA_BUNDLE_REPLAY_H

#include "runtime/bundle/bundle.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most tensors and dims of a kernel, and most bytes of one run. */
#define TESS_REPLAY_MAX_TENSORS 512
#define TESS_REPLAY_MAX_BYTES (UINT64_C(1) << 33)

typedef enum TessReplayOutcome {
    TESS_REPLAY_EQUAL = 0,
    TESS_REPLAY_DIFFERENT = 1,
    TESS_REPLAY_NEW = 2 /**< nothing is recorded for this output by code with these bits */
} TessReplayOutcome;

/** One output of one run. Texts live until the report returns. */
typedef struct TessReplayOutput {
    uint32_t size, run;
    const char *kernel, *argument;
    const char *target, *bits;  /**< of the code that ran */
    int32_t outcome;            /**< a TessReplayOutcome */
    char got[72], expected[72]; /**< "sha256:…"; expected is "" where there is none */
} TessReplayOutput;

typedef void (*TessReplayReport)(void *state, const TessReplayOutput *output);

/** Runs all that the bundle recorded on this processor, with the features that it was opened with. `context` may bring a pool and threads;
 *  its workspace, fault and features are not looked at. Memory comes from the system, and is given back. Calls `report` for each output.
 *  TESS_OK where everything ran, whatever the outcomes; TESS_BUNDLE_REPLAY where something cannot be run; TESS_NO_SUCH where nothing is
 *  recorded; a kernel's status. */
int32_t tess_bundle_replay(const TessBundle *bundle, const TessContext *context, TessReplayReport report, void *state,
                           TessBundleError *error);

/** The same of a record that is not in the bundle: the texts of expected.json and of inputs.safetensors, which may be null. A run whose
 *  list of outputs is empty reports what comes out. */
int32_t tess_bundle_replay_record(const TessBundle *bundle, const char *expected, uint64_t expected_bytes, const void *inputs,
                                  uint64_t input_bytes, const TessContext *context, TessReplayReport report, void *state,
                                  TessBundleError *error);

#ifdef __cplusplus
}
#endif
#endif
