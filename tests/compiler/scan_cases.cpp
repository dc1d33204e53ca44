// Scans that are placed in a loop along which they are read.
#include "algorithms/build/tile_functions.h"
#include "tests/compiler/cases.h"

namespace tessera::test {

namespace {

Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }

// h = decay h + x: the parts are h and the product of the decays. The step of h does not use the product.
Monoid recurrence() {
    Monoid m;
    m.name = "recurrence", m.commutative = false;
    m.parts = {{"h", constant(DType::f32, 0)->value, {}}, {"decay", constant(DType::f32, 1)->value, {}}};
    m.inputs = {DType::f32, DType::f32};
    const Expr h = left(0, DType::f32), decay = left(1, DType::f32), by = input(0, DType::f32), x = input(1, DType::f32);
    m.lift = {x, by};
    m.combine = {fma(h, right(1, DType::f32), right(0, DType::f32)), decay * right(1, DType::f32)};
    m.step = {fma(h, by, x), decay * by};
    return m;
}

// A scan's way, and where its readers find it.
struct Way {
    bool inclusive;
    ScanDirection direction;
    bool segments, both_parts;

    std::string name() const {
        return std::string(inclusive ? "inclusive" : "exclusive") + (direction == ScanDirection::forward ? "" : "_backward") +
               (segments ? "_anew" : "") + (both_parts ? "_both" : "");
    }
};

class ScanCases {
public:
    ScanCases(int64_t lanes, bool every_way) : L(lanes) {
        constexpr auto forward = ScanDirection::forward, backward = ScanDirection::backward;
        const Way plain{true, forward, false, false}, exclusive{false, forward, false, true}, anew{true, forward, true, true},
            exclusive_anew{false, forward, true, false};
        for (const Way &way : {plain, exclusive, anew, exclusive_anew}) {
            auto in = [&](const Way &one, auto make) {
                if (every_way || way.name() == one.name()) (this->*make)(way);
            };
            in(plain, &ScanCases::in_rows), in(exclusive, &ScanCases::in_blocks);
            in(anew, &ScanCases::in_tiles), in(exclusive, &ScanCases::in_lanes), in(plain, &ScanCases::in_columns);
            in(anew, &ScanCases::in_column), in(plain, &ScanCases::in_row_sums), in(exclusive, &ScanCases::in_fold);
            in(anew, &ScanCases::in_slices), in(exclusive_anew, &ScanCases::in_scan);
        }
        for (bool inclusive : {false, true}) in_scan({inclusive, backward, inclusive, !inclusive});
        moments(), with_what_it_reads(), whole_in_columns(), unread();
    }
    std::vector<Case> all;

private:
    int64_t L;

