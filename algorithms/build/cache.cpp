#include "algorithms/build/cache.h"

#include <algorithm>
#include <cmath>

#include "algorithms/build/quantized.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/ir/extents.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double greatest_i4 = 7, zero_i4 = 8;

bool has_scales(DType codes) { return is_coded_float(codes) || codes == DType::i8 || codes == DType::u8; }

Expr within(const Expr &e, const Expr &lo, const Expr &hi) { return min(max(e, lo), hi); }
Expr inside(const Expr &e, const Expr &end) { return Expr(0) <= e && e < end; }

Tile as_index(const Tile &t) { return cast(DType::index, t); }

Dim at_least(Builder &f, const std::string &name, int64_t least) {
    Dim d = symbolic_dim(name);
    d.min = least;
    return f.dim(d);
}

// tensor[index…] = x where `exists`, which varies with `points`, dims of x. A loop over a dim of one element, or of none where it does not
// hold, makes the write conditional.
void write_where(const Expr &exists, const std::string &name, const Tile &tensor, const std::vector<Tile> &index, const Tile &x,
                 const std::vector<std::string> &points) {
    Builder &f = x.builder();
    const std::string of = as_stored(tensor).value()->name;
    const Dim one = f.dim(derived_dim(of + "_" + name + "_exists", select(exists, Expr(1), Expr(0))));
    std::vector<std::string> dims = points;
    dims.push_back(one.name);
    for (const std::string &d : x.dims())
        if (!contains(dims, d)) dims.push_back(d);
    f.update(name, tensor, index, Tile(&f, x.value(), dims));
}

// Codes of 4 bits of x: whole numbers of -7 ..= 7, two in a byte.
Tile half_bytes(const Tile &steps, const Dim &elements, const Dim &bytes) {
    Builder &f = steps.builder();
    const Tile code = cast(DType::i32, min(max(round(steps), -greatest_i4), greatest_i4)) + zero_i4;
    std::vector<std::string> dims = steps.dims();
    std::replace(dims.begin(), dims.end(), elements.name, bytes.name);
    const auto half = [&](int64_t which) {
        return Tile(&f, substitute(code.value(), {{elements.name, variable(bytes.name) * Expr(2) + Expr(which)}}), dims);
    };
    return cast(DType::u8, half(0) + half(1) * 16);
}

}  // namespace

std::vector<Tile> CacheTensors::arguments() const {
    std::vector<Tile> all;
    for (const Tile &t : {keys, values, key_scales, value_scales, length, table, begin})
        if (static_cast<bool>(t)) all.push_back(t);
    return all;
}

// Where a position lies: indices along the first and the third axis, and whether the cache has such a place.
struct KVCache::Place {
    Expr row, slot, exists;
};

KVCache::KVCache(const CacheTensors &tensors, CacheLayout layout, int64_t sinks, int64_t positions, Span caller)
    : tensors_(tensors), layout_(layout), sinks_(sinks) {
    const SpanScope line = SpanScope::entered(caller);
    const auto refuse = [](const std::string &why) { throw UserError("cache.tensors", "a cache of keys and values: " + why); };
    if (!static_cast<bool>(tensors.keys) || !static_cast<bool>(tensors.values) || !static_cast<bool>(tensors.length))
        refuse("expected keys, values and length.");
    const std::vector<std::string> &k = tensors.keys.dims(), &v = tensors.values.dims(), &n = tensors.length.dims();
    if (k.size() != 4 || v.size() != 4 || n.size() != 1 || !std::equal(k.begin(), k.begin() + 3, v.begin()))
        refuse("expected keys [B, H, T, D] and values [B, H, T, E], of pages [P, H, Z, D] and [P, H, Z, E], and length [B]; got " +
               tensors.keys.describe() + ", " + tensors.values.describe() + " and " + tensors.length.describe() + ".");
    const bool is_paged = layout == CacheLayout::paged, is_ring = layout == CacheLayout::ring;
    if (is_paged != static_cast<bool>(tensors.table)) refuse("expected a table [B, C] where, and only where, the layout is paged.");
    if (is_paged && (tensors.table.dims().size() != 2 || tensors.table.dims()[0] != n[0]))
        refuse("expected a table [" + n[0] + ", C], got " + tensors.table.describe() + ".");
    if (is_ring ? positions < 1 || positions > max_extent : positions != 0)
        refuse("a ring, and no other layout, says how many positions a sequence may have, 1 ..= " + std::to_string(max_extent) + "; got " +
               std::to_string(positions) + ".");
    if (!is_paged && k[0] != n[0])
        refuse("the first dim of " + tensors.keys.describe() + " counts sequences, and so does that of " + tensors.length.describe() + ".");
    if (sinks < 0 || (sinks > 0 && !is_ring))
        refuse("sinks are positions that a ring keeps, 0 or more; got " + std::to_string(sinks) + ".");
    B_ = f().dim_named(n[0]), H_ = f().dim_named(k[1]), rows_ = f().dim_named(k[0]), slots_ = f().dim_named(k[2]);
    const auto elements = [&](const Tile &tensor, const Dim &given) {
        const DType codes = as_stored(tensor).dtype();
        if (!is_float(codes) && codes != DType::i8 && codes != DType::u8)
            refuse(tensor.describe() + " is of " + name_of(codes) + "; expected a float, i8, or u8 of two codes of i4.");
        if (codes == DType::u8 && given.name.empty()) refuse(tensor.describe() + " has two codes in a byte; give the dim of its codes.");
        return given.name.empty() ? f().dim_named(tensor.dims()[3]) : f().dim(given);
    };
    D_ = elements(tensors.keys, tensors.key), E_ = elements(tensors.values, tensors.value);
    const Expr slots = extent(slots_.name);
    const std::string all = tensors.positions.empty() ? slots_.name + "_positions" : tensors.positions;
    if (is_paged) T_ = f().dim(derived_dim(all, extent(tensors.table.dims()[1]) * slots));
    else if (is_ring) T_ = f().dim(all, positions);
    else T_ = slots_;
    length_ = Tile(&f(), within(as_index(tensors.length).value(), Expr(0), extent(T_.name)), n);
}

