#include "tests/compiler/random_case.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/transform/half_bytes.h"
#include "algorithms/transform/inline_calls.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera::test {

namespace {

constexpr int kinds_of_stages = 22, call_kind = 22, parameter_kind = 23, codes_kind = 24, random_kind = 25, kinds = 26;

// Makes the algorithm and the text that makes it side by side.
class Maker {
public:
    explicit Maker(const RandomCase &c)
        : Maker(c.name, numerics_named(c.numerics), {{"x", {"M", "N"}}, {"w", {"N", "K"}}, {"b", {"N"}}, {"z", {"M", "N"}}}, 0, c.large) {
        for (const Step &s : c.steps) step(s);
        finish();
    }

    Builder f;
    std::string text;

private:
    using Names = std::vector<std::string>;
    struct Given {
        std::string name;
        Names dims;
    };
    // A dim whose extent is made of others' in one of a few ways.
    struct Derived {
        char how;
        Names of;
    };

    int depth;        // of calls
    uint32_t large;   // as a case has it
    int unnamed = 0;  // steps that may leave no tile
    std::vector<Tile> tiles;
    std::map<std::string, Names> outputs;  // with their dims
    std::map<std::string, Tile> tensors;   // that steps wanted
    std::map<std::string, Derived> derived_dims;
    bool has_factor = false;  // a parameter
    std::optional<Dim> triangle;

    Maker(const std::string &name, const Numerics &numerics, const std::vector<Given> &given, int depth_of_calls, uint32_t are_large)
        : f(name, numerics), depth(depth_of_calls), large(are_large) {
        text = "Builder f(\"" + name + "\"" + (numerics.name == "f32" ? "" : ", numerics_named(\"" + numerics.name + "\")") + ");\n";
        for (const Given &g : given) {
            std::vector<Dim> dims;
            for (const std::string &d : g.dims) dims.push_back(declared(symbolic_dim(d), "\"" + d + "\""));
            tile(f.input(g.name, dims), "f.input(\"" + g.name + "\", " + list(g.dims) + ")");
        }
    }

    void finish() {
        output("y", tiles.back(), "t" + std::to_string(tiles.size() - 1));
        declare_large();
        text += "Algorithm a = f.build();\n";
    }

    void declare_large() {
        uint32_t bit = 0;
        auto declare = [&](const std::string &name) {
            if (large >> (bit++ % 16) & 1) f.large(name), text += "f.large(\"" + name + "\");\n";
        };
        for (const Tensor &t : f.algorithm().tensors)
            if (t.role != Role::constant) declare(t.name);
        for (const std::string &output : f.algorithm().outputs) declare(output);
    }

    // What data counts is folded: the caller makes room for outputs before.
    void output(const std::string &name, Tile t, std::string made, DType type = DType::f32) {
        if (std::count(t.dims().begin(), t.dims().end(), "C")) t = sum(t, dim("C")), made = "sum(" + made + ", C)";
        f.output(name, t, type);
        outputs[name] = t.dims();
        text += "f.output(\"" + name + "\", " + made + (type == DType::f32 ? "" : std::string(", DType::") + name_of(type)) + ");\n";
    }

    static std::string list(const Names &names) {
        std::string t;
        for (const std::string &n : names) t += (t.empty() ? "" : ", ") + n;
        return "{" + t + "}";
    }

    bool has_dim(const std::string &name) const { return f.algorithm().find_dim(name) != nullptr; }
    Dim dim(const std::string &name) const { return f.dim_named(name); }
    std::vector<Dim> dims_named(const Names &names) const {
        std::vector<Dim> dims;
        for (const std::string &d : names) dims.push_back(dim(d));
        return dims;
    }
    Dim declared(const Dim &d, const std::string &made) {
        if (!has_dim(d.name)) text += "Dim " + d.name + " = f.dim(" + made + ");\n";
        return f.dim(d);
    }

    Tile stored() { return tensor("stored", {"M", "N"}, Role::state); }
    Tile ids() { return tensor("ids", {"M"}, Role::input, DType::i32); }

    // As long in each row of M as it is far from the first.
    const Dim &rows() {
        if (!triangle) triangle = declared(derived_dim("R", variable("M") + 1), "derived_dim(\"R\", variable(\"M\") + 1)");
        return *triangle;
    }

    void tile(const Tile &t, const std::string &made) {
        text += "Tile t" + std::to_string(tiles.size()) + " = " + made + ";\n";
        tiles.push_back(t);
    }

