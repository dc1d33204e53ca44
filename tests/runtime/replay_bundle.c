/* What a bundle recorded, run again: replay_bundle BUNDLE. For processors that the generator does not run on, under an emulator. Prints a
 * line for each output; exits with 1 where one is not equal, 2 where it cannot be run. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/bundle/replay.h"

static void report(void *state, const TessReplayOutput *output) {
    static const char *const words[] = {"equal", "different", "new"};
    if (output->outcome != TESS_REPLAY_EQUAL) ++*(int *)state;
    printf("%s: run %u, %s.%s: %s %s\n", output->target, output->run, output->kernel, output->argument, words[output->outcome],
           output->got);
}

int main(int count, char **words) {
    TessBundleError error = {0, ""};
    TessBundle *bundle = NULL;
    uint64_t bytes = 0;
    void *memory;
    int unequal = 0;
    int32_t status;
    if (count != 2) return 2;
    status = tess_bundle_bytes(words[1], &bytes, &error);
    memory = malloc(bytes + 8);
    if (status == TESS_OK) status = tess_bundle_open(words[1], NULL, memory, bytes, &bundle, &error);
    if (status == TESS_OK) status = tess_bundle_replay(bundle, NULL, report, &unequal, &error);
    if (status != TESS_OK) printf("%s: %s\n", tess_status_kind(status), error.text);
    tess_bundle_close(bundle);
    free(memory);
    return status != TESS_OK ? 2 : unequal != 0;
}
