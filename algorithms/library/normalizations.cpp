#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm softmax(const Numerics &n) {
    Builder f("softmax", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", tessera::softmax(x, N)).build();
}

Algorithm layernorm(const Numerics &n) {
    Builder f("layernorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile gamma = f.input("gamma", {N}), beta = f.input("beta", {N});
    Tile epsilon = f.parameter("epsilon", n.compute, above(0));
    return f.output("y", fma(normalized(x, {N}, epsilon), gamma, beta)).build();
}

Algorithm residual_layernorm(const Numerics &n) {
    Builder f("residual_layernorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
    Tile gamma = f.input("gamma", {N}), beta = f.input("beta", {N});
    Tile total = (x + r).named("total");                                               // (M, N)
    return f.output("y", tessera::layernorm(total, gamma, beta, N, 1e-12)).build();  // BERT's epsilon
}

Algorithm rmsnorm(const Numerics &n) {
    Builder f("rmsnorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile gamma = f.input("gamma", {N});
    return f.output("y", tessera::rmsnorm(x, gamma, N, 1e-6)).build();
}

Algorithm residual_rmsnorm(const Numerics &n) {
    Builder f("residual_rmsnorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
    Tile gamma = f.input("gamma", {N});
    Tile total = (x + r).named("sum");  // (M, N)
    return f.output("total", total).output("y", tessera::rmsnorm(total, gamma, N, 1e-6)).build();
}

namespace {

Algorithm grouped_norm(const std::string &name, const Numerics &n, bool channels_last) {
    Builder f(name, n);
    Dim N = f.dim("N"), P = f.dim("P"), G = f.dim("G"), C = f.dim("C");
    Tile x = f.input("x", channels_last ? std::vector{N, P, G, C} : std::vector{N, G, C, P});
    Tile gamma = f.input("gamma", {G, C}), beta = f.input("beta", {G, C});
    Tile epsilon = f.parameter("epsilon", n.compute, above(0));
    return f.output("y", fma(normalized(x, {P, C}, epsilon), gamma, beta)).build();
}

}  // namespace

Algorithm group_norm_nhwc(const Numerics &n) { return grouped_norm("group_norm_nhwc", n, true); }
Algorithm group_norm_nchw(const Numerics &n) { return grouped_norm("group_norm_nchw", n, false); }

namespace {

struct Statistics {  // of channels, as training left them
    Statistics(Builder &f, const Dim &C)
        : gamma(f.input("gamma", {C})), beta(f.input("beta", {C})), mean(f.input("mean", {C})), variance(f.input("variance", {C})) {
        scale = (gamma * rsqrt(variance + f.parameter("epsilon", f.numerics().compute, above(0)))).named("scale");  // (C)
    }
    Tile gamma, beta, mean, variance, scale;
};

}  // namespace

Algorithm batch_norm(const Numerics &n) {
    Builder f("batch_norm", n);
    Dim M = f.dim("M"), C = f.dim("C");
    Tile x = f.input("x", {M, C});
    Statistics of(f, C);
    Tile shift = fma(-of.mean, of.scale, of.beta).named("shift");  // (C)
    return f.output("y", fma(x, of.scale, shift)).build();         // (M, C)
}

Algorithm fold_batch_norm(const Numerics &n) {
    Builder f("fold_batch_norm", n);
    Dim K = f.dim("K"), C = f.dim("C");
    Tile w = f.input("w", {K, C}), b = f.input("b", {C});
    Statistics of(f, C);
    return f.output("folded_w", w * of.scale).output("folded_b", fma(b - of.mean, of.scale, of.beta)).build();
}

Algorithm logsumexp(const Numerics &n) {
    Builder f("logsumexp", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", tessera::logsumexp(x, N)).build();  // (M)
}

Algorithm cross_entropy(const Numerics &n) {
    Builder f("cross_entropy", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile id = f.input("id", {M}, DType::i32);
    const Expr at = cast(DType::index, id.value()), counts = Expr(0) <= at && at < extent("N");
    Tile own(&f, cast(n.compute, load_or("x", n.storage, {variable("M"), at}, counts, constant(n.storage, 0))), {"M"});
    const Tile loss = logsumexp_above(own, x, N);  // (M)
    return f.output("loss", select(Tile(&f, counts, {"M"}), loss, f.scalar(n.compute, 0)), n.accumulate).build();
}

}  // namespace tessera::library
