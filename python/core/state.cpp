#include "python/core/state.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "python/core/arguments.h"
#include "runtime/state/cache.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/precision.h"
#include "support/text/error.h"

namespace tessera::python {

namespace {

using Integers = std::vector<int32_t>;
using Table = nb::ndarray<nb::numpy, const int32_t, nb::c_contig>;
// Sequence, key, length, begin, keep, reserved, pages, pins, where.
using Info = std::tuple<uint64_t, uint64_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, std::string>;
// semantic hash, step, seed.
using Head = std::tuple<std::string, int64_t, uint64_t>;

void expect_ok(TessStateStatus status, const TessStateError &error) {
    if (status == TESS_STATE_OK) return;
    const nb::object type = nb::module_::import_("tessera.errors").attr("StateError");
    const nb::object raised = type(tess_state_status_id(status), error.text);
    PyErr_SetObject(type.ptr(), raised.ptr());
    throw nb::python_error();
}

[[noreturn]] void refuse_argument(const std::string &message) {
    TessStateError error{};
    message.copy(error.text, sizeof error.text - 1);
    expect_ok(TESS_STATE_ARGUMENT, error);
    throw nb::python_error();
}

// The library takes texts that end with a 0.
void check_text(const std::string &what, const std::string &text) {
    if (text.find('\0') != std::string::npos) refuse_argument(what + ": expected text without a character 0, got one.");
}

// Calls a function of the library without the interpreter's lock: it may wait for files, or for other threads that hold it.
template <class Call>
void without_lock(Call call) {
    TessStateError error{};
    TessStateStatus status;
    {
        const nb::gil_scoped_release free;
        status = call(&error);
    }
    expect_ok(status, error);
}

uint64_t nanoseconds(const std::optional<double> &seconds) {
    if (!seconds || *seconds >= 1e10) return TESS_STATE_FOREVER;
    if (!(*seconds >= 0)) refuse_argument("timeout: expected seconds, 0 or more, or None for no end.");
    return static_cast<uint64_t>(*seconds * 1e9);
}

// A tensor of the host that is used where it is; its object is kept. Rows, along the first axis, have no gaps; between them there may
// be some.
struct Held {
    Held(nb::object given, const std::string &what, bool writes) : object(std::move(given)) {
        if (!argument.take(object.ptr())) throw nb::python_error();
        const TessTensor &t = argument.tensor;
        if (t.device.type != TESS_HOST) refuse_argument(what + ": expected memory of the host, got that of a device; copy it.");
        if (writes && argument.is_read_only) refuse_argument(what + ": expected what can be written to, got a tensor that is read only.");
        if (t.type.bits < 6) refuse_argument(what + ": expected elements of whole bytes; pass codes of 4 bits as the u8 that hold them.");
        int64_t dense = 1;
        for (int32_t axis = t.rank - 1; axis > 0; axis--) {
            if (t.strides && t.extents[axis] > 1 && t.strides[axis] != dense) refuse_gaps(what);
            dense *= t.extents[axis];
        }
        const int64_t bytes = (t.type.bits + 7) / 8;  // floats of six bits fill a byte
        row_stride = bytes * (t.strides && t.rank > 0 && t.extents[0] > 1 ? t.strides[0] : dense);
        row_bytes = bytes * dense;
    }
    char *data() const { return static_cast<char *>(argument.tensor.data) + argument.tensor.byte_offset; }
    [[noreturn]] static void refuse_gaps(const std::string &what) {
        refuse_argument(what + ": expected rows without gaps, got strides; pass a copy.");
    }

