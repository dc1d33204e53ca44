#include "runtime/state/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/bundle/json.h"
#include "runtime/bundle/stored_tensor.h"
#include "runtime/state/atomic_file.h"
#include "runtime/state/xxh64.h"

namespace tessera::state {

namespace {

constexpr uint64_t max_header = UINT64_C(16) << 20, chunk = UINT64_C(1) << 18;
constexpr char format[] = "state-1", metadata[] = "__metadata__", checksum_key[] = "tessera.checksum";

constexpr const char *type_names[] = {"F64", "I64",  "F32",     "I32",         "BF16",    "F16",         "I8",
                                      "U8",  "BOOL", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0"};

// As safetensors calls it; null where it has no name.
const char *name_of(TessType type) {
    for (const char *name : type_names) {
        const TessType known = tess_stored_type(name);
        if (known.code == type.code && known.bits == type.bits) return name;
    }
    return nullptr;
}

int32_t dtype_of(TessType type) { return type.code | type.bits << 8; }
uint64_t bytes_of(const TessTensor &t) { return tess_bytes(dtype_of(t.type), t.rank, t.extents); }
unsigned char *data_of(const TessTensor &t) { return static_cast<unsigned char *>(t.data) + t.byte_offset; }

bool is_dense(const TessTensor &t) {
    if (!t.strides) return true;
    int64_t expected = 1;
    for (int32_t axis = t.rank - 1; axis >= 0; axis--) {
        if (t.extents[axis] > 1 && t.strides[axis] != expected) return false;
        expected *= t.extents[axis];
    }
    return true;
}

TessStateStatus check(const TessNamedTensor &n, int32_t place, TessStateError *error) {
    const TessTensor &t = n.tensor;
    if (!n.name || !*n.name || std::strlen(n.name) > 4096 || std::strcmp(n.name, metadata) == 0)
        return refuse(error, TESS_STATE_ARGUMENT, "tensor %" PRId32 ": expected a name of 1 ..= 4096 bytes that is not '%s', got '%.60s'.",
                      place, metadata, n.name ? n.name : "");
    if (t.rank < 0 || t.rank > TESS_MAX_RANK || (t.rank > 0 && !t.extents))
        return refuse(error, TESS_STATE_ARGUMENT, "tensor '%.60s': expected extents and a rank of 0 ..= %d, got %" PRId32 ".", n.name,
                      TESS_MAX_RANK, t.rank);
    if (!name_of(t.type) || t.type.lanes != 1)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "tensor '%.60s': safetensors has no name for type code %d of %d bits. Store it in another type.", n.name, t.type.code,
                      t.type.bits);
    uint64_t bytes = t.type.bits / 8;
    for (int32_t axis = 0; axis < t.rank; axis++) {
        const int64_t extent = t.extents[axis];
        if (extent < 0 || (extent > 0 && bytes > (UINT64_C(1) << 62) / static_cast<uint64_t>(extent)))
            return refuse(error, TESS_STATE_ARGUMENT, "tensor '%.60s': extent %" PRId64 " of axis %" PRId32 " is negative or too large.",
                          n.name, extent, axis);
        bytes *= static_cast<uint64_t>(extent);
    }
    if (t.device.type != TESS_HOST && t.device.type != TESS_CUDA_HOST)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "tensor '%.60s': expected memory of the host, got device type %" PRId32 ". Copy it there first.", n.name,
                      t.device.type);
    if ((bytes > 0 && !t.data) || !is_dense(t))
        return refuse(error, TESS_STATE_ARGUMENT, "tensor '%.60s': expected data, row-major without gaps, got %s.", n.name,
                      t.data ? "other strides" : "null");
    return TESS_STATE_OK;
}

// Memory that is gone at the end.
template <class T>
struct Buffer {
    T *at;
    explicit Buffer(uint64_t count) : at(static_cast<T *>(std::calloc(count + 1, sizeof(T)))) {}
    ~Buffer() { std::free(at); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
};

TessStateStatus refuse_memory(uint64_t bytes, TessStateError *error) {
    return refuse(error, TESS_STATE_MEMORY, "the system gives no %" PRIu64 " bytes.", bytes);
}

// Text that is written behind itself; the buffer has room.
struct Text {
    char *begin, *end;
    void add(const char *text) {
        const size_t bytes = std::strlen(text);
        std::memcpy(end, text, bytes);
        end += bytes;
    }
    void add(int64_t number) { end += std::sprintf(end, "%" PRId64, number); }
    void add_string(const char *text) {
        *end++ = '"';
        for (; *text; text++) {
            const auto c = static_cast<unsigned char>(*text);
            if (c < ' ') end += std::sprintf(end, "\\u%04x", c);
            else if (c == '"' || c == '\\') *end++ = '\\', *end++ = *text;
            else *end++ = *text;
        }
        *end++ = '"';
    }
};

// Where a path's folder and name are.
struct Place {
    int folder = -1;
    const char *name = nullptr;
    ~Place() {
        if (folder >= 0) close(folder);
    }
    TessStateStatus open(const char *path, TessStateError *error) {
        char parent[4096];
        const char *slash = std::strrchr(path, '/');
        name = slash ? slash + 1 : path;
        if (std::strlen(path) >= sizeof parent || !*name)
            return refuse(error, TESS_STATE_ARGUMENT, "path '%.100s': expected the name of a file, with fewer than %zu bytes.", path,
                          sizeof parent);
        std::snprintf(parent, sizeof parent, "%.*s", slash ? static_cast<int>(slash - path) + 1 : 1, slash ? path : ".");
        folder = ::open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return folder >= 0 ? TESS_STATE_OK : refuse_file(error, "write", path, errno);
    }
};

// A file that is looked through: its header, and that its checksum is right.
class Reader {
public:
    Reader(const char *path, TessStateError *error) : path_(path), error_(error) {}
    ~Reader() {
        if (file_ >= 0) close(file_);
        std::free(header_);
    }
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    TessStateStatus open(TessStateHead *head) {
        file_ = ::open(path_, O_RDONLY | O_CLOEXEC);
        if (file_ < 0) return refuse_file(error_, "read", path_, errno);
        struct stat status;
        if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) return foreign("it is no regular file");
        unsigned char length[8] = {};
        if (read_up_to(file_, length, 8) != 8) return damaged("it has fewer than 8 bytes");
        for (int i = 7; i >= 0; i--) header_bytes_ = header_bytes_ << 8 | length[i];
        if (header_bytes_ > max_header) return foreign("its header is no safetensors header, or has more than 16 MiB");
        const auto size = static_cast<uint64_t>(status.st_size);
        if (header_bytes_ + 8 > size) return damaged("it ends within its header");
        data_bytes_ = size - 8 - header_bytes_;
        header_ = static_cast<char *>(std::malloc(header_bytes_ + 1));
        if (!header_) return refuse_memory(header_bytes_, error_);
        if (read_up_to(file_, header_, header_bytes_) != static_cast<int64_t>(header_bytes_)) return damaged("it ends within its header");
        const TessStateStatus read = read_metadata(head);
        return read == TESS_STATE_OK ? compare(length) : read;
    }