KVCache::Place KVCache::place(const Expr &sequence, const Expr &position) const {
    const Expr slots = extent(slots_.name), fits = inside(position, extent(T_.name));
    switch (layout_) {
    case CacheLayout::contiguous: return {sequence, bounded(position, Expr(0), slots), fits};
    case CacheLayout::ring: {
        const Expr kept(sinks_), slot = kept + (position - kept) % max(slots - kept, Expr(1));
        return {sequence, bounded(sinks_ ? select(position < kept, position, slot) : slot, Expr(0), slots), fits};
    }
    case CacheLayout::paged: break;
    }
    const Tile &table = tensors_.table;
    const Expr entry = bounded(position / max(slots, Expr(1)), Expr(0), extent(table.dims()[1]));
    const Expr page = substitute(as_index(table).value(), {{table.dims()[0], sequence}, {table.dims()[1], entry}});
    return {bounded(page, Expr(0), extent(rows_.name)), bounded(position % max(slots, Expr(1)), Expr(0), slots),
            fits && inside(page, extent(rows_.name))};
}

// What the cache has at (B, H, t, inner) of a tensor [rows, H, slots, inner].
Tile KVCache::read(const Tile &tensor, const Dim &t, const std::vector<Dim> &inner) const {
    const Place at = place(variable(B_.name), variable(t.name));
    std::map<std::string, Expr> index;
    const std::vector<std::string> &dims = tensor.dims();
    if (dims[0] != B_.name) index[dims[0]] = at.row;
    if (dims[2] != t.name) index[dims[2]] = at.slot;
    std::vector<std::string> result = {B_.name, H_.name, t.name};
    for (const Dim &d : inner) result.push_back(d.name);
    return tensor.at(index, result);
}

// Codes as numbers of the compute type.
Tile KVCache::codes_at(const Tile &tensor, const Dim &t, const Dim &last) const {
    const DType stored = as_stored(tensor).dtype(), compute = f().numerics().compute;
    if (stored != DType::u8) {
        const Tile code = read(tensor, t, {last});
        return cast(compute, is_coded_float(code.dtype()) ? cast(DType::f32, code) : code);
    }
    const Tile byte = read(tensor, t, {f().dim_named(tensor.dims()[3])});
    std::vector<std::string> dims = byte.dims();
    dims.back() = last.name;
    const Expr e = variable(last.name);
    const Tile both = cast(DType::i32, byte.at({{tensor.dims()[3], e / Expr(2)}}, dims));
    const Tile shift = cast(DType::i32, f().tile(e % Expr(2), {last})) * 4;
    return cast(compute, ((both >> shift) && f().scalar(DType::i32, 15)) - zero_i4);
}

Tile KVCache::key_codes(const Dim &t, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    return codes_at(tensors_.keys, t, D_);
}

Tile KVCache::key_scales(const Dim &t, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    const Tile &scales = tensors_.key_scales;
    return !static_cast<bool>(scales) || scales.dims().size() == 2 ? scales : read(scales, t, {});
}

