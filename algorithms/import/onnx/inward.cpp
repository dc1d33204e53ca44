#include "algorithms/import/onnx/inward.h"

#include <algorithm>

#include "algorithms/index/prove.h"

namespace tessera::onnx {

std::string Symbols::root(std::string name) const {
    for (auto it = same_as.find(name); it != same_as.end(); it = same_as.find(name)) name = it->second;
    return name;
}

void Symbols::learn(const Space::Unify &unify) {
    const std::string a = root(unify.a), b = root(unify.b);
    same_as[std::max(a, b)] = std::min(a, b);
}

void Symbols::learn(const Space::Fix &fix) {
    for (const std::string &name : fix.symbols) fixed.insert(root(name));
}

Inward::Inward(Space &space, const Space &caller, const Symbols &symbols, bool keeps_numbers)
    : space_(space), caller_(caller), symbols_(symbols), keeps_numbers_(keeps_numbers) {
    space_.meaning.caller = &caller;
}

Expr Inward::extent_of(const Expr &in_caller) {
    const Expr e = caller_.simplified(in_caller);
    const std::string name = "s" + std::to_string(next_++);
    if (e.is_constant() && (keeps_numbers_ || e.is_constant(1) || symbols_.fixed.count(symbols_.root(name)))) return e;
    const std::string root = symbols_.root(name);
    const auto known = by_root_.find(root);
    if (known != by_root_.end()) return known->second;
    const auto range = constant_range(e, caller_.bounds());
    const Expr symbol = space_.symbol(root, range && range->first >= 1, range && range->second <= most_extent);
    space_.meaning.extents[root] = e;
    return by_root_[root] = symbol;
}

std::optional<Value> Inward::input(const Value &from, const std::string &tensor) {
    Value value = from;
    if (from.is_known()) return std::nullopt;
    if (from.is_constant()) {
        if (from.constant->size() > 1)
            for (Axis &a : value.axes) a.extent = extent_of(a.extent);
        return value;
    }
    std::set<std::string> taken;
    std::map<std::string, Dim> own;  // by the caller's
    for (Axis &a : value.axes) {
        a.extent = extent_of(a.extent);
        if (a.dim.empty()) continue;
        const Dim d = space_.dim(a.extent, taken);
        taken.insert(d.name);
        own[a.dim] = d;
        a.dim = d.name;
    }
    std::vector<Dim> order;
    for (const std::string &d : from.tile.dims()) {
        const auto it = own.find(d);
        if (it == own.end()) return std::nullopt;
        order.push_back(it->second);
    }
    value.tile = space_.f.input(tensor, order, from.dtype);
    return value;
}

std::string Binding::operator()(const std::string &dim) {
    auto [it, fresh] = bound_.emplace(dim, "");
    if (fresh) {
        const Dim &d = callee_.dim(dim);
        const Expr extent = d.kind == DimKind::fixed     ? Expr(d.value)
                            : d.kind == DimKind::derived ? meaning_.in_caller(d.size)
                                                         : meaning_.extents.at(d.name);
        it->second = caller_.dim(extent, taken_).name;
        taken_.insert(it->second);
    }
    return it->second;
}

Tile Binding::argument(const Tile &given, const std::string &tensor, size_t leading) {
    std::map<std::string, Expr> index;
    std::vector<std::string> dims(given.dims().begin(), given.dims().begin() + static_cast<int64_t>(leading));
    const std::vector<std::string> own = callee_.find_tensor(tensor)->dims;
    for (size_t d = 0; d < own.size(); d++) {
        dims.push_back((*this)(own[d]));
        index[given.dims().at(leading + d)] = variable(dims.back());
    }
    const Tile stored = Context::as_stored(Tile(&caller_.f, caller_.resolved(given.value()), given.dims()));
    return Tile(&caller_.f, substitute(stored.value(), index), dims);
}

Tile Binding::weight(const Weight &w, const std::string &tensor) {
    Value value = w.value;
    for (size_t a = 0; a < value.axes.size(); a++) value.axes[a] = {Expr(value.constant->extents[a]), ""};
    std::vector<Dim> dims;
    std::vector<std::string> names;
    for (const std::string &d : callee_.find_tensor(tensor)->dims) {
        names.push_back((*this)(d));
        dims.push_back(caller_.f.dim_named(names.back()));
    }
    const Tile tile = caller_.weight(value, w.order, dims);
    std::map<std::string, Expr> index;
    for (size_t d = 0; d < names.size(); d++) index[tile.dims().at(d)] = variable(names[d]);
    return Tile(&caller_.f, substitute(tile.value(), index), names);
}

Value Binding::result(const Value &in_callee, const Tile &tile, size_t leading) {
    Value value = in_callee;
    const std::vector<std::string> own = value.tile.dims();
    std::vector<std::string> dims = tile.dims();
    std::map<std::string, Expr> index;
    std::set<std::string> used(dims.begin(), dims.begin() + static_cast<int64_t>(leading));
    for (Axis &a : value.axes) {
        a.extent = caller_.simplified(meaning_.in_caller(a.extent));
        if (a.dim.empty()) continue;
        const size_t at = leading + static_cast<size_t>(std::find(own.begin(), own.end(), a.dim) - own.begin());
        a.dim = caller_.dim(a.extent, used).name;
        used.insert(a.dim);
        index[dims.at(at)] = variable(a.dim);
        dims[at] = a.dim;
    }
    value.tile = Tile(&caller_.f, substitute(tile.value(), index), dims);
    return value;
}

}  // namespace tessera::onnx
