#include "tests/algorithms/random_programs.h"

#include "algorithms/build/tile_functions.h"

namespace tessera::test {

namespace {

class Steps {
public:
    Steps(Builder &f, std::mt19937 &random)
        : f_(f), random_(random), M_(f.dim("M")), N_(f.dim("N")), K_(f.dim(derived_dim("K", extent("N")))) {}

    Tile run() {
        before_ = f_.input("x", {M_, N_});
        Tile x = before_;
        for (size_t steps = 1 + random_() % 5; steps > 0; steps--) {
            number_++;
            const Tile next = step(x).named("step" + std::to_string(number_));
            before_ = x, x = next;
        }
        return x;
    }

private:
    Builder &f_;
    std::mt19937 &random_;
    Dim M_, N_, K_;
    Tile before_;
    int number_ = 0, inputs_ = 0;

    std::string name(const std::string &base) const { return base + std::to_string(number_); }
    Tile weights(const std::vector<Dim> &dims) { return f_.input("w" + std::to_string(++inputs_), dims); }
    // Along N in place of K.
    Tile along_rows(const Tile &x) const { return x.at({{"K", variable("N")}}, {"M", "N"}); }
    Tile is_even() { return f_.index(N_) % 2 == 0; }

    Tile step(const Tile &x) {
        switch (random_() % 14) {
        case 0: return tanh(x) + sin(x);
        case 1: return along_rows(dot(x, weights({N_, K_})).named(name("product")));
        case 2: return x * weights({N_}) + sigmoid(x) * weights({M_});
        case 3: return masked_sum(x);
        case 4: return f_.scan(sum_monoid(DType::f64), x, N_, random_() % 2 > 0, direction());
        case 5: return f_.scan(sum_monoid(DType::f64), x * 0.5, N_, random_() % 2 > 0, direction(), is_even());
        case 6: return f_.scan_parts(recurrence_monoid(DType::f64), {sigmoid(x), x}, N_, random_() % 2 > 0, direction())[1];
        case 7: return windows(x);
        case 8: {
            const Builder::Scope own = f_.scope(name("weights"));
            return softmax(x, N_) * x;
        }
        case 9: return x * 0.75 + before_ * x;
        case 10: return x * x.at({{"N", bounded(variable("N") - 1, Expr(0), extent("N"))}}, {"M", "N"});
        case 11: return rounds(x);
        case 12: return select(is_even(), exp(x * 0.25), x * 0.5) + sum(x * x, N_) * 0.125;
        default: return reflected(x);
        }
    }

    ScanDirection direction() { return random_() % 2 ? ScanDirection::forward : ScanDirection::backward; }

    // Over columns up to one's own.
    Tile masked_sum(const Tile &x) {
        const Tile w = weights({N_, K_});
        const Tile y = f_.fold(dot_monoid(DType::f64), {x, w}, {"N"}, f_.index(N_) <= f_.index(K_))[0].named(name("masked"));
        return along_rows(y);
    }

    // Every second column and its neighbours, each counted at both columns that it stands for.
    Tile windows(const Tile &x) {
        const Dim R = f_.dim(name("R"), 3), P = f_.dim(derived_dim("P", (extent("N") + 1) / Expr(2)));
        const Expr at = variable("P") * 2 + variable(R.name) - 1;
        const Expr inside = Expr(0) <= at && at < extent("N");
        const Tile padded = x.named(name("source"));
        const Tile seen =
            f_.tile(load_or(padded.value()->name, DType::f64, {variable("M"), at}, inside, constant(DType::f64, 0)), {M_, P, R});
        const Tile y = dot(seen, weights({R}), {R}).named(name("windows"));
        return y.at({{"P", variable("N") / Expr(2)}}, {"M", "N"});
    }

    // Rows from the last to the first.
    Tile reflected(const Tile &x) {
        return x.named(name("rows")).at({{"M", extent("M") - 1 - variable("M")}}, {"M", "N"}) * weights({M_, N_});
    }

    Tile rounds(const Tile &x) {
        Builder g(name("round"), f_.numerics());
        const Dim M = g.dim("M"), N = g.dim("N");
        const Tile h = g.input("h", {M, N}), own = g.input("own", {N}), shared = g.input("shared", {N});
        const Algorithm round = g.output("next", tanh(h * own) + h * shared).build();
        const Dim L = f_.dim("L");
        return f_.repeat(name("rounds"), round, {"L", {{"h", "next"}}, {}, ""},
                         {x, f_.input(name("own"), {L, N_}), f_.input(name("shared"), {N_})})[0] *
               1.0;
    }
};

}  // namespace

Algorithm random_program(std::mt19937 &random) {
    Builder f("random", numerics_named("f64"));
    const Tile y = Steps(f, random).run();
    f.output("y", y * 1.0);
    return f.build();
}

Extents random_extents(std::mt19937 &random) {
    return {{"M", 1 + static_cast<int64_t>(random() % 3)}, {"N", 2 + static_cast<int64_t>(random() % 3)}};
}

}  // namespace tessera::test
