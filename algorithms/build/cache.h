// A cache of the keys and values of attention. Whatever its layout, readers see positions: keys(T) has the key of position t of sequence b
// at [b, h, t]. Layouts differ in one function, which says where a position lies, so attention over them gives the same bits.
//
//     KVCache cache = kv_cache(f, "cache", {B, H, D, E}, {.layout = CacheLayout::paged, .codes = DType::i8});
//     const Tile first = cache.length();                         // (B), where new tokens go
//     cache.append(k, v);                                        // k (B, H, S, D), v (B, H, S, E)
//     Tile o = attend(q, cache, first + f.index(S), {.window = 4096, .sinks = 4});   // (B, H, G, S, E) of q (B, H, G, S, D)
//
//   layout       keys              length, tables                 position t of sequence b lies in
//   contiguous   [B, H, T, D]      length[B]                      [b, h, t]
//   ring         [B, H, W, D]      length[B]                      [b, h, t] for t < sinks, else [b, h, sinks + (t - sinks) mod (W - sinks)]
//   paged        [P, H, Z, D]      length[B], table[B, C]         [table[b, t / Z], h, t mod Z]
//
// Values have E in place of D. They are states, so a kernel writes them in place. Codes of i8, i4 and floats of one byte have a scale for
// each token and head, in tensors without the last dim; a scale of a page would change with what is appended to it. Two codes of i4 are in
// a byte of u8, the first in the low half, each with 8 added. What tables and lengths hold is data: whatever that is, nothing outside of
// the tensors is read or written. The manager of pages is runtime/state/cache.h.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

enum class CacheLayout : uint8_t { contiguous, ring, paged };

struct CacheFormat {
    CacheLayout layout = CacheLayout::contiguous;
    // What keys and values are: f32, f16, bf16, as they are; i8, i4, f8e4m3fn or f8e5m2, with scales. None: the policy's type of states.
    std::optional<DType> codes = {};
    bool channel_scales = false;  // keys of i8: key_scales[H, D], an input, in place of a scale for each token and head
    int64_t page = 16;            // positions of a page; 0: the dim Z is symbolic
    int64_t sinks = 0;            // of a ring: so many first positions are never overwritten
    int64_t positions = 4096;     // of a ring: so long a sequence may become
    bool begins = false;          // begin[B], an input: the first position that was not pruned
};

// Sequences, heads of keys, elements of a key, elements of a value. Those of codes of i4 are even.
struct CacheDims {
    Dim sequences, heads, key, value;
};

// The tensors of a cache, in the order in which they are declared and in which a callee that declares the same takes them. Scales, table
// and begin are none where there are none.
struct CacheTensors {
    Tile keys, values, key_scales, value_scales, length, table, begin;
    Dim key = {}, value = {};    // of elements; without a name they are the last ones of keys and values, which u8 does not have
    std::string positions = {};  // what the dim of all positions of pages and rings is called; "" for "<slots>_positions"

    std::vector<Tile> arguments() const;  // for Builder::call and repeat
};

class KVCache {
public:
    // Reads tensors that were declared. The types of keys and values say what codes they are: u8 is two of i4. `sinks` and `positions`
    // are a ring's. UserError cache.tensors where dims, types or what a layout needs are others.
    KVCache(const CacheTensors &tensors, CacheLayout layout, int64_t sinks = 0, int64_t positions = 0,
            Span caller = std::source_location::current());

    const Dim &key() const { return D_; }
    const Dim &value() const { return E_; }
    const Dim &positions() const { return T_; }     // a dim of all positions that the cache has room for
    const Tile &length() const { return length_; }  // (B), of type index, 0 ..= positions: tokens, with those that were appended here
    // The first position that is there, of type index (B); a ring's sinks are there too.
    Tile begin() const;
    const CacheTensors &tensors() const { return tensors_; }
    CacheLayout layout() const { return layout_; }
    int64_t sinks() const { return sinks_; }

