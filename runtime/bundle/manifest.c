/* The manifest is read once, from its beginning to its end. Memory:
 *
 *     [the manifest's text] [targets, libraries, kernels, tensors, packed, members →]   [← what belongs to one kernel]
 *
 * Each list grows at the lower end while it is the one that is read. An entry in memory has at most twice the bytes that its text has. */
#include "runtime/bundle/manifest.h"

#include <string.h>

#include "runtime/bundle/fields.h"
#include "runtime/bundle/refusal.h"
#include "runtime/bundle/stored_tensor.h"
#include "runtime/bundle/zip.h"

#define MOST ((int64_t)1 << 62)

typedef struct Reader {
    TessFields f;
    TessBundle *b;
    unsigned char *low, *high; /* memory between them is free */
    uint64_t features;
} Reader;

uint64_t tess_bundle_manifest_memory(uint64_t manifest_bytes) { return 3 * manifest_bytes + 512; }

static int refuse(Reader *r, const char *expected) { return tess_fields_refuse(&r->f, expected); }

static int refuse_memory(Reader *r) {
    if (!r->f.status)
        r->f.status = tess_bundle_refuse(r->f.error, TESS_BUNDLE_MEMORY,
                                         "bundle: expected more bytes of memory for what is known of it. Ask tess_bundle_bytes how many.");
    return 0;
}

/* One more entry at the lower end, all zeros; null without memory or after a mistake. */
static void *add_low(Reader *r, uint64_t bytes) {
    void *entry = r->low;
    if (r->f.status || (uint64_t)(r->high - r->low) < bytes) return refuse_memory(r), (void *)0;
    r->low += bytes;
    return memset(entry, 0, bytes);
}

static void *add_high(Reader *r, uint64_t bytes) {
    if (r->f.status || (uint64_t)(r->high - r->low) < bytes) return refuse_memory(r), (void *)0;
    r->high -= bytes;
    return memset(r->high, 0, bytes);
}

/* Printable ASCII that needs no escapes, and not too long for a symbol. */
static const char *plain_text(Reader *r, const char *name) {
    const char *text = tess_fields_text(&r->f, name), *c;
    for (c = text; *c; ++c)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\' || c - text > 250)
            return refuse(r, "a plain text of at most 250 characters"), "";
    return text;
}

static void read_hash(Reader *r, const char *name, unsigned char *sha256) {
    const char *text = tess_fields_text(&r->f, name);
    if (!r->f.status && (strncmp(text, "sha256:", 7) != 0 || !tess_fields_hex(text + 7, sha256, TESS_SHA256_BYTES)))
        refuse(r, "sha256: and 64 lower-case hexadecimal digits");
}

/* The host's processors. */
static int is_host(const char *arch) {
#if defined(__x86_64__)
    return strcmp(arch, "x86-64") == 0;
#elif defined(__aarch64__)
    return strcmp(arch, "arm64") == 0;
#else
    return (void)arch, 0;
#endif
}

/* The bit of a feature, or 0 where this library does not know it. */
static uint64_t feature_of(const char *name) {
    int bit;
    for (bit = 0; tess_cpu_feature_name(bit); ++bit)
        if (strcmp(tess_cpu_feature_name(bit), name) == 0) return UINT64_C(1) << bit;
    return 0;
}

static void read_target(Reader *r) {
    TessBundleTarget *target = add_low(r, sizeof *target);
    if (!target) return;
    target->name = plain_text(r, "name");
    target->arch = plain_text(r, "arch");
    target->runs_here = is_host(target->arch);
    if (tess_fields_next(&r->f, "features", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_STRING)) {
            const uint64_t feature = feature_of(tess_fields_string(&r->f));
            target->features |= feature;
            target->runs_here &= (feature & r->features) != 0;
        }
    if (!tess_fields_end(&r->f)) return;
    if (++r->b->n_targets > TESS_BUNDLE_MAX_TARGETS) refuse(r, "at most 64 targets");
}

