#include "runtime/state/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "runtime/state/atomic_file.h"
#include "runtime/state/xxh64.h"

namespace tessera::state {

namespace {

// Before the bytes of a page. Numbers are the machine's; another one's have another version.
struct PageHeader {
    char magic[8];
    uint32_t version, tokens;
    uint64_t id, bytes, hash, header_hash;
};

struct SequenceHeader {
    char magic[8];
    uint32_t version, tokens;
    StoredSequence sequence;
    uint64_t hash, header_hash;  // of the ids, and of what is before
};

constexpr char page_magic[] = "TESSPAGE", sequence_magic[] = "TESSSEQU";
constexpr uint32_t version = 1;
constexpr uint64_t max_id = UINT64_C(1) << 62;  // no cache comes so far

template <class Header>
uint64_t hash_of(const Header &header) {
    return xxh64(&header, offsetof(Header, header_hash));
}

struct Name {
    char text[48];
    Name(const char *what, uint64_t id) { std::snprintf(text, sizeof text, "%s-%016" PRIx64, what, id); }
};

// An open file, or none with errno.
struct Opened {
    int file;
    Opened(int folder, const char *name) : file(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
    ~Opened() {
        if (file >= 0) ::close(file);
    }
    Opened(const Opened &) = delete;
    uint64_t size() const {
        struct stat s;
        return fstat(file, &s) == 0 && S_ISREG(s.st_mode) ? static_cast<uint64_t>(s.st_size) : 0;
    }
};

}  // namespace

uint64_t Store::bytes(const TessCacheConfig &config) {
    uint64_t most = 0;
    if (config.hooks.get)
        for (int32_t p = 0; p < config.pieces; p++) most = most > config.piece[p].bytes ? most : config.piece[p].bytes;
    return static_cast<uint64_t>(config.pieces) * sizeof(TessCachePiece) + (most + 7) / 8 * 8;
}

TessStateStatus Store::open(const TessCacheConfig &config, void *memory, TessStateError *error) {
    pieces_ = static_cast<TessCachePiece *>(memory);
    staging_ = reinterpret_cast<unsigned char *>(pieces_ + config.pieces);
    count_ = config.pieces, page_tokens_ = config.page_tokens, hooks_ = config.hooks, sync_ = config.no_sync == 0;
    outside_ = static_cast<unsigned char *>(config.outside);
    for (int32_t p = 0; p < count_; p++) pieces_[p] = config.piece[p], page_bytes_ += config.piece[p].bytes;
    if (!config.folder || config.outside_pages == 0) return TESS_STATE_OK;
    folder_ = ::open(config.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return refuse_file(error, "open as a folder", config.folder, errno);
    lock_ = openat(folder_, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) return refuse_file(error, "write in", config.folder, errno);
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return TESS_STATE_OK;
    if (errno != EWOULDBLOCK) return refuse_file(error, "lock", config.folder, errno);
    return refuse(error, TESS_STATE_BUSY, "folder '%.200s': another cache uses it. Give each one a folder of its own.", config.folder);
}

void Store::close() {
    if (lock_ >= 0) ::close(lock_);
    if (folder_ >= 0) ::close(folder_);
    lock_ = folder_ = -1;
}

unsigned char *Store::place(int32_t piece, uint32_t frame) const {
    return static_cast<unsigned char *>(pieces_[piece].data) + frame * pieces_[piece].stride;
}

void Store::copy(uint32_t from, uint32_t to) const {
    for (int32_t p = 0; p < count_; p++) std::memcpy(place(p, to), place(p, from), pieces_[p].bytes);
}

// The bytes of a piece where the host can read them; null where the hook fails.
const void *Store::taken(int32_t piece, uint32_t frame, TessStateError *error) {
    if (!hooks_.get) return place(piece, frame);
    if (hooks_.get(hooks_.state, piece, static_cast<int32_t>(frame), staging_, pieces_[piece].bytes) == 0) return staging_;
    refuse(error, TESS_STATE_FILE, "page %" PRIu32 ": the hook 'get' fails for its piece %" PRId32 ".", frame, piece);
    return nullptr;
}

TessStateStatus Store::put(uint32_t slot, uint64_t id, uint32_t frame, uint64_t *hash, TessStateError *error) {
    Xxh64 sum;
    unsigned char *to = outside_ ? outside_ + slot * page_bytes_ : nullptr;
    for (int32_t p = 0; p < count_; p++) {
        const void *from = taken(p, frame, error);
        if (!from) return TESS_STATE_FILE;
        sum.add(from, pieces_[p].bytes);
        if (to) std::memcpy(to, from, pieces_[p].bytes), to += pieces_[p].bytes;
    }
    *hash = sum.value();
    return outside_ ? TESS_STATE_OK : put_file(id, frame, *hash, error);
}

TessStateStatus Store::put_file(uint64_t id, uint32_t frame, uint64_t hash, TessStateError *error) {
    PageHeader header = {};
    std::memcpy(header.magic, page_magic, 8);
    header.version = version, header.tokens = static_cast<uint32_t>(page_tokens_);
    header.id = id, header.bytes = page_bytes_, header.hash = hash;
    header.header_hash = hash_of(header);
    AtomicFile file;
    TessStateStatus status = file.begin(folder_, Name("page", id).text, error);
    if (status == TESS_STATE_OK) status = file.write(&header, sizeof header, error);
    for (int32_t p = 0; p < count_ && status == TESS_STATE_OK; p++) {
        const void *from = taken(p, frame, error);
        status = from ? file.write(from, pieces_[p].bytes, error) : TESS_STATE_FILE;
    }
    return status == TESS_STATE_OK ? file.finish(sync_, error) : status;
}

TessStateStatus Store::get(uint32_t slot, uint64_t id, uint64_t hash, uint32_t frame, TessStateError *error) {
    if (!outside_) return get_file(id, hash, frame, error);
    Xxh64 sum;
    const unsigned char *from = outside_ + slot * page_bytes_;
    for (int32_t p = 0; p < count_; p++, from += pieces_[p - 1].bytes) {
        sum.add(from, pieces_[p].bytes);
        if (!hooks_.put) std::memcpy(place(p, frame), from, pieces_[p].bytes);
        else if (hooks_.put(hooks_.state, p, static_cast<int32_t>(frame), from, pieces_[p].bytes) != 0)
            return refuse(error, TESS_STATE_FILE, "page %" PRIu32 ": the hook 'put' fails for its piece %" PRId32 ".", frame, p);
    }
    if (sum.value() == hash) return TESS_STATE_OK;
    return refuse(error, TESS_STATE_LOST,
                  "place %" PRIu32 " outside: expected bytes of hash %016" PRIx64 ", got %016" PRIx64 ". Its memory was written.", slot,
                  hash, sum.value());
}

TessStateStatus Store::get_file(uint64_t id, uint64_t hash, uint32_t frame, TessStateError *error) {
    const Name name("page", id);
    const TessStateStatus status = look(id, error);
    if (status != TESS_STATE_OK) return status;
    const Opened opened(folder_, name.text);
    PageHeader header;
    if (opened.file < 0 || read_up_to(opened.file, &header, sizeof header) != sizeof header)
        return refuse_file(error, "read", name.text, errno);
    Xxh64 sum;
    for (int32_t p = 0; p < count_; p++) {
        void *to = hooks_.put ? staging_ : place(p, frame);
        const int64_t got = read_up_to(opened.file, to, pieces_[p].bytes);
        if (got < 0) return refuse_file(error, "read", name.text, errno);
        if (static_cast<uint64_t>(got) < pieces_[p].bytes)
            return refuse(error, TESS_STATE_LOST, "file '%s' ends before its page does.", name.text);
        sum.add(to, pieces_[p].bytes);
        if (hooks_.put && hooks_.put(hooks_.state, p, static_cast<int32_t>(frame), to, pieces_[p].bytes) != 0)
            return refuse(error, TESS_STATE_FILE, "page %" PRIu32 ": the hook 'put' fails for its piece %" PRId32 ".", frame, p);
    }
    if (sum.value() == header.hash && (hash == 0 || hash == header.hash)) return TESS_STATE_OK;
    return refuse(error, TESS_STATE_LOST, "file '%s': expected bytes of hash %016" PRIx64 ", got %016" PRIx64 ". It is damaged.", name.text,
                  hash == 0 ? header.hash : hash, sum.value());
}

TessStateStatus Store::look(uint64_t id, TessStateError *error) const {
    const Name name("page", id);
    const Opened opened(folder_, name.text);
    if (opened.file < 0 && errno == ENOENT) return refuse(error, TESS_STATE_LOST, "file '%s' is missing.", name.text);
    if (opened.file < 0) return refuse_file(error, "read", name.text, errno);
    PageHeader header;
    const int64_t got = read_up_to(opened.file, &header, sizeof header);
    if (got < 0) return refuse_file(error, "read", name.text, errno);
    const bool is_page = got == sizeof header && std::memcmp(header.magic, page_magic, 8) == 0 && header.version == version &&
                         header.header_hash == hash_of(header) && header.id == id;
    if (is_page && (header.bytes != page_bytes_ || header.tokens != static_cast<uint32_t>(page_tokens_)))
        return refuse(error, TESS_STATE_FOREIGN,
                      "file '%s': expected a page of %" PRIu64 " bytes and %" PRId32 " tokens, got one of %" PRIu64 " bytes and %" PRIu32
                      " tokens. It is of another cache: create this one as that was, or give it a folder of its own.",
                      name.text, page_bytes_, page_tokens_, header.bytes, header.tokens);
    if (is_page && opened.size() == sizeof header + page_bytes_) return TESS_STATE_OK;
    return refuse(error, TESS_STATE_LOST, "file '%s': expected a page of %" PRIu64 " bytes and %" PRId32 " tokens; it is cut or damaged.",
                  name.text, page_bytes_, page_tokens_);
}

void Store::remove(uint64_t id) {
    if (folder_ >= 0 && id != 0) unlinkat(folder_, Name("page", id).text, 0);
}

void Store::remove_sequence(uint64_t id) {
    if (folder_ >= 0) unlinkat(folder_, Name("sequence", id).text, 0);
}

TessStateStatus Store::put_sequence(const StoredSequence &sequence, const uint64_t *ids, TessStateError *error) {
    if (folder_ < 0) return TESS_STATE_OK;
    SequenceHeader header = {};
    std::memcpy(header.magic, sequence_magic, 8);
    header.version = version, header.tokens = static_cast<uint32_t>(page_tokens_), header.sequence = sequence;
    const uint64_t bytes = static_cast<uint64_t>(sequence.entries) * sizeof *ids;
    header.hash = xxh64(ids, bytes);
    header.header_hash = hash_of(header);
    AtomicFile file;
    TessStateStatus status = file.begin(folder_, Name("sequence", sequence.id).text, error);
    if (status == TESS_STATE_OK) status = file.write(&header, sizeof header, error);
    if (status == TESS_STATE_OK) status = file.write(ids, bytes, error);
    return status == TESS_STATE_OK ? file.finish(sync_, error) : status;
}

TessStateStatus Store::get_sequence(uint64_t id, StoredSequence *sequence, uint64_t *ids, int32_t capacity, TessStateError *error) const {
    const Name name("sequence", id);
    const Opened opened(folder_, name.text);
    if (opened.file < 0) return refuse_file(error, "read", name.text, errno);
    SequenceHeader header;
    if (read_up_to(opened.file, &header, sizeof header) != sizeof header || std::memcmp(header.magic, sequence_magic, 8) != 0)
        return refuse(error, TESS_STATE_DAMAGED, "file '%s' is no sequence.", name.text);
    if (header.version != version || header.tokens != static_cast<uint32_t>(page_tokens_))
        return refuse(error, TESS_STATE_FOREIGN, "file '%s': expected version %u and pages of %" PRId32 " tokens, got %u and %u.",
                      name.text, version, page_tokens_, header.version, header.tokens);
    const StoredSequence &s = header.sequence;
    const bool fits =
        s.id == id && s.entries >= 0 && s.length >= 0 && s.begin >= 0 && s.begin <= s.length && s.keep >= 0 && s.keep <= s.length;
    if (header.header_hash != hash_of(header) || !fits)
        return refuse(error, TESS_STATE_DAMAGED, "file '%s': its header is damaged.", name.text);
    if (s.entries > capacity || s.entries != s.length / page_tokens_ + (s.length % page_tokens_ != 0))
        return refuse(error, TESS_STATE_LENGTH, "file '%s': expected at most %" PRId32 " pages, got %" PRId32 ".", name.text, capacity,
                      s.entries);
    const uint64_t bytes = static_cast<uint64_t>(s.entries) * sizeof *ids;
    if (opened.size() != sizeof header + bytes || read_up_to(opened.file, ids, bytes) != static_cast<int64_t>(bytes) ||
        xxh64(ids, bytes) != header.hash)
        return refuse(error, TESS_STATE_DAMAGED, "file '%s': its list of pages is damaged.", name.text);
    for (int32_t e = 0; e < s.entries; e++)
        if (ids[e] > max_id) return refuse(error, TESS_STATE_DAMAGED, "file '%s': its list of pages is damaged.", name.text);
    *sequence = s;
    return TESS_STATE_OK;
}

TessStateStatus Store::sync(TessStateError *error) {
    return folder_ < 0 || !sync_ ? TESS_STATE_OK : sync_folder(folder_, "the cache's folder", error);
}

TessStateStatus Store::list(void (*found)(void *state, char what, uint64_t id), void *state, TessStateError *error) {
    if (folder_ < 0) return TESS_STATE_OK;
    const int again = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = again < 0 ? nullptr : fdopendir(again);
    if (!all) {
        if (again >= 0) ::close(again);
        return refuse_file(error, "list", "the cache's folder", errno);
    }
    while (const dirent *entry = readdir(all)) {
        uint64_t id = 0;
        int page_end = 0, sequence_end = 0;
        const bool page = std::sscanf(entry->d_name, "page-%16" SCNx64 "%n", &id, &page_end) == 1 && page_end == 21;
        const bool sequence =
            !page && std::sscanf(entry->d_name, "sequence-%16" SCNx64 "%n", &id, &sequence_end) == 1 && sequence_end == 25;
        if ((!page && !sequence) || id == 0 || id > max_id) continue;  // not ours
        const char *rest = entry->d_name + (page ? page_end : sequence_end);
        if (std::strcmp(rest, ".new") == 0) unlinkat(folder_, entry->d_name, 0);
        if (*rest == 0) found(state, page ? 'p' : 's', id);
    }
    closedir(all);
    return TESS_STATE_OK;
}

}  // namespace tessera::state
