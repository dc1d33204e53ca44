/** Kernels that are loaded while a program runs: maps the static library that `generate` writes (lib<name>.a) into this process, with no
 *  C compiler, linker or temporary file. Linux on x86-64 and 64-bit ARM. C99 and C++20.
 *
 *  The file counts as hostile: everything in it is checked before it is used, and what is not known is refused in words. Loading runs
 *  nothing of it. To call a kernel is to run what is in the file, as with any library. Instructions that the processor lacks are found by
 *  the call, which checks them first and gives TESS_CPU.
 *
 *  Functions may be called from any thread. What was loaded never changes. */
#ifndef TESSERA_LOAD_H
#define TESSERA_LOAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TessLoadStatus {
    TESS_LOAD_OK = 0,
    TESS_LOAD_ARGUMENT = 1,    /**< a null pointer */
    TESS_LOAD_FILE = 2,        /**< the file cannot be read */
    TESS_LOAD_MEMORY = 3,      /**< the system gives no memory */
    TESS_LOAD_SYSTEM = 4,      /**< the system lets no process run code that it loads so */
    TESS_LOAD_ARCHIVE = 5,     /**< the bytes are no whole static library */
    TESS_LOAD_OBJECT = 6,      /**< an object in it contradicts itself, or is not whole */
    TESS_LOAD_MACHINE = 7,     /**< it is for another processor or system */
    TESS_LOAD_UNSUPPORTED = 8, /**< it has something that no generated library has */
    TESS_LOAD_SYMBOL = 9,      /**< a symbol is defined twice, or nowhere */
    TESS_LOAD_RANGE = 10,      /**< an address does not fit where it has to be written */
    TESS_LOAD_LARGE = 11       /**< it needs more than TESS_LOAD_MAX_BYTES */
} TessLoadStatus;

/** Most bytes that a library may have, as a file and in memory. */
#define TESS_LOAD_MAX_BYTES (UINT64_C(1) << 30)

/** What is wrong: what it is about, what was expected and what came, and what to do. */
typedef struct TessLoadError {
    TessLoadStatus status;
    char text[1020]; /**< sentences, zero-terminated; printable ASCII but for the path of a file */
} TessLoadError;

/** A library in memory. */
typedef struct TessLoaded TessLoaded;

/** Loads a library that is `size` bytes in memory; they are not needed afterwards. Gives TESS_LOAD_OK, and the library to be closed in
 *  *loaded; or another status, null in *loaded and what is wrong in *error, which may be null. */
TessLoadStatus tess_load_archive(const void *bytes, uint64_t size, TessLoaded **loaded, TessLoadError *error);

/** The same of a file. */
TessLoadStatus tess_load_file(const char *path, TessLoaded **loaded, TessLoadError *error);

/** The address of what a library exports under a name, such as `linear`, `linear_table` or `linear_describe`; null where there is none. */
void *tess_loaded_symbol(const TessLoaded *loaded, const char *name);

/** Where its code is. */
void tess_loaded_code(const TessLoaded *loaded, const void **begin, uint64_t *bytes);

/** Takes it out of memory: its kernels, and what was made of them (plans), must not be used any more. Null is none. */
void tess_loaded_close(TessLoaded *loaded);

/** The stable name of a status, such as "load.symbol". */
const char *tess_load_status_id(TessLoadStatus status);

#ifdef __cplusplus
}
#endif
#endif
