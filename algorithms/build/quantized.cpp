#include "algorithms/build/quantized.h"

#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

void check(const std::string &name, const std::vector<std::string> &dims, const Quantization &how) {
    auto refuse = [&](const char *id, const std::string &why) { throw UserError(id, "quantized tensor '" + name + "': " + why); };
    const bool whole = how.codes == DType::i8 || how.codes == DType::u8;
    if (!whole && (!is_coded_float(how.codes) || !traits_of(how.codes).is_signed))
        refuse("quantized.type", std::string("codes are i8, u8 or floats of one byte with a sign, got ") + name_of(how.codes) + ".");
    if (!is_float(how.scales)) refuse("quantized.type", std::string("scales are floats, got ") + name_of(how.scales) + ".");
    if (how.zeros && (!whole || !(how.zeros == DType::i8 || how.zeros == DType::u8 || how.zeros == DType::i32)))
        refuse("quantized.type", std::string("zero points are i8, u8 or i32, of codes that are i8 or u8; got zero points of ") +
                                     name_of(*how.zeros) + " and codes of " + name_of(how.codes) + ".");
    if (how.group < 0)
        refuse("quantized.group", "a group has 1 or more elements, or 0 for all of a row; got " + std::to_string(how.group) + ".");
    if (dims.empty()) refuse("quantized.dims", "expected a dim along which scales are shared, got none. Give it a dim of 1.");
}

std::string name_of_groups(const std::string &dim, int64_t group) { return dim + "_groups_of_" + std::to_string(group); }

// As many groups as there are in the dim, the last one perhaps not full.
Dim groups_of(Builder &f, const std::string &dim, int64_t group) {
    return f.dim(derived_dim(name_of_groups(dim, group), (extent(dim) + Expr(group - 1)) / Expr(group)));
}

// What there is one of for each group, at each element of it.
Tile for_each_element(const Tile &shared, const Quantized &q) {
    if (!q.group) return shared;
    return shared.at({{name_of_groups(q.dims.back(), q.group), variable(q.dims.back()) / Expr(q.group)}}, q.dims);
}

}  // namespace

Quantized quantized(Builder &f, const std::string &name, const std::vector<Dim> &dims, const Quantization &how, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Quantized q;
    for (const Dim &d : dims) q.dims.push_back(d.name);
    check(name, q.dims, how);
    q.group = how.group;
    q.codes = f.input(name, dims, how.codes);
    std::vector<Dim> shared(dims.begin(), dims.end() - 1);
    if (how.group) shared.push_back(groups_of(f, q.dims.back(), how.group));
    q.scales = f.input(name + "_scales", shared, how.scales);
    if (how.zeros) q.zeros = f.input(name + "_zeros", shared, how.zeros);
    return q;
}

Tile dequantize(const Quantized &q, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    const DType compute = q.codes.builder().numerics().compute;
    Tile code = q.codes;
    if (!is_float(code.dtype())) code = cast(DType::i32, code);
    if (static_cast<bool>(q.zeros)) code = code - for_each_element(q.zeros, q);
    if (is_coded_float(code.dtype())) code = cast(DType::f32, code);
    return cast(compute, code) * cast(compute, for_each_element(q.scales, q));
}

Quantized quantize(const Tile &x, const std::string &name, const Quantization &how, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    check(name, x.dims(), how);
    if (how.codes == DType::u8 || how.zeros)
        throw UserError("quantized.type", "quantized tensor '" + name +
                                              "': quantize is symmetric around 0, so codes are i8 or floats, without "
                                              "zero points; compute others by scales and zero points of your own.");
    Builder &f = x.builder();
    const DType compute = f.numerics().compute;
    const std::string last = x.dims().back();
    const double largest = is_float(how.codes) ? highest_finite(traits_of(how.codes)) : 127;
    Quantized q;
    q.dims = x.dims(), q.group = how.group;
    std::vector<Dim> shared;
    for (const std::string &d : q.dims) shared.push_back(f.dim_named(d));
    Tile most;
    if (how.group) {
        const Dim inner = f.dim(last + "_in_group_of_" + std::to_string(how.group), how.group);
        shared.back() = groups_of(f, last, how.group);
        const Expr position = variable(shared.back().name) * Expr(how.group) + variable(inner.name), inside = position < extent(last);
        const Expr value = read_where(substitute(abs(x).value(), {{last, position}}), inside);
        std::vector<Dim> points = shared;
        points.push_back(inner);
        most = max(f.tile(select(inside, value, constant(x.dtype(), 0)), points), inner);
    } else {
        shared.pop_back();
        most = max(abs(x), f.dim_named(last));
    }
    const Tile scale = max(cast(compute, most) / largest, 0x1p-126);
    q.scales =
        (is_narrow_float(how.scales) ? cast(how.scales, scale, Rounding::up, true) : cast(how.scales, scale)).named(name + "_scales");
    q.codes = cast(how.codes, cast(compute, x) / cast(compute, for_each_element(q.scales, q)), Rounding::nearest_even, true);
    return q;
}

Tile codes_of(const Tile &steps, const Tile &zero, DType codes, bool saturate, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    if (is_float(codes)) {
        if (static_cast<bool>(zero))
            throw UserError("quantized.type", "codes_of: " + std::string(name_of(codes)) + " is a float, and has no zero point.");
        return cast(codes, steps, Rounding::nearest_even, saturate);
    }
    const Tile whole = round(steps);
    return cast(codes, static_cast<bool>(zero) ? whole + cast(whole.dtype(), zero) : whole, Rounding::nearest_even, true);
}

Quantized quantize_dynamic(const Tile &x, const std::string &name, const std::vector<Dim> &over, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = x.builder();
    const std::vector<std::string> dims = names_of(over);
    const auto folded = [&](const Monoid &monoid, const char *what) {
        return (dims.empty() ? x : f.fold(monoid, {x}, dims)[0]).named(name + what);
    };
    const Tile least = min(folded(min_monoid(x.dtype()), "_least"), 0.0), most = max(folded(max_monoid(x.dtype()), "_most"), 0.0);
    const Tile range = most - least;
    Quantized q;
    q.dims = x.dims();
    q.scales = (select(range == 0.0, f.scalar(x.dtype(), 1), range) / 255).named(name + "_scales");
    q.zeros = cast(DType::i32, round(min(max(-least / q.scales, 0.0), 255.0)));
    q.codes = codes_of(x / q.scales, q.zeros, DType::u8);
    return q;
}

}  // namespace tessera