    // Numbers in the compute type, at the positions that the dim `t` counts: (B, H, t, D) and (B, H, t, E).
    Tile keys(const Dim &t, Span caller = std::source_location::current()) const;
    Tile values(const Dim &t, Span caller = std::source_location::current()) const;
    // keys(t) is key_codes(t) times key_scales(t), which is (B, H, t), (H, D), or none.
    Tile key_codes(const Dim &t, Span caller = std::source_location::current()) const;
    Tile key_scales(const Dim &t, Span caller = std::source_location::current()) const;

    // Writes k (B, H, S, D) and v (B, H, S, E) after what is there: row s of sequence b at length[b] + s. Without S it is one row. Of
    // sequence b only the first count[b] rows, if count is given. Rows are dropped that no position has room for or whose page the table
    // does not name. Later calls of length, keys and values see the new rows. Updates "<prefix>keys", "<prefix>values" and their scales.
    // UserError cache.append.
    void append(const Tile &k, const Tile &v, const Tile &count = {}, const std::string &prefix = "append_",
                Span caller = std::source_location::current());

    // All tensors of a paged cache, as the function below. UserError cache.pages.
    void copy_pages(const Tile &pairs, Span caller = std::source_location::current());

private:
    struct Place;
    CacheTensors tensors_;
    CacheLayout layout_;
    int64_t sinks_;
    Dim B_, H_, T_, D_, E_, rows_, slots_;  // rows_: of the tensors' first axis, slots_: of their third
    Tile length_;

    Builder &f() const { return tensors_.keys.builder(); }
    Place place(const Expr &sequence, const Expr &position) const;
    Tile read(const Tile &tensor, const Dim &t, const std::vector<Dim> &inner) const;
    Tile codes_at(const Tile &tensor, const Dim &t, const Dim &last) const;
    void write(const std::string &name, const Tile &tensor, const Tile &x, const std::vector<std::string> &points, const Place &at) const;
    Tile packed(const Tile &x, const Tile &tensor, const Tile &scales, const Dim &last, const std::string &name, Tile *scales_made) const;
};

// Declares the states "<name>_keys", "<name>_values", their "_key_scales" and "_value_scales", and the inputs "<name>_length",
// "<name>_table" and "<name>_begin", all of i32, with `outer` dims in front of states: one pool of many layers, of which a round of
// Builder::repeat sees one. UserError cache.format.
CacheTensors cache_tensors(Builder &f, const std::string &name, const CacheDims &dims, const CacheFormat &format,
                           const std::vector<Dim> &outer = {}, Span caller = std::source_location::current());
KVCache kv_cache(Builder &f, const std::string &name, const CacheDims &dims, const CacheFormat &format = {},
                 Span caller = std::source_location::current());

// pages[pairs[n, 1], …] becomes what pages[pairs[n, 0], …] was before any was written, as tess_cache_reserve asks for. Pairs with a page
// that is not there are dropped. `pages` is a state [P, …], `pairs` are integers [N, 2]. Stage copied_<state>, update copy_<state>.
// UserError cache.pages.
void copy_pages(const Tile &pages, const Tile &pairs, Span caller = std::source_location::current());

struct AttendOptions {
    int64_t window = 0;  // of the keys up to its own position a query sees so many, its own among them; 0: all
    int64_t sinks = 0;   // and so many first ones, which a ring has to keep
};

// Attention of q (B, H, …, D), where other dims are heads of a group or rows, to keys and values of the same sequence and head: scores are
// q k / sqrt(D). `position` are integers over B and other dims of q: a query sees keys up to its own. The result has E in place of D, and
// is 0 where a query sees no key. Stages scaled, scores and, with sinks, sink_scores. UserError cache.attend.
Tile attend(const Tile &q, const KVCache &cache, const Tile &position, const AttendOptions &options = {},
            Span caller = std::source_location::current());

}  // namespace tessera