    // The members of the header, one after another; an entry's object is open.
    TessStateStatus each_entry(TessStateStatus (*found)(void *, const TessStoredTensor &, uint64_t begin, uint64_t bytes), void *state) {
        TessJson json;
        TessJsonValue key, value;
        tess_json_begin(&json, header_, header_bytes_, &value);
        while (tess_json_next(&json, &key, &value)) {
            if (tess_json_is(&key, metadata)) {
                tess_json_skip(&json, &value);
                continue;
            }
            Buffer<char> name(key.bytes);
            if (!name.at) return refuse_memory(key.bytes, error_);
            TessStoredTensor tensor = {};
            int64_t offsets[2] = {0, 0};
            if (value.kind != TESS_JSON_OBJECT || tess_json_copy(&key, name.at, key.bytes + 1) < 0 || !read_entry(json, tensor, offsets))
                return foreign("an entry of its header is none of a tensor that Tessera stores");
            tensor.name = name.at;
            const uint64_t bytes = tess_bytes(tensor.dtype, tensor.rank, tensor.extents);
            if (offsets[0] < 0 || static_cast<uint64_t>(offsets[1]) > data_bytes_ ||
                static_cast<uint64_t>(offsets[1] - offsets[0]) != bytes)
                return foreign("a tensor's bytes are not where its header says");
            const TessStateStatus status = found(state, tensor, static_cast<uint64_t>(offsets[0]), bytes);
            if (status != TESS_STATE_OK) return status;
        }
        return TESS_STATE_OK;
    }

    TessStateStatus read(uint64_t begin, void *data, uint64_t bytes) {
        if (lseek(file_, static_cast<off_t>(8 + header_bytes_ + begin), SEEK_SET) < 0) return refuse_file(error_, "read", path_, errno);
        const int64_t got = read_up_to(file_, data, bytes);
        if (got < 0) return refuse_file(error_, "read", path_, errno);
        return static_cast<uint64_t>(got) == bytes ? TESS_STATE_OK : damaged("it was cut while it was read");
    }