    nb::object object;
    Argument argument;
    int64_t row_stride, row_bytes;
};

Table table_of(std::unique_ptr<Integers> values, std::vector<size_t> extents) {
    const int32_t *data = values->data();
    const nb::capsule owner(values.release(), [](void *kept) noexcept { delete static_cast<Integers *>(kept); });
    return Table(data, extents.size(), extents.data(), owner);
}

class Pages {
public:
    Pages(const std::vector<nb::object> &pools, int32_t page_tokens, int32_t sequences, int32_t sequence_pages, int32_t steps,
          int32_t prefix_tokens, int32_t outside_pages, const std::optional<std::string> &folder, bool recover, bool sync, bool thread) {
        TessCacheConfig config = tess_cache_config();
        if (pools.empty()) refuse_argument("pools: expected at least one tensor of pages, got none.");
        std::vector<TessCachePiece> pieces;
        uint64_t page_bytes = 0;
        for (size_t i = 0; i < pools.size(); i++) {
            const std::string what = "pool " + std::to_string(i);
            held_.push_back(std::make_unique<Held>(pools[i], what, true));
            const Held &pool = *held_.back();
            const TessTensor &t = pool.argument.tensor;
            if (t.rank < 2) refuse_argument(what + ": expected pages along the first axis and what is in one along others");
            const int64_t there = held_.front()->argument.tensor.extents[0];
            if (t.extents[0] != there)
                refuse_argument(what + ": expected " + std::to_string(there) + " pages, as pool 0 has, got " +
                                std::to_string(t.extents[0]));
            if (pool.row_stride < 0) refuse_argument(what + ": expected pages in ascending order, got a negative stride; pass a copy");
            if (pool.row_stride < pool.row_bytes) refuse_argument(what + ": its pages lie over each other");
            pieces.push_back({pool.data(), static_cast<uint64_t>(pool.row_bytes), static_cast<uint64_t>(pool.row_stride)});
            page_bytes += static_cast<uint64_t>(pool.row_bytes);
        }
        const int64_t pages = held_.front()->argument.tensor.extents[0];
        if (pages > INT32_MAX) refuse_argument("pool 0: expected at most 2^30 pages");
        config.pages = static_cast<int32_t>(pages), config.page_tokens = page_tokens;
        config.sequences = sequences_ = sequences;
        config.sequence_pages = sequence_pages > 0 ? sequence_pages : config.pages;
        config.steps = steps, config.prefix_tokens = prefix_tokens, config.outside_pages = outside_pages;
        config.piece = pieces.data(), config.pieces = static_cast<int32_t>(pieces.size());
        if (folder) check_text("folder", *folder), config.folder = folder->c_str();
        if (outside_pages > 0 && !folder) {
            outside_.resize(static_cast<size_t>(outside_pages) * page_bytes);
            config.outside = outside_.data();
        }
        config.recover = recover, config.no_sync = !sync, config.no_thread = !thread;
        without_lock([&](TessStateError *error) { return tess_cache_create(&config, &cache_, error); });
    }
    ~Pages() {
        const nb::gil_scoped_release free;
        tess_cache_destroy(cache_);
    }
    Pages(const Pages &) = delete;
    Pages &operator=(const Pages &) = delete;

    uint64_t open(uint64_t key) const {
        uint64_t sequence = 0;
        without_lock([&](auto *error) { return tess_cache_open(cache_, key, &sequence, error); });
        return sequence;
    }
    void close(uint64_t sequence) const {
        without_lock([&](auto *error) { return tess_cache_close(cache_, sequence, error); });
    }
    uint64_t fork(uint64_t parent, int32_t at, uint64_t key) const {
        uint64_t child = 0;
        without_lock([&](auto *error) { return tess_cache_fork(cache_, parent, at, key, &child, error); });
        return child;
    }
    std::optional<std::tuple<int32_t, int32_t>> reserve(uint64_t sequence, int32_t tokens, std::optional<double> timeout, bool copy) const {
        TessPageCopy pair{-1, -1};
        const uint64_t time = nanoseconds(timeout);
        without_lock([&](auto *error) { return tess_cache_reserve(cache_, sequence, tokens, time, copy ? nullptr : &pair, error); });
        return pair.to < 0 ? std::nullopt : std::optional(std::tuple(pair.from, pair.to));
    }
    void commit(uint64_t sequence, int32_t tokens) const {
        without_lock([&](auto *error) { return tess_cache_commit(cache_, sequence, tokens, error); });
    }
    void truncate(uint64_t sequence, int32_t length) const {
        without_lock([&](auto *error) { return tess_cache_truncate(cache_, sequence, length, error); });
    }
    void prune(uint64_t sequence, int32_t window, int32_t keep) const {
        without_lock([&](auto *error) { return tess_cache_prune(cache_, sequence, window, keep, error); });
    }

    std::tuple<uint64_t, Table, Table, Table> tables(const std::vector<uint64_t> &sequences, int32_t width) const {
        if (sequences.size() > INT32_MAX) refuse_argument("sequences: too many");
        if (width < 0) refuse_argument("width: expected 0 or more, got " + std::to_string(width));
        const size_t n = sequences.size(), entries = static_cast<size_t>(width);
        auto table = std::make_unique<Integers>(n * entries), length = std::make_unique<Integers>(n), begin = std::make_unique<Integers>(n);
        uint64_t step = 0;
        without_lock([&](auto *error) {
            return tess_cache_tables(cache_, sequences.data(), static_cast<int32_t>(n), width, table->data(), length->data(), begin->data(),
                                     &step, error);
        });
        return {step, table_of(std::move(table), {n, entries}), table_of(std::move(length), {n}), table_of(std::move(begin), {n})};
    }
    void release(uint64_t step) const {
        without_lock([&](auto *error) { return tess_cache_release(cache_, step, error); });
    }