    void step(const Step &s) {
        size_t n = tiles.size();
        auto pick = [&](int back) { return n - 1 - static_cast<size_t>(back) % n; };
        size_t i = pick(s.a), j = pick(s.b);
        Tile a = tiles[i], b = tiles[j];
        std::string ta = "t" + std::to_string(i), tb = "t" + std::to_string(j), name = "s" + std::to_string(n);
        auto has = [](const Tile &t, const std::string &d) { return std::find(t.dims().begin(), t.dims().end(), d) != t.dims().end(); };
        auto named = [&](const Tile &t, const std::string &made) { tile(t.named(name), "(" + made + ").named(\"" + name + "\")"); };
        std::string over = a.dims().empty() ? "" : a.dims()[static_cast<size_t>(s.choice) % a.dims().size()];
        switch (s.kind % kinds) {
        case 0: return named(relu(a) + 0.25, "relu(" + ta + ") + 0.25");
        case 1: return named(a * 0.5 + b, ta + " * 0.5 + " + tb);
        case 2: return named(fma(a, b, a), "fma(" + ta + ", " + tb + ", " + ta + ")");
        case 3: return named(min(a, b) - max(a, b * 0.5), "min(" + ta + ", " + tb + ") - max(" + ta + ", " + tb + " * 0.5)");
        case 4: return named(gelu(a), "gelu(" + ta + ")");
        case 5: return named(select(a < b, b, a * 2.0), "select(" + ta + " < " + tb + ", " + tb + ", " + ta + " * 2.0)");
        case 6:
            if (over.empty()) return;
            switch (s.choice / 8 % 4) {
            case 0: return named(sum(a, dim(over)), "sum(" + ta + ", " + over + ")");
            case 1: return named(max(a, dim(over)), "max(" + ta + ", " + over + ")");
            case 2: return named(min(a, dim(over)), "minimum(" + ta + ", " + over + ")");
            default: return named(product(a * 0.75, dim(over)), "product(" + ta + " * 0.75, " + over + ")");
            }
        case 7: {  // a matrix product over N or K, where the operands have it in common
            for (const char *d : {"N", "K"})
                if (has(a, d) && has(b, d)) return named(dot(a, b, {dim(d)}), "dot(" + ta + ", " + tb + ", {" + d + "})");
            return;
        }
        case 8:
            if (over.empty()) return;
            {
                bool inclusive = s.choice / 8 % 2, backward = s.choice / 16 % 2;
                Tile segments;
                std::string begins = "Tile()", direction = backward ? "ScanDirection::backward" : "ScanDirection::forward";
                if (s.choice / 32 % 2 && has(a, "M") && has(a, "N"))
                    segments = tiles[0] < f.scalar(DType::f32, 0), begins = "t0 < f.scalar(DType::f32, 0)";
                else if (s.choice / 32 % 2)
                    segments = f.tile(variable(over) / Expr(3), {dim(over)}),
                    begins = "f.tile(variable(\"" + over + "\") / Expr(3), {" + over + "})";
                // The mean of Welford's scan is read, which needs the count and not the squares.
                if (s.choice / 64 % 2)
                    return named(f.scan_parts(welford_monoid(DType::f32), {a}, dim(over), inclusive,
                                              backward ? ScanDirection::backward : ScanDirection::forward, segments)[1],
                                 "f.scan_parts(welford_monoid(DType::f32), {" + ta + "}, " + over + ", " + (inclusive ? "true" : "false") +
                                     ", " + direction + ", " + begins + ")[1]");
                return named(f.scan(sum_monoid(DType::f32), a, dim(over), inclusive,
                                    backward ? ScanDirection::backward : ScanDirection::forward, segments),
                             "f.scan(sum_monoid(DType::f32), " + ta + ", " + over + ", " + (inclusive ? "true" : "false") + ", " +
                                 direction + ", " + begins + ")");
            }
        case 9: {  // a neighbour, 0 beyond the edge
            if (over.empty()) return;
            Tile t = a.named(name + "_of");
            Expr v = t.value();
            if (v.kind() != ExprKind::load) return;
            std::vector<Expr> index;
            int64_t shift = s.choice / 8 % 2 ? 1 : -2;
            for (const std::string &d : t.dims()) index.push_back(d == over ? variable(d) + Expr(shift) : variable(d));
            Expr at = variable(over) + Expr(shift);
            std::vector<Dim> dims;
            std::string names;
            for (const std::string &d : t.dims()) dims.push_back(dim(d)), names += (names.empty() ? "" : ", ") + d;
            text += "Tile u" + std::to_string(n) + " = " + ta + ".named(\"" + name + "_of\");\n";
            std::string u = "u" + std::to_string(n), where = "variable(\"" + over + "\") + " + std::to_string(shift), list;
            for (const std::string &d : t.dims())
                list += (list.empty() ? "" : ", ") + std::string(d == over ? where : "variable(\"" + d + "\")");
            return named(f.tile(load_or(v->name, v.type(), index, Expr(0) <= at && at < extent(over), constant(v.type(), 0)), dims),
                         "f.tile(load_or(" + u + ".value()->name, DType::f32, {" + list + "}, Expr(0) <= " + where + " && " + where +
                             " < extent(\"" + over + "\"), constant(DType::f32, 0)), {" + names + "})");
        }
        case 10: {  // a fold with a condition
            if (over.empty() || a.dims().size() < 2) return;
            std::string other = a.dims()[0] == over ? a.dims()[1] : a.dims()[0];
            bool lower = s.choice / 8 % 2;
            auto condition = [&] { return lower ? f.index(dim(over)) <= f.index(dim(other)) : f.index(dim(other)) < f.index(dim(over)); };
            std::string io = "f.index(" + over + ")", iq = "f.index(" + other + ")";
            return named(f.fold(sum_monoid(DType::f32), {a}, {over}, condition())[0],
                         "f.fold(sum_monoid(DType::f32), {" + ta + "}, {\"" + over + "\"}, " +
                             (lower ? io + " <= " + iq : iq + " < " + io) + ")[0]");
        }
        case 11:
            if (over.empty()) return;
            {
                auto scope = f.scope("p" + std::to_string(n));
                Tile t = softmax(a, dim(over));
                text +=
                    "auto scope" + std::to_string(n) + " = std::make_unique<Builder::Scope>(f.scope(\"p" + std::to_string(n) + "\"));\n";
                tile(t, "softmax(" + ta + ", " + over + ")");
                text += "scope" + std::to_string(n) + ".reset();\n";
            }
            return;
        case 12: {  // Welford's fold, of which the mean is used
            if (over.empty()) return;
            std::vector<Tile> parts = f.fold(welford_monoid(DType::f32), {a}, {over});
            return named(parts[1] + parts[2],
                         "[&] { auto p = f.fold(welford_monoid(DType::f32), {" + ta + "}, {\"" + over + "\"}); return p[1] + p[2]; }()");
        }
        case 13:
            if (!has_dim("M") || !has_dim("N")) return;
            return named(a * 0.5 + stored(), ta + " * 0.5 + stored");
        case 14: {  // the state gets new values, of which some may come of its old ones
            if (!has(a, "M") || !has(a, "N") || a.dims().size() != 2) return;
            const bool adds = s.choice % 2;
            const Tile old = stored();
            const std::string update = "update" + std::to_string(unnamed++);
            f.update(update, old, {f.index(dim("M")), f.index(dim("N"))}, adds ? a + old : a);
            text += "f.update(\"" + update + "\", stored, {f.index(M), f.index(N)}, " + ta + (adds ? " + stored" : "") + ");\n";
            return;
        }
        case 16: {  // functions with names
            const Tile small = a * 0.5;
            switch (s.choice % 9) {
            case 0: return named(exp(small), "exp(" + ta + " * 0.5)");
            case 1: return named(sin(a), "sin(" + ta + ")");
            case 2: return named(tanh(a), "tanh(" + ta + ")");
            case 3: return named(softplus(a), "softplus(" + ta + ")");
            case 4: return named(atan2(a, b), "atan2(" + ta + ", " + tb + ")");
            case 5: return named(silu(a) * b + small, "silu(" + ta + ") * " + tb + " + " + ta + " * 0.5");
            case 6: return named(a / (abs(b) + 1) / 3 * 0.7, ta + " / (abs(" + tb + ") + 1) / 3 * 0.7");
            case 7: return named(a * rsqrt(b * b + 0.5), ta + " * rsqrt(" + tb + " * " + tb + " + 0.5)");
            default: return named(erf(a), "erf(" + ta + ")");
            }
        }
        case 17: {  // one result more, perhaps of four or six bits
            static const DType types[] = {DType::f4e2m1fn, DType::f6e2m3fn, DType::f6e3m2fn, DType::f8e4m3fn};
            const int choice = s.choice % 8;
            if (depth == 0 && choice < 4 && !has(a, "C")) {
                const Rounding rounding = roundings[s.choice / 8 % 4];
                const std::string made =
                    "cast(DType::" + std::string(name_of(types[choice])) + ", " + ta + ", Rounding::" + name_of(rounding) + ", true)";
                return output("o" + std::to_string(n) + std::to_string(outputs.size()), cast(types[choice], a, rounding, true), made,
                              types[choice]);
            }
            return output("o" + std::to_string(n) + std::to_string(outputs.size()), a, ta);
        }
        case 18: {  // added up along K at positions that data gives, from below 0 to beyond its end
            if (!has(a, "M") || has(a, "K") || !has_dim("K")) return;
            const Tile at = ids();
            if (has(a, "N") && s.choice % 2)
                return named(f.scatter(sum_monoid(DType::f32), a, {at, f.index(dim("N"))}, {dim("K"), dim("N")}),
                             "f.scatter(sum_monoid(DType::f32), " + ta + ", {ids, f.index(N)}, {K, N})");
            return named(f.scatter(max_monoid(DType::f32), a, {at}, {dim("K")}),
                         "f.scatter(max_monoid(DType::f32), " + ta + ", {ids}, {K})");
        }
        case 19: {  // read at positions that data gives, 0 beyond the edge
            if (over.empty() || (over != "M" && has(a, "M")) || !has_dim("M")) return;
            const Tile at = ids(), t = a.named(name + "_of");
            const Expr v = t.value(), i = cast(DType::index, at.value());
            if (v.kind() != ExprKind::load) return;
            std::vector<Expr> index;
            std::vector<Dim> dims;
            std::string list, names;
            for (const std::string &d : t.dims()) {
                index.push_back(d == over ? i : variable(d)), dims.push_back(dim(d == over ? "M" : d));
                list += (list.empty() ? "" : ", ") + (d == over ? std::string("i") : "variable(\"" + d + "\")");
                names += (names.empty() ? "" : ", ") + (d == over ? std::string("M") : d);
            }
            text += "Tile u" + std::to_string(n) + " = " + ta + ".named(\"" + name + "_of\");\n";
            return named(f.tile(load_or(v->name, v.type(), index, Expr(0) <= i && i < extent(over), constant(v.type(), 0)), dims),
                         "[&] { Expr i = cast(DType::index, ids.value()); return f.tile(load_or(u" + std::to_string(n) +
                             ".value()->name, DType::f32, {" + list + "}, Expr(0) <= i && i < extent(\"" + over +
                             "\"), constant(DType::f32, 0)), {" + names + "}); }()");
        }
        case 20:  // integers
            if (over.empty()) return;
            return named(cast(DType::f32, sum(cast(DType::i32, a * 4.0), dim(over))),
                         "cast(DType::f32, sum(cast(DType::i32, " + ta + " * 4.0), " + over + "))");
        case 21: {  // rows of different lengths
            if (!has(a, "N") || has(a, "M") || a.dims().size() != 1 || !has_dim("M")) return;
            const Tile t = a.named(name + "_of");
            const Expr v = t.value();
            if (v.kind() != ExprKind::load) return;
            const Dim r = rows();
            const Expr at = variable("R");
            const Tile row = f.tile(load_or(v->name, v.type(), {at}, at < extent("N"), constant(v.type(), 0)), {dim("M"), r});
            text += "Tile u" + std::to_string(n) + " = " + ta + ".named(\"" + name + "_of\");\n";
            return named(sum(row, r), "sum(f.tile(load_or(u" + std::to_string(n) +
                                          ".value()->name, DType::f32, {variable(\"R\")}, variable(\"R\") < extent(\"N\"), "
                                          "constant(DType::f32, 0)), {M, R}), R)");
        }
        case call_kind: return call(s, i, j);
        case parameter_kind:  // a callee's parameter
            if (depth == 0) return;
            if (!has_factor) tensors["p"] = f.parameter("p", DType::f32), text += "Tile p = f.parameter(\"p\", DType::f32);\n";
            has_factor = true;
            return named(a * tensors["p"], ta + " * p");
        case codes_kind: {  // numbers of four bits, which are exact
            static const DType types[] = {DType::i4, DType::u4, DType::f4e2m1fn};
            const DType type = types[s.choice % 3];
            if (depth > 0 || !has(a, "M") || !has_dim("N")) return;
            const std::string codes = std::string("codes_") + name_of(type);
            const Tile w = tensor(codes, {"M", "N"}, Role::input, type);
            return named(a * 0.25 + cast(DType::f32, w), ta + " * 0.25 + cast(DType::f32, " + codes + ")");
        }
        case random_kind: {  // drawn, or rounded by what is drawn
            const RandomStream stream{f.scalar(DType::i64, 7), f.scalar(DType::i64, 3), static_cast<uint32_t>(n)};
            const std::string drawn = "RandomStream{f.scalar(DType::i64, 7), f.scalar(DType::i64, 3), " + std::to_string(n) + "}",
                              own = list(a.dims());
            static const DType types[] = {DType::bf16, DType::f16, DType::f8e5m2, DType::f6e3m2fn, DType::f4e2m1fn};
            if (s.choice % 2) return named(a + uniform(f, stream, dims_named(a.dims())), ta + " + uniform(f, " + drawn + ", " + own + ")");
            const DType type = types[s.choice / 2 % 5];
            return named(cast(DType::f32, round_stochastic(a, type, stream, true)),
                         "cast(DType::f32, round_stochastic(" + ta + ", DType::" + name_of(type) + ", " + drawn + ", true))");
        }
        default: {  // rounded to a type that is only stored, and perhaps stored
            static const DType types[] = {DType::bf16,     DType::bf16,       DType::f16,     DType::f8e4m3fn,
                                          DType::f8e4m3,   DType::f8e4m3fnuz, DType::f8e5m2,  DType::f8e5m2fnuz,
                                          DType::f6e2m3fn, DType::f6e3m2fn,   DType::f4e2m1fn};
            const DType type = types[s.choice % 11];
            const Rounding rounding = roundings[s.choice / 11 % 4];
            const std::string made =
                std::string("cast(DType::") + name_of(type) + ", " + ta + ", Rounding::" + name_of(rounding) + ", true)";
            const Tile narrow = cast(type, a, rounding, true);
            if (type == DType::bf16)
                return named(cast(DType::f32, cast(type, a)) + b, "cast(DType::f32, cast(DType::bf16, " + ta + ")) + " + tb);
            if (s.choice / 44 % 2) return named(cast(DType::f32, narrow) + b, "cast(DType::f32, " + made + ") + " + tb);
            text += "Tile u" + std::to_string(n) + " = " + made + ".named(\"" + name + "_of\");\n";
            return named(narrow.named(name + "_of") + b, "u" + std::to_string(n) + " + " + tb);
        }
        }
    }

