#include "vad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"

enum { TENSORS = 20, CONTEXT = 64, WIDTH = 128 };

struct Vad {
    TessKernel kernel;
    TessTensor tensors[TENSORS];
    const TessTensor *table[TENSORS];
    TessContext context;
    TessBundle *bundle;
    void *bundle_memory, *workspace_memory;
    int64_t pieces[2]; /* extents of samples: one piece */
    float samples[VAD_SAMPLES], before[CONTEXT], h[WIDTH], c[WIDTH], probability;
};

/* The tensor of that name: one of ours, or a weight of the bundle. */
static int32_t bind(Vad *vad, const char *name, int32_t rank, TessTensor *tensor, TessBundleError *error) {
    static const int64_t context[] = {CONTEXT}, width[] = {WIDTH};
    if (strcmp(name, "samples") == 0) *tensor = tess_dense(vad->samples, TESS_F32, rank, vad->pieces);
    else if (strcmp(name, "context") == 0) *tensor = tess_dense(vad->before, TESS_F32, rank, context);
    else if (strcmp(name, "h") == 0) *tensor = tess_dense(vad->h, TESS_F32, rank, width);
    else if (strcmp(name, "c") == 0) *tensor = tess_dense(vad->c, TESS_F32, rank, width);
    else if (strcmp(name, "probability") == 0) *tensor = tess_dense(&vad->probability, TESS_F32, rank, vad->pieces);
    else {
        char weight[64]; /* the argument in the place of a packed one, "w.packed", is called w */
        snprintf(weight, sizeof weight, "%.*s", (int)strcspn(name, "."), name);
        return tess_bundle_weight(vad->bundle, "silero_vad", weight, tensor, error);
    }
    return TESS_OK;
}

/* The kernel, its arguments and its workspace. */
static int32_t prepare(Vad *vad, const char *path, TessBundleError *error) {
    TessKernelInfo info;
    uint64_t bytes = 0;
    int32_t i, status = tess_bundle_bytes(path, &bytes, error);
    if (status != TESS_OK) return status;
    vad->bundle_memory = malloc(bytes);
    if (!vad->bundle_memory) return TESS_BUNDLE_MEMORY;
    status = tess_bundle_open(path, NULL, vad->bundle_memory, bytes, &vad->bundle, error);
    if (status == TESS_OK) status = tess_bundle_kernel(vad->bundle, "silero_vad", &vad->kernel, error);
    info.size = sizeof info;
    if (status == TESS_OK) status = tess_kernel_info(&vad->kernel, &info);
    for (i = 0; status == TESS_OK && i < info.tensors && i < TENSORS; ++i) {
        TessTensorInfo tensor;
        tensor.size = sizeof tensor;
        status = tess_kernel_tensor(&vad->kernel, i, &tensor);
        if (status == TESS_OK) status = bind(vad, tensor.name, tensor.rank, &vad->tensors[i], error);
        vad->table[i] = &vad->tensors[i];
    }
    if (status == TESS_OK) status = tess_call_workspace(&vad->kernel, vad->table, &vad->context, &vad->context.workspace_bytes);
    if (status != TESS_OK) return status;
    vad->workspace_memory = malloc(vad->context.workspace_bytes + TESS_WORKSPACE_ALIGNMENT);
    if (!vad->workspace_memory) return TESS_BUNDLE_MEMORY;
    vad->context.workspace =
        (char *)vad->workspace_memory +
        (TESS_WORKSPACE_ALIGNMENT - (uintptr_t)vad->workspace_memory % TESS_WORKSPACE_ALIGNMENT) % TESS_WORKSPACE_ALIGNMENT;
    return TESS_OK;
}

Vad *vad_open(const char *bundle, char *error, unsigned bytes) {
    TessBundleError said;
    Vad *vad = calloc(1, sizeof *vad);
    int32_t status;
    said.text[0] = '\0';
    if (vad) {
        vad->kernel = tess_kernel(), vad->context = tess_context();
        vad->pieces[0] = 1, vad->pieces[1] = VAD_SAMPLES;
        status = prepare(vad, bundle, &said);
        if (status == TESS_OK) return vad;
        vad_close(vad);
    }
    snprintf(error, bytes, "%s", said.text[0] ? said.text : "the system has no memory left, or the bundle is of another network");
    return NULL;
}

float vad_step(Vad *vad, const float samples[VAD_SAMPLES]) {
    memcpy(vad->samples, samples, sizeof vad->samples);
    return tess_call(&vad->kernel, vad->table, NULL, &vad->context) == TESS_OK ? vad->probability : -1.0f;
}

void vad_reset(Vad *vad) { memset(vad->before, 0, sizeof vad->before), memset(vad->h, 0, sizeof vad->h), memset(vad->c, 0, sizeof vad->c); }

void vad_close(Vad *vad) {
    if (!vad) return;
    tess_bundle_close(vad->bundle);
    free(vad->bundle_memory), free(vad->workspace_memory), free(vad);
}