    void offload(uint64_t sequence) const {
        without_lock([&](auto *error) { return tess_cache_offload(cache_, sequence, error); });
    }
    void prefetch(uint64_t sequence, std::optional<double> timeout) const {
        const uint64_t time = nanoseconds(timeout);
        without_lock([&](auto *error) { return tess_cache_prefetch(cache_, sequence, time, error); });
    }
    void wait(uint64_t sequence, std::optional<double> timeout) const {
        const uint64_t time = nanoseconds(timeout);
        without_lock([&](auto *error) { return tess_cache_wait(cache_, sequence, time, error); });
    }

    void publish(uint64_t sequence, const Integers &tokens) const {
        without_lock(
            [&](auto *error) { return tess_cache_publish(cache_, sequence, tokens.data(), static_cast<int32_t>(tokens.size()), error); });
    }
    std::tuple<uint64_t, int32_t> prefix(const Integers &tokens) const {
        uint64_t sequence = 0;
        int32_t matched = 0;
        without_lock([&](auto *error) {
            return tess_cache_prefix(cache_, tokens.data(), static_cast<int32_t>(tokens.size()), &sequence, &matched, error);
        });
        return {sequence, matched};
    }

    Info info(uint64_t sequence) const {
        TessCacheInfo info{};
        without_lock([&](auto *error) { return tess_cache_info(cache_, sequence, &info, error); });
        return told(info);
    }
    std::vector<Info> sequences() const {
        std::vector<TessCacheInfo> all(static_cast<size_t>(sequences_));
        const int32_t open = tess_cache_sequences(cache_, all.data(), sequences_);
        std::vector<Info> made;
        for (int32_t i = 0; i < open; i++) made.push_back(told(all[static_cast<size_t>(i)]));
        return made;
    }
    // free, used, moving, held, outside, damaged
    std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int32_t> counts() const {
        TessCacheCounts c{};
        tess_cache_counts(cache_, &c);
        return {c.free, c.used, c.moving, c.held, c.outside, c.damaged};
    }

private:
    std::vector<std::unique_ptr<Held>> held_;
    std::vector<char> outside_;
    int32_t sequences_ = 0;
    TessCache *cache_ = nullptr;

    static Info told(const TessCacheInfo &i) {
        static const char *const places[] = {"memory", "leaving", "outside", "arriving", "lost"};
        return {i.sequence, i.key, i.length, i.begin, i.keep, i.reserved, i.pages, i.pins, places[i.where]};
    }
};

struct Precision {
    TessPrecisionConfig config = tess_precision_config();
    TessPrecision state{};

    Precision(double range, int32_t first, int32_t least, int32_t most, int32_t patience, int64_t grow, int64_t stay) {
        config.range = range, config.first = first, config.least = least, config.most = most;
        config.patience = patience, config.grow = grow, config.stay = stay;
        TessStateError error{};
        expect_ok(tess_precision_start(&config, &state, &error), error);
    }
    // The fields are an array of the user's, who may have written to it.
    void check() const {
        TessStateError error{};
        expect_ok(tess_precision_check(&config, &state, &error), error);
    }
};

struct Named {
    std::vector<std::unique_ptr<Held>> held;
    std::vector<std::string> names;
    std::vector<TessNamedTensor> tensors;