    // ---- calls

    // Twice as long and 3 more; as long as two together; as long as both make a grid.
    Dim derived(char how, const Names &of) {
        const std::string name = of[0] + (of.size() > 1 ? of[1] : "") + how, first = "extent(\"" + of[0] + "\")";
        const std::string second = of.size() > 1 ? "extent(\"" + of[1] + "\")" : "Expr(3)";
        const Expr n = extent(of[0]), m = of.size() > 1 ? extent(of[1]) : Expr(3);
        derived_dims[name] = {how, of};
        const Expr size = how == 'w' ? n * 2 + 3 : how == 's' ? n + m : n * m;
        const std::string made = how == 'w' ? first + " * 2 + 3" : first + (how == 's' ? " + " : " * ") + second;
        return declared(derived_dim(name, size), "derived_dim(\"" + name + "\", " + made + ")");
    }

    Tile tensor(const std::string &name, const Names &dims, Role role, DType type = DType::f32) {
        if (tensors.count(name)) return tensors[name];
        text += "Tile " + name + " = f." + (role == Role::state ? "state" : "input") + "(\"" + name + "\", " + list(dims) +
                (type == DType::f32 ? std::string() : std::string(", DType::") + name_of(type)) + ");\n";
        return tensors[name] = role == Role::state ? f.state(name, dims_named(dims), type) : f.input(name, dims_named(dims), type);
    }

