/* Reads the text of a page: read BUNDLE PAGE. A line of output for each box: its corners, whether it is upside down, its text; then the
 * SHA-256 of all probabilities of characters. Times go to stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "page.h"
#include "runtime/bundle/bundle.h"
#include "runtime/crypto/sha256.h"

enum { MAX_TENSORS = 280 }; /* a call takes about 300 */

/* A kernel of the bundle with its weights. Its first input is the picture, its only output what is asked. */
typedef struct Network {
    TessKernel kernel;
    TessTensor tensors[MAX_TENSORS];
    const TessTensor *table[MAX_TENSORS];
    int64_t shape[TESS_MAX_RANK], result[TESS_MAX_RANK]; /* of the picture; of the output, 0 where it depends on the picture's */
    int output;
} Network;

static void fail(const char *code, const char *subject, const char *text) {
    fprintf(stderr, "error[reader.%s]: %s: %s\n", code, subject, text);
    exit(1);
}

static void check(int32_t status, const char *subject, const char *text) {
    if (status != TESS_OK) fail("bundle", subject, text);
}

static void *buffer(uint64_t bytes) {
    void *made = malloc(bytes);
    if (!made) fail("memory", "buffer", "the system has no memory left; read a smaller page");
    return made;
}

static void open_network(Network *net, const TessBundle *bundle, const char *name) {
    TessBundleError error;
    TessKernelInfo info;
    int i, axis;
    info.size = sizeof info;
    net->kernel = tess_kernel();
    check(tess_bundle_kernel(bundle, name, &net->kernel, &error), name, error.text);
    check(tess_kernel_info(&net->kernel, &info), name, "its description is broken");
    if (info.tensors > MAX_TENSORS)
        fail("bundle", name, "expected at most 280 tensors; make the bundle of the networks that the README names");
    for (i = 0; i < info.tensors; ++i) {
        TessTensorInfo tensor;
        tensor.size = sizeof tensor;
        check(tess_kernel_tensor(&net->kernel, i, &tensor), name, "its description is broken");
        net->table[i] = &net->tensors[i];
        if (tensor.role == TESS_ROLE_OUTPUT) {
            net->output = i;
            net->tensors[i] = tess_dense(NULL, TESS_F32, tensor.rank, net->result);
            for (axis = 0; axis < tensor.rank; ++axis) {
                TessDimInfo dim;
                dim.size = sizeof dim;
                check(tess_kernel_dim(&net->kernel, tensor.dims[axis], &dim), name, "its description is broken");
                net->result[axis] = dim.fixed < 0 ? 0 : dim.fixed;
            }
        } else if (i == 0) net->tensors[i] = tess_dense(NULL, TESS_F32, 4, net->shape);
        else check(tess_bundle_weight(bundle, name, tensor.name, &net->tensors[i], &error), name, error.text);
    }
}

/* The network's output for a box of the page, of malloc; `result` has the extents that depend on the picture's. */
static float *run(Network *net, const char *name, const Page *page, Box box, int turned, int rows, int columns, int filled) {
    TessContext context = tess_context();
    void *memory;
    float *input = buffer(sizeof(float) * 3 * (uint64_t)rows * (uint64_t)columns), *output;
    uint64_t bytes = sizeof(float);
    int axis;
    cut(page, box, turned, rows, columns, filled, input);
    net->shape[0] = 1, net->shape[1] = 3, net->shape[2] = rows, net->shape[3] = columns;
    for (axis = 0; axis < net->tensors[net->output].rank; ++axis) bytes *= (uint64_t)net->result[axis];
    output = buffer(bytes);
    net->tensors[0].data = input, net->tensors[net->output].data = output;
    check(tess_call_workspace(&net->kernel, net->table, &context, &context.workspace_bytes), name,
          "it does not take a picture of this size");
    memory = buffer(context.workspace_bytes + TESS_WORKSPACE_ALIGNMENT);
    context.workspace =
        (char *)memory + (TESS_WORKSPACE_ALIGNMENT - (uintptr_t)memory % TESS_WORKSPACE_ALIGNMENT) % TESS_WORKSPACE_ALIGNMENT;
    check(tess_call(&net->kernel, net->table, NULL, &context), name, "the call failed");
    free(memory), free(input);
    return output;
}

