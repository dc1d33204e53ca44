#include "schedules/knobs/pieces.h"

#include <algorithm>
#include <cctype>

#include "schedules/knobs/knob_names.h"
#include "schedules/knobs/notation.h"
#include "support/containers/alternatives.h"

namespace tessera {

namespace {

using Names = std::vector<std::string>;

// Otherwise every dim is called what it is.
bool has_numbered_pieces(const Algorithm &algorithm) {
    auto has_number = [&](const Dim &d) { return name_in_schedules(d.name, algorithm) != d.name; };
    return std::any_of(algorithm.dims.begin(), algorithm.dims.end(), has_number);
}

void add(Names &names, const Names &more) { names.insert(names.end(), more.begin(), more.end()); }

// The names of the loops of a stage and of its results, or of the copy of an operand that the stage has packed.
Names dims_of(const std::string &stage, const Algorithm &algorithm) {
    Names dims;
    for (const Stage &s : algorithm.stages()) {
        if (s.name == stage) add(dims, s.dims), add(dims, folded_dims(s));
        for (const Tensor &t : results_of(s))
            if (s.name == stage || stage.ends_with("." + t.name + ".packed")) add(dims, t.dims);
    }
    return dims;
}

Names dims_of_tensor(const std::string &tensor, const Algorithm &algorithm) {
    for (const Stage &s : algorithm.stages())
        for (const Tensor &t : results_of(s))
            if (t.name == tensor) return t.dims;
    return {};
}

}  // namespace

PieceNames piece_names(const std::string &dim, int number) {
    const std::string suffix = number == 1 ? "" : std::to_string(number);
    return {dim + ".o" + suffix, dim + ".i" + suffix};
}

std::string name_in_schedules(const std::string &dim, const Algorithm &algorithm) {
    const size_t dot = dim.rfind('.');
    if (dot == std::string::npos || !algorithm.find_dim(dim.substr(0, dot))) return dim;
    const std::string last = dim.substr(dot + 1);
    if (last.empty() || (last[0] != 'o' && last[0] != 'i')) return dim;
    if (!std::all_of(last.begin() + 1, last.end(), [](unsigned char c) { return std::isdigit(c); })) return dim;
    return name_in_schedules(dim.substr(0, dot), algorithm) + "." + last[0];
}

std::string dim_called(const std::string &name, const Names &dims, const Algorithm &after_splits) {
    if (std::find(dims.begin(), dims.end(), name) != dims.end()) return name;
    for (const std::string &d : dims)
        if (name_in_schedules(d, after_splits) == name) return d;
    return name;
}

Algorithm as_addressed(const Algorithm &after_splits) {
    Algorithm result = after_splits;
    if (!has_numbered_pieces(after_splits)) return result;
    auto name = [&](std::string &dim) { dim = name_in_schedules(dim, after_splits); };
    auto all = [&](Names &dims) { std::for_each(dims.begin(), dims.end(), name); };
    auto parts_of = [&](Monoid &monoid) {
        for (Part &part : monoid.parts) all(part.dims);
    };
    for (Stage &s : result.stages()) {
        all(s.dims);
        std::visit(Overloaded{
                       [](Map &) {},
                       [&](Reduce &b) { all(b.dims), parts_of(b.monoid); },
                       [&](Scan &b) { name(b.dim), parts_of(b.monoid); },
                   },
                   s.body);
    }
    return result;
}

KnobsByStage with_dims_of(const Algorithm &after_splits, const KnobsByStage &stages) {
    if (!has_numbered_pieces(after_splits)) return stages;
    KnobsByStage result;
    for (const auto &[stage, knobs] : stages) {
        const Names own = dims_of(stage, after_splits);
        auto called = [&](const std::string &name, const Names &dims) { return dim_called(name, dims, after_splits); };
        KnobNames names;
        names.dim = [&](const std::string &dim) { return called(dim, own); };
        names.axis = [&](const std::string &operand, const std::string &dim) { return called(dim, dims_of_tensor(operand, after_splits)); };
        names.loop = [&](const std::string &other, const std::string &loop) {
            const Names dims = other.empty() ? own : dims_of(other, after_splits);
            auto is_dim = [&](const std::string &d) { return std::find(dims.begin(), dims.end(), called(d, dims)) != dims.end(); };
            LoopName parsed = parse_loop(loop, is_dim);
            parsed.dim = called(parsed.dim, dims);
            return parsed.text();
        };
        names.stage = names.tensor = [](const std::string &name) { return name; };
        result[stage] = renamed(knobs, names);
    }
    return result;
}

}  // namespace tessera
