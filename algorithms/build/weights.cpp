#include "algorithms/build/weights.h"

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int64_t nvfp4_group = 16;

// K of NVFP4 as groups of bytes of two codes.
struct Groups {
    Dim groups, bytes, in_group, half;
    Groups(Builder &f, const Dim &K)
        : groups(f.dim(derived_dim(K.name + "_groups", extent(K.name) / Expr(nvfp4_group)))),
          bytes(f.dim(derived_dim(K.name + "_bytes", extent(K.name) / Expr(2)))),
          in_group(f.dim(K.name + "_byte", nvfp4_group / 2)),
          half(f.dim(K.name + "_half", 2)) {}

    Expr byte() const { return variable(groups.name) * Expr(nvfp4_group / 2) + variable(in_group.name); }
    Expr element() const { return byte() * Expr(2) + variable(half.name); }
};

Tile named_if(Tile t, const std::string &name) { return name.empty() ? t : t.named(name); }

Tile multiply_groups(const Tile &x, const Weights &w, const std::string &name, const std::string &prefix) {
    Builder &f = x.builder();
    const DType real = f.numerics().accumulate;
    const Groups k(f, w.K);
    const Tile byte = w.tensors[0].at({{k.bytes.name, k.byte()}}, names_of({w.N, k.groups, k.in_group}));
    const Tile code = (byte >> cast(DType::i32, f.index(k.half)) * 4) && f.scalar(DType::i32, 15);
    const Tile numbers = cast(real, bitcast(DType::f4e2m1fn, cast(DType::u8, code))).named(prefix + "weights");  // (N, groups, byte, half)
    std::vector<std::string> dims = x.dims();
    dims.pop_back();
    for (const Dim &d : {k.groups, k.in_group, k.half}) dims.push_back(d.name);
    const Tile inner = dot(x.at({{w.K.name, k.element()}}, dims), numbers, {k.in_group, k.half}).named(prefix + "inner");
    const Tile scales = (cast(real, w.tensors[1]) * cast(real, w.tensors[2])).named(prefix + "scales");  // (N, groups)
    return named_if(dot(inner, scales, {k.groups}), name);
}

}  // namespace

Tile as_stored(const Tile &input, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Expr element;
    walk(input.value(), [&](const Expr &e) {
        if (e.kind() == ExprKind::load) element = e;
    });
    require(element.defined(), "an input loads an element of its tensor");
    return Tile(&input.builder(), element, input.dims());
}

int64_t multiple_of_rows(const Numerics &policy) { return policy.weights == WeightFormat::nvfp4 ? nvfp4_group : 1; }

Dim rows_of_weights(const std::string &name, const Numerics &policy) {
    Dim rows = symbolic_dim(name);
    rows.multiple_of = multiple_of_rows(policy);
    return rows;
}

Weights weights(Builder &f, const std::string &name, const std::vector<Dim> &outer, const Dim &K, const Dim &N, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const WeightFormat format = f.numerics().weights;
    const auto with = [&](const std::vector<Dim> &inner) {
        std::vector<Dim> dims = outer;
        dims.insert(dims.end(), inner.begin(), inner.end());
        return dims;
    };
    Weights w{{}, K, N};
    switch (format) {
    case WeightFormat::storage: w.tensors = {f.input(name, with({K, N}))}; break;
    case WeightFormat::i8:
    case WeightFormat::f8e4m3fn:
        w.tensors = {f.input(name, with({K, N}), format == WeightFormat::i8 ? DType::i8 : DType::f8e4m3fn),
                     f.input(name + "_scales", with({N}), DType::f32)};
        break;
    case WeightFormat::nvfp4: {
        const int64_t known = K.kind == DimKind::fixed ? K.value : K.kind == DimKind::symbolic ? K.multiple_of : nvfp4_group;
        if (known % nvfp4_group)
            throw UserError("weights.rows", "weights '" + name + "': expected rows '" + K.name +
                                                "' of a known multiple of 16, the codes of a group of NVFP4 that have one scale; got " +
                                                std::to_string(known) + ". Declare the dim by rows_of_weights.");
        const Groups k(f, K);
        w.tensors = {f.input(name, with({N, k.bytes}), DType::u8), f.input(name + "_scales", with({N, k.groups}), DType::f8e4m3fn),
                     f.input(name + "_tensor_scale", outer, DType::f32)};
        break;
    }
    }
    return w;
}

Tile multiply(const Tile &x, const Weights &w, const std::string &name, const std::string &prefix, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const Numerics &n = x.builder().numerics();
    switch (n.weights) {
    case WeightFormat::storage: return named_if(dot(x, w.tensors[0], {w.K}), name);
    case WeightFormat::i8:
    case WeightFormat::f8e4m3fn: {
        const Tile numbers = cast(n.accumulate, w.tensors[0]).named(prefix + "weights");  // (K, N)
        return dot(x, numbers, {w.K}).named(name.empty() ? prefix + "inner" : name) * cast(n.accumulate, w.tensors[1]);
    }
    case WeightFormat::nvfp4: return multiply_groups(x, w, name, prefix);
    }
    throw InternalError("weights of no format");
}

}  // namespace tessera
