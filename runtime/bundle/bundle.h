/** Bundles (docs/bundle.md): one file with kernels for several processors and their weights, opened while a program runs. Linux on x86-64
 *  and 64-bit ARM. C99 and C++20.
 *
 *  The file counts as hostile: every offset, count and name in it is checked before it is used. Code is hashed before it is loaded, and
 *  weights before they are given; what was hashed of code is what runs. A signature says who made the bundle, if a key is demanded. But to
 *  call a kernel is to run what is in the file: open what you would run.
 *
 *  No heap, no thread, no program is started. What is known of a bundle lives in memory of the caller, the file is mapped, and code gets
 *  memory from the system as runtime/load says. The file must not be changed while it is open; replace it by renaming another one.
 *
 *  Functions return TESS_OK or a TESS_BUNDLE_… status; `error` may be null. Any thread may ask a bundle at any time. */
#ifndef TESSERA_BUNDLE_H
#define TESSERA_BUNDLE_H

#include "runtime/abi/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most bytes of a manifest, and most kernels and targets that this library takes. */
#define TESS_BUNDLE_MAX_MANIFEST 16777216
#define TESS_BUNDLE_MAX_KERNELS 16384
#define TESS_BUNDLE_MAX_TARGETS 64

/** Bytes to which the memory of a bundle must be aligned. */
#define TESS_BUNDLE_ALIGNMENT 8

/** What is wrong: what it is about, what was expected and what came, and what to do. */
typedef struct TessBundleError {
    int32_t status;
    char text[1020]; /**< sentences, zero-terminated; printable ASCII but for the path of a file */
} TessBundleError;

/** Flags of TessBundleOptions. */
enum {
    TESS_BUNDLE_TRUST_WEIGHTS = 1 /**< tensors are not hashed before they are given: 13 ms for 16 MB where the processor has no SHA */
};

typedef struct TessBundleOptions {
    uint32_t size;  /**< sizeof(TessBundleOptions) */
    uint32_t flags; /**< TESS_BUNDLE_TRUST_WEIGHTS */
    /** 32 bytes of an Ed25519 key. The bundle must be signed by it. Null: a signature is not looked at. */
    const unsigned char *public_key;
    /** Give tess_ed25519_verify (runtime/crypto/ed25519.h) with a key; a program that does not name it does not link it. */
    int (*verify)(const unsigned char signature[64], const void *message, uint64_t bytes, const unsigned char public_key[32]);
    /** Bits of tess_cpu_features that code must do without. Give the context of calls the same ones. */
    uint64_t features_off;
} TessBundleOptions;

/** Options that demand no key, and hash everything. */
static inline TessBundleOptions tess_bundle_options(void) {
    TessBundleOptions options;
    options.size = sizeof(TessBundleOptions);
    options.flags = 0;
    options.public_key = TESS_NULL;
    options.verify = TESS_NULL;
    options.features_off = 0;
    return options;
}

typedef struct TessBundle TessBundle;

/** Bytes of memory that are always enough to open this bundle: about three times its manifest. */
int32_t tess_bundle_bytes(const char *path, uint64_t *bytes, TessBundleError *error);

/** Opens a bundle: checks the whole file's structure, the signature where a key is demanded, and the manifest; chooses the code. `memory`
 *  is the bundle's until it is closed. Null options are those of tess_bundle_options. */
int32_t tess_bundle_open(const char *path, const TessBundleOptions *options, void *memory, uint64_t bytes, TessBundle **bundle,
                         TessBundleError *error);

/** The same of a file that is in memory already, aligned to 64 bytes; it has to stay as it is. */
int32_t tess_bundle_read_bytes(const void *file, uint64_t size, uint64_t *bytes, TessBundleError *error);
int32_t tess_bundle_read(const void *file, uint64_t size, const TessBundleOptions *options, void *memory, uint64_t bytes,
                         TessBundle **bundle, TessBundleError *error);

/** A kernel by its name: the best code for this processor, loaded at the first call. It lives as long as the bundle is open. */
int32_t tess_bundle_kernel(const TessBundle *bundle, const char *name, TessKernel *kernel, TessBundleError *error);

/** A tensor of the weights by its name: row-major, read only, in the mapping. Its extents live as long as the bundle is open. */
int32_t tess_bundle_tensor(const TessBundle *bundle, const char *name, TessTensor *tensor, TessBundleError *error);

/** What a kernel takes as an argument that is a weight: the tensor, or its packed form where the chosen code takes that. TESS_BUNDLE_TENSOR
 *  where the argument is no weight; TESS_BUNDLE_PACKED where the bundle lacks the packed form. */
int32_t tess_bundle_weight(const TessBundle *bundle, const char *kernel, const char *argument, TessTensor *tensor, TessBundleError *error);

/** The bytes of a member by its path, in the mapping, hashed before. */
int32_t tess_bundle_member(const TessBundle *bundle, const char *path, const void **data, uint64_t *bytes, TessBundleError *error);

/** What is in a bundle. Of this struct and the next two: write `size` first. Texts live as long as the bundle is open. */
typedef struct TessBundleInfo {
    uint32_t size, flags;
    const char *name;
    uint32_t kernels, tensors;
    const char *replay; /**< the path of what was recorded, or null */
    uint32_t targets, reserved;
} TessBundleInfo;

typedef struct TessBundleTargetInfo {
    uint32_t size, flags;
    const char *name, *arch;
    uint64_t cpu_features; /**< that its code needs, bits of tess_cpu_features; of those that this library knows */
    int32_t runs_here;     /**< whether this processor has all of them, and none was switched off when the bundle was opened */
    int32_t reserved;
} TessBundleTargetInfo;

typedef struct TessBundleKernelInfo {
    uint32_t size, flags;
    const char *name, *algorithm;
    const char *target;   /**< of the chosen code; null where this processor runs none of it, and then the next two are */
    const char *bits;     /**< the hash of the order of operations: equal hashes, equal results */
    const char *schedule; /**< its name; "" for plain loops */
} TessBundleKernelInfo;

/** TESS_NO_SUCH where `index` is not below the count. */
int32_t tess_bundle_info(const TessBundle *bundle, TessBundleInfo *info);
int32_t tess_bundle_target_info(const TessBundle *bundle, uint32_t index, TessBundleTargetInfo *info);
int32_t tess_bundle_kernel_info(const TessBundle *bundle, uint32_t index, TessBundleKernelInfo *info);
/** The name of a tensor, null where there is none; tensors are in the order of their names. */
const char *tess_bundle_tensor_name(const TessBundle *bundle, uint32_t index);

/** Takes its code and its mapping out of memory: kernels, plans and tensors of it must not be used any more. Null is none. */
void tess_bundle_close(TessBundle *bundle);

#ifdef __cplusplus
}
#endif
#endif