    // What a callee's tensor with these dims of the caller is bound to, in one of eight forms, and its text. `round` is "" where the call
    // does not repeat.
    std::pair<Tile, std::string> argument(int form, const Names &dims, const std::string &round, Role role, DType type) {
        const std::string prefix = role == Role::state ? "state" : type == DType::i32 ? "ids" : "in";
        Names own = dims;
        std::map<std::string, std::pair<Expr, std::string>> index;  // by the tensor's dim
        auto moved = [&](size_t i, const Dim &to, const Expr &e, const std::string &made) { own[i] = to.name, index[to.name] = {e, made}; };
        const std::string last = dims.empty() ? "" : dims.back();
        if (round == "C" && (form == 4 || form == 6 || form == 7)) form = 1;  // no argument is as long as data counts
        if (form == 6 && !round.empty()) own.insert(own.begin(), round), index[round] = {variable(round), "variable(\"" + round + "\")"};
        for (size_t i = 0; i < dims.size(); i++) {
            const Expr at = variable(dims[i]);
            const std::string text_at = "variable(\"" + dims[i] + "\")";
            const bool is_last = i + 1 == dims.size();
            if (form == 2 || (form == 3 && is_last)) {
                moved(i, derived('w', {dims[i]}), is_last ? at + 2 : at * 2 + 1, text_at + (is_last ? " + 2" : " * 2 + 1"));
            } else if (form == 1) {
                moved(i, derived('w', {dims[i]}), at, text_at);
            } else if (form == 4 && is_last && !round.empty()) {
                moved(i, derived('j', {last, round}), variable(round) * extent(last) + at,
                      "variable(\"" + round + "\") * extent(\"" + last + "\") + " + text_at);
            } else if (form == 4 && is_last) {
                moved(i, derived('j', {last}), extent(last) + at, "extent(\"" + last + "\") + " + text_at);
            } else if (form == 7 && is_last && !round.empty()) {
                moved(i, derived('s', {last, round}), variable(round) + at, "variable(\"" + round + "\") + " + text_at);
            }
        }
        if (form == 5 && dims.size() > 1 && role != Role::state) own.erase(own.begin());
        std::string made = prefix;
        for (const std::string &d : own) made += "_" + d;
        Tile t = tensor(made, own, role, type);
        if (form == 3 && type == DType::f32 && role != Role::state && !dims.empty()) {  // a part of what is computed
            const std::string computed = made + "_half";
            if (!tensors.count(computed)) {
                tensors[computed] = (t * 0.5).named(computed);
                text += "Tile " + computed + " = (" + made + " * 0.5).named(\"" + computed + "\");\n";
            }
            t = tensors[computed], made = computed;
        }
        if (own == dims) return {t, made};
        std::map<std::string, Expr> at;
        std::string text_at;
        for (const std::string &d : own) {
            if (!index.count(d)) continue;
            at[d] = index[d].first;
            text_at += (text_at.empty() ? "" : ", ") + ("{\"" + d + "\", ") + index[d].second + "}";
        }
        Names seen = dims;
        if (form == 6 && !round.empty()) seen.insert(seen.begin(), round);
        std::string names;
        for (const std::string &d : seen) names += (names.empty() ? "\"" : ", \"") + d + "\"";
        return {t.at(at, seen), made + ".at({" + text_at + "}, {" + names + "})"};
    }

