/** What is known of a bundle that is open: its manifest, read with suspicion into memory of the caller. Texts are in a copy of the manifest
 *  there, so the file may do what it likes afterwards. */
#ifndef TESSERA_BUNDLE_MANIFEST_H
#define TESSERA_BUNDLE_MANIFEST_H

#include "runtime/bundle/bundle.h"
#include "runtime/crypto/sha256.h"
#include "runtime/load/load.h"

enum { TESS_BUNDLE_NONE = -1 };

typedef struct TessBundleMember {
    const char *path;
    uint64_t offset;
    int64_t bytes; /**< which a packed tensor's extent points to */
    unsigned char sha256[TESS_SHA256_BYTES];
    int is_sound; /**< whether it was hashed and found right; atomically */
} TessBundleMember;

typedef struct TessBundleTarget {
    const char *name, *arch;
    uint64_t features; /**< those that this library knows */
    int32_t runs_here;
} TessBundleTarget;

typedef struct TessBundleLibrary {
    const char *path;   /**< of its archive */
    int32_t archive;    /**< a member */
    TessLoaded *loaded; /**< or null; atomically */
} TessBundleLibrary;

/** An argument that the chosen code takes packed. */
typedef struct TessBundlePacking {
    const char *argument, *layout, *function;
} TessBundlePacking;

typedef struct TessBundleWeight {
    const char *argument;
    int32_t tensor;
} TessBundleWeight;

typedef struct TessBundleKernel {
    const char *name, *algorithm;
    const char *bits, *schedule; /**< of the chosen code */
    const TessBundlePacking *packings;
    const TessBundleWeight *weights;
    int32_t n_packings, n_weights;
    int32_t target, library; /**< of the chosen code; TESS_BUNDLE_NONE where none runs here */
} TessBundleKernel;

typedef struct TessBundleTensor {
    const char *name;
    TessType type;
    int32_t rank;
    int64_t extents[TESS_MAX_RANK];
    uint64_t offset, bytes;
} TessBundleTensor;

typedef struct TessBundlePacked {
    const char *layout, *path;
    int32_t tensor, member;
} TessBundlePacked;

struct TessBundle {
    const unsigned char *file;
    uint64_t size;
    int is_mapped, trusts_weights;
    const char *name, *replay;
    TessBundleTarget *targets;
    TessBundleLibrary *libraries;
    TessBundleKernel *kernels;
    int32_t *by_name; /**< kernels in the order of their names */
    TessBundleTensor *tensors;
    TessBundlePacked *packed;
    TessBundleMember *members;
    int32_t n_targets, n_libraries, n_kernels, n_tensors, n_packed, n_members;
    int32_t weights; /**< the member, or TESS_BUNDLE_NONE */
    uint64_t end, features_off;
};

/** Bytes of memory that are always enough beside the struct. */
uint64_t tess_bundle_manifest_memory(uint64_t manifest_bytes);

/** Reads the manifest, which is the first `manifest_bytes` of `memory`; what is known goes behind it. `features` are those that code may
 *  need. The file's size is known. */
int32_t tess_bundle_read_manifest(TessBundle *bundle, void *memory, uint64_t bytes, uint64_t manifest_bytes, uint64_t features,
                                  TessBundleError *error);

/** Reads a signature of Ed25519: the key and 64 bytes. `text` is changed. */
int32_t tess_bundle_read_signature(char *text, uint64_t bytes, unsigned char public_key[32], unsigned char signature[64],
                                   const char **key_name, TessBundleError *error);

/** A number in the list, or TESS_BUNDLE_NONE. */
int32_t tess_bundle_find_member(const TessBundle *bundle, const char *path);
int32_t tess_bundle_find_tensor(const TessBundle *bundle, const char *name);
int32_t tess_bundle_find_kernel(const TessBundle *bundle, const char *name);

#endif
