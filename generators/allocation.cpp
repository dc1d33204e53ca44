// A generator's heap is mimalloc's: making a tile program is some ten thousand small allocations, and a search makes thousands of
// programs. The operators are written out since those of the library end the process where memory does.
#include <mimalloc.h>

#include <new>

static void *or_throw(void *allocated) {
    if (!allocated) throw std::bad_alloc();
    return allocated;
}

// The standard library's forms for arrays and that do not throw call these.
void *operator new(std::size_t bytes) { return or_throw(mi_malloc(bytes)); }
void *operator new(std::size_t bytes, std::align_val_t alignment) { return or_throw(mi_malloc_aligned(bytes, static_cast<std::size_t>(alignment))); }
void operator delete(void *allocated) noexcept { mi_free(allocated); }
void operator delete(void *allocated, std::size_t) noexcept { mi_free(allocated); }
void operator delete(void *allocated, std::align_val_t) noexcept { mi_free(allocated); }
void operator delete(void *allocated, std::size_t, std::align_val_t) noexcept { mi_free(allocated); }