    TessStateStatus mismatch(const char *name, const char *what) {
        return refuse(error_, TESS_STATE_MISMATCH, "file '%.150s': tensor '%.100s' %s. Load it into the tensors that it was saved from.",
                      path_, name, what);
    }

private:
    const char *path_;
    TessStateError *error_;
    int file_ = -1;
    char *header_ = nullptr;
    uint64_t header_bytes_ = 0, data_bytes_ = 0;
    char *digits_ = nullptr;  // of the checksum, in the header

    TessStateStatus damaged(const char *how) {
        return refuse(error_, TESS_STATE_DAMAGED, "file '%.200s': %s. It is cut or damaged; use the one before it.", path_, how);
    }
    TessStateStatus foreign(const char *how) {
        return refuse(error_, TESS_STATE_FOREIGN, "file '%.200s': expected a state of version '%s', but %s.", path_, format, how);
    }

    static bool read_entry(TessJson &json, TessStoredTensor &tensor, int64_t offsets[2]) {
        TessJsonValue key, value, inner;
        char type[24];
        int32_t ends = 0;
        bool has_type = false, is_right = true;
        while (tess_json_next(&json, &key, &value)) {
            if (tess_json_is(&key, "dtype") && tess_json_copy(&value, type, sizeof type) >= 0) {
                const TessType known = tess_stored_type(type);
                has_type = known.bits != 0 && name_of(known) != nullptr;
                tensor.dtype = dtype_of(known);
            } else if (tess_json_is(&key, "shape") && value.kind == TESS_JSON_ARRAY) {
                for (uint64_t most = UINT64_C(1) << 58; tess_json_next(&json, &key, &inner); tensor.rank++) {
                    int64_t extent = 0;
                    tess_json_skip(&json, &inner);
                    if (tensor.rank >= TESS_MAX_RANK || !tess_json_integer(&inner, 0, static_cast<int64_t>(most), &extent)) {
                        is_right = false, tensor.rank = 0;
                        continue;
                    }
                    tensor.extents[tensor.rank] = extent;
                    if (extent > 0) most /= static_cast<uint64_t>(extent);  // so that the bytes fit 63 bits
                }
            } else if (tess_json_is(&key, "data_offsets") && value.kind == TESS_JSON_ARRAY) {
                for (; tess_json_next(&json, &key, &inner); ends++) {
                    tess_json_skip(&json, &inner);
                    if (ends < 2 && !tess_json_integer(&inner, 0, INT64_MAX, &offsets[ends])) is_right = false;
                }
            } else {
                tess_json_skip(&json, &value);
            }
        }
        return !json.error && has_type && is_right && ends == 2 && offsets[1] >= offsets[0];
    }

    TessStateStatus read_metadata(TessStateHead *head) {
        TessJson json;
        TessJsonValue key, value, inner_key, inner;
        bool has_format = false, has_step = false, has_seed = false, has_hash = false;
        tess_json_begin(&json, header_, header_bytes_, &value);
        if (value.kind != TESS_JSON_OBJECT) return foreign("its header is no object of JSON");
        while (tess_json_next(&json, &key, &value)) {
            if (!tess_json_is(&key, metadata) || value.kind != TESS_JSON_OBJECT) {
                tess_json_skip(&json, &value);
                continue;
            }
            while (tess_json_next(&json, &inner_key, &inner)) {
                tess_json_skip(&json, &inner);
                char text[TESS_STATE_HASH_BYTES];
                if (tess_json_copy(&inner, text, sizeof text) < 0) continue;
                if (tess_json_is(&inner_key, "tessera.format")) has_format = std::strcmp(text, format) == 0;
                if (tess_json_is(&inner_key, "tessera.step")) has_step = std::sscanf(text, "%" SCNd64, &head->step) == 1;
                if (tess_json_is(&inner_key, "tessera.seed")) has_seed = std::sscanf(text, "%" SCNu64, &head->seed) == 1;
                if (tess_json_is(&inner_key, "tessera.semantic_hash")) has_hash = true, std::memcpy(head->semantic_hash, text, sizeof text);
                if (tess_json_is(&inner_key, checksum_key) && inner.bytes == 22) digits_ = header_ + (inner.text - header_) + 6;
            }
        }
        if (!tess_json_end(&json)) return foreign("its header is no JSON");
        if (!has_format || !has_step || !has_seed || !has_hash || !digits_) return foreign("its metadata do not say so");
        return TESS_STATE_OK;
    }

