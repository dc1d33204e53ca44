// A generator's heap is mimalloc's: making a tile program is some ten thousand small allocations, and a search makes thousands of
// programs. All operators are written out, since those of the library, which would take the place of what is missing here, end the
// process where memory does.
#include <mimalloc.h>

#include <new>

static void *or_throw(void *allocated) {
    if (!allocated) throw std::bad_alloc();
    return allocated;
}

static size_t bytes_of(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

void *operator new(size_t bytes) { return or_throw(mi_malloc(bytes)); }
void *operator new[](size_t bytes) { return or_throw(mi_malloc(bytes)); }
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return mi_malloc(bytes); }
void *operator new[](size_t bytes, const std::nothrow_t &) noexcept { return mi_malloc(bytes); }
void *operator new(size_t bytes, std::align_val_t alignment) { return or_throw(mi_malloc_aligned(bytes, bytes_of(alignment))); }
void *operator new[](size_t bytes, std::align_val_t alignment) { return or_throw(mi_malloc_aligned(bytes, bytes_of(alignment))); }
void *operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
    return mi_malloc_aligned(bytes, bytes_of(alignment));
}
void *operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t &) noexcept {
    return mi_malloc_aligned(bytes, bytes_of(alignment));
}

void operator delete(void *allocated) noexcept { mi_free(allocated); }
void operator delete[](void *allocated) noexcept { mi_free(allocated); }
void operator delete(void *allocated, size_t) noexcept { mi_free(allocated); }
void operator delete[](void *allocated, size_t) noexcept { mi_free(allocated); }
void operator delete(void *allocated, const std::nothrow_t &) noexcept { mi_free(allocated); }
void operator delete[](void *allocated, const std::nothrow_t &) noexcept { mi_free(allocated); }
void operator delete(void *allocated, std::align_val_t) noexcept { mi_free(allocated); }
void operator delete[](void *allocated, std::align_val_t) noexcept { mi_free(allocated); }
void operator delete(void *allocated, size_t, std::align_val_t) noexcept { mi_free(allocated); }
void operator delete[](void *allocated, size_t, std::align_val_t) noexcept { mi_free(allocated); }
void operator delete(void *allocated, std::align_val_t, const std::nothrow_t &) noexcept { mi_free(allocated); }
void operator delete[](void *allocated, std::align_val_t, const std::nothrow_t &) noexcept { mi_free(allocated); }