    // The dim over which a call repeats.
    std::string rounds(int choice) {
        switch (choice) {
        case 3:
        case 4:
        case 5: {
            const int64_t n = choice == 3 ? 1 : choice == 4 ? 2 : 5;
            const std::string name = "F" + std::to_string(n) + std::to_string(depth);
            return declared(fixed_dim(name, n), "\"" + name + "\", " + std::to_string(n)).name;
        }
        case 6:
            if (depth > 0) break;
            if (!has_dim("C")) {
                const Tile tries = tensor("tries", {}, Role::input, DType::i32);
                declared(counted_dim("C", tries.value(), Expr(5)), "counted_dim(\"C\", tries.value(), Expr(5))");
            }
            return "C";
        case 7:
            if (has_dim("K")) return "K";
            break;
        default: break;
        }
        const std::string name(1, "TUV"[depth]);
        declared(symbolic_dim(name), "\"" + name + "\"");
        tensor("rounds_" + name, {name}, Role::input);  // which tells the extent
        return name;
    }

    // The caller's dim for one of a callee's.
    std::string bound(const std::string &callees, const Maker &callee, std::map<std::string, std::string> &dims) {
        auto known = dims.find(callees);
        if (known != dims.end()) return known->second;
        std::string name = callees;
        if (auto made = callee.derived_dims.find(callees); made != callee.derived_dims.end()) {
            Names of;
            for (const std::string &d : made->second.of) of.push_back(bound(d, callee, dims));
            name = derived(made->second.how, of).name;
        } else if (!has_dim(name)) {
            const Dim d = callee.dim(name);
            declared(d, "\"" + name + "\"" + (d.kind == DimKind::fixed ? ", " + std::to_string(d.value) : ""));
        }
        return dims[callees] = name;
    }

    // `choice`: whether it repeats (1 bit), over what (3), whether it carries (1), stacks what it carries (1), ends by what is
    // computed (1), leaves the last round's (1), and whether the second operand's dims are taken for others than the first's (1).
    void call(const Step &s, size_t i, size_t j) {
        auto bits = [choice = s.choice](int at, int count) { return choice >> at & ((1 << count) - 1); };
        const std::string round = bits(0, 1) ? rounds(bits(1, 3)) : "", scope = "c" + std::to_string(unnamed++);
        static const Names all = {"M", "N", "K", "P", "Q", "I"};
        Names callers;
        std::map<std::string, std::string> dims;  // callee's -> caller's
        std::vector<Given> given = {{"x", {}}, {"z", {}}};
        for (size_t which = 0; which < 2; which++)
            for (const std::string &d : tiles[which ? j : i].dims()) {
                if (d == round) continue;
                const auto begin = callers.begin() + (which && bits(8, 1) ? static_cast<std::ptrdiff_t>(given[0].dims.size()) : 0);
                const auto known = std::find(begin, callers.end(), d);
                const size_t at = static_cast<size_t>(known - callers.begin());
                if (at == all.size()) return;
                if (known == callers.end()) callers.push_back(d), dims[all[at]] = d;
                given[which].dims.push_back(all[at]);
            }
        Maker callee(f.algorithm().name + "_" + scope, f.numerics(), given, depth + 1, large ? 0xffff : 0);
        for (const Step &inside : s.callee) callee.step(inside);
        const Tile last = callee.tiles.back();
        const bool until = !round.empty() && bits(6, 1);
        if (until) {
            Tile most = last;
            for (const std::string &d : last.dims()) most = max(most, callee.dim(d));
            callee.f.output("enough", most > callee.f.scalar(DType::f32, 0.5), DType::boolean);
            callee.text += "Tile most = t" + std::to_string(callee.tiles.size() - 1) + ";\n";
            for (const std::string &d : last.dims()) callee.text += "most = max(most, " + d + ");\n";
            callee.text += "f.output(\"enough\", most > f.scalar(DType::f32, 0.5), DType::boolean);\n";
        }
        callee.finish();
        const Algorithm built = callee.f.build();
        Repeat repeat{round};
        std::string carried, stacked;
        for (size_t which = 0; which < 2 && !round.empty() && bits(4, 1); which++)
            for (const auto &[output, of] : callee.outputs)
                if (of == given[which].dims) {
                    repeat.carried[given[which].name] = output;
                    carried += (carried.empty() ? "{\"" : ", {\"") + given[which].name + "\", \"" + output + "\"}";
                    break;
                }
        for (const auto &[output, of] : callee.outputs) {
            const bool is_carried = carried.find("\"" + output + "\"}") != std::string::npos;
            if (round.empty() || until || (is_carried ? !bits(5, 1) : bits(7, 1) && round[0] == 'F')) continue;
            repeat.stacked.insert(output), stacked += (stacked.empty() ? "\"" : ", \"") + output + "\"";
        }
        if (until) repeat.until = "enough";
        std::vector<Tile> arguments;
        std::string names;
        int forms = s.forms;
        for (const Tensor &t : built.tensors) {
            const int form = t.name.starts_with("rounds_") ? 0 : forms & 7;
            forms >>= 3;
            const bool is_own = t.name == "x" || t.name == "z", is_carried = repeat.carried.count(t.name) > 0;
            Names own;
            for (const std::string &d : t.dims) own.push_back(bound(d, callee, dims));
            std::pair<Tile, std::string> made = {tiles[t.name == "x" ? i : j], "t" + std::to_string(t.name == "x" ? i : j)};
            const bool names_differ = std::set<std::string>(own.begin(), own.end()).size() == own.size();
            if (!is_own || (form > 0 && names_differ)) made = argument(form, own, is_carried ? "" : round, t.role, t.dtype);
            arguments.push_back(made.first), names += (names.empty() ? "" : ", ") + made.second;
        }
        std::map<std::string, Tile> parameters;
        std::string given_parameters;
        if (callee.has_factor) {
            parameters["p"] = round.empty() ? f.scalar(DType::f32, 0.75) : cast(DType::f32, f.index(dim(round))) + 0.25;
            given_parameters = round.empty() ? "f.scalar(DType::f32, 0.75)" : "cast(DType::f32, f.index(" + round + ")) + 0.25";
            given_parameters = ", {{\"p\", " + given_parameters + "}}";
        }
        text += "auto make_" + scope + " = [] {\n" + callee.text + "return a;\n};\nstd::vector<Tile> " + scope + " = f." +
                (round.empty() ? "call" : "repeat") + "(\"" + scope + "\", make_" + scope + "(), " +
                (round.empty() ? "" : "{\"" + round + "\", {" + carried + "}, {" + stacked + "}, \"" + repeat.until + "\"}, ") + "{" +
                names + "}" + given_parameters + ");\n";
        const std::vector<Tile> made =
            round.empty() ? f.call(scope, built, arguments, parameters) : f.repeat(scope, built, repeat, arguments, parameters);
        for (size_t o = 0; o < made.size(); o++) {
            const Names &of = made[o].dims();
            if (!is_float(made[o].dtype()) || !std::all_of(of.begin(), of.end(), [&](const std::string &d) { return has_dim(d); }))
                continue;
            tile(made[o], scope + "[" + std::to_string(o) + "]");
        }
    }
};

std::string text_of(const Extents &e) {
    std::string t;
    for (auto &[d, n] : e) t += (t.empty() ? "{\"" : ", {\"") + d + "\", " + std::to_string(n) + "}";
    return "{" + t + "}";
}

std::string text_of(const std::vector<LayoutAxis> &layout) {
    std::string t;
    for (const LayoutAxis &a : layout)
        t += (t.empty() ? "{\"" : ", {\"") + a.dim + "\", " + std::to_string(a.factor) + ", " + (a.remainder ? "true}" : "false}");
    return "{" + t + "}";
}

class Scheduler {
public:
    Scheduler(std::mt19937 &r, const Target &target) : random(r), L(target.vector_bytes / 4) {}

