/* A record is read once. A run's kernel, extents, inputs and parameters come before its outputs, so it runs where they begin. */
#include "runtime/bundle/replay.h"

#include <stdio.h>
#include <string.h>

#include "runtime/bundle/fields.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/map.h"
#include "runtime/bundle/random_values.h"
#include "runtime/bundle/refusal.h"
#include "runtime/bundle/stored_tensor.h"
#include "runtime/bundle/stored_value.h"

typedef struct Replay {
    TessFields f;
    const TessBundle *b;
    const unsigned char *inputs;
    uint64_t input_bytes;
    const TessContext *context;
    TessReplayReport report;
    void *state;
    uint32_t run;
    TessBundleError *error;
} Replay;

/* A run of a kernel, in memory of its own. */
typedef struct Run {
    TessKernel kernel;
    TessKernelInfo info;
    const TessBundleKernel *known;
    TessTensor tensors[TESS_REPLAY_MAX_TENSORS];
    const TessTensor *table[TESS_REPLAY_MAX_TENSORS];
    int64_t extents[TESS_REPLAY_MAX_TENSORS][TESS_MAX_RANK], dims[TESS_REPLAY_MAX_TENSORS];
    unsigned char is_given[TESS_REPLAY_MAX_TENSORS], is_written[TESS_REPLAY_MAX_TENSORS];
    unsigned char is_reported[TESS_REPLAY_MAX_TENSORS];
    void *parameters, *data, *workspace;
    uint64_t data_bytes, workspace_bytes;
    int32_t is_parameter_given[TESS_REPLAY_MAX_TENSORS];
} Run;

static int refuse(Replay *r, const char *format, const char *name, const char *more) {
    char why[700];
    if (r->f.status) return 0;
    snprintf(why, sizeof why, format, name, more);
    r->f.status = tess_bundle_refuse(r->error, TESS_BUNDLE_REPLAY, "replay/expected.json, run %u: %s", r->run, why);
    return 0;
}

static TessTensorInfo tensor_info(const Run *run, int32_t i) {
    TessTensorInfo info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    tess_kernel_tensor(&run->kernel, i, &info);
    return info;
}

static TessDimInfo dim_info(const Run *run, int32_t i) {
    TessDimInfo info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    tess_kernel_dim(&run->kernel, i, &info);
    return info;
}

static TessParameterInfo parameter_info(const Run *run, int32_t i) {
    TessParameterInfo info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    tess_kernel_parameter(&run->kernel, i, &info);
    return info;
}

static int32_t find_tensor(const Run *run, const char *name) {
    int32_t i;
    for (i = 0; i < run->info.tensors; ++i)
        if (strcmp(tensor_info(run, i).name, name) == 0) return i;
    return TESS_BUNDLE_NONE;
}

static void find_kernel(Replay *r, Run *run) {
    const char *name = tess_fields_text(&r->f, "kernel");
    int32_t status;
    if (r->f.status) return;
    run->kernel = tess_kernel();
    status = tess_bundle_kernel(r->b, name, &run->kernel, r->error);
    if (status) {
        r->f.status = status;
        return;
    }
    run->known = &r->b->kernels[tess_bundle_find_kernel(r->b, name)];
    run->info.size = sizeof run->info;
    tess_kernel_info(&run->kernel, &run->info);
    if (run->info.tensors > TESS_REPLAY_MAX_TENSORS || run->info.dims > TESS_REPLAY_MAX_TENSORS ||
        run->info.parameters > TESS_REPLAY_MAX_TENSORS)
        refuse(r, "kernel '%.100s': expected at most 512 tensors, dims and parameters, got more.%s", name, "");
    if (run->info.device.type != TESS_HOST)
        refuse(r, "kernel '%.100s': expected one that runs on the host, got one for a device.%s", name, "");
}

static void read_extents(Replay *r, Run *run) {
    int32_t i;
    for (i = 0; !r->f.status && i < run->info.dims; ++i) run->dims[i] = dim_info(run, i).fixed;
    if (tess_fields_next(&r->f, "extents", TESS_JSON_OBJECT))
        while (tess_fields_item(&r->f, TESS_JSON_NUMBER)) {
            int64_t extent = 0;
            int32_t found = TESS_BUNDLE_NONE;
            for (i = 0; i < run->info.dims; ++i)
                if (tess_json_is(&r->f.key, dim_info(run, i).name)) found = i;
            if (found == TESS_BUNDLE_NONE || run->dims[found] >= 0 || !tess_json_integer(&r->f.value, 0, TESS_MAX_ELEMENTS, &extent)) {
                refuse(r, "kernel '%.100s': expected extents of its dims that are not fixed, each once, got another%s.", run->info.name,
                       "");
                return;
            }
            run->dims[found] = extent;
        }
    for (i = 0; !r->f.status && i < run->info.dims; ++i) {
        const TessDimInfo info = dim_info(run, i);
        if (run->dims[i] < 0 && info.equal_to >= 0 && info.equal_to < run->info.dims) run->dims[i] = run->dims[info.equal_to];
        if (run->dims[i] < 0) refuse(r, "kernel '%.100s': expected the extent of dim '%.100s', got none.", run->info.name, info.name);
    }
}