static void read_library(Reader *r) {
    TessBundleLibrary *library = add_low(r, sizeof *library);
    tess_fields_skip(&r->f, "name", TESS_JSON_STRING);
    tess_fields_skip(&r->f, "module", TESS_JSON_NONE);
    tess_fields_skip(&r->f, "targets", TESS_JSON_ARRAY);
    if (library) library->path = plain_text(r, "archive");
    tess_fields_skip(&r->f, "header", TESS_JSON_STRING);
    tess_fields_skip(&r->f, "manifest", TESS_JSON_STRING);
    r->b->n_libraries += tess_fields_end(&r->f);
}

static int32_t find_target(const TessBundle *b, const char *name) {
    int32_t i;
    for (i = 0; i < b->n_targets; ++i)
        if (strcmp(b->targets[i].name, name) == 0) return i;
    return TESS_BUNDLE_NONE;
}

static void read_packing(Reader *r, TessBundleKernel *kernel, int is_chosen) {
    const char *argument = tess_fields_text(&r->f, "argument"), *layout = plain_text(r, "layout"), *function = plain_text(r, "function");
    TessBundlePacking *packing;
    if (!tess_fields_end(&r->f) || !is_chosen) return;
    packing = add_high(r, sizeof *packing);
    if (!packing) return;
    packing->argument = argument;
    packing->layout = layout;
    packing->function = function;
    kernel->packings = packing;
    kernel->n_packings++;
}

