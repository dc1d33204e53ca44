/* Runs an imported model once:
 *
 *     run_<model> BUNDLE [DIM=EXTENT | TENSOR=FILE | PARAMETER=NUMBER]...
 *
 * A file of an input has its elements, row-major and little-endian; an input without one is zeros. The file of an output is written.
 * Printed are each output's extents, the SHA-256 of its elements and the first of them. Weights lie in the bundle, which is mapped. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "runtime/bundle/bundle.h"
#include "runtime/crypto/sha256.h"

typedef struct Argument {
    TessTensorInfo info;
    TessTensor tensor;
    int64_t extents[TESS_MAX_RANK];
    uint64_t bytes;
    int is_weight;
    const char *file; /* or null */
} Argument;

static void fail(const char *subject, const char *text) {
    fprintf(stderr, "error[example]: %s: %s\n", subject, text);
    exit(1);
}

static void check(int32_t status, const char *subject, const char *text) {
    if (status != TESS_OK) fail(subject, text);
}

static void *zeros(uint64_t bytes) {
    void *made = calloc(1, bytes ? bytes : 1);
    if (!made) fail("memory", "the system has no memory left; choose smaller extents");
    return made;
}

/* What a kernel takes: a weight is the bundle's, packed where its code wants that. */
static void find_argument(const TessBundle *bundle, const TessKernel *kernel, int32_t index, Argument *made) {
    TessBundleError error;
    int32_t status;
    memset(made, 0, sizeof *made);
    made->info.size = sizeof made->info;
    check(tess_kernel_tensor(kernel, index, &made->info), MODEL_NAME, "its description is broken");
    if (made->info.role == TESS_ROLE_OUTPUT) return;
    status = tess_bundle_weight(bundle, MODEL_NAME, made->info.name, &made->tensor, &error);
    made->is_weight = status == TESS_OK;
    if (tess_status_code(status) != TESS_OK && tess_status_code(status) != TESS_BUNDLE_TENSOR) fail(made->info.name, error.text);
}

/* An input or output of these dims, of zeros or of what its file has. */
static void fill_argument(const TessKernel *kernel, const int64_t *dims, Argument *a) {
    const TessDType type = (TessDType)(a->info.type.code | a->info.type.bits << 8);
    int axis;
    for (axis = 0; axis < a->info.rank; ++axis) {
        TessDimInfo dim;
        dim.size = sizeof dim;
        check(tess_kernel_dim(kernel, a->info.dims[axis], &dim), a->info.name, "its description is broken");
        a->extents[axis] = dim.fixed >= 0 ? dim.fixed : model_extent(dim.name, dims);
        if (a->extents[axis] < 0) fail(dim.name, "expected a dim of model.h, or extents that give it at least 0 elements");
    }
    a->bytes = tess_bytes((int32_t)type, a->info.rank, a->extents);
    a->tensor = tess_dense(zeros(a->bytes), type, a->info.rank, a->extents);
    if (a->file && a->info.role != TESS_ROLE_OUTPUT) {
        FILE *file = fopen(a->file, "rb");
        if (!file) fail(a->file, "expected a file that can be read");
        if (fread(a->tensor.data, 1, a->bytes, file) != a->bytes || fgetc(file) != EOF) {
            fprintf(stderr, "error[example]: %s: expected %" PRIu64 " bytes, the elements of %s, got fewer or more\n", a->file, a->bytes,
                    a->info.name);
            exit(1);
        }
        fclose(file);
    }
}

static void write_file(const Argument *a) {
    FILE *file = fopen(a->file, "wb");
    if (!file || fwrite(a->tensor.data, 1, a->bytes, file) != a->bytes || fclose(file) != 0)
        fail(a->file, "expected to write all of the output");
}

static float float_of_half(uint16_t half) {
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    uint32_t bits = exponent == 31 ? 0x7f800000u | fraction << 13 : (exponent + 112) << 23 | fraction << 13;
    float value = (float)fraction * 0x1p-24f;
    if (exponent) memcpy(&value, &bits, sizeof value);
    return half >> 15 ? -value : value;
}