    Named(const std::vector<std::tuple<std::string, nb::object>> &given, bool writes) {
        for (const auto &[name, object] : given) {
            check_text("a tensor's name", name);
            names.push_back(name);
            held.push_back(std::make_unique<Held>(object, "'" + name + "'", writes));
        }
        for (size_t i = 0; i < names.size(); i++) {
            tensors.push_back({names[i].c_str(), held[i]->argument.tensor});
            if (held[i]->row_stride != held[i]->row_bytes) Held::refuse_gaps("'" + names[i] + "'");
        }
    }
    int32_t count() const { return static_cast<int32_t>(tensors.size()); }
};

TessStateHead head_of(const std::string &semantic_hash, int64_t step, uint64_t seed) {
    check_text("semantic_hash", semantic_hash);
    TessStateHead head{};
    if (semantic_hash.size() >= sizeof head.semantic_hash)
        refuse_argument("semantic_hash: expected 'sha256:' and 64 digits, got " + std::to_string(semantic_hash.size()) + " characters.");
    semantic_hash.copy(head.semantic_hash, semantic_hash.size());
    head.step = step, head.seed = seed;
    return head;
}

Head told(const TessStateHead &head) { return {head.semantic_hash, head.step, head.seed}; }

// Name, NumPy's name of its type, extents.
using Stored = std::tuple<std::string, std::string, std::vector<int64_t>>;

int32_t keep_stored(void *state, const TessStoredTensor *tensor) {
    static_cast<std::vector<Stored> *>(state)->emplace_back(tensor->name, numpy_name(tensor->dtype),
                                                            std::vector<int64_t>(tensor->extents, tensor->extents + tensor->rank));
    return 0;
}

}  // namespace

void declare_states(nb::module_ &m) {
    using Seconds = std::optional<double>;
    nb::class_<Pages>(m, "Pages", "A cache in pages: see runtime/state/cache.h. The face is tessera.state.Pages.")
        .def(nb::init<const std::vector<nb::object> &, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t,
                      const std::optional<std::string> &, bool, bool, bool>(),
             nb::arg("pools"), nb::arg("page_tokens"), nb::arg("sequences"), nb::arg("sequence_pages"), nb::arg("steps"),
             nb::arg("prefix_tokens"), nb::arg("outside_pages"), nb::arg("folder"), nb::arg("recover"), nb::arg("sync"), nb::arg("thread"))
        .def("open", &Pages::open, nb::arg("key"))
        .def("close", &Pages::close, nb::arg("sequence"))
        .def("fork", &Pages::fork, nb::arg("parent"), nb::arg("at"), nb::arg("key"))
        .def("reserve", &Pages::reserve, nb::arg("sequence"), nb::arg("tokens"), nb::arg("timeout") = Seconds(0), nb::arg("copy") = true)
        .def("commit", &Pages::commit, nb::arg("sequence"), nb::arg("tokens"))
        .def("truncate", &Pages::truncate, nb::arg("sequence"), nb::arg("length"))
        .def("prune", &Pages::prune, nb::arg("sequence"), nb::arg("window"), nb::arg("keep"))
        .def("tables", &Pages::tables, nb::arg("sequences"), nb::arg("width"),
             nb::sig("def tables(self, sequences: Sequence[int], width: int) -> tuple[int, Any, Any, Any]"))
        .def("release", &Pages::release, nb::arg("step"))
        .def("offload", &Pages::offload, nb::arg("sequence"))
        .def("prefetch", &Pages::prefetch, nb::arg("sequence"), nb::arg("timeout") = Seconds(0))
        .def("wait", &Pages::wait, nb::arg("sequence"), nb::arg("timeout") = nb::none())
        .def("publish", &Pages::publish, nb::arg("sequence"), nb::arg("tokens"))
        .def("prefix", &Pages::prefix, nb::arg("tokens"))
        .def("info", &Pages::info, nb::arg("sequence"))
        .def("sequences", &Pages::sequences)
        .def("counts", &Pages::counts);
    nb::class_<Precision>(m, "Precision", "See runtime/state/precision.h. The face is tessera.state.AdaptivePrecision.")
        .def(nb::init<double, int32_t, int32_t, int32_t, int32_t, int64_t, int64_t>(), nb::arg("range"), nb::arg("first"), nb::arg("least"),
             nb::arg("most"), nb::arg("patience"), nb::arg("grow"), nb::arg("stay"))
        .def(
            "step",
            [](Precision &p, double largest) {
                p.check();
                return tess_precision_step(&p.config, &p.state, largest) != 0;
            },
            nb::arg("largest"))
        .def("check", &Precision::check)
        .def("scale",
             [](const Precision &p) {
                 p.check();
                 return tess_precision_scale(&p.state);
             })
        .def(
            "fields",
            [](Precision &p) {
                return nb::ndarray<nb::numpy, int64_t, nb::shape<TESS_PRECISION_FIELDS>>(&p.state, {TESS_PRECISION_FIELDS}, nb::find(p));
            },
            nb::sig("def fields(self) -> Any"));
    m.def(
        "save_state",
        [](const std::string &path, const std::vector<std::tuple<std::string, nb::object>> &tensors, const std::string &semantic_hash,
           int64_t step, uint64_t seed) {
            check_text("path", path);
            const Named named(tensors, false);
            const TessStateHead head = head_of(semantic_hash, step, seed);
            without_lock([&](auto *error) { return tess_state_save(path.c_str(), &head, named.tensors.data(), named.count(), error); });
        },
        nb::arg("path"), nb::arg("tensors"), nb::arg("semantic_hash"), nb::arg("step"), nb::arg("seed"));
    m.def(
        "load_state",
        [](const std::string &path, const std::vector<std::tuple<std::string, nb::object>> &tensors, const std::string &semantic_hash) {
            check_text("path", path);
            const Named named(tensors, true);
            TessStateHead head = head_of(semantic_hash, 0, 0);
            without_lock([&](auto *error) { return tess_state_load(path.c_str(), &head, named.tensors.data(), named.count(), error); });
            return told(head);
        },
        nb::arg("path"), nb::arg("tensors"), nb::arg("semantic_hash"));
    m.def(
        "look_at_state",
        [](const std::string &path) {
            check_text("path", path);
            TessStateHead head{};
            std::vector<Stored> stored;
            without_lock([&](auto *error) { return tess_state_look(path.c_str(), &head, keep_stored, &stored, error); });
            return std::tuple(told(head), stored);
        },
        nb::arg("path"));
}

}  // namespace tessera::python
