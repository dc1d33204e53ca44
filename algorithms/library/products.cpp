#include "algorithms/build/epilogue.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm matmul(const Numerics &n) {
    Builder f("matmul", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim(rows_of_weights("K", n));
    Tile x = f.input("x", {M, K});
    return f.output("y", multiply(x, weights(f, "w", {}, K, N))).build();  // (M, N)
}

Algorithm matmul_wide(const Numerics &n) {
    Builder f("matmul_wide", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K});
    Tile w = f.input("w", {K, N});
    return f.output("y", dot(x, w), n.accumulate).build();  // (M, N)
}

Algorithm matmul_u8s8(const Numerics &n) {
    Builder f("matmul_u8s8", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}, DType::u8);
    Tile w = f.input("w", {K, N}, DType::i8);
    return f.output("y", dot(x, w), DType::i32).build();  // (M, N)
}

Algorithm matmul_s8s8(const Numerics &n) {
    Builder f("matmul_s8s8", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}, DType::i8);
    Tile w = f.input("w", {K, N}, DType::i8);
    Tile offset = f.scalar(DType::i32, 128);
    Tile shifted = cast(DType::u8, x + offset).named("shifted");  // (M, K)
    Tile acc = dot(shifted, w).named("acc");                      // (M, N)
    Tile excess = sum(w, K).named("excess");                      // (N)
    return f.output("y", acc - offset * excess, DType::i32).build();
}

Algorithm linear(const Numerics &n) {
    Builder f("linear", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim(rows_of_weights("K", n));
    Tile x = f.input("x", {M, K});
    const Weights w = weights(f, "w", {}, K, N);
    Tile b = f.input("b", {N});
    Tile acc = multiply(x, w, "acc");  // (M, N)
    return f.output("y", acc + b).build();
}

Algorithm linear_gelu(const Numerics &n) {
    Builder f("linear_gelu", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim(rows_of_weights("K", n));
    Tile x = f.input("x", {M, K});
    const Weights w = weights(f, "w", {}, K, N);
    Tile b = f.input("b", {N});
    Tile acc = multiply(x, w, "acc");  // (M, N)
    return f.output("y", gelu(acc + b)).build();
}

Algorithm gemv(const Numerics &n) {
    Builder f("gemv", n);
    Dim M = f.dim("M"), K = f.dim("K");
    Tile a = f.input("a", {M, K});
    Tile x = f.input("x", {K});
    return f.output("y", dot(a, x)).build();  // (M)
}

Algorithm linear_swiglu(const Numerics &n) {
    Builder f("linear_swiglu", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim(rows_of_weights("K", n));
    Tile x = f.input("x", {M, K});
    const Weights w = weights(f, "w", {}, K, N), v = weights(f, "v", {}, K, N);
    Tile gate = multiply(x, w, "gate", "gate."), up = multiply(x, v, "up", "up.");  // (M, N) each
    return f.output("y", silu(gate) * up).build();
}

std::vector<Option> gemm_options() {
    std::vector<Option> all = {yes_or_no("transpose_x", "x is [K, M]"),
                               yes_or_no("transpose_w", "w is [N, K]"),
                               yes_or_no("wide", "y in the accumulate type")};
    for (const Option &o : epilogue_options()) all.push_back(o);
    return all;
}

namespace {

Algorithm product(const std::string &name, const Numerics &n, const Options &o, const std::vector<std::string> &batches) {
    Builder f(name, n);
    std::vector<Dim> batch;
    for (const std::string &b : batches) batch.push_back(f.dim(b));
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const auto matrix = [&](const char *called, const char *transposed, const Dim &rows, const Dim &columns) {
        std::vector<Dim> dims = batch;
        dims.push_back(o.at(transposed) ? columns : rows), dims.push_back(o.at(transposed) ? rows : columns);
        return f.input(called, dims);
    };
    Tile x = matrix("x", "transpose_x", M, K);
    Tile w = matrix("w", "transpose_w", K, N);
    Tile acc = dot(x, w, {K}).named("acc");  // (batch…, M, N)
    return f.output("y", with_epilogue(acc, N, o), o.at("wide") ? n.accumulate : n.storage).build();
}

}  // namespace

Algorithm gemm(const Numerics &n, const Options &o) { return product("gemm", n, o, {}); }
Algorithm batched_gemm(const Numerics &n, const Options &o) { return product("batched_gemm", n, o, {"B"}); }

}  // namespace tessera::library