/* Tensors of the extents, each in memory that is its own; weights are the bundle's. */
static void make_tensors(Replay *r, Run *run) {
    uint64_t bytes = 0;
    int32_t i, axis;
    for (i = 0; !r->f.status && i < run->info.tensors; ++i) {
        const TessTensorInfo info = tensor_info(run, i);
        const int32_t dtype = info.type.code | info.type.bits << 8;
        int32_t status;
        uint64_t elements = 8;
        TessTensor *tensor = &run->tensors[i];
        run->table[i] = tensor;
        run->is_written[i] = info.role != TESS_ROLE_INPUT;
        status = info.role == TESS_ROLE_INPUT ? tess_bundle_weight(r->b, run->info.name, info.name, tensor, r->error) : TESS_BUNDLE_TENSOR;
        run->is_given[i] = status == TESS_OK || info.role == TESS_ROLE_OUTPUT;
        if (status == TESS_OK) continue;
        if (status != TESS_BUNDLE_TENSOR) {
            r->f.status = status;
            return;
        }
        if (info.flags & TESS_FLAG_PACKED) {
            refuse(r, "kernel '%.100s': expected a packed argument to be a weight of the bundle, '%.100s' is none.", run->info.name,
                   info.name);
            return;
        }
        for (axis = 0; axis < info.rank; ++axis) {
            run->extents[i][axis] = run->dims[info.dims[axis]];
            if (run->extents[i][axis] > 0 && elements > TESS_REPLAY_MAX_BYTES / (uint64_t)run->extents[i][axis])
                elements = TESS_REPLAY_MAX_BYTES;
            else elements *= (uint64_t)run->extents[i][axis];
        }
        *tensor = tess_dense(NULL, TESS_F32, info.rank, run->extents[i]);
        tensor->type = info.type;
        if (elements >= TESS_REPLAY_MAX_BYTES || bytes >= TESS_REPLAY_MAX_BYTES) {
            refuse(r, "kernel '%.100s': expected at most 8 GiB of tensors, got more%s.", run->info.name, "");
            return;
        }
        tensor->byte_offset = bytes; /* until there is memory */
        bytes += (tess_bytes(dtype, info.rank, run->extents[i]) + 63) / 64 * 64;
    }
    if (r->f.status) return;
    run->data_bytes = bytes + 64;
    run->data = tess_bundle_take(run->data_bytes);
    if (!run->data) {
        refuse(r, "kernel '%.100s': expected memory for its tensors, got none%s.", run->info.name, "");
        return;
    }
    for (i = 0; i < run->info.tensors; ++i)
        if (!run->tensors[i].data) {
            run->tensors[i].data = (unsigned char *)run->data + run->tensors[i].byte_offset;
            run->tensors[i].byte_offset = 0;
        }
}

static uint64_t bytes_of(const TessTensor *tensor) {
    return tess_bytes(tensor->type.code | tensor->type.bits << 8, tensor->rank, tensor->extents);
}

static void fill_by_seed(Replay *r, Run *run, int32_t i, uint64_t seed, uint32_t step) {
    const TessTensor *tensor = &run->tensors[i];
    const uint64_t row = tensor->rank ? (uint64_t)tensor->extents[tensor->rank - 1] : 1;
    uint64_t elements = 1;
    int32_t axis;
    for (axis = 0; axis < tensor->rank; ++axis) elements *= (uint64_t)tensor->extents[axis];
    if (!tess_random_values(tensor->data, tensor->type.code | tensor->type.bits << 8, elements, row, seed, (uint32_t)i, step))
        refuse(r, "kernel '%.100s', argument '%.100s': expected a tensor, as its type is not made of a seed.", run->info.name,
               tensor_info(run, i).name);
}

static void fill_by_tensor(Replay *r, Run *run, int32_t i, const char *name) {
    const TessTensor *tensor = &run->tensors[i];
    const unsigned char *stored = tess_stored_tensor(r->inputs, r->input_bytes, name, tensor);
    if (!stored) {
        refuse(r, "argument '%.100s': expected a tensor '%.100s' of its type and extents in replay/inputs.safetensors.",
               tensor_info(run, i).name, name);
        return;
    }
    memcpy(tensor->data, stored, bytes_of(tensor));
}