    KnobsByStage of(const Algorithm &a) {
        KnobsByStage all;
        const Algorithm whole = inline_calls(a);
        for (const Stage &s : whole.stages())
            if (below(4)) stage(whole, s, all);
        calls(a, "", {}, all);
        return all;
    }

private:
    std::mt19937 &random;
    int64_t L;

    uint32_t below(uint32_t n) { return random() % n; }
    const auto &any(const auto &list) { return list[below(static_cast<uint32_t>(list.size()))]; }

    // `dims`: the names that the whole algorithm has for those of this one.
    void calls(const Algorithm &a, const std::string &prefix, const std::map<std::string, std::string> &dims, KnobsByStage &all) {
        auto named = [&](const std::string &d) { return dims.count(d) ? dims.at(d) : prefix + d; };
        for (const Call &call : a.calls()) {
            const std::string scope = prefix + call.scope;
            if (below(2)) all[scope].call = "once";
            const Repeat repeat = call.repeat.value_or(Repeat{});
            const bool apart = repeat.carried.empty() && repeat.stacked.size() == call.callee->outputs.size();
            if (apart && below(2)) all[scope].parallel = {named(repeat.dim)};
            std::map<std::string, std::string> inner;
            for (const auto &[callees, callers] : call.dims) inner[callees] = named(callers);
            calls(*call.callee, scope + ".", inner, all);
        }
    }