    std::vector<Extents> shapes() const {
        std::vector<Extents> all;
        for (auto [m, n] : std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 0}, {1, 1}, {7, 9}, {2, L + 1}, {33, 2 * L - 1}, {16, 40}})
            all.push_back({{"M", m}, {"N", n}});
        return all;
    }

    // y = f(h, x), where h scans along M and is placed as `schedule` says.
    template <typename Read, typename Schedule>
    void add(const std::string &name, const Way &way, const Read &read, const Schedule &schedule) {
        Builder f("scan_" + name + "_" + way.name(), {});
        Dim M = f.dim("M"), N = f.dim("N");
        Tile x = f.input("x", {M, N}), z = f.input("z", {M, N}), begins;
        if (way.segments) begins = z < f.scalar(DType::f32, -0.5);
        std::vector<Tile> h = f.scan_parts(recurrence(), {z, x}, M, way.inclusive, way.direction, begins);
        const std::string stage = f.algorithm().stages().back().name;
        Algorithm a = f.output("y", read(f, way.both_parts ? h[0] - h[1] : h[0], x)).build();
        Case c{a.name, a, {}, shapes()};
        schedule(c.stages, c.stages[stage]);
        all.push_back(c);
    }

    static Tile times(Builder &, const Tile &h, const Tile &x) { return h * x + x; }

    void in_rows(const Way &way) {
        add("rows", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].loops = {"M"}, stages["y"].vector = {{"N", L}};
            scan.place = at("y", "M"), scan.micro = {{"N", 2 * L}}, scan.vector = {{"N", L}};
        });
    }
    // The scan goes on by blocks of rows, the last of which may be smaller.
    void in_blocks(const Way &way) {
        add("blocks", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].block = {{"M", 5}}, stages["y"].vector = {{"N", L}};
            scan.place = at("y", "block.M"), scan.vector = {{"N", L}}, scan.unroll = {{"M", 2}};
        });
    }
    // Two loops along it, the last tile of rows a partial one.
    void in_tiles(const Way &way) {
        add("tiles", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].block = {{"M", 8}}, stages["y"].micro = {{"M", 4}, {"N", L}}, stages["y"].vector = {{"N", L}};
            stages["y"].loops = {"micro.N", "block.M", "micro.M"};
            scan.place = at("y", "micro.M"), scan.vector = {{"N", L}}, scan.layout = {{"N", 0, false}, {"M", 0, false}};
        });
    }
    void in_lanes(const Way &way) {
        add("lanes", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].vector = {{"M", 4}}, stages["y"].loops = {"N", "M"};
            scan.place = at("y", "M");
        });
    }
    void in_columns(const Way &way) {
        add("columns", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].block = {{"N", 2 * L}}, stages["y"].vector = {{"N", L}};
            stages["y"].loops = {"block.N", "M"}, stages["y"].parallel = {"block.N"};
            scan.place = at("y", "M"), scan.micro = {{"N", 2 * L}}, scan.vector = {{"N", L}};
        });
    }
    void in_column(const Way &way) {
        add("column", way, times, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].loops = {"N", "M"}, stages["y"].unroll = {{"M", 3}};
            scan.place = at("y", "M");
        });
    }
    void in_row_sums(const Way &way) {
        auto read = [](Builder &f, const Tile &h, const Tile &x) { return dot(h, x, {f.dim_named("N")}); };
        add("row_sums", way, read, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].loops = {"M"};
            scan.place = at("y", "M"), scan.vector = {{"N", L}};
        });
    }
    static Tile column_sum(Builder &f, const Tile &h, const Tile &x) { return sum(h * x, f.dim_named("M")); }
    void in_fold(const Way &way) {
        add("fold", way, column_sum, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].micro = {{"N", 2 * L}}, stages["y"].vector = {{"N", L}};
            scan.place = at("y", "M"), scan.vector = {{"N", L}};
        });
    }
    void in_slices(const Way &way) {
        add("slices", way, column_sum, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].vector = {{"N", L}}, stages["y"].k = {{"M", 3}};
            scan.place = at("y", "k"), scan.vector = {{"N", L}};
        });
    }
    void in_scan(const Way &way) {
        auto read = [&](Builder &f, const Tile &h, const Tile &x) {
            return f.scan(max_monoid(DType::f32), h * x, f.dim_named("M"), !way.inclusive, way.direction, Tile());
        };
        add("scan", way, read, [&](KnobsByStage &stages, Knobs &scan) {
            stages["y"].micro = {{"N", L}}, stages["y"].vector = {{"N", L}};
            scan.place = at("y", "M"), scan.vector = {{"N", L}};
        });
    }

    Case &add(Builder &f, const Tile &y, std::vector<Extents> shapes) {
        Algorithm a = f.output("y", y).build();
        all.push_back({a.name, a, {}, std::move(shapes)});
        return all.back();
    }

    // All parts are used, of which the readers read two.
    void moments() {
        Builder f("scan_moments", {});
        Dim M = f.dim("M"), N = f.dim("N");
        Tile x = f.input("x", {M, N});
        std::vector<Tile> seen = f.scan_parts(welford_monoid(DType::f32), {x}, M);
        Case &c = add(f, (x - seen[1]) * seen[2], shapes());
        c.stages["y"].micro = {{"N", L}}, c.stages["y"].vector = {{"N", L}}, c.stages["y"].loops = {"micro.N", "M"};
        c.stages["scan"].place = at("y", "M"), c.stages["scan"].vector = {{"N", L}};
    }

    // What the scan reads and what reads the scan stand in the same loop, or in the scan's own loops.
    void with_what_it_reads() {
        for (const char *place : {"rows", "inside"}) {
            Builder f(std::string("scan_with_what_it_reads_") + place, {});
            Dim M = f.dim("M"), N = f.dim("N");
            Tile x = f.input("x", {M, N}), z = f.input("z", {M, N});
            Tile before = (x * z + x).named("before");
            Tile h = f.scan(sum_monoid(DType::f32), before, M).named("h");
            Tile after = (h * z).named("after");
            Case &c = add(f, sum(after, N), shapes());
            c.stages["y"].loops = {"M"};
            c.stages["h"].place = at("y", "M"), c.stages["h"].micro = {{"N", L}}, c.stages["h"].vector = {{"N", L}};
            c.stages["after"].place = at("y", "M"), c.stages["after"].vector = {{"N", L}};
            c.stages["before"].place = std::string(place) == "rows" ? at("y", "M") : at("h", "micro");
            c.stages["before"].vector = {{"N", L}};
        }
    }

    // Outside of all loops along it a scan is computed as a whole.
    void whole_in_columns() {
        Builder f("scan_whole_in_columns", {});
        Dim M = f.dim("M"), N = f.dim("N");
        Tile x = f.input("x", {M, N});
        Tile h = f.scan(sum_monoid(DType::f32), x, M).named("h");
        Expr last_first = load(h.value()->name, DType::f32, {extent("M") - 1 - variable("M"), variable("N")});
        Case &c = add(f, f.tile(last_first, {M, N}) * x, {{{"M", 1}, {"N", 1}}, {{"M", 7}, {"N", 9}}, {{"M", 16}, {"N", 2 * L}}});
        c.stages["y"].micro = {{"N", L}}, c.stages["y"].vector = {{"N", L}}, c.stages["y"].loops = {"micro.N", "M"};
        c.stages["h"].place = at("y", "micro.N"), c.stages["h"].vector = {{"N", L}};
    }

    void unread() {
        auto decay = [](Builder &f, const Tile &, const Tile &x) {
            return f.scan_parts(recurrence(), {x, x}, f.dim_named("M"))[1] * x;  // the other scan has no reader
        };
        add("unread", {true, ScanDirection::forward, false, false}, decay,
            [](KnobsByStage &stages, Knobs &) { stages["y"].loops = {"M"}; });
    }
};

}  // namespace

std::vector<Case> scan_cases(int64_t lanes, bool every_way) { return ScanCases(lanes, every_way).all; }

}  // namespace tessera::test