static void read_inputs(Replay *r, Run *run) {
    int32_t i;
    if (tess_fields_next(&r->f, "inputs", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) {
            const char *argument = tess_fields_text(&r->f, "argument");
            i = r->f.status ? TESS_BUNDLE_NONE : find_tensor(run, argument);
            if (i == TESS_BUNDLE_NONE || run->is_given[i]) {
                refuse(r, "kernel '%.100s': expected inputs that are no weights, each once, got '%.100s'.", run->info.name, argument);
                return;
            }
            run->is_given[i] = 1;
            if (tess_fields_maybe(&r->f, "tensor", TESS_JSON_STRING)) {
                fill_by_tensor(r, run, i, tess_fields_string(&r->f));
            } else {
                const uint64_t seed = tess_stored_u64(&r->f, "seed");
                const uint32_t step = (uint32_t)tess_fields_integer(&r->f, "step", UINT32_MAX);
                if (!r->f.status) fill_by_seed(r, run, i, seed, step);
            }
            tess_fields_end(&r->f);
        }
    for (i = 0; !r->f.status && i < run->info.tensors; ++i)
        if (!run->is_given[i])
            refuse(r, "kernel '%.100s': expected the input '%.100s', got none.", run->info.name, tensor_info(run, i).name);
}

static void read_parameters(Replay *r, Run *run) {
    int32_t i;
    if (!r->f.status && run->info.parameter_bytes > 0) {
        run->parameters = tess_bundle_take(run->info.parameter_bytes);
        if (!run->parameters) refuse(r, "kernel '%.100s': expected memory for its parameters, got none%s.", run->info.name, "");
    }
    if (tess_fields_next(&r->f, "parameters", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) {
            const char *name = tess_fields_text(&r->f, "name"), *value = tess_fields_text(&r->f, "value");
            TessParameterInfo info;
            if (!tess_fields_end(&r->f)) return;
            for (i = 0; i < run->info.parameters; ++i)
                if (strcmp(parameter_info(run, i).name, name) == 0) break;
            if (i == run->info.parameters || run->is_parameter_given[i]) {
                refuse(r, "kernel '%.100s': expected its parameters, each once, got '%.100s'.", run->info.name, name);
                return;
            }
            run->is_parameter_given[i] = 1;
            info = parameter_info(run, i);
            if (!tess_stored_value(value, info.type.code | info.type.bits << 8, (unsigned char *)run->parameters + info.offset))
                refuse(r, "parameter '%.100s': expected a value of its type, a float in hexadecimal, got '%.100s'.", name, value);
        }
    for (i = 0; !r->f.status && i < run->info.parameters; ++i)
        if (!run->is_parameter_given[i])
            refuse(r, "kernel '%.100s': expected the parameter '%.100s', got none.", run->info.name, parameter_info(run, i).name);
}

static void call(Replay *r, Run *run) {
    TessContext context = r->context ? *r->context : tess_context();
    TessFault fault = tess_fault();
    int32_t status;
    char why[300];
    if (r->f.status) return;
    context.fault = &fault;
    context.features_off = r->b->features_off;
    context.workspace = NULL;
    context.workspace_bytes = 0;
    status = tess_call_workspace(&run->kernel, run->table, &context, &run->workspace_bytes);
    if (!status && run->workspace_bytes > 0) {
        run->workspace = tess_bundle_take(run->workspace_bytes);
        if (!run->workspace) {
            refuse(r, "kernel '%.100s': expected memory for its workspace, got none%s.", run->info.name, "");
            return;
        }
        context.workspace = run->workspace;
        context.workspace_bytes = run->workspace_bytes;
    }
    if (!status) status = tess_call(&run->kernel, run->table, run->parameters, &context);
    if (!status) return;
    tess_status_message(status, &fault, NULL, why, sizeof why);
    refuse(r, "kernel '%.100s': %.250s.", run->info.name, why);
}

static void hash_text(const TessTensor *tensor, char text[72]) {
    unsigned char hash[TESS_SHA256_BYTES];
    int i;
    tess_sha256(tensor->data, bytes_of(tensor), hash);
    memcpy(text, "sha256:", 7);
    for (i = 0; i < TESS_SHA256_BYTES; ++i) snprintf(text + 7 + 2 * i, 3, "%02x", hash[i]);
}

static void report(Replay *r, Run *run, int32_t i, const char *expected) {
    TessReplayOutput output;
    memset(&output, 0, sizeof output);
    output.size = sizeof output;
    output.run = r->run;
    output.kernel = run->info.name;
    output.argument = tensor_info(run, i).name;
    output.target = r->b->targets[run->known->target].name;
    output.bits = run->known->bits;
    hash_text(&run->tensors[i], output.got);
    snprintf(output.expected, sizeof output.expected, "%s", expected);
    output.outcome = !*expected ? TESS_REPLAY_NEW : strcmp(output.got, output.expected) == 0 ? TESS_REPLAY_EQUAL : TESS_REPLAY_DIFFERENT;
    run->is_reported[i] = 1;
    if (r->report) r->report(r->state, &output);
}

static void read_outputs(Replay *r, Run *run) {
    int32_t i;
    if (tess_fields_next(&r->f, "outputs", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) {
            const char *argument = tess_fields_text(&r->f, "argument"), *bits = tess_fields_text(&r->f, "bits");
            const char *sha256 = tess_fields_text(&r->f, "sha256");
            if (!tess_fields_end(&r->f)) return;
            i = find_tensor(run, argument);
            if (i == TESS_BUNDLE_NONE || !run->is_written[i] || strlen(sha256) != 71) {
                refuse(r, "kernel '%.100s': expected its outputs and their hashes, got '%.100s'.", run->info.name, argument);
                return;
            }
            if (strcmp(bits, run->known->bits) == 0 && !run->is_reported[i]) report(r, run, i, sha256);
        }
    for (i = 0; !r->f.status && i < run->info.tensors; ++i)
        if (run->is_written[i] && !run->is_reported[i]) report(r, run, i, "");
}

static void run_one(Replay *r) {
    Run *run = tess_bundle_take(sizeof *run);
    if (!run) {
        refuse(r, "expected %s of memory, got none%s.", "256 KiB", "");
        return;
    }
    find_kernel(r, run);
    read_extents(r, run);
    make_tensors(r, run);
    read_inputs(r, run);
    read_parameters(r, run);
    call(r, run);
    read_outputs(r, run);
    tess_fields_end(&r->f);
    if (run->data) tess_bundle_give(run->data, run->data_bytes);
    if (run->workspace) tess_bundle_give(run->workspace, run->workspace_bytes);
    if (run->parameters) tess_bundle_give(run->parameters, run->info.parameter_bytes);
    tess_bundle_give(run, sizeof *run);
}

int32_t tess_bundle_replay_record(const TessBundle *b, const char *expected, uint64_t expected_bytes, const void *inputs,
                                  uint64_t input_bytes, const TessContext *context, TessReplayReport report_to, void *state,
                                  TessBundleError *error) {
    Replay r;
    char *text;
    if (!b || !expected)
        return tess_bundle_refuse(error, TESS_NULL_ARGUMENT, "replay: expected a bundle and a record, got a null pointer.");
    if (expected_bytes > TESS_BUNDLE_MAX_MANIFEST || (text = tess_bundle_take(expected_bytes + 1)) == NULL)
        return tess_bundle_refuse(error, TESS_BUNDLE_REPLAY,
                                  "replay/expected.json: expected at most 16 MiB, and memory for it, got %llu bytes.",
                                  (unsigned long long)expected_bytes);
    memset(&r, 0, sizeof r);
    r.b = b;
    r.inputs = inputs;
    r.input_bytes = inputs ? input_bytes : 0;
    r.context = context;
    r.report = report_to;
    r.state = state;
    r.error = error;
    memcpy(text, expected, expected_bytes);
    tess_fields_begin(&r.f, text, expected_bytes, "replay/expected.json", TESS_BUNDLE_REPLAY, error);
    tess_fields_word(&r.f, "format", "tessera-replay");
    if (tess_fields_integer(&r.f, "version", INT32_MAX) != 1) tess_fields_refuse(&r.f, "version 1");
    if (tess_fields_next(&r.f, "runs", TESS_JSON_ARRAY))
        for (; tess_fields_item(&r.f, TESS_JSON_OBJECT); ++r.run) run_one(&r);
    tess_fields_end(&r.f);
    tess_fields_done(&r.f);
    tess_bundle_give(text, expected_bytes + 1);
    return r.f.status;
}

int32_t tess_bundle_replay(const TessBundle *b, const TessContext *context, TessReplayReport report_to, void *state,
                           TessBundleError *error) {
    static const char inputs_path[] = "replay/inputs.safetensors";
    const void *expected, *inputs = NULL;
    uint64_t expected_bytes, input_bytes = 0;
    int32_t status;
    if (!b) return tess_bundle_refuse(error, TESS_NULL_ARGUMENT, "replay: expected a bundle, got a null pointer.");
    if (!b->replay)
        return tess_bundle_refuse(error, TESS_NO_SUCH, "bundle '%.100s': expected a record of runs, got none. Make it with one.", b->name);
    status = tess_bundle_member(b, b->replay, &expected, &expected_bytes, error);
    if (!status && tess_bundle_find_member(b, inputs_path) != TESS_BUNDLE_NONE)
        status = tess_bundle_member(b, inputs_path, &inputs, &input_bytes, error);
    return status ? status : tess_bundle_replay_record(b, expected, expected_bytes, inputs, input_bytes, context, report_to, state, error);
}