Tile KVCache::keys(const Dim &t, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    const Tile scales = key_scales(t), codes = key_codes(t);
    return static_cast<bool>(scales) ? broadcast(codes * scales, {B_, H_, f().dim(t), D_}) : codes;
}

Tile KVCache::values(const Dim &t, Span caller) const {
    const SpanScope line = SpanScope::entered(caller);
    const Tile codes = codes_at(tensors_.values, t, E_);
    return static_cast<bool>(tensors_.value_scales) ? codes * read(tensors_.value_scales, t, {}) : codes;
}

Tile KVCache::begin() const {
    Expr first(0);
    if (static_cast<bool>(tensors_.begin)) first = max(first, as_index(tensors_.begin).value());
    if (layout_ == CacheLayout::ring) first = max(first, length_.value() - max(extent(slots_.name) - Expr(sinks_), Expr(0)));
    return Tile(&f(), first, length_.dims());
}

// What is stored of x (…, last), and the scales of its rows where it has some of its own.
Tile KVCache::packed(const Tile &x, const Tile &tensor, const Tile &scales, const Dim &last, const std::string &name,
                     Tile *scales_made) const {
    const DType stored = as_stored(tensor).dtype();
    if (!has_scales(stored)) return x;
    const bool is_channel = scales.dims().size() == 2;
    if (is_channel) return codes_of(x / cast(x.dtype(), scales), {}, stored);
    if (stored != DType::u8) {
        const Quantized q = quantize(x, name, {.codes = stored, .scales = as_stored(scales).dtype()});
        *scales_made = q.scales;
        return q.codes;
    }
    const Tile scale = max(max(abs(x), last) / greatest_i4, 0x1p-126);
    *scales_made = cast(as_stored(scales).dtype(), scale).named(name + "_scales");
    return half_bytes(x / cast(x.dtype(), *scales_made), last, f().dim_named(tensor.dims()[3])).named(name + "_bytes");
}

void KVCache::write(const std::string &name, const Tile &tensor, const Tile &x, const std::vector<std::string> &points,
                    const Place &at) const {
    const std::vector<std::string> &own = tensor.dims();
    std::vector<Tile> index = {Tile(&f(), at.row, points), f().index(H_), Tile(&f(), at.slot, points)};
    if (own.size() == 4) index.push_back(f().index(f().dim_named(own[3])));
    write_where(at.exists, name, tensor, index, x, points);
}

void KVCache::append(const Tile &k, const Tile &v, const Tile &count, const std::string &prefix, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const auto refuse = [](const std::string &why) { throw UserError("cache.append", "append to a cache of keys and values: " + why); };
    std::vector<std::string> rows = k.dims();
    for (const Dim &d : {B_, H_, D_})
        if (!std::erase(rows, d.name))
            refuse(k.describe() + " has no dim '" + d.name + "'; keys are (" + B_.name + ", " + H_.name + ", rows, " + D_.name + ").");
    std::vector<std::string> wanted = k.dims(), got = v.dims();
    std::replace(wanted.begin(), wanted.end(), D_.name, E_.name);
    std::sort(wanted.begin(), wanted.end()), std::sort(got.begin(), got.end());
    if (rows.size() > 1 || wanted != got)
        refuse("expected keys (" + B_.name + ", " + H_.name + ", rows, " + D_.name + ") and values of " + E_.name +
               " elements, with one dim of rows or none; got " + k.describe() + " and " + v.describe() + ".");
    if (static_cast<bool>(count) && count.dims() != std::vector<std::string>{B_.name})
        refuse("count has " + join(count.dims()) + "; expected the dim '" + B_.name + "' alone.");
    const Expr row = rows.empty() ? Expr(0) : variable(rows[0]), all = rows.empty() ? Expr(1) : extent(rows[0]);
    const Expr counted = static_cast<bool>(count) ? within(as_index(count).value(), Expr(0), all) : all;
    Place at = place(variable(B_.name), length_.value() + row);
    if (static_cast<bool>(count)) at.exists = at.exists && row < counted;
    std::vector<std::string> points = {B_.name};
    points.insert(points.end(), rows.begin(), rows.end());
    std::vector<std::string> key_dims = points, value_dims = points;
    key_dims.push_back(H_.name), key_dims.push_back(D_.name), value_dims.push_back(H_.name), value_dims.push_back(E_.name);
    Tile key_scales, value_scales;
    const Tile key = packed(Tile(&f(), k.value(), key_dims), tensors_.keys, tensors_.key_scales, D_, prefix + "k", &key_scales);
    const Tile value = packed(Tile(&f(), v.value(), value_dims), tensors_.values, tensors_.value_scales, E_, prefix + "v", &value_scales);
    write(prefix + "keys", tensors_.keys, key, points, at);
    if (static_cast<bool>(key_scales)) write(prefix + "key_scales", tensors_.key_scales, key_scales, points, at);
    write(prefix + "values", tensors_.values, value, points, at);
    if (static_cast<bool>(value_scales)) write(prefix + "value_scales", tensors_.value_scales, value_scales, points, at);
    length_ = Tile(&f(), min(length_.value() + counted, extent(T_.name)), length_.dims());
}

