// Codes of few bits, their products, and what makes numbers of them.
//
// Products are of u8 by i8 with sums in i32, as processors have them. Codes are multiplied as they are, and what their zero points add is
// subtracted afterwards: the sum of (a - za)(b - zb) is that of a b, less za times the sum of b, less zb times the sum of a, plus the
// number of terms times za zb. Integers wrap, so the result is exact. Sums of weights are made when the model is imported.
#include <algorithm>

#include "algorithms/build/quantized.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/products.h"
#include "algorithms/import/onnx/products_of_codes.h"

namespace tessera::onnx {

namespace {

using Tiles = std::vector<Tile>;

// What has one number for the whole of x, for each index of an axis, or for each block of neighbours along it, over x's axes.
Tile along_axis(Context &c, const Value &numbers, const std::vector<Axis> &axes) {
    const auto rank = static_cast<int64_t>(axes.size());
    if (numbers.rank() == 0 || (numbers.rank() == 1 && numbers.axes[0].extent.is_constant(1))) return c.tile(numbers);
    const auto axis = static_cast<size_t>(c.axis(c.node.integer("axis", 1), rank));
    if (numbers.rank() == 1) return c.read(numbers, {at(axes[axis])}, {axes[axis]});
    const int64_t block = c.node.integer("block_size", 0);
    if (block < 1 || numbers.rank() != rank)
        c.refuse("its scales have " + std::to_string(numbers.rank()) + " axes and blocks of " + std::to_string(block) + " elements.",
                 "Check the exporter.");
    std::vector<Expr> index;
    for (size_t i = 0; i < axes.size(); i++) index.push_back(i == axis ? at(axes[i]) / Expr(block) : at(axes[i]));
    return c.read(numbers, index, axes);
}

bool is_zero(const Value &value) {
    if (!value.is_constant()) return false;
    const std::vector<double> all = value.constant->values();
    return std::all_of(all.begin(), all.end(), [](double v) { return v == 0; });
}

std::optional<Value> zero_point(Context &c, size_t input) {
    return c.has(input) && !is_zero(c.in(input)) ? std::optional<Value>(c.in(input)) : std::nullopt;
}

// Rounded as the type of scales rounds, in which ONNX divides.
Tile in_type(const Tile &tile, DType type) { return is_arithmetic(type) ? tile : cast(DType::f32, cast(type, tile)); }

DType type_attribute(Context &c, const char *name, DType otherwise) {
    const auto number = static_cast<int32_t>(c.node.integer(name, 0));
    if (number == 0) return otherwise;
    const std::optional<DType> type = dtype_of(number);
    if (!type) c.refuse("its " + std::string(name) + " is " + type_name(number) + ".", "Choose another type.", "onnx.type");
    return *type;
}

std::vector<Value> quantize_linear(Context &c) {
    const Value &x = c.in(0), &scale = c.in(1);
    const DType to = c.has(2) ? c.in(2).dtype : type_attribute(c, "output_dtype", DType::u8);
    std::vector<Axis> axes;
    Tile t = c.spread(x, axes);
    if (!is_float(t.dtype())) t = cast(DType::f32, t);
    const Tile by = cast(t.dtype(), along_axis(c, scale, axes));
    const Tile steps = in_type(t / by, type_attribute(c, "precision", scale.dtype));
    const std::optional<Value> zero = zero_point(c, 2);
    const bool saturates = c.node.integer("saturate", 1) != 0;
    const Tile made = zero && is_float(to) ? codes_of(steps + cast(steps.dtype(), along_axis(c, *zero, axes)), {}, to, saturates)
                                           : codes_of(steps, zero ? along_axis(c, *zero, axes) : Tile(), to, saturates);
    return {c.result(Context::ordered(made, {t}), axes, to)};
}

std::vector<Value> dequantize_linear(Context &c) {
    const Value &x = c.in(0), &scale = c.in(1);
    const DType to = type_attribute(c, "output_dtype", scale.dtype);
    std::vector<Axis> axes;
    Quantized q;
    q.codes = c.spread(x, axes);
    q.scales = along_axis(c, scale, axes);
    if (const std::optional<Value> zero = is_float(x.dtype) ? std::nullopt : zero_point(c, 2)) q.zeros = along_axis(c, *zero, axes);
    return {c.result(Context::ordered(dequantize(q), {q.codes}), axes, to)};
}

std::vector<Value> dynamic_quantize_linear(Context &c) {
    const Value x = c.settled(c.in(0));
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<Dim> over;
    for (const Axis &a : axes) over.push_back(c.dim(a));
    const Quantized q = quantize_dynamic(t, "x", over);
    return {c.result(Context::ordered(q.codes, {t}), axes, DType::u8), c.result(q.scales, {}, DType::f32),
            c.result(q.zeros, {}, DType::u8)};
}

// Codes of a product, and their zero point: none where it is 0.
struct Codes {
    Value values;
    std::optional<Value> zero;
};

Array each(const Array &from, DType type, int64_t plus) {
    Array made(type, from.extents);
    for (int64_t i = 0; i < from.size(); i++) made.set(i, Scalar::of_integer(type, from.get(i).integer + plus));
    return made;
}

Value moved(Context &c, const Value &x, DType type, int64_t by) {
    if (!x.is_constant()) return c.element_wise({x}, type, [&](const Tiles &t) { return cast(type, t[0] + static_cast<double>(by)); })[0];
    Value made = x;
    made.dtype = type, made.name = x.name.empty() ? "" : x.name + "_moved";
    made.constant = std::make_shared<const Array>(each(*x.constant, type, by));
    return made;
}

// The same numbers as codes of the other type of a byte.
Codes as_codes(Context &c, const Codes &codes, DType type) {
    Codes made = codes;
    if (codes.values.dtype != DType::u8 && codes.values.dtype != DType::i8)
        c.refuse(std::string("it multiplies codes of ") + name_of(codes.values.dtype) + "; expected uint8 or int8.", "Check the exporter.",
                 "onnx.type");
    if (codes.values.dtype != type) {
        const int64_t by = type == DType::u8 ? 128 : -128;
        made.values = moved(c, codes.values, type, by);
        made.zero = codes.zero ? moved(c, *codes.zero, DType::i32, by) : c.constant(Array(DType::i32, {}, {static_cast<double>(by)}));
        if (is_zero(*made.zero)) made.zero.reset();
    }
    made.values = c.settled(made.values);
    return made;
}

// The sums of codes over some of their axes, which are left out.
Value summed(Context &c, const Value &x, const std::vector<size_t> &over) {
    const auto is_over = [&](size_t i) { return std::find(over.begin(), over.end(), i) != over.end(); };
    if (x.is_constant()) {
        const Array &all = *x.constant;
        std::vector<int64_t> extents;
        Value made;
        for (size_t i = 0; i < all.extents.size(); i++)
            if (!is_over(i)) extents.push_back(all.extents[i]), made.axes.push_back({x.axes[i].extent, ""});
        Array sums(DType::i32, extents);
        for (int64_t i = 0; i < all.size(); i++) {
            int64_t rest = i, place = 0, step = 1;
            for (size_t d = all.extents.size(); d-- > 0; rest /= all.extents[d])
                if (!is_over(d)) place += rest % all.extents[d] * step, step *= all.extents[d];
            sums.set(place, Scalar::of_integer(DType::i32, sums.get(place).integer + all.get(i).integer));
        }
        made.dtype = DType::i32, made.name = x.name.empty() ? "" : x.name + "_sums";
        made.constant = std::make_shared<const Array>(std::move(sums));
        return made;
    }
    std::vector<Axis> axes, kept;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> dims;
    for (size_t i = 0; i < axes.size(); i++)
        if (is_over(i)) dims.push_back(axes[i].dim);
        else kept.push_back(axes[i]);
    return c.result(c.f.fold(sum_monoid(DType::i32), {t}, dims)[0].named("sums"), kept, DType::i32);
}

// What zero points add, taken from sums of products of codes. All are broadcast over the sums.
Value without_zero_points(Context &c, const Value &acc, const std::optional<Value> &za, const std::optional<Value> &sum_b,
                          const std::optional<Value> &zb, const std::optional<Value> &sum_a, const Expr &terms) {
    std::vector<Value> values = {acc};
    for (const std::optional<Value> &v : {za, sum_b, zb, sum_a})
        if (v) values.push_back(*v);
    return c.element_wise(values, DType::i32, [&](const Tiles &t) {
        Tile all = t[0];
        size_t next = 1;
        Tile a, b;
        if (za) a = t[next], all = all - a * t[next + 1], next += 2;
        if (zb) b = t[next], all = all - b * t[next + 1];
        if (za && zb) all = all + a * b * Tile(&c.f, cast(DType::i32, c.space.simplified(terms)), {});
        return all;
    })[0];
}

// The value with an axis of one element, counted from the end.
Value with_one(Context &c, const Value &value, int64_t from_end) {
    std::vector<Axis> axes = value.axes;
    axes.insert(axes.end() - from_end, {Expr(1), ""});
    return c.with_axes(value, std::move(axes));
}

Value integer_product(Context &c, Codes a, Codes b) {
    const auto rank_a = a.values.axes.size(), rank_b = b.values.axes.size();
    if (rank_a == 0 || rank_b == 0) c.refuse("a product of a scalar.", "Check the exporter.");
    const bool has_rows = rank_a > 1, has_columns = rank_b > 1;
    // Rows have their zero points in a column.
    if (a.zero && a.zero->rank() == 1 && has_rows && has_columns) a.zero = with_one(c, *a.zero, 0);
    a = as_codes(c, a, DType::u8), b = as_codes(c, b, DType::i8);
    const Value acc = product(c, a.values, b.values, DType::i32);
    std::optional<Value> sum_a, sum_b;
    if (a.zero) {
        sum_b = summed(c, b.values, {has_columns ? rank_b - 2 : rank_b - 1});
        if (has_rows && has_columns) sum_b = with_one(c, *sum_b, 1);
    }
    if (b.zero) {
        sum_a = summed(c, a.values, {rank_a - 1});
        if (has_columns && has_rows) sum_a = with_one(c, *sum_a, 0);
    }
    return without_zero_points(c, acc, a.zero, sum_b, b.zero, sum_a, a.values.axes.back().extent);
}

std::vector<Value> matmul_integer(Context &c) { return {integer_product(c, {c.in(0), zero_point(c, 2)}, {c.in(1), zero_point(c, 3)})}; }

// A number for each output channel, or one for all, beside a result of that rank.
Value by_output(Context &c, const Value &value, size_t rank) {
    if (value.is_constant() && value.constant->size() == 1) return c.with_axes(value, {});
    return value.rank() == 0 ? value : c.by_channel(value, rank);
}

Value integer_convolution(Context &c, Codes x, Codes w) {
    x = as_codes(c, x, DType::u8), w = as_codes(c, w, DType::i8);
    const size_t rank = x.values.axes.size();
    Convolution how;
    if (x.zero) {  // what pads is 0
        const Tile zero = c.tile(*x.zero);
        if (!zero.dims().empty()) c.refuse("its input has several zero points.", "Check the exporter.");
        how.outside = zero.value();
    }
    Value seen;
    if (w.zero) how.sums = &seen;
    const Value acc = convolved(c, x.values, w.values, DType::i32, how);
    std::optional<Value> sum_x, sum_w, zw;
    if (x.zero) {
        std::vector<size_t> over;
        for (size_t i = 1; i < w.values.axes.size(); i++) over.push_back(i);
        sum_w = by_output(c, summed(c, w.values, over), rank);
    }
    Expr terms = 1;
    for (size_t i = 1; i < w.values.axes.size(); i++) terms = terms * w.values.axes[i].extent;
    if (w.zero) zw = by_output(c, *w.zero, rank), sum_x = seen;
    return without_zero_points(c, acc, x.zero, sum_w, zw, sum_x, terms);
}

std::vector<Value> conv_integer(Context &c) { return {integer_convolution(c, {c.in(0), zero_point(c, 2)}, {c.in(1), zero_point(c, 3)})}; }

// a b / y, or a b without y, each rounded to the type of scales: one number, or one for each row, column or channel.
Value scale_of(Context &c, const Value &a, const Value &b, const std::optional<Value> &y = {}) {
    const DType type = a.dtype;
    const auto is_number = [](const Value &v) { return v.is_constant() && v.constant->size() == 1; };
    if (!is_number(a) || !b.is_constant() || (y && !is_number(*y))) {
        std::vector<Value> values = {a, b};
        if (y) values.push_back(*y);
        return c.element_wise(values, type, [&](const Tiles &t) {
            const Tile both = in_type(t[0] * t[1], type);
            return y ? in_type(both / t[2], type) : both;
        })[0];
    }
    // Made when the model is imported, in the same types.
    const auto rounded = [&](double v) { return Array(type, {1}, {static_cast<double>(static_cast<float>(v))}).values()[0]; };
    std::vector<double> all;
    const double first = a.constant->values()[0], last = y ? y->constant->values()[0] : 1;
    for (double v : b.constant->values()) all.push_back(rounded(rounded(first * v) / last));
    Value made = b;
    made.name = b.name.empty() ? "" : b.name + "_scaled";
    made.constant = std::make_shared<const Array>(Array(type, b.constant->extents, all));
    return made;
}

// Sums as codes of the result.
Value requantized(Context &c, const Value &sums, const Value &scale, const std::optional<Value> &zero, DType to) {
    std::vector<Value> values = {sums, scale};
    if (zero) values.push_back(*zero);
    return c.element_wise(values, to, [&](const Tiles &t) {
        const Tile steps = cast(DType::f32, t[0]) * cast(DType::f32, t[1]);
        return codes_of(steps, zero ? t[2] : Tile(), to);
    })[0];
}

std::vector<Value> qlinear_matmul(Context &c) {
    const Value acc = integer_product(c, {c.in(0), zero_point(c, 2)}, {c.in(3), zero_point(c, 5)});
    Value of_a = c.in(1);
    if (of_a.rank() == 1 && !of_a.axes[0].extent.is_constant(1) && acc.rank() > 1) of_a = with_one(c, of_a, 0);
    return {requantized(c, acc, scale_of(c, of_a, c.in(4), c.in(6)), zero_point(c, 7), c.in(7).dtype)};
}

std::vector<Value> qlinear_conv(Context &c) {
    Value acc = integer_convolution(c, {c.in(0), zero_point(c, 2)}, {c.in(3), zero_point(c, 5)});
    const auto rank = static_cast<size_t>(acc.rank());
    if (c.has(8)) acc = c.element_wise({acc, c.by_channel(c.in(8), rank)}, DType::i32, [](const Tiles &t) { return t[0] + t[1]; })[0];
    const Value scale = by_output(c, scale_of(c, c.in(1), c.in(4), c.in(6)), rank);
    return {requantized(c, acc, scale, zero_point(c, 7), c.in(7).dtype)};
}

// Products of codes (products_of_codes.h): x, its scale and zero point, weights, theirs, and a bias.

Value numbers_of(Context &c, const Value &sums, const Value &scale) {
    return c.element_wise({sums, scale}, DType::f32, [](const Tiles &t) { return cast(DType::f32, t[0]) * t[1]; })[0];
}

std::vector<Value> matmul_of_codes(Context &c) {
    const Value sums = integer_product(c, {c.in(0), zero_point(c, 2)}, {c.in(3), zero_point(c, 5)});
    return {numbers_of(c, sums, scale_of(c, c.in(1), c.in(4)))};
}

// Rows as columns, where the elements are known.
Value rows_as_columns(const Value &x) {
    const Array &from = *x.constant;
    const int64_t rows = from.extents[0], columns = from.extents[1];
    Array array(from.dtype, {columns, rows});
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) array.set(j * rows + i, from.get(i * columns + j));
    Value made = x;
    std::swap(made.axes[0], made.axes[1]);
    made.name = x.name.empty() ? "" : x.name + "_by_columns";
    made.constant = std::make_shared<const Array>(std::move(array));
    return made;
}

std::vector<Value> gemm_of_codes(Context &c) {
    Value w = c.in(3);
    if (c.in(0).rank() != 2)
        c.refuse("it multiplies " + std::to_string(c.in(0).rank()) + " axes; expected 2.", "Check the exporter.", "onnx.rank");
    if (c.node.integer("transB", 0)) w = rows_as_columns(w);
    const Value sums = integer_product(c, {c.in(0), zero_point(c, 2)}, {w, zero_point(c, 5)});
    return {scaled_with_bias(c, numbers_of(c, sums, scale_of(c, c.in(1), c.in(4))), 6)};
}

std::vector<Value> conv_of_codes(Context &c) {
    const Value sums = integer_convolution(c, {c.in(0), zero_point(c, 2)}, {c.in(3), zero_point(c, 5)});
    const auto rank = static_cast<size_t>(sums.rank());
    return {with_bias(c, numbers_of(c, sums, by_output(c, scale_of(c, c.in(1), c.in(4)), rank)), 6)};
}

}  // namespace

std::vector<Operator> quantized_operators() {
    return {
        {"QuantizeLinear", quantize_linear, "", true},
        {"DequantizeLinear", dequantize_linear, "", true},
        {"DynamicQuantizeLinear", dynamic_quantize_linear},
        {"MatMulInteger", matmul_integer},
        {"ConvInteger", conv_integer},
        {"QLinearMatMul", qlinear_matmul},
        {"QLinearConv", qlinear_conv},
        {"MatMul", matmul_of_codes, codes_domain},
        {"Gemm", gemm_of_codes, codes_domain},
        {"Conv", conv_of_codes, codes_domain},
    };
}

}  // namespace tessera::onnx
