#include "algorithms/build/fourier.h"

#include <algorithm>
#include <complex>

#include "algorithms/build/chirp.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::string text(int64_t n) { return std::to_string(n); }

}  // namespace

void check_fourier_points(int64_t n) {
    if (n < 1 || n > max_fourier_points)
        throw UserError("shape.fft",
                        "a Fourier transform of " + text(n) + " points: expected 1 ..= " + text(max_fourier_points) + " of them.");
}

std::vector<int64_t> fourier_radices(int64_t n) {
    require(is_smooth(n), "a transform in passes has a smooth length");
    int64_t rest = n, twos = 0;
    std::vector<int64_t> radices;
    for (; rest % 2 == 0; rest /= 2) twos++;
    for (int64_t p : {3, 5})
        for (; rest % p == 0; rest /= p) radices.push_back(p);
    // Eights first, since what follows them has whole vectors, and two fours rather than an eight and a two. Fewer than eight
    // points of powers of two go into the first of the other passes.
    std::vector<int64_t> powers;
    for (; twos >= 3 && twos != 4; twos -= 3) powers.push_back(8);
    for (; twos >= 2; twos -= 2) powers.push_back(4);
    if (twos) powers.push_back(2);
    if (powers.size() <= 1 && !radices.empty()) {
        int64_t &first = radices.front();
        const int64_t power = powers.empty() ? 1 : powers[0];
        if (power < 8 && first * power <= 16) first *= power, powers.clear();
        if (power == 1 && radices.size() > 1 && first * radices.back() <= 16) first *= radices.back(), radices.pop_back();
    }
    radices.insert(radices.begin(), powers.begin(), powers.end());
    return radices;
}

namespace {

// "fft", or "fft2", "fft3", ... for a further transform of the same algorithm, whatever scopes they are in.
std::string unused_name(const Builder &f) {
    const auto stages = f.algorithm().stages();
    for (int n = 1;; n++) {
        const std::string name = n == 1 ? "fft" : "fft" + text(n);
        const bool used = std::any_of(stages.begin(), stages.end(),
                                      [&](const Stage &s) { return ("." + s.name).find("." + name + ".") != std::string::npos; });
        if (!used) return name;
    }
}

// Complex values over some dims, read at an index of each.
using Reader = std::function<Complex(const Expr &n)>;

class Transform {
public:
    // A part of a convolution has no last pass, whose values are the result's: all are passes before another stage.
    Transform(Builder &f, std::vector<std::string> batch, DType type, FourierSign sign, bool is_part = false)
        : f_(f), name_(unused_name(f)), batch_(std::move(batch)), type_(type), sign_(sign), is_part_(is_part) {}

    // The transform of `points` values; `scale` is a factor of the result.
    Reader operator()(Reader read, int64_t points, double scale) const {
        check_fourier_points(points);
        if (!is_smooth(points)) return convolved(read, points, scale);
        int64_t before = 1;
        const std::vector<int64_t> radices = fourier_radices(points);
        for (size_t i = 0; i < radices.size(); i++) {
            const bool last = i + 1 == radices.size();
            const std::string pass_name = last && !is_part_ ? "last" : i == 0 ? "first" : "pass" + text(static_cast<int64_t>(i) + 1);
            read = pass(read, pass_name, radices[i], before, points / (before * radices[i]), last ? scale : 1);
            before *= radices[i];
        }
        if (!radices.empty() || scale == 1) return read;
        return [read, factor = constant(type_, scale)](const Expr &n) {
            const Complex x = read(n);
            return Complex{x.re * factor, x.im * factor};
        };
    }

    // One stage for both parts, and what reads it. `name` is the transform's own: "first" becomes "fft.first", or "fft2.first".
    Reader stored(const std::string &name, const Complex &value, const std::vector<Dim> &dims,
                  const std::function<std::map<std::string, Expr>(const Expr &)> &at) const {
        std::vector<std::string> all = batch_;
        all.push_back(C_.name);
        for (const Dim &d : dims) all.push_back(f_.dim(d).name);
        Tile parts = stack({Tile(&f_, value.re, all), Tile(&f_, value.im, all)}, C_);
        Tile stage = Tile(&f_, parts.value(), all).named(name_ + "." + name);
        return [=, c = C_.name](const Expr &n) {
            std::map<std::string, Expr> index = at(n);
            auto part = [&](int which) {
                index[c] = Expr(which);
                return stage.at(index, {}).value();
            };
            Expr re = part(0);
            return Complex{re, part(1)};
        };
    }

private:
    Builder &f_;
    std::string name_;  // before the names of its stages
    std::vector<std::string> batch_;
    const Dim C_ = fixed_dim("fft.c", 2);  // real and imaginary part
    DType type_;
    FourierSign sign_;
    bool is_part_;