void copy_pages(const Tile &pages, const Tile &pairs, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (pairs.dims().size() != 2 || is_float(pairs.dtype()) || pages.dims().empty())
        throw UserError("cache.pages", "copy_pages: expected pages [P, …] and pairs of pages [N, 2] of integers, got " + pages.describe() +
                                           " and " + pairs.describe() + ".");
    Builder &f = pages.builder();
    const Tile stored = as_stored(pages);
    const std::string n = pairs.dims()[0], tensor = stored.value()->name;
    const auto page = [&](int64_t which) { return substitute(as_index(pairs).value(), {{pairs.dims()[1], Expr(which)}}); };
    const Expr end = extent(pages.dims()[0]), from = page(0), to = page(1);
    std::vector<std::string> dims = pages.dims();
    dims[0] = n;
    const Tile copied = stored.at({{pages.dims()[0], bounded(from, Expr(0), end)}}, dims).named("copied_" + tensor);
    std::vector<Tile> index = {Tile(&f, bounded(to, Expr(0), end), {n})};
    for (size_t i = 1; i < dims.size(); i++) index.push_back(f.index(f.dim_named(dims[i])));
    write_where(inside(from, end) && inside(to, end), "copy_" + tensor, pages, index, copied, {n});
}

void KVCache::copy_pages(const Tile &pairs, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (layout_ != CacheLayout::paged) throw UserError("cache.pages", "copy_pages: the cache has no pages; expected the layout paged.");
    for (const Tile &tensor : {tensors_.keys, tensors_.key_scales, tensors_.values, tensors_.value_scales})
        if (static_cast<bool>(tensor) && tensor.dims().size() > 2) tessera::copy_pages(tensor, pairs);
}

CacheTensors cache_tensors(Builder &f, const std::string &name, const CacheDims &dims, const CacheFormat &format,
                           const std::vector<Dim> &outer, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const auto refuse = [&](const std::string &why) { throw UserError("cache.format", "cache '" + name + "': " + why); };
    const DType codes = format.codes.value_or(f.numerics().state_type());
    const bool is_i4 = codes == DType::i4, is_paged = format.layout == CacheLayout::paged;
    if (!is_i4 && codes != DType::i8 && (!is_float(codes) || is_in_half_bytes(codes) || !traits_of(codes).is_signed))
        refuse(std::string("codes are floats, i8 or i4; got ") + name_of(codes) + ".");
    if (format.channel_scales && codes != DType::i8)
        refuse(std::string("scales for each channel are for keys of i8; got ") + name_of(codes) + ".");
    if (format.page < 0) refuse("a page has 1 or more positions, or 0 for any number; got " + std::to_string(format.page) + ".");
    const auto &[B, H, D, E] = dims;
    f.dim(B), f.dim(H);
    const Dim rows = is_paged ? at_least(f, name + "_pages", 1) : B;
    const Dim slots = is_paged ? (format.page ? f.dim(name + "_page", format.page) : at_least(f, name + "_page", 1))
                               : at_least(f, format.layout == CacheLayout::ring ? name + "_ring" : name + "_positions", format.sinks + 1);
    const auto state = [&](const std::string &what, DType type, const Dim *last) {
        std::vector<Dim> all = outer;
        all.insert(all.end(), {rows, H, slots});
        if (last != nullptr) all.push_back(is_i4 ? f.dim(derived_dim(last->name + "_bytes", extent(last->name) / Expr(2))) : *last);
        return f.state(name + what, all, type);
    };
    if (is_i4)
        for (const Dim &d : {D, E})
            if (d.kind == DimKind::fixed ? d.value % 2 : d.multiple_of % 2)
                refuse("codes of i4 are in pairs; declare '" + d.name + "' as a multiple of 2.");
    f.dim(D), f.dim(E);
    CacheTensors t;
    t.key = D, t.value = E, t.positions = name + "_positions";
    t.keys = state("_keys", is_i4 ? DType::u8 : codes, &D), t.values = state("_values", is_i4 ? DType::u8 : codes, &E);
    if (is_i4 || has_scales(codes)) {
        std::vector<Dim> channels = outer;
        channels.insert(channels.end(), {H, D});
        t.key_scales =
            format.channel_scales ? f.input(name + "_key_scales", channels, DType::f32) : state("_key_scales", DType::f32, nullptr);
        t.value_scales = state("_value_scales", DType::f32, nullptr);
    }
    t.length = f.input(name + "_length", {B}, DType::i32);
    if (is_paged) t.table = f.input(name + "_table", {B, at_least(f, name + "_entries", 1)}, DType::i32);
    if (format.begins) t.begin = f.input(name + "_begin", {B}, DType::i32);
    return t;
}

