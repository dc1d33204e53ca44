#include "runtime/bundle/bundle.h"

#include <stdio.h>
#include <string.h>

#include "runtime/bundle/manifest.h"
#include "runtime/bundle/map.h"
#include "runtime/bundle/refusal.h"
#include "runtime/bundle/zip.h"

enum { STRUCT_BYTES = (sizeof(TessBundle) + 7) / 8 * 8 };

static int32_t refuse_null(TessBundleError *error, const char *what) {
    return tess_bundle_refuse(error, TESS_NULL_ARGUMENT, "bundle: expected %s, got a null pointer.", what);
}

/* Walks through the whole file, which checks it: the manifest comes first, and a signature may be the last. */
static int32_t read_structure(const void *file, uint64_t size, TessZipMember *manifest, TessZipMember *signature, TessBundleError *error) {
    TessZip zip;
    TessZipMember member;
    int32_t status = tess_zip_begin(&zip, file, size, error);
    memset(signature, 0, sizeof *signature);
    if (!status) status = tess_zip_next(&zip, manifest, error);
    if (status) return status;
    if (!manifest->path || manifest->path_bytes != 13 || memcmp(manifest->path, "manifest.json", 13) != 0 ||
        manifest->bytes > TESS_BUNDLE_MAX_MANIFEST)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_FORMAT,
            "bundle: expected manifest.json, of at most 16 MiB, as the first member, got '%.*s' of %llu bytes. Make it "
            "with 'bundle make'.",
            manifest->path ? (int)manifest->path_bytes : 0, manifest->path ? manifest->path : "", (unsigned long long)manifest->bytes);
    for (;;) {
        status = tess_zip_next(&zip, &member, error);
        if (status || !member.path) return status;
        if (signature->path)
            return tess_bundle_refuse(error, TESS_BUNDLE_FORMAT, "bundle: expected no member after its signature, got one.");
        if (member.path_bytes == 9 && memcmp(member.path, "signature", 9) == 0) *signature = member;
    }
}

/* Once more, beside the manifest: what it lists is all there is. The walk before found no mistake. */
static int32_t check_members(const TessBundle *b, const TessZipMember *signature, TessBundleError *error) {
    TessZip zip;
    TessZipMember member;
    int32_t i, status = tess_zip_begin(&zip, b->file, b->size, error);
    if (!status) status = tess_zip_next(&zip, &member, error);
    for (i = 0; !status && i < b->n_members; ++i) {
        const TessBundleMember *expected = &b->members[i];
        status = tess_zip_next(&zip, &member, error);
        if (status) break;
        if (!member.path || member.path_bytes != strlen(expected->path) || memcmp(member.path, expected->path, member.path_bytes) != 0 ||
            member.offset != expected->offset || member.bytes != (uint64_t)expected->bytes)
            return tess_bundle_refuse(
                error, TESS_BUNDLE_FORMAT,
                "bundle: expected the member '%.100s' of %llu bytes at byte %llu, as the manifest says, got another. It "
                "was changed; make it with 'bundle make'.",
                expected->path, (unsigned long long)expected->bytes, (unsigned long long)expected->offset);
    }
    if (status) return status;
    if (zip.next != b->end || (signature->path ? signature->header != b->end || zip.members != 1 : zip.members != 0))
        return tess_bundle_refuse(error, TESS_BUNDLE_FORMAT,
                                  "bundle: expected the end at byte %llu, as the manifest says, got more members or less.",
                                  (unsigned long long)b->end);
    return TESS_OK;
}

static int32_t check_signature(const TessBundleOptions *options, const void *file, const TessZipMember *signature, const char *manifest,
                               uint64_t manifest_bytes, TessBundleError *error) {
    enum { MOST = 1024 };
    char text[MOST + 1];
    unsigned char key[32], signed_by[64];
    const char *name = "";
    int32_t status;
    if (!signature->path || signature->bytes > MOST)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_SIGNATURE,
            "bundle: expected a signature of the key that is demanded, got none. Sign it with 'bundle make --key', or demand no key.");
    memcpy(text, (const char *)file + signature->offset, signature->bytes);
    status = tess_bundle_read_signature(text, signature->bytes, key, signed_by, &name, error);
    if (status) return status;
    if (memcmp(key, options->public_key, sizeof key) != 0)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_SIGNATURE,
            "bundle: expected a signature of the key that is demanded, got one of another key ('%.64s'). Get it from who has the key.",
            name);
    if (!options->verify(signed_by, manifest, manifest_bytes, options->public_key))
        return tess_bundle_refuse(
            error, TESS_BUNDLE_SIGNATURE,
            "bundle: expected a signature that fits manifest.json, got one that does not. One of both was changed; get the "
            "bundle again.");
    return TESS_OK;
}