    TessStateStatus compare(const unsigned char *length) {
        char said[17] = {}, found[17];
        std::memcpy(said, digits_, 16);
        std::memset(digits_, '0', 16);
        Xxh64 sum;
        sum.add(length, 8).add(header_, header_bytes_);
        Buffer<unsigned char> buffer(chunk);
        if (!buffer.at) return refuse_memory(chunk, error_);
        for (uint64_t left = data_bytes_; left > 0;) {
            const uint64_t part = left < chunk ? left : chunk;
            if (read_up_to(file_, buffer.at, part) != static_cast<int64_t>(part)) return damaged("it ends before its data do");
            sum.add(buffer.at, part);
            left -= part;
        }
        std::snprintf(found, sizeof found, "%016" PRIx64, sum.value());
        if (std::strcmp(said, found) == 0) return TESS_STATE_OK;
        char how[80];
        std::snprintf(how, sizeof how, "expected the checksum %.16s, got %s", said, found);
        return damaged(how);
    }
};

struct Wanted {
    Reader *reader;
    const TessNamedTensor *tensors;
    int32_t count, found;
    bool reads;
};

// One pass compares, a second one reads.
TessStateStatus take(void *state, const TessStoredTensor &stored, uint64_t begin, uint64_t bytes) {
    auto &wanted = *static_cast<Wanted *>(state);
    for (int32_t i = 0; i < wanted.count; i++) {
        const TessNamedTensor &n = wanted.tensors[i];
        if (std::strcmp(n.name, stored.name) != 0) continue;
        if (wanted.reads) return wanted.reader->read(begin, data_of(n.tensor), bytes);
        wanted.found++;
        if (dtype_of(n.tensor.type) != stored.dtype) return wanted.reader->mismatch(n.name, "has another type there");
        bool same = n.tensor.rank == stored.rank;
        for (int32_t axis = 0; same && axis < stored.rank; axis++) same = n.tensor.extents[axis] == stored.extents[axis];
        return same ? TESS_STATE_OK : wanted.reader->mismatch(n.name, "has other extents there");
    }
    return wanted.reader->mismatch(stored.name, "is there, and was not asked for");
}

struct Visitor {
    int32_t (*each)(void *state, const TessStoredTensor *tensor);
    void *state;
    bool ended;
};

TessStateStatus visit(void *state, const TessStoredTensor &stored, uint64_t, uint64_t) {
    auto &visitor = *static_cast<Visitor *>(state);
    if (!visitor.ended) visitor.ended = visitor.each(visitor.state, &stored) != 0;
    return TESS_STATE_OK;
}

}  // namespace

}  // namespace tessera::state

using namespace tessera::state;