    Reader pass(const Reader &read, const std::string &name, int64_t r, int64_t s, int64_t m, double scale) const {
        const Dim P = fixed_dim("fft.p" + text(m), m), K = fixed_dim("fft.k" + text(r), r), Q = fixed_dim("fft.q" + text(s), s);
        const Expr p = m > 1 ? variable(P.name) : Expr(0), q = s > 1 ? variable(Q.name) : Expr(0);
        std::vector<Complex> x;
        for (int64_t j = 0; j < r; j++) {
            Complex element = read((Expr(j * m) + p) * Expr(s) + q);
            x.push_back(j > 0 && s > 1 ? times(element, factor(r, s, j, q)) : element);
        }
        std::vector<Tile> re, im;
        std::vector<std::string> dims = batch_;
        dims.push_back(C_.name);
        for (const Complex &y : butterfly(x, sign_)) {
            auto scaled = [&](const Expr &e) { return Tile(&f_, scale == 1 ? e : e * constant(type_, scale), dims); };
            re.push_back(scaled(y.re)), im.push_back(scaled(y.im));
        }
        f_.dim(K);
        std::vector<Dim> own;
        if (m > 1) own.push_back(P);
        own.push_back(K);
        if (s > 1) own.push_back(Q);
        return stored(name, {stack(re, K).value(), stack(im, K).value()}, own, [=](const Expr &n) {
            std::map<std::string, Expr> at = {{K.name, n / Expr(s) % Expr(r)}};
            if (m == 1) at[K.name] = n / Expr(s);
            if (m > 1) at[P.name] = n / Expr(r * s);
            if (s > 1) at[Q.name] = n % Expr(s);
            return at;
        });
    }

    // Any length as a convolution with the chirp (chirp.h).
    Reader convolved(const Reader &read, int64_t n, double scale) const {
        const int64_t m = convolution_points(n);
        const Dim J = fixed_dim("fft.j" + text(n), n);
        const auto at = [=](const Expr &i) { return std::map<std::string, Expr>{{J.name, i}}; };
        const Expr j = variable(J.name), zero = constant(type_, 0);
        const auto own = [&](const Expr &i) { return table("fft.chirp" + text(n), n, i, [&] { return chirp(n); }); };
        const Reader chirped = stored("chirped", times(read(j), own(j)), {J}, at);
        const Reader padded = [=](const Expr &i) {
            // Behind the data wherever it is read: the index grows with every variable.
            const Expr least =
                simplify(rewrite(i, [](const Expr &e) { return e.kind() == ExprKind::variable ? Expr(0) : Expr(); }), Bounds());
            if (least.is_constant() && least->value.integer >= n) return Complex{zero, zero};
            const auto part = [&](const Expr &load) { return load_or(load->name, load.type(), load->args, i < Expr(n), zero); };
            const Complex x = chirped(i);
            return Complex{part(x.re), part(x.im)};
        };
        const Reader spectrum = Transform(f_, batch_, type_, FourierSign::forward, true)(padded, m, 1);
        const Reader product = [&](const Expr &i) {
            const Complex of = table("fft.chirp_spectrum" + text(n), m, i, [&] { return chirp_spectrum(n, m); });
            return sign_ == FourierSign::forward ? product_of(spectrum(i), of) : product_with_conjugate(spectrum(i), of);
        };
        const Complex sum = Transform(f_, batch_, type_, FourierSign::inverse, true)(product, m, 1)(j);
        Complex result = times(sum, own(j));
        if (scale != 1) result = {result.re * constant(type_, scale), result.im * constant(type_, scale)};
        return stored("unchirped", result, {J}, at);
    }

    // Element i of a constant of n complex numbers, which are made where there is none of that name.
    Complex table(const std::string &name, int64_t n, const Expr &i, const std::function<std::vector<std::complex<double>>()> &make) const {
        if (!f_.algorithm().find_tensor(name)) {
            std::vector<double> values;
            const std::vector<std::complex<double>> all = make();
            for (const std::complex<double> &v : all) values.push_back(v.real());
            for (const std::complex<double> &v : all) values.push_back(v.imag());
            f_.constant(name, {C_, fixed_dim("fft.j" + text(n), n)}, values, type_);
        }
        return {load(name, type_, {Expr(0), i}), load(name, type_, {Expr(1), i})};
    }

    // exp(2 pi i j q / (r s)): the conjugate, for a forward transform, of what multiplies input j.
    Complex factor(int64_t r, int64_t s, int64_t j, const Expr &q) const {
        const Dim J = fixed_dim("fft.j" + text(r - 1), r - 1), Q = fixed_dim("fft.q" + text(s), s);
        const std::string table = "fft.factors" + text(r) + "x" + text(s);
        if (!f_.algorithm().find_tensor(table)) {
            std::vector<double> values;
            for (int64_t i = 1; i < r; i++)
                for (bool sine : {false, true})
                    for (int64_t k = 0; k < s; k++) {
                        Turn t = turn(i * k, r * s);
                        values.push_back(sine ? t.sine : t.cosine);
                    }
            f_.constant(table, {J, C_, Q}, values, type_);
        }
        return {load(table, type_, {Expr(j - 1), Expr(0), q}), load(table, type_, {Expr(j - 1), Expr(1), q})};
    }

