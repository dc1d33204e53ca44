#include "tests/compiler/random_case.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "algorithms/build/tile_functions.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera::test {

namespace {

constexpr int kinds = 22;

// Makes the algorithm and the text that makes it side by side.
class Maker {
public:
    explicit Maker(const RandomCase &c) : f(c.name) {
        text = "Builder f(\"" + c.name + "\");\nDim M = f.dim(\"M\"), N = f.dim(\"N\"), K = f.dim(\"K\");\n";
        tile(f.input("x", {dim("M"), dim("N")}), "f.input(\"x\", {M, N})");
        tile(f.input("w", {dim("N"), dim("K")}), "f.input(\"w\", {N, K})");
        tile(f.input("b", {dim("N")}), "f.input(\"b\", {N})");
        tile(f.input("z", {dim("M"), dim("N")}), "f.input(\"z\", {M, N})");
        for (const Step &s : c.steps) step(s);
        f.output("y", tiles.back());
        text += "f.output(\"y\", t" + std::to_string(tiles.size() - 1) + ");\nAlgorithm a = f.build();\n";
    }

    Builder f;
    std::string text;

private:
    std::vector<Tile> tiles;
    int outputs = 0;
    Tile state, positions;
    std::optional<Dim> triangle;

    Dim dim(const std::string &name) { return f.dim(name); }

    const Tile &stored() {
        if (!state) state = f.state("stored", {dim("M"), dim("N")}), text += "Tile stored = f.state(\"stored\", {M, N});\n";
        return state;
    }

    const Tile &ids() {
        if (!positions) positions = f.input("ids", {dim("M")}, DType::i32), text += "Tile ids = f.input(\"ids\", {M}, DType::i32);\n";
        return positions;
    }