/* Prints the likeliest class of each step, repetitions once. Class 0 is none, the last is a space, class i the line i of the alphabet. */
static void print_text(const float *likely, int64_t steps, int64_t classes, const char *alphabet, const char *end) {
    int64_t step, i, before = 0;
    for (step = 0; step < steps; ++step, likely += classes) {
        const char *at = alphabet;
        int64_t best = 0;
        for (i = 1; i < classes; ++i)
            if (likely[i] > likely[best]) best = i;
        if (best == classes - 1 && best != before) putchar(' ');
        for (i = 1; i < best && best < classes - 1 && at < end; ++at) i += *at == '\n';
        for (; best != 0 && best != before && best < classes - 1 && at < end && *at != '\n'; ++at) putchar(*at);
        before = best;
    }
}

int main(int argc, char **argv) {
    static Network detection, angle, recognition;
    const clock_t start = clock();
    clock_t loaded;
    TessBundleError error;
    TessBundle *bundle;
    TessSha256 sha;
    Page page;
    Box *boxes;
    FILE *file;
    const void *alphabet;
    void *memory;
    float *map;
    unsigned char hash[TESS_SHA256_BYTES];
    uint64_t bytes;
    int count, i, rows, columns;
    if (argc != 3) fail("arguments", "read", "expected BUNDLE and PAGE, a picture of the kind PGM or PPM");
    check(tess_bundle_bytes(argv[1], &bytes, &error), argv[1], error.text);
    memory = buffer(bytes);
    check(tess_bundle_open(argv[1], NULL, memory, bytes, &bundle, &error), argv[1], error.text);
    open_network(&detection, bundle, "det"), open_network(&angle, bundle, "cls"), open_network(&recognition, bundle, "rec");
    check(tess_bundle_member(bundle, "assets/alphabet.txt", &alphabet, &bytes, &error), argv[1], error.text);
    loaded = clock();

    file = fopen(argv[2], "rb");
    if (!file) fail("page", argv[2], "expected a file that can be read");
    if (read_page(file, &page) != 1)
        fail("page", argv[2], "expected a PGM or PPM picture (P5, P6), 255 shades, at most 8192 rows and columns, got another; convert it");
    fclose(file);
    detection_size(&page, &rows, &columns);
    detection.result[2] = rows, detection.result[3] = columns;
    map = run(&detection, "det", &page, (Box){0, 0, page.columns, page.rows}, 0, rows, columns, columns);
    boxes = find_boxes(map, rows, columns, &page, &count);
    if (!boxes) fail("memory", argv[2], "the system has no memory left; read a smaller page");
    tess_sha256_begin(&sha);
    for (i = 0; i < count; ++i) {
        int turned, filled = line_columns(boxes[i]), width = filled > 320 ? filled : 320;
        float *turns = run(&angle, "cls", &page, boxes[i], 0, 48, 192, filled < 192 ? filled : 192), *likely;
        const int64_t steps = (width + 3) / 8, classes = recognition.result[2];
        turned = turns[1] > 0.9f;
        recognition.result[1] = steps;
        likely = run(&recognition, "rec", &page, boxes[i], turned, 48, width, filled);
        tess_sha256_add(&sha, likely, sizeof(float) * (uint64_t)(steps * classes));
        printf("%d %d %d %d %s ", boxes[i].x0, boxes[i].y0, boxes[i].x1, boxes[i].y1, turned ? "turned" : "upright");
        print_text(likely, steps, classes, alphabet, (const char *)alphabet + bytes);
        putchar('\n');
        free(likely), free(turns);
    }
    tess_sha256_end(&sha, hash);
    printf("sha256 ");
    for (i = 0; i < TESS_SHA256_BYTES; ++i) printf("%02x", hash[i]);
    putchar('\n');
    fprintf(stderr, "%.1f ms to open the bundle, %.1f ms to read the page, of the processor\n",
            1e3 * (double)(loaded - start) / CLOCKS_PER_SEC, 1e3 * (double)(clock() - loaded) / CLOCKS_PER_SEC);
    free(boxes), free(map), free(page.pixels);
    tess_bundle_close(bundle);
    free(memory);
    return fflush(stdout) == 0 ? 0 : 1;
}