extern "C" {

TessStateStatus tess_state_save(const char *path, const TessStateHead *head, const TessNamedTensor *tensors, int32_t count,
                                TessStateError *error) {
    if (!path || !head || count < 0 || (count > 0 && !tensors))
        return refuse(error, TESS_STATE_ARGUMENT, "save: expected a path, a head and tensors, got null or a count below 0.");
    if (!std::memchr(head->semantic_hash, 0, sizeof head->semantic_hash))
        return refuse(error, TESS_STATE_ARGUMENT, "save: expected a semantic hash of fewer than %d bytes.", TESS_STATE_HASH_BYTES);
    uint64_t room = 1024;
    for (int32_t i = 0; i < count; i++) {
        const TessStateStatus status = check(tensors[i], i, error);
        if (status != TESS_STATE_OK) return status;
        room += 6 * std::strlen(tensors[i].name) + 320;
    }
    if (room > max_header) return refuse(error, TESS_STATE_ARGUMENT, "save: expected names of at most 16 MiB in all, got more.");
    // Wide types first, then by name: so every tensor is aligned in the file.
    Buffer<int32_t> order(static_cast<uint64_t>(count));
    Buffer<char> header(room);
    if (!order.at || !header.at) return refuse_memory(room, error);
    for (int32_t i = 0; i < count; i++) order.at[i] = i;
    std::sort(order.at, order.at + count, [&](int32_t a, int32_t b) {
        const TessNamedTensor &x = tensors[a], &y = tensors[b];
        return x.tensor.type.bits != y.tensor.type.bits ? x.tensor.type.bits > y.tensor.type.bits : std::strcmp(x.name, y.name) < 0;
    });
    Text text = {header.at, header.at};
    text.add("{\"__metadata__\":{\"tessera.format\":\"");
    text.add(format);
    text.add("\",\"tessera.semantic_hash\":");
    text.add_string(head->semantic_hash);
    text.add(",\"tessera.step\":\"");
    text.add(head->step);
    text.end += std::sprintf(text.end, "\",\"tessera.seed\":\"%" PRIu64 "\",\"%s\":\"xxh64:", head->seed, checksum_key);
    char *digits = text.end;
    text.add("0000000000000000\"}");
    uint64_t offset = 0;
    for (int32_t i = 0; i < count; i++) {
        const TessNamedTensor &n = tensors[order.at[i]];
        for (int32_t j = 0; j < i; j++)
            if (std::strcmp(tensors[order.at[j]].name, n.name) == 0)
                return refuse(error, TESS_STATE_ARGUMENT, "tensor '%.100s': expected each name once, got it twice. Rename one.", n.name);
        text.add(",");
        text.add_string(n.name);
        text.add(":{\"dtype\":\"");
        text.add(name_of(n.tensor.type));
        text.add("\",\"shape\":[");
        for (int32_t axis = 0; axis < n.tensor.rank; axis++) {
            if (axis > 0) text.add(",");
            text.add(n.tensor.extents[axis]);
        }
        text.add("],\"data_offsets\":[");
        text.add(static_cast<int64_t>(offset));
        text.add(",");
        text.add(static_cast<int64_t>(offset += bytes_of(n.tensor)));
        text.add("]}");
    }
    text.add("}");
    while ((8 + (text.end - text.begin)) % 64 != 0) *text.end++ = ' ';
    const auto header_bytes = static_cast<uint64_t>(text.end - text.begin);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = static_cast<unsigned char>(header_bytes >> 8 * i);
    Xxh64 sum;
    sum.add(length, 8).add(header.at, header_bytes);
    for (int32_t i = 0; i < count; i++)
        if (const TessTensor &t = tensors[order.at[i]].tensor; bytes_of(t) > 0) sum.add(data_of(t), bytes_of(t));
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016" PRIx64, sum.value());
    std::memcpy(digits, hex, 16);

    Place place;
    TessStateStatus status = place.open(path, error);
    AtomicFile file;
    if (status == TESS_STATE_OK) status = file.begin(place.folder, place.name, error);
    if (status == TESS_STATE_OK) status = file.write(length, 8, error);
    if (status == TESS_STATE_OK) status = file.write(header.at, header_bytes, error);
    for (int32_t i = 0; i < count && status == TESS_STATE_OK; i++)
        if (const TessTensor &t = tensors[order.at[i]].tensor; bytes_of(t) > 0) status = file.write(data_of(t), bytes_of(t), error);
    if (status == TESS_STATE_OK) status = file.finish(true, error);
    return status == TESS_STATE_OK ? sync_folder(place.folder, path, error) : status;
}

TessStateStatus tess_state_load(const char *path, TessStateHead *head, const TessNamedTensor *tensors, int32_t count,
                                TessStateError *error) {
    if (!path || !head || count < 0 || (count > 0 && !tensors))
        return refuse(error, TESS_STATE_ARGUMENT, "load: expected a path, a head and tensors, got null or a count below 0.");
    for (int32_t i = 0; i < count; i++) {
        const TessStateStatus status = check(tensors[i], i, error);
        if (status != TESS_STATE_OK) return status;
    }
    TessStateHead read = {};
    Reader reader(path, error);
    TessStateStatus status = reader.open(&read);
    if (status != TESS_STATE_OK) return status;
    if (head->semantic_hash[0] && std::strncmp(head->semantic_hash, read.semantic_hash, sizeof read.semantic_hash) != 0)
        return refuse(error, TESS_STATE_MISMATCH,
                      "file '%.150s': expected states of '%.79s', got states of '%.79s'. It was saved by another algorithm.", path,
                      head->semantic_hash, read.semantic_hash);
    Wanted wanted = {&reader, tensors, count, 0, false};
    status = reader.each_entry(take, &wanted);
    if (status != TESS_STATE_OK) return status;
    if (wanted.found != count)
        return refuse(error, TESS_STATE_MISMATCH,
                      "file '%.150s': expected %" PRId32 " tensors, as were asked for, got %" PRId32 " of them.", path, count,
                      wanted.found);
    wanted.reads = true;
    status = reader.each_entry(take, &wanted);
    if (status == TESS_STATE_OK) *head = read;
    return status;
}

TessStateStatus tess_state_look(const char *path, TessStateHead *head, int32_t (*each)(void *state, const TessStoredTensor *tensor),
                                void *state, TessStateError *error) {
    if (!path) return refuse(error, TESS_STATE_ARGUMENT, "look: expected a path, got null.");
    TessStateHead read = {};
    Reader reader(path, error);
    TessStateStatus status = reader.open(&read);
    if (status != TESS_STATE_OK) return status;
    Visitor visitor = {each, state, each == nullptr};
    status = reader.each_entry(visit, &visitor);
    if (status == TESS_STATE_OK && head) *head = read;
    return status;
}

}  // extern "C"