static int32_t check_options(const TessBundleOptions *options, TessBundleError *error) {
    if (options->size < sizeof *options)
        return tess_bundle_refuse(error, TESS_STRUCT_SIZE, "options: expected a size of %llu, got %u. Make them with tess_bundle_options.",
                                  (unsigned long long)sizeof *options, options->size);
    if (options->flags & ~(uint32_t)TESS_BUNDLE_TRUST_WEIGHTS)
        return tess_bundle_refuse(error, TESS_BUNDLE_OPTIONS, "options: expected flags that this library knows, got 0x%x.", options->flags);
    if (options->public_key && !options->verify)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_OPTIONS,
            "options: expected a function that verifies beside the key, got null. Give tess_ed25519_verify as 'verify'.");
    return TESS_OK;
}

static int32_t read_bundle(const void *file, uint64_t size, int is_mapped, const TessBundleOptions *options, void *memory, uint64_t bytes,
                           TessBundle **bundle, TessBundleError *error) {
    const TessBundleOptions standard = tess_bundle_options();
    TessZipMember manifest, signature;
    TessBundle *b = memory;
    char *text = (char *)memory + STRUCT_BYTES;
    int32_t status;
    if (!options) options = &standard;
    if ((status = check_options(options, error)) != 0) return status;
    if ((status = read_structure(file, size, &manifest, &signature, error)) != 0) return status;
    if ((uintptr_t)memory % TESS_BUNDLE_ALIGNMENT != 0 || bytes < STRUCT_BYTES + manifest.bytes + 8)
        return tess_bundle_refuse(error, TESS_BUNDLE_MEMORY, "bundle: expected %llu bytes of memory, aligned to 8, got %llu at %p.",
                                  (unsigned long long)(STRUCT_BYTES + tess_bundle_manifest_memory(manifest.bytes)),
                                  (unsigned long long)bytes, memory);
    memset(b, 0, sizeof *b);
    b->file = file;
    b->size = size;
    b->is_mapped = is_mapped;
    b->trusts_weights = (options->flags & TESS_BUNDLE_TRUST_WEIGHTS) != 0;
    b->features_off = options->features_off;
    memcpy(text, (const char *)file + manifest.offset, manifest.bytes);
    if (tess_zip_crc(text, manifest.bytes) != manifest.crc)
        return tess_bundle_refuse(error, TESS_BUNDLE_HASH,
                                  "manifest.json: expected its CRC-32 to be %08x, got another. Get the bundle again.", manifest.crc);
    if (options->public_key && (status = check_signature(options, file, &signature, text, manifest.bytes, error)) != 0) return status;
    status = tess_bundle_read_manifest(b, text, bytes - STRUCT_BYTES, manifest.bytes, tess_cpu_features() & ~options->features_off, error);
    if (!status) status = check_members(b, &signature, error);
    if (!status) *bundle = b;
    return status;
}

int32_t tess_bundle_read_bytes(const void *file, uint64_t size, uint64_t *bytes, TessBundleError *error) {
    TessZipMember manifest, signature;
    int32_t status;
    if (!file || !bytes) return refuse_null(error, "the bytes of a bundle and a place for a number");
    *bytes = 0;
    status = read_structure(file, size, &manifest, &signature, error);
    if (!status) *bytes = STRUCT_BYTES + tess_bundle_manifest_memory(manifest.bytes);
    return status;
}

int32_t tess_bundle_read(const void *file, uint64_t size, const TessBundleOptions *options, void *memory, uint64_t bytes,
                         TessBundle **bundle, TessBundleError *error) {
    if (!file || !memory || !bundle) return refuse_null(error, "the bytes of a bundle, memory, and a place for what is opened");
    *bundle = NULL;
    if ((uintptr_t)file % TESS_ZIP_ALIGNMENT != 0)
        return tess_bundle_refuse(error, TESS_BUNDLE_FORMAT, "bundle: expected its bytes aligned to 64, got them at %p.", file);
    return read_bundle(file, size, 0, options, memory, bytes, bundle, error);
}