    void stage(const Algorithm &a, const Stage &s, KnobsByStage &all) {
        Knobs &k = all[s.name];
        std::vector<std::string> folded = reduced_dims(s);
        if (auto *scan = std::get_if<Scan>(&s.body)) folded = {scan->dim};
        std::vector<std::string> dims;
        for (const std::string &d : ordinary_dims(s))
            if (std::find(folded.begin(), folded.end(), d) == folded.end()) dims.push_back(d);
        if (!dims.empty() && below(2)) k.vector[below(3) ? dims.back() : any(dims)] = below(4) ? L : 4;
        auto lanes = [&](const std::string &d) { return k.vector.count(d) ? k.vector[d] : int64_t{1}; };
        for (const std::string &d : dims)
            if (!below(3)) k.micro[d] = lanes(d) * (1 + below(3));
        for (const std::string &d : dims)
            if (!below(4))
                k.block[d] =
                    (k.micro.count(d) ? k.micro[d] : lanes(d)) * (1 + below(3)) + (below(3) ? 0 : 1 + static_cast<int64_t>(below(3)));
        if (!folded.empty() && std::holds_alternative<Reduce>(s.body) && !below(4)) k.k[any(folded)] = 1 + below(9);
        for (const std::string &d : dims)
            if (!below(6)) k.tail[d] = static_cast<Tail>(below(tail_names.size()));
        for (const std::string &d : dims)
            if (!below(8)) k.unroll[d] = 2 + below(2);
        for (const std::string &d : folded)
            if (!below(8)) k.unroll[d] = 2 + below(3);
        if (!dims.empty() && !below(3)) k.parallel = {k.block.empty() ? dims[0] : "block." + k.block.begin()->first};
        if (!folded.empty() && !below(3)) {
            static const Split::How hows[] = {Split::How::chunks, Split::How::threads, Split::How::lanes, Split::How::online,
                                              Split::How::passes};
            Split::How how = hows[below(5)];
            k.split[any(folded)] = {how, how == Split::How::passes ? 0 : how == Split::How::lanes ? 4 : 2 + static_cast<int64_t>(below(7))};
        }
        for (const std::string &d : s.dims)
            if (scatters(s) && std::find(dims.begin(), dims.end(), d) == dims.end() && !below(3)) k.block[d] = 1 + below(4);
        bool output = std::find(a.outputs.begin(), a.outputs.end(), s.name) != a.outputs.end();
        if (!output && below(2)) place(a, s, k);
        else if (!below(3)) beside(a, s, k);
        if (!output && s.dims.size() > 1 && !below(4)) {
            std::vector<std::string> order = s.dims;
            std::shuffle(order.begin(), order.end(), random);
            for (const std::string &d : order) k.layout.push_back({d, 0, false});
            if (!below(2)) k.layout.push_back({order[0], 4, true}), k.layout[0].factor = 4;
        }
        if (!below(4)) {
            std::vector<std::string> loaded;
            for (const Expr &e : expressions_of(s))
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::load) loaded.push_back(n->name);
                });
            if (!loaded.empty()) k.pack[any(loaded)] = {below(2) ? "root" : dims.empty() ? "root" : any(dims), {}};
        }
        if (output && !dims.empty() && !below(6)) {
            const std::string d = any(dims);
            k.stream = (k.block.count(d) && below(2) ? "block." : k.micro.count(d) && below(2) ? "micro." : "") + d;
        }
    }

    // Whether both are of one call, or of none.
    static bool is_near(const Stage &a, const Stage &b) {
        auto scope = [](const Stage &s) { return s.name.substr(0, s.name.rfind('.') + 1); };
        return scope(a) == scope(b);
    }

    void beside(const Algorithm &a, const Stage &s, Knobs &k) {
        const Stage &host = any(a.stages());
        if (host.name == s.name || (!is_near(host, s) && below(8))) return;
        k.place = Place{Place::Kind::beside, host.name, ""};
        if (below(3)) k.place->loop = any(loops_of(host)), k.parallel.clear();
    }

    static std::vector<std::string> loops_of(const Stage &s) {
        std::vector<std::string> loops = {"micro", "block"};
        for (const std::string &d : s.dims) loops.push_back(d), loops.push_back("block." + d), loops.push_back("micro." + d);
        for (const std::string &d : reduced_dims(s)) loops.push_back(d);
        return loops;
    }

    void place(const Algorithm &a, const Stage &s, Knobs &k) {
        std::vector<const Stage *> consumers;
        for (const Stage &c : a.stages())
            for (const Expr &e : expressions_of(c))
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::load && (n->name == s.name || n->name.starts_with(s.name + "."))) consumers.push_back(&c);
                });
        if (consumers.empty()) return;
        if (std::holds_alternative<Map>(s.body) && !below(3)) {
            k.place = Place{Place::Kind::inlined, "", ""};
            return;
        }
        const Stage &c = *any(consumers);
        if (!is_near(c, s) && below(4)) return;
        k.place = Place{Place::Kind::at, c.name, any(loops_of(c))};
    }
};

}  // namespace

Case build(const RandomCase &c) {
    Case made{c.name, Maker(c).f.build(), c.stages, c.shapes};
    for (Extents &shape : made.shapes) std::erase_if(shape, [&](const auto &e) { return !made.algorithm.find_dim(e.first); });
    for (const std::string &dim : c.known) {
        int64_t least = INT64_MAX, most = 0, divisor = 0;
        for (const Extents &shape : c.shapes)
            least = std::min(least, shape.at(dim)), most = std::max(most, shape.at(dim)), divisor = std::gcd(divisor, shape.at(dim));
        made.when.push_back({dim, "", 0, ">=", least}), made.when.push_back({dim, "", 0, "<=", most});
        if (divisor > 1) made.when.push_back({dim, "", divisor, "==", 0});
    }
    return made;
}

static Step random_step(std::mt19937 &random) {
    static_assert(call_kind == kinds_of_stages && parameter_kind == call_kind + 1, "random_call makes these");
    const auto kind = static_cast<int>(random() % (kinds - 2));
    return {kind < kinds_of_stages ? kind : kind + 2, static_cast<int>(random() % 2 ? 0 : random() % 6), static_cast<int>(random() % 6),
            static_cast<int>(random() % 128)};
}

static Step random_call(std::mt19937 &random, int depth) {
    Step s{call_kind, static_cast<int>(random() % 4), static_cast<int>(random() % 4), static_cast<int>(random() % 512)};
    if (random() % 4) s.choice &= ~256;
    s.forms = static_cast<int>(random() & random() & ((1 << 30) - 1));
    for (uint32_t i = 0, n = random() % 4; i < n; i++) s.callee.push_back(random_step(random));
    if (random() % 3 == 0) s.callee.push_back({parameter_kind, 0, 0, 0});
    if (depth == 0 && random() % 4 == 0)
        s.callee.insert(s.callee.begin() + static_cast<std::ptrdiff_t>(random() % (s.callee.size() + 1)), random_call(random, depth + 1));
    return s;
}

KnobsByStage random_stages(const RandomCase &c, std::mt19937 &random, const Target &target) {
    return Scheduler(random, target).of(in_bytes(build(c).algorithm));
}

