// The part of function.h that reads tensors at computed places, and writes them there.
#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "support/text/error.h"

namespace tessera::onnx {

static bool shares(const std::vector<std::string> &a, const std::vector<std::string> &b) {
    return std::any_of(a.begin(), a.end(), [&](const std::string &x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

Term FunctionMaker::position(const Stored &of, const std::vector<Term> &index, Body &body) {
    Term place = number(DType::i64, 0, body);
    for (size_t i = 0; i < index.size(); i++) {
        if (i > 0) place = element_wise("Mul", {place, extent_of(of.dims[i])}, DType::i64, body);
        place = i == 0 ? index[0] : element_wise("Add", {place, index[i]}, DType::i64, body);
    }
    return place;
}

Term FunctionMaker::gathered_flat(const Stored &from, const std::vector<Term> &index, Place &at) {
    const Term all = flat({from.name, from.dtype, from.dims}, at.body);
    const Term place = position(from, index, at.body);
    return {at.body.one("Gather", {all.name, place.name}, attributes({integer_attribute("axis", 0)})), from.dtype, place.axes};
}

Term FunctionMaker::load(const Stored &from, const std::vector<Expr> &index, const Expr &guard, const Expr &fill, Place &at) {
    Body &body = at.body;
    const bool guarded = guard.defined();
    if (guarded)
        if (const auto all = padded(from, index, guard, fill, at)) return *all;
    // An index that is a variable over the whole axis is the axis itself. Others are looked up.
    std::vector<Term> terms(index.size());
    std::vector<std::string> whole(index.size());
    std::vector<std::vector<std::string>> axes(index.size());
    for (size_t i = 0; i < index.size(); i++) {
        const Expr &e = index[i];
        if (e.kind() == ExprKind::variable && !at.variables.count(e->name) && same_extent(e->name, from.dims[i])) {
            whole[i] = e->name, axes[i] = {e->name};
            continue;
        }
        Term t = value(e, at);
        if (guarded) {
            // Where the guard does not hold, any element will do.
            const Term last = operation_of(Op::sub, {extent_of(from.dims[i]), number(DType::i64, 1, body)}, false, body);
            t = operation_of(Op::max, {operation_of(Op::min, {t, last}, false, body), number(DType::i64, 0, body)}, false, body);
        }
        terms[i] = t, axes[i] = t.axes;
    }
    bool overlaps = false;
    for (size_t i = 0; i < index.size(); i++)
        for (size_t j = 0; j < i; j++) overlaps |= shares(axes[i], axes[j]);
    Term result{from.name, from.dtype, {}};
    if (overlaps) {
        for (size_t i = 0; i < index.size(); i++)
            if (!whole[i].empty()) terms[i] = range(whole[i], body);
        result = gathered_flat(from, terms, at);
    } else {
        // The last axes first, so that the numbers of those before stay.
        for (size_t i = index.size(); i-- > 0;)
            if (whole[i].empty())
                result.name =
                    body.one("Gather", {result.name, terms[i].name}, attributes({integer_attribute("axis", static_cast<int64_t>(i))}));
        for (const auto &some : axes) result.axes.insert(result.axes.end(), some.begin(), some.end());
    }
    if (!guarded) return result;
    return where(value(guard, at), result, converted(value(fill, at), result.dtype, body), body);
}

bool FunctionMaker::is_whole(const Stored &tensor, const std::vector<Expr> &index, const std::vector<std::string> &dims) {
    std::vector<std::string> seen;
    for (size_t i = 0; i < index.size(); i++) {
        if (index[i].kind() != ExprKind::variable || !same_extent(index[i]->name, tensor.dims[i])) return false;
        if (std::find(seen.begin(), seen.end(), index[i]->name) != seen.end()) return false;
        seen.push_back(index[i]->name);
    }
    return seen.size() == dims.size();
}

FunctionMaker::Stored FunctionMaker::written(const Stored &state, const std::vector<Expr> &index, const Term &value_written,
                                             const std::vector<std::string> &dims, Place &at) {
    Body &body = at.body;
    Stored next = state;
    const Term v = converted(value_written, state.dtype, body);
    if (is_whole(state, index, dims)) {
        std::vector<std::string> axes;
        for (const Expr &e : index) axes.push_back(e->name);
        next.name = spread(v, axes, body).name;
        return next;
    }
    std::vector<Term> terms;
    for (const Expr &e : index) terms.push_back(value(e, at));
    const Term place = flat(spread(position(state, terms, body), dims, body), body), put = flat(spread(v, dims, body), body);
    const Term before = flat({state.name, state.dtype, state.dims}, body);
    const std::string after = body.one("ScatterElements", {before.name, place.name, put.name}, attributes({integer_attribute("axis", 0)}));
    next.name = body.one("Reshape", {after, shape_of(state.dims, body)}, attributes({integer_attribute("allowzero", 1)}));
    return next;
}

}  // namespace tessera::onnx