int32_t tess_bundle_bytes(const char *path, uint64_t *bytes, TessBundleError *error) {
    const void *file;
    uint64_t size;
    int32_t status;
    if (!path || !bytes) return refuse_null(error, "a path and a place for a number");
    *bytes = 0;
    status = tess_bundle_map(path, &file, &size, error);
    if (!status) {
        status = tess_bundle_read_bytes(file, size, bytes, error);
        tess_bundle_unmap(file, size);
    }
    if (status) tess_bundle_blame_file(error, path);
    return status;
}

int32_t tess_bundle_open(const char *path, const TessBundleOptions *options, void *memory, uint64_t bytes, TessBundle **bundle,
                         TessBundleError *error) {
    const void *file;
    uint64_t size;
    int32_t status;
    if (!path || !memory || !bundle) return refuse_null(error, "a path, memory, and a place for what is opened");
    *bundle = NULL;
    status = tess_bundle_map(path, &file, &size, error);
    if (!status) {
        status = read_bundle(file, size, 1, options, memory, bytes, bundle, error);
        if (status) tess_bundle_unmap(file, size);
    }
    if (status) tess_bundle_blame_file(error, path);
    return status;
}

void tess_bundle_close(TessBundle *b) {
    int32_t i;
    if (!b) return;
    for (i = 0; i < b->n_libraries; ++i) tess_loaded_close(b->libraries[i].loaded);
    if (b->is_mapped) tess_bundle_unmap(b->file, b->size);
    memset(b, 0, sizeof *b);
}

static int32_t refuse_hash(TessBundleError *error, const char *path) {
    return tess_bundle_refuse(error, TESS_BUNDLE_HASH,
                              "member '%.100s': expected the bytes that the manifest hashed, got others. Get the bundle again.", path);
}

/* Hashes a member, once. */
static int32_t check_member(TessBundleMember *member, const TessBundle *b, TessBundleError *error) {
    unsigned char hash[TESS_SHA256_BYTES];
    if (__atomic_load_n(&member->is_sound, __ATOMIC_ACQUIRE)) return TESS_OK;
    tess_sha256(b->file + member->offset, (uint64_t)member->bytes, hash);
    if (memcmp(hash, member->sha256, sizeof hash) != 0) return refuse_hash(error, member->path);
    __atomic_store_n(&member->is_sound, 1, __ATOMIC_RELEASE);
    return TESS_OK;
}

/* Copies an archive, hashes the copy and loads that: what was hashed is what runs. */
static int32_t load_archive(const TessBundle *b, const TessBundleMember *member, TessLoaded **loaded, TessBundleError *error) {
    const uint64_t size = (uint64_t)member->bytes;
    unsigned char hash[TESS_SHA256_BYTES];
    TessLoadError why;
    int32_t status = TESS_OK;
    void *copy = size == 0 || size > TESS_LOAD_MAX_BYTES ? NULL : tess_bundle_take(size);
    if (!copy)
        return tess_bundle_refuse(error, TESS_BUNDLE_CODE, "member '%.100s': expected 1 to 2^30 bytes that memory has room for, got %llu.",
                                  member->path, (unsigned long long)size);
    memcpy(copy, b->file + member->offset, size);
    tess_sha256(copy, size, hash);
    if (memcmp(hash, member->sha256, sizeof hash) != 0) status = refuse_hash(error, member->path);
    else if (tess_load_archive(copy, size, loaded, &why) != TESS_LOAD_OK)
        status = tess_bundle_refuse(error, TESS_BUNDLE_CODE, "member '%.100s': %.800s", member->path, why.text);
    tess_bundle_give(copy, size);
    return status;
}