    // x w, of which the conjugate forward.
    Complex times(const Complex &x, const Complex &w) const {
        return sign_ == FourierSign::inverse ? product_of(x, w) : product_with_conjugate(x, w);
    }

    static Complex product_of(const Complex &x, const Complex &w) {
        return {fma(x.re, w.re, -(x.im * w.im)), fma(x.im, w.re, x.re * w.im)};
    }
    static Complex product_with_conjugate(const Complex &x, const Complex &w) {
        return {fma(x.re, w.re, x.im * w.im), fma(x.im, w.re, -(x.re * w.im))};
    }
};

void check_fixed(const std::string &function, const Dim &d, int64_t value) {
    if (d.kind != DimKind::fixed)
        throw UserError("shape.fft", function + ": dim '" + d.name +
                                         "' is not fixed; expected an extent that is known here, since the radices follow from it: "
                                         "declare it as dim(\"" +
                                         d.name + "\", " + text(value > 0 ? value : 256) + ").");
    if (value > 0 && d.value != value)
        throw UserError("shape.fft", function + ": dim '" + d.name + "' has extent " + text(d.value) + "; expected " + text(value) + ".");
}

// The points of a dim of pairs.
int64_t pairs_in(const std::string &function, const Dim &d) {
    check_fixed(function, d, 0);
    if (d.value % 2)
        throw UserError("shape.fft", function + ": dim '" + d.name + "' has extent " + text(d.value) +
                                         "; expected an even one, since a real part and an imaginary part follow each other.");
    return d.value / 2;
}

// The dims of x with `to` in the place of `from`, and none where that has no name.
std::vector<std::string> dims_with(const std::string &function, const Tile &x, const Dim &from, const Dim &to) {
    if (!is_float(x.dtype()))
        throw UserError("shape.fft",
                        function + ": " + x.describe() + " is " + name_of(x.dtype()) + "; expected floats: convert with cast.");
    std::vector<std::string> dims = x.dims();
    auto it = std::find(dims.begin(), dims.end(), from.name);
    if (it == dims.end())
        throw UserError("shape.unknown-dim", function + ": " + x.describe() + " has no dim '" + from.name + "'; its dims are " +
                                                 join(x.dims()) + "." + did_you_mean(from.name, x.dims()));
    if (to.name.empty()) dims.erase(it);
    else *it = to.name;
    return dims;
}

// x read as reals, and as pairs.
Expr real_at(const Tile &x, const Dim &d, const Expr &n) { return x.at({{d.name, n}}, {}).value(); }
Complex pair_at(const Tile &x, const Dim &d, const Expr &n) { return {real_at(x, d, n * Expr(2)), real_at(x, d, n * Expr(2) + 1)}; }

// Pairs one after the other along a dim.
Tile paired(Builder &f, const std::function<Complex(const Expr &n)> &value, const Dim &d, const std::vector<std::string> &dims) {
    const Expr i = variable(f.dim(d).name);
    const Complex pair = value(i / Expr(2));
    return Tile(&f, select(i % Expr(2) == Expr(0), pair.re, pair.im), dims);
}

Tile transform(const std::string &function, const Tile &x, const Dim &N, FourierSign sign, bool mean) {
    const int64_t points = pairs_in(function, N);
    Transform run(x.builder(), dims_with(function, x, N, {}), x.dtype(), sign);
    Reader result = run([&](const Expr &n) { return pair_at(x, N, n); }, points, mean ? 1.0 / static_cast<double>(points) : 1);
    return paired(x.builder(), result, N, x.dims());
}

Complex operator+(const Complex &a, const Complex &b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex &a, const Complex &b) { return {a.re - b.re, a.im - b.im}; }

// exp(2 pi i k / points) for k = 0 ..= points / 2.
Complex half_turn(Builder &f, int64_t points, DType type, const Expr &k) {
    const std::string name = "fft.half_turn" + text(points);
    if (!f.algorithm().find_tensor(name)) {
        std::vector<double> values;
        for (bool sine : {false, true})
            for (int64_t i = 0; i <= points / 2; i++) {
                Turn t = turn(i, points);
                values.push_back(sine ? t.sine : t.cosine);
            }
        f.constant(name, {fixed_dim("fft.c", 2), fixed_dim("fft.h" + text(points / 2 + 1), points / 2 + 1)}, values, type);
    }
    return {load(name, type, {Expr(0), k}), load(name, type, {Expr(1), k})};
}

}  // namespace