RandomCase random_case(const std::string &name, std::mt19937 &random, const Target &target) {
    static const int64_t extents[] = {0, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33};
    RandomCase c;
    c.name = name;
    for (uint32_t i = 0, n = 1 + random() % 4; i < n; i++) c.steps.push_back(random_step(random));
    if (random() % 4 == 0)
        for (uint32_t i = 0, n = 1 + random() % 2; i < n; i++)
            c.steps.insert(c.steps.begin() + static_cast<std::ptrdiff_t>(random() % (c.steps.size() + 1)), random_call(random, 0));
    c.stages = random_stages(c, random, target);
    for (int i = 0; i < 3; i++) {
        c.shapes.push_back({{"M", extents[random() % 13]}, {"N", extents[random() % 13]}, {"K", extents[random() % 13]}});
        for (const char *rounds : {"T", "U"}) c.shapes.back()[rounds] = extents[random() % 5];
    }
    for (const char *dim : {"M", "N", "K"}) {
        const uint32_t how = random() % 6;
        if (how > 1) continue;
        c.known.insert(dim);
        if (how == 1) c.shapes[1][dim] = c.shapes[2][dim] = c.shapes[0][dim];
    }
    if (random() % 4 == 0) c.large = random() % (1 << 16);
    return c;
}

std::string to_cpp(const RandomCase &c) {
    std::string t = Maker(c).text + "KnobsByStage k;\n";
    for (auto &[stage, k] : c.stages) {
        std::string at = "k[\"" + stage + "\"].";
        auto extents = [&](const char *what, const Extents &e) {
            if (!e.empty()) t += at + what + " = " + text_of(e) + ";\n";
        };
        if (k.call) t += at + "call = \"" + *k.call + "\";\n";
        extents("block", k.block), extents("k", k.k), extents("micro", k.micro), extents("vector", k.vector), extents("unroll", k.unroll);
        if (k.place && k.place->kind == Place::Kind::inlined) t += at + "place = Place{Place::Kind::inlined, \"\", \"\"};\n";
        if (k.place && (k.place->kind == Place::Kind::at || k.place->kind == Place::Kind::beside))
            t += at + "place = Place{Place::Kind::" + (k.place->kind == Place::Kind::at ? "at" : "beside") + ", \"" + k.place->stage +
                 "\", \"" + k.place->loop + "\"};\n";
        for (const std::string &p : k.parallel) t += at + "parallel.push_back(\"" + p + "\");\n";
        for (auto &[d, tail] : k.tail) t += at + "tail[\"" + d + "\"] = Tail::" + name_of(tail) + ";\n";
        for (auto &[d, s] : k.split) {
            static const char *names[] = {"chunks", "threads", "lanes", "online", "passes"};
            t += at + "split[\"" + d + "\"] = {Split::How::" + names[static_cast<size_t>(s.how)] + ", " + std::to_string(s.size) + "};\n";
        }
        for (auto &[operand, p] : k.pack) t += at + "pack[\"" + operand + "\"] = {\"" + p.at + "\", " + text_of(p.layout) + "};\n";
        if (k.stream) t += at + "stream = \"" + *k.stream + "\";\n";
        if (!k.layout.empty()) t += at + "layout = " + text_of(k.layout) + ";\n";
    }
    for (const Condition &condition : build(c).when) t += "// where " + to_string(condition) + "\n";
    for (const Extents &e : c.shapes) t += "// with " + text_of(e) + "\n";
    return t;
}

// The steps with one thing less, for each thing.
static std::vector<std::vector<Step>> smaller(const std::vector<Step> &steps) {
    std::vector<std::vector<Step>> all;
    for (size_t i = 0; i < steps.size(); i++) {
        all.push_back(steps);
        all.back().erase(all.back().begin() + static_cast<std::ptrdiff_t>(i));
        auto changed = [&](auto change) {
            all.push_back(steps);
            change(all.back()[i]);
        };
        if (steps[i].kind % kinds != call_kind) continue;
        for (int bit = 0; bit < 9; bit++)
            if (steps[i].choice >> bit & 1) changed([&](Step &s) { s.choice &= ~(1 << bit); });
        for (int at = 0; at < 30; at += 3)
            if (steps[i].forms >> at & 7) changed([&](Step &s) { s.forms &= ~(7 << at); });
        for (std::vector<Step> &callee : smaller(steps[i].callee)) changed([&](Step &s) { s.callee = std::move(callee); });
    }
    return all;
}

std::vector<RandomCase> smaller(const RandomCase &c) {
    std::vector<RandomCase> all;
    auto add = [&](auto change) {
        RandomCase less = c;
        change(less);
        all.push_back(std::move(less));
    };
    for (size_t i = 0; c.shapes.size() > 1 && i < c.shapes.size(); i++) add([&](RandomCase &r) { r.shapes = {c.shapes[i]}; });
    for (auto &[stage, knobs] : c.stages) {
        const std::string name = stage;
        add([&](RandomCase &r) { r.stages.erase(name); });
        auto without = [&](auto field) {
            if (!(knobs.*field == Knobs().*field)) add([&](RandomCase &r) { r.stages[name].*field = Knobs().*field; });
        };
        without(&Knobs::place), without(&Knobs::block), without(&Knobs::k), without(&Knobs::micro), without(&Knobs::vector),
            without(&Knobs::unroll);
        without(&Knobs::parallel), without(&Knobs::pack), without(&Knobs::layout), without(&Knobs::tail), without(&Knobs::split);
        without(&Knobs::call), without(&Knobs::stream);
    }
    for (const std::string &dim : c.known) add([&](RandomCase &r) { r.known.erase(dim); });
    for (int bit = 0; bit < 16; bit++)
        if (c.large >> bit & 1) add([&](RandomCase &r) { r.large &= ~(uint32_t{1} << bit); });
    for (std::vector<Step> &steps : smaller(c.steps)) add([&](RandomCase &r) { r.steps = std::move(steps); });
    for (size_t i = 0; i < c.shapes.size(); i++)
        for (auto &[d, n] : c.shapes[i]) {
            const std::string name = d;
            if (n > 1) add([&](RandomCase &r) { r.shapes[i][name] = 1; });
            if (n > 2) add([&](RandomCase &r) { r.shapes[i][name] = n / 2; });
            if (n > 1) add([&](RandomCase &r) { r.shapes[i][name] = n - 1; });
        }
    return all;
}

}  // namespace tessera::test