KVCache kv_cache(Builder &f, const std::string &name, const CacheDims &dims, const CacheFormat &format, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const bool is_ring = format.layout == CacheLayout::ring;
    return {cache_tensors(f, name, dims, format), format.layout, is_ring ? format.sinks : 0, is_ring ? format.positions : 0};
}

Tile attend(const Tile &q, const KVCache &cache, const Tile &position, const AttendOptions &options, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const auto refuse = [](const std::string &why) { throw UserError("cache.attend", "attend: " + why); };
    Builder &f = q.builder();
    const CacheTensors &t = cache.tensors();
    const Dim D = cache.key(), E = cache.value(), T = cache.positions();
    for (const std::string &d : {t.length.dims()[0], t.keys.dims()[1], D.name})
        if (!contains(q.dims(), d)) refuse("the queries " + q.describe() + " have no dim '" + d + "' of the cache.");
    for (const std::string &d : position.dims())
        if (!contains(q.dims(), d))
            refuse("the position " + position.describe() + " has the dim '" + d + "', which " + q.describe() + " lacks.");
    if (is_float(position.dtype()) || position.dtype() == DType::boolean)
        refuse("positions are integers; got " + position.describe() + " of " + name_of(position.dtype()) + ".");
    if (options.window < 0 || options.sinks < 0) refuse("a window and sinks are 0 keys or more.");
    if (cache.layout() == CacheLayout::ring && options.sinks > cache.sinks())
        refuse("the ring keeps " + std::to_string(cache.sinks()) + " first positions, and the queries see " +
               std::to_string(options.sinks) + "; give the cache so many sinks.");
    const Tile root(&f, rsqrt(Tile(&f, cast(f.numerics().compute, extent(D.name)), {})).value(), {});
    const Tile scales = cache.key_scales(T);
    const bool is_channel = static_cast<bool>(scales) && scales.dims().size() == 2;
    const Tile scaled = (is_channel ? q * root * scales : q * root).named("scaled");  // (B, H, …, D)
    const auto scores = [&](const Dim &at, const char *name) {
        const Tile own = cache.key_scales(at), s = dot(scaled, cache.key_codes(at), {D}).named(name);  // (B, H, …, at)
        return static_cast<bool>(own) && !is_channel ? s * own : s;
    };
    const Tile last = min(as_index(position), cache.length() - 1);  // the greatest position that the query sees
    Tile first = cache.begin();
    if (options.window) first = max(first, as_index(position) - static_cast<double>(options.window - 1));
    const Tile key = f.index(T);
    const Tile own_scores = scores(T, "scores");
    if (!options.sinks) return online_softmax(own_scores, cache.values(T), T, E, first <= key && key <= last);
    // What is before the window is a fold of its own, so that the loop over the window begins where that does.
    const Dim S = f.dim(t.keys.dims()[0] + "_sinks", options.sinks);
    const Tile sink = f.index(S);
    const Monoid monoid = online_softmax_monoid(own_scores.dtype(), E.name);
    const std::vector<Tile> before = f.fold(monoid, {scores(S, "sink_scores"), cache.values(S)}, {S.name}, sink < first && sink <= last);
    const std::vector<Tile> window = f.fold(monoid, {own_scores, cache.values(T)}, {T.name}, first <= key && key <= last);
    std::vector<Tile> both;
    for (size_t p : {1, 2}) {
        const Expr value = rewrite(monoid.combine[p], [&](const Expr &e) {
            if (e.kind() == ExprKind::left) return before[static_cast<size_t>(e->number)].value();
            return e.kind() == ExprKind::right ? window[static_cast<size_t>(e->number)].value() : Expr();
        });
        both.emplace_back(&f, value, window[p].dims());
    }
    return select(both[0] == 0.0, f.scalar(both[0].dtype(), 0), both[1] / both[0]);
}

}  // namespace tessera