    // As long in each row of M as it is far from the first.
    const Dim &rows() {
        if (!triangle)
            triangle = f.dim(derived_dim("R", variable("M") + 1)), text += "Dim R = f.dim(derived_dim(\"R\", variable(\"M\") + 1));\n";
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
                // Of Welford's scan the mean is read, which needs the count and not the squares.
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
        case 13: return named(a * 0.5 + stored(), ta + " * 0.5 + stored");
        case 14: {  // the state gets new values, of which some may come of its old ones
            if (!has(a, "M") || !has(a, "N") || a.dims().size() != 2) return;
            const bool adds = s.choice % 2;
            f.update(name, stored(), {f.index(dim("M")), f.index(dim("N"))}, adds ? a + stored() : a);
            text += "f.update(\"" + name + "\", stored, {f.index(M), f.index(N)}, " + ta + (adds ? " + stored" : "") + ");\n";
            return;
        }
        case 16: {  // functions with names
            const Tile small = a * 0.5;
            switch (s.choice % 6) {
            case 0: return named(exp(small), "exp(" + ta + " * 0.5)");
            case 1: return named(sin(a), "sin(" + ta + ")");
            case 2: return named(tanh(a), "tanh(" + ta + ")");
            case 3: return named(softplus(a), "softplus(" + ta + ")");
            case 4: return named(atan2(a, b), "atan2(" + ta + ", " + tb + ")");
            default: return named(erf(a), "erf(" + ta + ")");
            }
        }
        case 17:  // one result more
            f.output("o" + std::to_string(n) + std::to_string(outputs), a);
            text += "f.output(\"o" + std::to_string(n) + std::to_string(outputs++) + "\", " + ta + ");\n";
            return;
        case 18: {  // added up along K at positions that data gives, from below 0 to beyond its end
            if (!has(a, "M") || has(a, "K")) return;
            const Tile at = ids();
            if (has(a, "N") && s.choice % 2)
                return named(f.scatter(sum_monoid(DType::f32), a, {at, f.index(dim("N"))}, {dim("K"), dim("N")}),
                             "f.scatter(sum_monoid(DType::f32), " + ta + ", {ids, f.index(N)}, {K, N})");
            return named(f.scatter(max_monoid(DType::f32), a, {at}, {dim("K")}),
                         "f.scatter(max_monoid(DType::f32), " + ta + ", {ids}, {K})");
        }
        case 19: {  // read at positions that data gives, 0 beyond the edge
            if (over.empty() || (over != "M" && has(a, "M"))) return;
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
            if (!has(a, "N") || has(a, "M") || a.dims().size() != 1) return;
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
        default: return named(cast(DType::f32, cast(DType::bf16, a)) + b, "cast(DType::f32, cast(DType::bf16, " + ta + ")) + " + tb);
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
    Scheduler(std::mt19937 &r, int64_t l) : random(r), L(l) {}

    KnobsByStage of(const Algorithm &a) {
        KnobsByStage all;
        for (const Stage &s : a.stages())
            if (below(4)) stage(a, s, all);
        return all;
    }

private:
    std::mt19937 &random;
    int64_t L;

    uint32_t below(uint32_t n) { return random() % n; }
    const auto &any(const auto &list) { return list[below(static_cast<uint32_t>(list.size()))]; }

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
            if (!below(6)) k.tail[d] = below(2) ? Tail::mask : Tail::loop;
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
    }

    void beside(const Algorithm &a, const Stage &s, Knobs &k) {
        const Stage &host = any(a.stages());
        if (host.name == s.name) return;
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
        k.place = Place{Place::Kind::at, c.name, any(loops_of(c))};
    }
};

}  // namespace

Case build(const RandomCase &c) {
    Case made{c.name, Maker(c).f.build(), c.stages, c.shapes};
    for (const std::string &dim : c.known) {
        int64_t least = INT64_MAX, most = 0, divisor = 0;
        for (const Extents &shape : c.shapes)
            least = std::min(least, shape.at(dim)), most = std::max(most, shape.at(dim)), divisor = std::gcd(divisor, shape.at(dim));
        made.when.push_back({dim, "", 0, ">=", least}), made.when.push_back({dim, "", 0, "<=", most});
        if (divisor > 1) made.when.push_back({dim, "", divisor, "==", 0});
    }
    return made;
}

RandomCase random_case(const std::string &name, std::mt19937 &random, int64_t lanes) {
    static const int64_t extents[] = {0, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33};
    RandomCase c;
    c.name = name;
    for (uint32_t i = 0, n = 1 + random() % 4; i < n; i++)
        c.steps.push_back({static_cast<int>(random() % kinds), static_cast<int>(random() % 2 ? 0 : random() % 6),
                           static_cast<int>(random() % 6), static_cast<int>(random() % 128)});
    c.stages = Scheduler(random, lanes).of(build(c).algorithm);
    for (int i = 0; i < 3; i++)
        c.shapes.push_back({{"M", extents[random() % 13]}, {"N", extents[random() % 13]}, {"K", extents[random() % 13]}});
    for (const char *dim : {"M", "N", "K"}) {
        const uint32_t how = random() % 6;
        if (how > 1) continue;
        c.known.insert(dim);
        if (how == 1) c.shapes[1][dim] = c.shapes[2][dim] = c.shapes[0][dim];
    }
    return c;
}

std::string to_cpp(const RandomCase &c) {
    std::string t = Maker(c).text + "KnobsByStage k;\n";
    for (auto &[stage, k] : c.stages) {
        std::string at = "k[\"" + stage + "\"].";
        auto extents = [&](const char *what, const Extents &e) {
            if (!e.empty()) t += at + what + " = " + text_of(e) + ";\n";
        };
        extents("block", k.block), extents("k", k.k), extents("micro", k.micro), extents("vector", k.vector), extents("unroll", k.unroll);
        if (k.place && k.place->kind == Place::Kind::inlined) t += at + "place = Place{Place::Kind::inlined, \"\", \"\"};\n";
        if (k.place && (k.place->kind == Place::Kind::at || k.place->kind == Place::Kind::beside))
            t += at + "place = Place{Place::Kind::" + (k.place->kind == Place::Kind::at ? "at" : "beside") + ", \"" + k.place->stage +
                 "\", \"" + k.place->loop + "\"};\n";
        for (const std::string &p : k.parallel) t += at + "parallel.push_back(\"" + p + "\");\n";
        for (auto &[d, tail] : k.tail) t += at + "tail[\"" + d + "\"] = Tail::" + (tail == Tail::mask ? "mask" : "loop") + ";\n";
        for (auto &[d, s] : k.split) {
            static const char *names[] = {"chunks", "threads", "lanes", "online", "passes"};
            t += at + "split[\"" + d + "\"] = {Split::How::" + names[static_cast<size_t>(s.how)] + ", " + std::to_string(s.size) + "};\n";
        }
        for (auto &[operand, p] : k.pack) t += at + "pack[\"" + operand + "\"] = {\"" + p.at + "\", " + text_of(p.layout) + "};\n";
        if (!k.layout.empty()) t += at + "layout = " + text_of(k.layout) + ";\n";
    }
    for (const Condition &condition : build(c).when) t += "// where " + to_string(condition) + "\n";
    for (const Extents &e : c.shapes) t += "// with " + text_of(e) + "\n";
    return t;
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
    }
    for (const std::string &dim : c.known) add([&](RandomCase &r) { r.known.erase(dim); });
    for (size_t i = 0; i < c.steps.size(); i++)
        add([&](RandomCase &r) { r.steps.erase(r.steps.begin() + static_cast<std::ptrdiff_t>(i)); });
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