static float float_of_bfloat(uint16_t stored) {
    const uint32_t bits = (uint32_t)stored << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Element `i`; types of fewer than 16 bits that are no integers stay unprinted. */
static void print_element(const TessTensor *t, uint64_t i) {
    switch (t->type.code | t->type.bits << 8) {
    case TESS_F32: printf(" %.9g", (double)((const float *)t->data)[i]); break;
    case TESS_F64: printf(" %.17g", ((const double *)t->data)[i]); break;
    case TESS_F16: printf(" %.5g", (double)float_of_half(((const uint16_t *)t->data)[i])); break;
    case TESS_BF16: printf(" %.4g", (double)float_of_bfloat(((const uint16_t *)t->data)[i])); break;
    case TESS_I64: printf(" %" PRId64, ((const int64_t *)t->data)[i]); break;
    case TESS_I32: printf(" %" PRId32, ((const int32_t *)t->data)[i]); break;
    case TESS_I8: printf(" %d", ((const int8_t *)t->data)[i]); break;
    case TESS_U8:
    case TESS_BOOL: printf(" %d", ((const uint8_t *)t->data)[i]); break;
    default: break;
    }
}

static void print_output(const Argument *a) {
    enum { PRINTED = 8 };
    TessSha256 sha;
    unsigned char hash[TESS_SHA256_BYTES];
    uint64_t elements = 1, i;
    int axis;
    printf("%s [", a->info.name);
    for (axis = 0; axis < a->info.rank; ++axis) {
        printf("%s%" PRId64, axis ? ", " : "", a->extents[axis]);
        elements *= (uint64_t)a->extents[axis];
    }
    tess_sha256_begin(&sha);
    tess_sha256_add(&sha, a->tensor.data, a->bytes);
    tess_sha256_end(&sha, hash);
    printf("] sha256 ");
    for (i = 0; i < TESS_SHA256_BYTES; ++i) printf("%02x", hash[i]);
    printf(":");
    for (i = 0; i < elements && i < PRINTED; ++i) print_element(&a->tensor, i);
    printf("%s\n", elements > PRINTED ? " ..." : "");
}

/* Sets a dim, names a tensor's file or sets a parameter. */
static void take_word(const TessKernel *kernel, const TessKernelInfo *info, const char *word, int64_t *dims, Argument *arguments,
                      char *parameters) {
    const char *value = strchr(word, '=');
    const size_t length = value ? (size_t)(value++ - word) : 0;
    char *end;
    int i;
    for (i = 0; length && model_dims[i]; ++i)
        if (strlen(model_dims[i]) == length && memcmp(model_dims[i], word, length) == 0) {
            dims[i] = strtoll(value, &end, 10);
            if (*value && !*end && dims[i] >= 0) return;
            fail(word, "expected an extent, a whole number");
        }
    for (i = 0; length && i < info->tensors; ++i)
        if (!arguments[i].is_weight && strlen(arguments[i].info.name) == length && memcmp(arguments[i].info.name, word, length) == 0) {
            arguments[i].file = value;
            return;
        }
    for (i = 0; length && i < info->parameters; ++i) {
        TessParameterInfo p;
        p.size = sizeof p;
        check(tess_kernel_parameter(kernel, i, &p), MODEL_NAME, "its description is broken");
        if (strlen(p.name) != length || memcmp(p.name, word, length) != 0) continue;
        if (p.type.code == 2) {
            const double number = strtod(value, &end);
            const float narrow = (float)number;
            memcpy(parameters + p.offset, p.type.bits == 32 ? (const void *)&narrow : &number, p.type.bits / 8);
        } else {
            const int64_t number = strtoll(value, &end, 10); /* the low bytes come first */
            memcpy(parameters + p.offset, &number, p.type.bits / 8);
        }
        if (!*value || *end) fail(word, "expected a number");
        return;
    }
    fprintf(stderr, "error[example]: %s: expected NAME=VALUE of a dim, an input, an output or a parameter; there are", word);
    for (i = 0; model_dims[i]; ++i) fprintf(stderr, " %s", model_dims[i]);
    for (i = 0; i < info->tensors; ++i)
        if (!arguments[i].is_weight) fprintf(stderr, " %s", arguments[i].info.name);
    fprintf(stderr, "\n");
    exit(1);
}

/* Calls the kernel by a plan, as a call takes only so many tensors. */
static int32_t run(const TessKernel *kernel, const TessTensor *const *table, void *const *data, const char *parameters,
                   TessContext *context) {
    uint64_t bytes = 0;
    void *memory = NULL, *workspace = NULL;
    int32_t status = tess_plan_bytes(kernel, &bytes);
    if (status == TESS_OK) status = tess_plan_make(kernel, table, parameters, context, memory = zeros(bytes), bytes);
    if (status == TESS_OK) status = tess_plan_workspace(memory, &context->workspace_bytes);
    if (status == TESS_OK) {
        workspace = zeros(context->workspace_bytes + TESS_WORKSPACE_ALIGNMENT);
        context->workspace = (char *)workspace + (TESS_WORKSPACE_ALIGNMENT - (uintptr_t)workspace % TESS_WORKSPACE_ALIGNMENT);
        status = tess_plan_run(memory, data, parameters, context);
    }
    free(workspace), free(memory);
    return status;
}

int main(int argc, char **argv) {
    int64_t dims[sizeof model_defaults / sizeof *model_defaults];
    TessBundleError error;
    TessBundle *bundle;
    TessKernel kernel = tess_kernel();
    TessKernelInfo info;
    TessContext context = tess_context();
    TessFault fault = tess_fault();
    Argument *arguments;
    const TessTensor **table;
    const char **names;
    char *parameters, message[256];
    void *memory, **data;
    uint64_t bytes;
    int32_t status;
    int i;
    if (argc < 2) fail("arguments", "expected BUNDLE, then DIM=EXTENT, TENSOR=FILE or PARAMETER=NUMBER");
    check(tess_bundle_bytes(argv[1], &bytes, &error), argv[1], error.text);
    memory = zeros(bytes);
    check(tess_bundle_open(argv[1], NULL, memory, bytes, &bundle, &error), argv[1], error.text);
    check(tess_bundle_kernel(bundle, MODEL_NAME, &kernel, &error), MODEL_NAME, error.text);
    info.size = sizeof info;
    check(tess_kernel_info(&kernel, &info), MODEL_NAME, "its description is broken");

    arguments = zeros((uint64_t)info.tensors * sizeof *arguments);
    table = zeros((uint64_t)info.tensors * sizeof *table);
    data = zeros((uint64_t)info.tensors * sizeof *data);
    names = zeros((uint64_t)(info.tensors + info.parameters) * sizeof *names);
    parameters = zeros(info.parameter_bytes);
    memcpy(dims, model_defaults, sizeof dims);
    for (i = 0; i < info.tensors; ++i) find_argument(bundle, &kernel, i, &arguments[i]);
    for (i = 2; i < argc; ++i) take_word(&kernel, &info, argv[i], dims, arguments, parameters);
    for (i = 0; i < info.tensors; ++i) {
        if (!arguments[i].is_weight) fill_argument(&kernel, dims, &arguments[i]);
        table[i] = &arguments[i].tensor, data[i] = arguments[i].tensor.data, names[i] = arguments[i].info.name;
    }

    context.fault = &fault;
    status = run(&kernel, table, data, info.parameters ? parameters : NULL, &context);
    if (status != TESS_OK) {
        tess_status_message(status, &fault, names, message, sizeof message);
        fail(MODEL_NAME, message);
    }
    for (i = 0; i < info.tensors; ++i) {
        if (arguments[i].info.role == TESS_ROLE_INPUT) continue;
        print_output(&arguments[i]);
        if (arguments[i].file && arguments[i].info.role == TESS_ROLE_OUTPUT) write_file(&arguments[i]);
    }
    for (i = 0; i < info.tensors; ++i)
        if (!arguments[i].is_weight) free(data[i]);
    free(parameters), free(names), free(data), free(table), free(arguments);
    tess_bundle_close(bundle);
    free(memory);
    return fflush(stdout) == 0 ? 0 : 1;
}