/* The code of a library, loaded once: of two threads that load it the second takes the first one's. */
static int32_t library_of(const TessBundle *b, int32_t number, TessLoaded **loaded, TessBundleError *error) {
    TessBundleLibrary *library = &b->libraries[number];
    TessLoaded *first = NULL;
    int32_t status;
    *loaded = __atomic_load_n(&library->loaded, __ATOMIC_ACQUIRE);
    if (*loaded) return TESS_OK;
    status = load_archive(b, &b->members[library->archive], loaded, error);
    if (status) return status;
    if (!__atomic_compare_exchange_n(&library->loaded, &first, *loaded, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        tess_loaded_close(*loaded);
        *loaded = first;
    }
    return TESS_OK;
}

static int32_t find_kernel(const TessBundle *b, const char *name, const TessBundleKernel **kernel, TessBundleError *error) {
    const int32_t found = tess_bundle_find_kernel(b, name);
    if (found == TESS_BUNDLE_NONE)
        return tess_bundle_refuse(error, TESS_BUNDLE_KERNEL,
                                  "bundle '%.100s': expected one of its %d kernels ('%.100s' is the first), got '%.100s'.", b->name,
                                  b->n_kernels, b->n_kernels ? b->kernels[b->by_name[0]].name : "", name);
    *kernel = &b->kernels[found];
    if ((*kernel)->target == TESS_BUNDLE_NONE)
        return tess_bundle_refuse(
            error, TESS_BUNDLE_TARGET,
            "kernel '%.100s': expected code that this processor runs, got %d targets of others. Make the bundle for a lesser target "
            "too.",
            name, b->n_targets);
    return TESS_OK;
}

int32_t tess_bundle_kernel(const TessBundle *b, const char *name, TessKernel *kernel, TessBundleError *error) {
    const TessBundleKernel *known = NULL;
    TessLoaded *loaded;
    int32_t (*describe)(TessKernel *);
    char symbol[300];
    void *address;
    int32_t status;
    if (!b || !name || !kernel) return refuse_null(error, "a bundle, a name, and a place for a kernel");
    if ((status = find_kernel(b, name, &known, error)) != 0) return status;
    if ((status = library_of(b, known->library, &loaded, error)) != 0) return status;
    snprintf(symbol, sizeof symbol, "%s_describe", known->name);
    address = tess_loaded_symbol(loaded, symbol);
    if (!address)
        return tess_bundle_refuse(error, TESS_BUNDLE_CODE,
                                  "member '%.100s': expected the kernel '%.100s' in it, got a library without. Make the bundle again.",
                                  b->libraries[known->library].path, name);
    memcpy(&describe, &address, sizeof address);
    status = describe(kernel);
    if (status)
        tess_bundle_refuse(error, status, "kernel '%.100s': expected one for this runtime, got status %s. Link a newer runtime.", name,
                           tess_status_kind(status));
    return status;
}

/* A tensor of a member, which is hashed if it is to be. */
static int32_t check_tensor(const TessBundle *b, int32_t member, TessBundleError *error) {
    return b->trusts_weights ? TESS_OK : check_member(&b->members[member], b, error);
}

static int32_t tensor_of(const TessBundle *b, const TessBundleTensor *known, TessTensor *tensor, TessBundleError *error) {
    const int32_t status = check_tensor(b, b->weights, error);
    if (status) return status;
    *tensor = tess_dense((void *)(uintptr_t)(b->file + known->offset), TESS_F32, known->rank, known->extents);
    tensor->type = known->type;
    return TESS_OK;
}

int32_t tess_bundle_tensor(const TessBundle *b, const char *name, TessTensor *tensor, TessBundleError *error) {
    int32_t found;
    if (!b || !name || !tensor) return refuse_null(error, "a bundle, a name, and a place for a tensor");
    found = tess_bundle_find_tensor(b, name);
    if (found == TESS_BUNDLE_NONE)
        return tess_bundle_refuse(error, TESS_BUNDLE_TENSOR,
                                  "bundle '%.100s': expected one of its %d tensors ('%.100s' is the first), got '%.100s'.", b->name,
                                  b->n_tensors, b->n_tensors ? b->tensors[0].name : "", name);
    return tensor_of(b, &b->tensors[found], tensor, error);
}

int32_t tess_bundle_weight(const TessBundle *b, const char *kernel, const char *argument, TessTensor *tensor, TessBundleError *error) {
    const TessBundleKernel *known = NULL;
    const char *layout = NULL, *function = "";
    int32_t i, number = TESS_BUNDLE_NONE, status;
    if (!b || !kernel || !argument || !tensor) return refuse_null(error, "a bundle, two names, and a place for a tensor");
    if ((status = find_kernel(b, kernel, &known, error)) != 0) return status;
    for (i = 0; i < known->n_weights; ++i)
        if (strcmp(known->weights[i].argument, argument) == 0) number = known->weights[i].tensor;
    if (number == TESS_BUNDLE_NONE)
        return tess_bundle_refuse(error, TESS_BUNDLE_TENSOR,
                                  "kernel '%.100s': expected an argument that is a weight, got '%.100s'. The caller has its tensor.",
                                  kernel, argument);
    for (i = 0; i < known->n_packings; ++i)
        if (strcmp(known->packings[i].argument, argument) == 0) layout = known->packings[i].layout, function = known->packings[i].function;
    if (!layout) return tensor_of(b, &b->tensors[number], tensor, error);
    for (i = 0; i < b->n_packed; ++i)
        if (b->packed[i].tensor == number && strcmp(b->packed[i].layout, layout) == 0) {
            const TessBundleMember *member = &b->members[b->packed[i].member];
            if ((status = check_tensor(b, b->packed[i].member, error)) != 0) return status;
            *tensor = tess_dense((void *)(uintptr_t)(b->file + member->offset), TESS_U8, 1, &member->bytes);
            return TESS_OK;
        }
    return tess_bundle_refuse(
        error, TESS_BUNDLE_PACKED,
        "kernel '%.100s', argument '%.100s': expected tensor '%.100s' packed in layout %.20s, got none in the bundle. Pack it by "
        "'%.100s', or make the bundle with packed weights.",
        kernel, argument, b->tensors[number].name, layout, function);
}

int32_t tess_bundle_member(const TessBundle *b, const char *path, const void **data, uint64_t *bytes, TessBundleError *error) {
    int32_t found, status;
    if (!b || !path || !data || !bytes) return refuse_null(error, "a bundle, a path, and places for an address and a number");
    found = tess_bundle_find_member(b, path);
    if (found == TESS_BUNDLE_NONE)
        return tess_bundle_refuse(error, TESS_NO_SUCH, "bundle '%.100s': expected one of its %d members, got '%.100s'.", b->name,
                                  b->n_members, path);
    if ((status = check_member(&b->members[found], b, error)) != 0) return status;
    *data = b->file + b->members[found].offset;
    *bytes = (uint64_t)b->members[found].bytes;
    return TESS_OK;
}

int32_t tess_bundle_info(const TessBundle *b, TessBundleInfo *info) {
    if (!b || !info) return TESS_NULL_ARGUMENT;
    if (info->size < sizeof *info) return TESS_STRUCT_SIZE;
    info->flags = 0;
    info->name = b->name;
    info->kernels = (uint32_t)b->n_kernels;
    info->tensors = (uint32_t)b->n_tensors;
    info->replay = b->replay;
    info->targets = (uint32_t)b->n_targets;
    info->reserved = 0;
    return TESS_OK;
}

int32_t tess_bundle_target_info(const TessBundle *b, uint32_t index, TessBundleTargetInfo *info) {
    if (!b || !info) return TESS_NULL_ARGUMENT;
    if (info->size < sizeof *info) return TESS_STRUCT_SIZE;
    if (index >= (uint32_t)b->n_targets) return TESS_NO_SUCH;
    info->flags = 0;
    info->name = b->targets[index].name;
    info->arch = b->targets[index].arch;
    info->cpu_features = b->targets[index].features;
    info->runs_here = b->targets[index].runs_here;
    info->reserved = 0;
    return TESS_OK;
}

int32_t tess_bundle_kernel_info(const TessBundle *b, uint32_t index, TessBundleKernelInfo *info) {
    const TessBundleKernel *kernel;
    if (!b || !info) return TESS_NULL_ARGUMENT;
    if (info->size < sizeof *info) return TESS_STRUCT_SIZE;
    if (index >= (uint32_t)b->n_kernels) return TESS_NO_SUCH;
    kernel = &b->kernels[index];
    info->flags = 0;
    info->name = kernel->name;
    info->algorithm = kernel->algorithm;
    info->target = kernel->target == TESS_BUNDLE_NONE ? NULL : b->targets[kernel->target].name;
    info->bits = kernel->bits;
    info->schedule = kernel->schedule;
    return TESS_OK;
}

const char *tess_bundle_tensor_name(const TessBundle *b, uint32_t index) {
    return b && index < (uint32_t)b->n_tensors ? b->tensors[index].name : NULL;
}