Tile fft(const Tile &x, const Dim &N, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return transform("fft", x, N, FourierSign::forward, false);
}
Tile ifft(const Tile &x, const Dim &N, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return transform("ifft", x, N, FourierSign::inverse, true);
}

Tile rfft(const Tile &x, const Dim &N, const Dim &K, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check_fixed("rfft", N, 0), check_fixed("rfft", K, 2 * (N.value / 2 + 1));
    Builder &f = x.builder();
    const std::vector<std::string> dims = dims_with("rfft", x, N, K);
    const DType type = x.dtype();
    Transform run(f, dims_with("rfft", x, N, {}), type, FourierSign::forward);
    if (N.value % 2) {
        Reader all = run([&](const Expr &n) { return Complex{real_at(x, N, n), constant(type, 0)}; }, N.value, 1);
        return paired(f, all, K, dims);
    }
    // x[2n] + i x[2n+1] has the transform E + i O, where E and O are those of the even and of the odd points, each its own
    // reflection's conjugate; X = E + exp(-2 pi i k / |N|) O. Half the transform is stored, so that the sum and the difference of a
    // point and its reflection, 2 E and 2 i O, do not overflow where E and O do not.
    const int64_t half = N.value / 2;
    const Reader z = run([&](const Expr &n) { return pair_at(x, N, n); }, half, 0.5);
    const Complex first = z(Expr(0));
    auto guarded = [&](const Expr &e, const Expr &guard, const Expr &otherwise) {
        if (half == 1) return otherwise;
        return rewrite(
            e, [&](const Expr &l) { return l.kind() == ExprKind::load ? load_or(l->name, l.type(), l->args, guard, otherwise) : Expr(); });
    };
    auto bin = [&](const Expr &k) {
        const Expr i = variable(K.name), inside = i < Expr(2 * half), positive = i >= Expr(2);  // of k = i / 2
        const Complex here = z(k), there = z(Expr(half) - k), w = half_turn(f, N.value, type, k);
        const Complex a = {guarded(here.re, inside, first.re), guarded(here.im, inside, first.im)};
        const Complex b = {guarded(there.re, positive, first.re), guarded(there.im, positive, first.im)};
        const Complex s = a + b, d = a - b;
        return Complex{fma(w.re, s.im, s.re - w.im * d.re), d.im - fma(w.re, d.re, w.im * s.im)};
    };
    return paired(f, bin, K, dims);
}

Tile irfft(const Tile &x, const Dim &K, const Dim &N, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check_fixed("irfft", N, 0), check_fixed("irfft", K, 2 * (N.value / 2 + 1));
    Builder &f = x.builder();
    f.dim(N);
    const std::vector<std::string> dims = dims_with("irfft", x, K, N);
    const DType type = x.dtype();
    const Expr zero = constant(type, 0);
    Transform run(f, dims_with("irfft", x, K, {}), type, FourierSign::inverse);
    if (N.value % 2) {
        // The points beyond K are the conjugates of their reflections.
        auto whole = [&](const Expr &n) {
            const Expr lower = n < Expr(N.value / 2 + 1);
            const Complex c = pair_at(x, K, select(lower, n, Expr(N.value) - n));
            const Expr im = select(n == Expr(0), zero, c.im);
            return Complex{c.re, select(lower, im, -im)};
        };
        return Tile(&f, run(whole, N.value, 1.0 / static_cast<double>(N.value))(variable(N.name)).re, dims);
    }
    const int64_t half = N.value / 2;
    const Dim H = f.dim(fixed_dim("fft.h" + text(half), half));
    const Expr h = variable(H.name), one_half = constant(type, 0.5);
    auto part = [&](const Expr &im) { return select(h == Expr(0), zero, im); };
    Complex a = pair_at(x, K, h), b = pair_at(x, K, Expr(half) - h);
    a.im = part(a.im), b.im = -part(b.im);
    const Complex w = half_turn(f, N.value, type, h), b_half = {one_half * b.re, one_half * b.im};
    // (a + b) / 2 + i exp(2 pi i h / |N|) (a - b) / 2, halved before they are added, where a + b could overflow
    const Complex s = {fma(one_half, a.re, b_half.re), fma(one_half, a.im, b_half.im)};
    const Complex d = {fma(one_half, a.re, -b_half.re), fma(one_half, a.im, -b_half.im)};
    const Complex both = {s.re - fma(w.re, d.im, w.im * d.re), s.im + fma(w.re, d.re, -(w.im * d.im))};
    const Reader z = run.stored("pairs", both, {H}, [=](const Expr &n) { return std::map<std::string, Expr>{{H.name, n}}; });
    return paired(f, run(z, half, 1.0 / static_cast<double>(half)), N, dims);
}

}  // namespace tessera