/* One target's code; the first that runs here is chosen. */
static void read_code(Reader *r, TessBundleKernel *kernel) {
    const int32_t target = find_target(r->b, plain_text(r, "target"));
    const int32_t library = (int32_t)tess_fields_integer(&r->f, "library", INT32_MAX);
    const char *bits = plain_text(r, "bits"), *schedule = plain_text(r, "schedule");
    int is_chosen;
    if (r->f.status) return;
    if (target == TESS_BUNDLE_NONE) refuse(r, "the name of a target in 'targets'");
    if (library >= r->b->n_libraries) refuse(r, "a number in 'libraries'");
    if (r->f.status) return;
    is_chosen = kernel->target == TESS_BUNDLE_NONE && r->b->targets[target].runs_here;
    if (is_chosen) {
        kernel->target = target;
        kernel->library = library;
        kernel->bits = bits;
        kernel->schedule = schedule;
    }
    if (tess_fields_next(&r->f, "packed", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) read_packing(r, kernel, is_chosen);
    tess_fields_end(&r->f);
}

static void read_weight(Reader *r, TessBundleKernel *kernel) {
    const char *argument = tess_fields_text(&r->f, "argument");
    const int32_t tensor = (int32_t)tess_fields_integer(&r->f, "tensor", INT32_MAX);
    TessBundleWeight *weight;
    if (!tess_fields_end(&r->f)) return;
    weight = add_high(r, sizeof *weight);
    if (!weight) return;
    weight->argument = argument;
    weight->tensor = tensor;
    kernel->weights = weight;
    kernel->n_weights++;
}

static void read_kernel(Reader *r) {
    TessBundleKernel *kernel = add_low(r, sizeof *kernel);
    if (!kernel) return;
    kernel->target = kernel->library = TESS_BUNDLE_NONE;
    kernel->name = plain_text(r, "name");
    if (tess_fields_next(&r->f, "algorithm", TESS_JSON_OBJECT)) {
        kernel->algorithm = plain_text(r, "name");
        tess_fields_skip(&r->f, "semantic", TESS_JSON_STRING);
        tess_fields_skip(&r->f, "surface", TESS_JSON_STRING);
        tess_fields_end(&r->f);
    }
    tess_fields_skip(&r->f, "numerics", TESS_JSON_NONE);
    if (tess_fields_maybe(&r->f, "program", TESS_JSON_STRING)) tess_fields_string(&r->f);
    tess_fields_skip(&r->f, "options", TESS_JSON_OBJECT);
    tess_fields_skip(&r->f, "fixed", TESS_JSON_OBJECT);
    tess_fields_skip(&r->f, "arguments", TESS_JSON_ARRAY);
    tess_fields_skip(&r->f, "parameters", TESS_JSON_ARRAY);
    if (tess_fields_next(&r->f, "code", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) read_code(r, kernel);
    if (tess_fields_next(&r->f, "weights", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) read_weight(r, kernel);
    r->b->n_kernels += tess_fields_end(&r->f);
    if (r->b->n_kernels > TESS_BUNDLE_MAX_KERNELS) refuse(r, "at most 16384 kernels");
}

static void read_type(Reader *r, TessBundleTensor *tensor) {
    const char *name = plain_text(r, "type");
    tensor->type = tess_stored_type(name);
    if (strcmp(name, "F4") == 0) tensor->type = tess_type(TESS_F4E2M1FN);
    else if (strcmp(name, "I4") == 0) tensor->type = tess_type(TESS_I4);
    else if (strcmp(name, "U4") == 0) tensor->type = tess_type(TESS_U4);
    if (tensor->type.bits == 0) refuse(r, "a type of whole or half bytes");
}

static void read_tensor(Reader *r) {
    TessBundleTensor *tensor = add_low(r, sizeof *tensor);
    uint64_t bytes, element;
    if (!tensor) return;
    tensor->name = tess_fields_text(&r->f, "name");
    read_type(r, tensor);
    if (r->f.status) return;
    element = tensor->type.bits < 8 ? 1 : tensor->type.bits / 8;
    bytes = element;
    if (tess_fields_next(&r->f, "dims", TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_NUMBER)) {
            int64_t extent = 0;
            if (tensor->rank == TESS_MAX_RANK || !tess_json_integer(&r->f.value, 0, MOST, &extent) ||
                (extent > 0 && bytes > (uint64_t)(MOST / extent))) {
                refuse(r, "at most 8 dims, with at most 2^62 bytes");
                return;
            }
            tensor->extents[tensor->rank++] = extent;
            bytes *= (uint64_t)extent;
        }
    tensor->offset = (uint64_t)tess_fields_integer(&r->f, "offset", MOST);
    tensor->bytes = (uint64_t)tess_fields_integer(&r->f, "bytes", MOST);
    if (!tess_fields_end(&r->f)) return;
    if (tensor->type.bits < 8) bytes = tess_bytes(tensor->type.code | tensor->type.bits << 8, tensor->rank, tensor->extents);
    if (tensor->bytes != bytes) refuse(r, "as many bytes as the type and the dims of a tensor ask for");
    if (tensor->offset % element != 0) refuse(r, "a tensor at a multiple of its elements' size");
    if (r->b->n_tensors > 0 && strcmp(tensor[-1].name, tensor->name) >= 0) refuse(r, "tensors in the order of their names");
    r->b->n_tensors++;
}

static void read_packed(Reader *r) {
    TessBundlePacked *packed = add_low(r, sizeof *packed);
    if (!packed) return;
    packed->tensor = (int32_t)tess_fields_integer(&r->f, "tensor", INT32_MAX);
    packed->layout = plain_text(r, "layout");
    packed->path = plain_text(r, "member");
    if (!tess_fields_end(&r->f)) return;
    if (packed->tensor >= r->b->n_tensors) refuse(r, "a number in 'tensors'");
    r->b->n_packed++;
}

static int begins_with(const char *path, const char *prefix) { return strncmp(path, prefix, strlen(prefix)) == 0; }

enum { WEIGHTS_LINE = 6 };

/* Which line of the table of members a path belongs to; 0: none. */
static int line_of(const char *path) {
    static const char *const prefixes[] = {"programs/", "schedules/", "records/",  "code/",   "include/",
                                           "",          "packed/",    "licences/", "replay/", "assets/"};
    int line;
    if (strcmp(path, "weights.safetensors") == 0) return WEIGHTS_LINE;
    for (line = 1; line <= (int)(sizeof prefixes / sizeof *prefixes); ++line)
        if (line != WEIGHTS_LINE && begins_with(path, prefixes[line - 1])) return line;
    return 0;
}

static int compare_paths(const char *a, const char *b) {
    const int by_line = line_of(a) - line_of(b);
    return by_line ? by_line : strcmp(a, b);
}

static void read_member(Reader *r) {
    TessBundleMember *member = add_low(r, sizeof *member);
    uint64_t least = 0;
    if (!member) return;
    member->path = plain_text(r, "path");
    member->offset = (uint64_t)tess_fields_integer(&r->f, "offset", MOST);
    member->bytes = tess_fields_integer(&r->f, "bytes", MOST);
    read_hash(r, "sha256", member->sha256);
    if (!tess_fields_end(&r->f)) return;
    if (!tess_zip_is_path(member->path, strlen(member->path)) || line_of(member->path) == 0) refuse(r, "a path that bundles have");
    if (r->b->n_members > 0) {
        least = member[-1].offset + (uint64_t)member[-1].bytes;
        if (compare_paths(member[-1].path, member->path) >= 0) refuse(r, "members in the order that bundles have");
    }
    if (member->offset < least || member->offset > r->b->size || (uint64_t)member->bytes > r->b->size - member->offset ||
        member->offset % TESS_ZIP_ALIGNMENT != 0)
        refuse(r, "members behind each other in the file, at multiples of 64");
    if (line_of(member->path) == WEIGHTS_LINE) r->b->weights = r->b->n_members;
    r->b->n_members++;
}

/* Reads an array of objects whose entries are one list in memory, and gives the list. */
static void *read_list(Reader *r, const char *name, void (*read_entry)(Reader *)) {
    void *list;
    r->low += (8 - (uintptr_t)r->low % 8) % 8;
    list = r->low;
    if (tess_fields_next(&r->f, name, TESS_JSON_ARRAY))
        while (tess_fields_item(&r->f, TESS_JSON_OBJECT)) read_entry(r);
    return list;
}

/* A place in the order of names: where it is, or where it belongs. */
static int32_t place_of(const TessBundle *b, const char *name, int32_t count) {
    int32_t low = 0, high = count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (strcmp(b->kernels[b->by_name[middle]].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void order_kernels(Reader *r) {
    TessBundle *b = r->b;
    int32_t i;
    b->by_name = add_high(r, ((uint64_t)b->n_kernels * sizeof *b->by_name + 7) / 8 * 8);
    for (i = 0; !r->f.status && i < b->n_kernels; ++i) {
        const char *name = b->kernels[i].name;
        const int32_t at = place_of(b, name, i);
        if (at < i && strcmp(b->kernels[b->by_name[at]].name, name) == 0) refuse(r, "kernels of different names");
        memmove(b->by_name + at + 1, b->by_name + at, (size_t)(i - at) * sizeof *b->by_name);
        b->by_name[at] = i;
    }
}

/* What refers to what comes later. */
static void check_references(Reader *r) {
    TessBundle *b = r->b;
    int32_t i, j;
    for (i = 0; i < b->n_libraries && !r->f.status; ++i) {
        b->libraries[i].archive = tess_bundle_find_member(b, b->libraries[i].path);
        if (b->libraries[i].archive == TESS_BUNDLE_NONE) refuse(r, "archives of libraries among the members");
    }
    for (i = 0; i < b->n_packed && !r->f.status; ++i) {
        b->packed[i].member = tess_bundle_find_member(b, b->packed[i].path);
        if (b->packed[i].member == TESS_BUNDLE_NONE) refuse(r, "packed tensors among the members");
    }
    for (i = 0; i < b->n_kernels && !r->f.status; ++i)
        for (j = 0; j < b->kernels[i].n_weights; ++j)
            if (b->kernels[i].weights[j].tensor >= b->n_tensors) refuse(r, "weights of kernels among the tensors");
    for (i = 0; i < b->n_tensors && !r->f.status; ++i) {
        const TessBundleMember *weights = b->weights == TESS_BUNDLE_NONE ? (const TessBundleMember *)0 : &b->members[b->weights];
        const uint64_t offset = b->tensors[i].offset;
        if (!weights || offset < weights->offset || offset > weights->offset + (uint64_t)weights->bytes ||
            b->tensors[i].bytes > weights->offset + (uint64_t)weights->bytes - offset)
            refuse(r, "tensors inside of weights.safetensors");
    }
    if (b->replay && tess_bundle_find_member(b, b->replay) == TESS_BUNDLE_NONE) refuse(r, "what is recorded among the members");
}

static void read_version(Reader *r) {
    int64_t version;
    tess_fields_word(&r->f, "format", "tessera-bundle");
    version = tess_fields_integer(&r->f, "version", MOST);
    if (!r->f.status && version != 1)
        r->f.status =
            tess_bundle_refuse(r->f.error, TESS_BUNDLE_VERSION,
                               "manifest.json: expected version 1 of the format, got %lld. Link a newer runtime, or make the bundle "
                               "with this one's Tessera.",
                               (long long)version);
}

int32_t tess_bundle_read_manifest(TessBundle *b, void *memory, uint64_t bytes, uint64_t manifest_bytes, uint64_t features,
                                  TessBundleError *error) {
    Reader r;
    const uint64_t text_bytes = (manifest_bytes + 8) / 8 * 8; /* one more, for a zero */
    memset(&r, 0, sizeof r);
    r.b = b;
    b->weights = TESS_BUNDLE_NONE;
    tess_fields_begin(&r.f, memory, manifest_bytes, "manifest.json", TESS_BUNDLE_MANIFEST, error);
    if (bytes < text_bytes) refuse_memory(&r), bytes = text_bytes;
    r.low = (unsigned char *)memory + text_bytes;
    r.high = (unsigned char *)memory + bytes / 8 * 8;
    r.features = features;
    read_version(&r);
    tess_fields_skip(&r.f, "tessera", TESS_JSON_STRING);
    tess_fields_skip(&r.f, "halide", TESS_JSON_STRING);
    b->name = plain_text(&r, "name");
    b->targets = read_list(&r, "targets", read_target);
    b->libraries = read_list(&r, "libraries", read_library);
    b->kernels = read_list(&r, "kernels", read_kernel);
    b->tensors = read_list(&r, "tensors", read_tensor);
    b->packed = read_list(&r, "packed", read_packed);
    tess_fields_skip(&r.f, "licences", TESS_JSON_ARRAY);
    if (tess_fields_maybe(&r.f, "replay", TESS_JSON_STRING)) b->replay = tess_fields_string(&r.f);
    b->members = read_list(&r, "members", read_member);
    b->end = (uint64_t)tess_fields_integer(&r.f, "end", MOST);
    tess_fields_end(&r.f);
    tess_fields_done(&r.f);
    if (!r.f.status) order_kernels(&r);
    if (!r.f.status) check_references(&r);
    return r.f.status;
}

int32_t tess_bundle_read_signature(char *text, uint64_t bytes, unsigned char public_key[32], unsigned char signature[64],
                                   const char **key_name, TessBundleError *error) {
    TessFields f;
    const char *digits;
    tess_fields_begin(&f, text, bytes, "signature", TESS_BUNDLE_SIGNATURE, error);
    tess_fields_word(&f, "format", "tessera-signature");
    if (tess_fields_integer(&f, "version", MOST) != 1) tess_fields_refuse(&f, "version 1");
    tess_fields_word(&f, "algorithm", "ed25519");
    *key_name = tess_fields_text(&f, "key");
    digits = tess_fields_text(&f, "public");
    if (!f.status && !tess_fields_hex(digits, public_key, 32)) tess_fields_refuse(&f, "64 lower-case hexadecimal digits of a key");
    digits = tess_fields_text(&f, "signature");
    if (!f.status && !tess_fields_hex(digits, signature, 64)) tess_fields_refuse(&f, "128 lower-case hexadecimal digits of a signature");
    tess_fields_end(&f);
    tess_fields_done(&f);
    return f.status;
}

int32_t tess_bundle_find_member(const TessBundle *b, const char *path) {
    int32_t low = 0, high = b->n_members;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (compare_paths(b->members[middle].path, path) < 0) low = middle + 1;
        else high = middle;
    }
    return low < b->n_members && strcmp(b->members[low].path, path) == 0 ? low : TESS_BUNDLE_NONE;
}

int32_t tess_bundle_find_tensor(const TessBundle *b, const char *name) {
    int32_t low = 0, high = b->n_tensors;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (strcmp(b->tensors[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low < b->n_tensors && strcmp(b->tensors[low].name, name) == 0 ? low : TESS_BUNDLE_NONE;
}

int32_t tess_bundle_find_kernel(const TessBundle *b, const char *name) {
    const int32_t at = place_of(b, name, b->n_kernels);
    return at < b->n_kernels && strcmp(b->kernels[b->by_name[at]].name, name) == 0 ? b->by_name[at] : TESS_BUNDLE_NONE;
}
