#include "algorithms/build/selection.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

DType key_type(DType type) { return type == DType::f64 ? DType::i64 : DType::i32; }
int64_t sign_bit(DType key) { return key == DType::i64 ? 63 : 31; }
int64_t greatest(DType key) { return key == DType::i64 ? INT64_MAX : INT32_MAX; }
int64_t least(DType key) { return key == DType::i64 ? INT64_MIN : INT32_MIN; }

Tile whole(const Tile &like, int64_t value) { return Tile(&like.builder(), constant_int(like.dtype(), value), {}); }

// Flips all bits but the sign of negative integers. It is its own inverse.
Tile flipped(const Tile &bits) {
    const DType type = bits.dtype();
    return bits ^ ((bits >> whole(bits, sign_bit(type))) && whole(bits, greatest(type)));
}

struct Pair {
    Expr key, at;
};

Expr goes_before(const Pair &a, const Pair &b) { return b.key < a.key || (a.key == b.key && a.at < b.at); }

Pair pick(const Expr &first, const Pair &a, const Pair &b) { return {select(first, a.key, b.key), select(first, a.at, b.at)}; }

// Both sorted downwards; the first of what they have together, by a bitonic merge.
std::vector<Pair> merged(std::vector<Pair> a, std::vector<Pair> b, const Pair &none) {
    const size_t count = a.size();
    size_t n = 1;
    while (n < count) n *= 2;
    a.resize(n, none), b.resize(n, none);
    std::vector<Pair> all;
    for (size_t i = 0; i < n; i++) all.push_back(pick(goes_before(a[i], b[n - 1 - i]), a[i], b[n - 1 - i]));
    for (size_t half = n / 2; half > 0; half /= 2)
        for (size_t i = 0; i < n; i++) {
            if (i & half) continue;
            const Pair x = all[i], y = all[i + half];
            const Expr ordered = goes_before(x, y);
            all[i] = pick(ordered, x, y), all[i + half] = pick(ordered, y, x);
        }
    all.resize(count);
    return all;
}

Monoid largest_monoid(DType key, int count) {
    const DType at = DType::i32;
    const Pair none{constant_int(key, least(key)), constant_int(at, INT32_MAX)}, next{input(0, key), input(1, at)};
    Monoid m;
    m.name = "largest", m.inputs = {key, at};
    std::vector<Pair> held, others;
    for (int i = 0; i < count; i++) {
        held.push_back({left(2 * i, key), left(2 * i + 1, at)}), others.push_back({right(2 * i, key), right(2 * i + 1, at)});
        m.parts.push_back({"key" + std::to_string(i), none.key->value, {}});
        m.parts.push_back({"at" + std::to_string(i), none.at->value, {}});
    }
    const auto give = [](std::vector<Expr> &to, const Pair &pair) { to.push_back(pair.key), to.push_back(pair.at); };
    const std::vector<Pair> both = merged(held, others, none);
    for (size_t i = 0; i < held.size(); i++) {
        give(m.lift, i == 0 ? next : none);
        give(m.combine, both[i]);
        const Pair here = pick(goes_before(next, held[i]), next, held[i]);  // what is behind it moves on by one
        give(m.step, i == 0 ? here : pick(goes_before(next, held[i - 1]), held[i - 1], here));
    }
    return m;
}

}  // namespace

Tile order_key(const Tile &x, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (x.dtype() == DType::i32 || x.dtype() == DType::i64) return x;
    const DType type = key_type(x.dtype());
    const Tile zero(&x.builder(), constant(x.dtype(), 0), {});
    const Tile key = flipped(bitcast(type, select(x == zero, zero, x)));
    return select(x == x, key, whole(key, greatest(type)));
}

Tile from_order_key(const Tile &key, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return bitcast(key.dtype() == DType::i64 ? DType::f64 : DType::f32, flipped(key));
}

// The largest keys.
static std::vector<Ranked> first(const Tile &key, const Dim &over, int count) {
    Builder &f = key.builder();
    const std::vector<Tile> parts = f.fold(largest_monoid(key.dtype(), count), {key, cast(DType::i32, f.index(over))}, {over.name});
    std::vector<Ranked> result;
    for (size_t i = 0; i < parts.size(); i += 2) result.push_back({parts[i], parts[i + 1]});
    return result;
}

// Keys in the opposite order: all bits flipped, which is its own inverse.
static Tile opposite(const Tile &key) { return Tile(&key.builder(), !key.value(), key.dims()); }

std::vector<Ranked> largest(const Tile &x, const Dim &over, int count, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return first(order_key(x), over, count);
}

std::vector<Ranked> smallest(const Tile &x, const Dim &over, int count, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    std::vector<Ranked> all = first(opposite(order_key(x)), over, count);
    for (Ranked &r : all) r.key = opposite(r.key);
    return all;
}

Ranked sorted(const Tile &x, const Dim &over, Order order, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (over.kind != DimKind::fixed || over.value < 1)
        throw UserError("shape.sorted", "sorted: expected a fixed dim of at least one element, since the network depends on it; '" +
                                            over.name + "' is not; declare it as dim(\"" + over.name + "\", 64).");
    Builder &f = x.builder();
    int64_t n = 1;
    while (n < over.value) n *= 2;
    const Dim S = f.dim(over.name + "_sorted", n);
    const Expr i = variable(S.name);
    std::vector<std::string> dims = x.dims();
    std::replace(dims.begin(), dims.end(), over.name, S.name);
    const Tile all = order == Order::upwards ? order_key(x) : opposite(order_key(x));
    Tile key = all.at({{over.name, i}}, dims);
    if (n > over.value) {
        const Expr inside = i < Expr(over.value);
        key = Tile(&f, select(inside, read_where(key.value(), inside), constant_int(key.dtype(), greatest(key.dtype()))), dims);
    }
    key = key.named("key");
    Tile at = cast(DType::i32, f.index(S));
    const auto step = [&](int64_t run, int64_t apart) {
        const Expr low = i / Expr(apart) % Expr(2) == Expr(0), up = i / Expr(run) % Expr(2) == Expr(0);
        const Tile is_low(&f, low, {S.name}), takes_less(&f, run == n ? low : low == up, {S.name});
        // Loads of neighbours on either side: a vector of them is two loads, not a gather.
        const auto partner = [&](const Tile &tile) {
            const auto from = [&](const Expr &where, const Expr &inside) {
                return Tile(&f, read_where(substitute(tile.value(), {{S.name, where}}), inside), tile.dims());
            };
            return select(is_low, from(i + Expr(apart), i + Expr(apart) < Expr(n)), from(i - Expr(apart), i >= Expr(apart)));
        };
        const Tile other = partner(key), other_at = partner(at);
        const Tile other_first = other < key || (other == key && other_at < at);
        const std::string number = std::to_string(run) + "_" + std::to_string(apart);
        const Tile next_at = select(takes_less == other_first, other_at, at).named("at_" + number);
        key = select(takes_less, min(key, other), max(key, other)).named("key_" + number);
        at = next_at;
    };
    for (int64_t run = 2; run <= n; run *= 2)
        for (int64_t apart = run / 2; apart > 0; apart /= 2) step(run, apart);
    const auto kept = [&](const Tile &tile) {  // without what was added
        std::vector<std::string> kept_dims = tile.dims();
        std::replace(kept_dims.begin(), kept_dims.end(), S.name, over.name);
        return tile.at({{S.name, variable(over.name)}}, kept_dims);
    };
    return {order == Order::upwards ? kept(key) : opposite(kept(key)), kept(at)};
}

}  // namespace tessera
