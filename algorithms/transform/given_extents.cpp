#include "algorithms/transform/given_extents.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "runtime/abi/extent_words.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// A name in the other case is near; of names of one letter, which are all a letter apart, nothing else is.
std::string near_dim(const std::string &name, std::vector<std::string> dims) {
    auto lower = [](std::string n) {
        std::transform(n.begin(), n.end(), n.begin(), [](unsigned char c) { return std::tolower(c); });
        return n;
    };
    for (const std::string &d : dims)
        if (lower(d) == lower(name)) return " Did you mean '" + d + "'?";
    return name.size() == 1 ? "" : did_you_mean(name, dims);
}

void check_known(const Algorithm &a, const std::string &name, int64_t value, const std::vector<std::string> &symbolic) {
    const Dim *dim = a.find_dim(name);
    const std::string there_are = "; the symbolic dims are " + join(symbolic) + ".";
    if (!dim)
        throw UserError("shape.unknown-dim",
                        a.name + ": there is no dim '" + name + "' to give an extent" + there_are + near_dim(name, symbolic));
    if (dim->kind == DimKind::derived)
        throw UserError("shape.unknown-dim", a.name + ": dim " + name + " is derived, as " + to_string(dim->size) + there_are +
                                                 " Give extents to those that it is derived of.");
    if (dim->kind == DimKind::fixed && dim->value != value)
        refuse_extent(a, *dim, TESS_WORDS_EXTENT_FIXED + std::to_string(dim->value), value,
                      "It is fixed, by its declaration and options or by --shape" + there_are + " Leave it out.");
}

// `named` is the dim that the extent was given for.
void check_constraints(const Algorithm &a, const Dim &d, int64_t value, const std::string &named) {
    const auto refuse = [&](const char *words, int64_t expected) {
        refuse_extent(a, d, words + std::to_string(expected), value,
                      named.empty() || named == d.name ? "" : "It is equal to " + named + ", which was given.");
    };
    if (value < d.min) refuse(TESS_WORDS_EXTENT_MIN, d.min);
    if (const int64_t most = std::min(d.max, max_extent); value > most) refuse(TESS_WORDS_EXTENT_MAX, most);
    if (value % d.multiple_of) refuse(TESS_WORDS_EXTENT_MULTIPLE, d.multiple_of);
}

}  // namespace

void refuse_extent(const Algorithm &a, const Dim &d, const std::string &rule, int64_t got, const std::string &more) {
    std::string place;
    for (const Tensor &t : a.tensors) {
        const auto at = std::find(t.dims.begin(), t.dims.end(), d.name);
        if (t.role == Role::constant || at == t.dims.end()) continue;
        place = ", dimension " + std::to_string(at - t.dims.begin()) + " of '" + t.name + "'";
        break;
    }
    throw UserError("shape.constraint", a.name + ": dim " + d.name + place + ": " + rule + ", not " + std::to_string(got) + "." +
                                            (more.empty() ? "" : " " + more) + path_through_calls(a, d.name));
}

Extents given_extents(const Algorithm &a, const Extents &given) {
    struct Known {
        std::string named;
        int64_t value;
    };
    std::map<std::string, Known> known;  // by root
    std::vector<std::string> symbolic;
    for (const Dim &d : a.dims) {
        if (d.kind == DimKind::symbolic) symbolic.push_back(d.name);
        if (d.kind == DimKind::fixed) known[d.name] = {d.name, d.value};
    }
    for (const auto &[name, value] : given) check_known(a, name, value, symbolic);
    for (const Dim &d : a.dims) {  // as they are declared, so that what is named as the other comes first
        const auto own = given.find(d.name);
        if (own == given.end() || d.kind != DimKind::symbolic) continue;
        check_constraints(a, d, own->second, "");
        const auto [other, fresh] = known.try_emplace(root_of(a, d).name, Known{d.name, own->second});
        if (!fresh && other->second.value != own->second)
            refuse_extent(a, d, TESS_WORDS_EXTENT_EQUAL + other->second.named + ", " + std::to_string(other->second.value), own->second);
    }
    Extents all;
    for (const Dim &d : a.dims) {
        if (d.kind != DimKind::symbolic) continue;
        const auto value = known.find(root_of(a, d).name);
        if (value == known.end()) continue;
        check_constraints(a, d, value->second.value, value->second.named);
        all[d.name] = value->second.value;
    }
    return all;
}

const Dim &root_of(const Algorithm &a, const Dim &dim) {
    const Dim *d = &dim;
    while (!d->equals.empty()) d = &a.dim(d->equals);
    return *d;
}

Dim with_constraints_of_equals(const Algorithm &a, const Dim &dim) {
    Dim all = dim;
    const std::string root = root_of(a, dim).name;
    for (const Dim &d : a.dims) {
        if (d.kind != DimKind::symbolic || root_of(a, d).name != root) continue;
        all.min = std::max(all.min, d.min), all.max = std::min(all.max, d.max), all.multiple_of = std::lcm(all.multiple_of, d.multiple_of);
    }
    return all;
}

int64_t allowed_extent(const Algorithm &a, const Dim &dim, int64_t wished) {
    const Dim all = with_constraints_of_equals(a, dim);
    const auto up = [&](int64_t extent) { return (extent + all.multiple_of - 1) / all.multiple_of * all.multiple_of; };
    const int64_t most = std::min(all.max, max_extent) / all.multiple_of * all.multiple_of;
    return std::max(up(all.min), std::min(up(wished), most));
}

Extents with_usual_extents(const Algorithm &a, Extents given, int64_t usual) {
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty() && !given.count(d.name)) given[d.name] = allowed_extent(a, d, usual);
    return given;
}

}  // namespace tessera
