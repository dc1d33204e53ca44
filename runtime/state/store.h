// Where pages are while they are outside: a part of the host's memory, or files of a folder. Moves bytes, and knows no lock.
#pragma once
#include <cstdint>

#include "runtime/state/cache.h"
#include "runtime/state/refusal.h"

namespace tessera::state {

// What a sequence's file says, before the ids of its contents.
struct StoredSequence {
    uint64_t id, key;
    int32_t length, begin, keep, entries;
};

class Store {
public:
    // Bytes that `open` needs for the pieces; the memory has to be aligned to 8.
    static uint64_t bytes(const TessCacheConfig &config);
    // Takes the folder, where there is one, for itself. TESS_STATE_FILE, TESS_STATE_BUSY.
    TessStateStatus open(const TessCacheConfig &config, void *memory, TessStateError *error);
    void close();

    uint64_t page_bytes() const { return page_bytes_; }
    bool has_files() const { return folder_ >= 0; }
    bool is_host() const { return hooks_.get == nullptr; }

    // From the frame to the outside. Gives the hash of what was written.
    TessStateStatus put(uint32_t slot, uint64_t id, uint32_t frame, uint64_t *hash, TessStateError *error);
    // Back. TESS_STATE_LOST where it is missing, cut, damaged or has another hash than `hash`, which is not looked at where it is 0.
    TessStateStatus get(uint32_t slot, uint64_t id, uint64_t hash, uint32_t frame, TessStateError *error);
    // TESS_STATE_LOST where a page's file is missing, or its length or header is not right; reads no more than that.
    TessStateStatus look(uint64_t id, TessStateError *error) const;
    void remove(uint64_t id);  // a page's file

    // Sequences; nothing where there are no files. `ids` has an id for each entry, or 0.
    TessStateStatus put_sequence(const StoredSequence &sequence, const uint64_t *ids, TessStateError *error);
    // TESS_STATE_DAMAGED, TESS_STATE_FOREIGN; `ids` has room for `capacity`, else TESS_STATE_LENGTH.
    TessStateStatus get_sequence(uint64_t id, StoredSequence *sequence, uint64_t *ids, int32_t capacity, TessStateError *error) const;
    void remove_sequence(uint64_t id);

    // Forces what was renamed to the disk.
    TessStateStatus sync(TessStateError *error);

    // Calls `found(state, what, id)` for each file of a page ('p') and of a sequence ('s'), and removes those that were being written.
    TessStateStatus list(void (*found)(void *state, char what, uint64_t id), void *state, TessStateError *error);

    // A page to another one in the host's memory.
    void copy(uint32_t from, uint32_t to) const;

private:
    TessCachePiece *pieces_ = nullptr;
    unsigned char *staging_ = nullptr;  // one piece, where the host does not address pages
    unsigned char *outside_ = nullptr;
    TessCacheHooks hooks_ = {};
    uint64_t page_bytes_ = 0;
    int32_t count_ = 0, page_tokens_ = 0;
    int folder_ = -1, lock_ = -1;
    bool sync_ = true;

    unsigned char *place(int32_t piece, uint32_t frame) const;
    const void *taken(int32_t piece, uint32_t frame, TessStateError *error);
    TessStateStatus put_file(uint64_t id, uint32_t frame, uint64_t hash, TessStateError *error);
    TessStateStatus get_file(uint64_t id, uint64_t hash, uint32_t frame, TessStateError *error);
};

}  // namespace tessera::state
