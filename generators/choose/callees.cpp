#include "generators/choose/callees.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "algorithms/text/hash.h"
#include "bench/measure/inputs.h"

namespace tessera {

namespace {

// A program or a callee, where it is called.
struct Caller {
    const Algorithm &algorithm;
    Extents fixed, extents;  // those that it knows; those of all dims
    int64_t runs = 1;
    bool may_end_early = false;
    std::string prefix;  // of scopes
};

constexpr int64_t max_runs = std::numeric_limits<int64_t>::max();
int64_t product(int64_t a, int64_t b) { return b > 0 && a > max_runs / b ? max_runs : a * b; }
int64_t sum(int64_t a, int64_t b) { return a > max_runs - b ? max_runs : a + b; }

class CalleeList {
public:
    void add_calls(const Caller &caller) {
        for (const Call &call : caller.algorithm.calls())
            if (!is_uncounted(call, caller)) add(call, caller);
    }
    Callees take() { return std::move(found_); }

private:
    using Key = std::tuple<std::string, std::string, std::string, Extents, Extents>;
    Callees found_;
    std::map<Key, size_t> positions_;
    std::map<const Algorithm *, std::pair<std::string, std::string>> hashes_;  // semantic and surface

    bool is_uncounted(const Call &call, const Caller &caller) {
        std::vector<std::string> dims;
        for (const Dim &d : call.callee->dims)
            if (auto bound = call.dims.find(d.name); d.kind == DimKind::symbolic && bound != call.dims.end()) dims.push_back(bound->second);
        if (call.repeat) dims.push_back(call.repeat->dim);
        const auto unknown = std::find_if(dims.begin(), dims.end(), [&](const std::string &d) { return !caller.extents.count(d); });
        if (unknown == dims.end()) return false;
        found_.uncounted.push_back({caller.prefix + call.scope, call.callee->name, *unknown});
        return true;
    }

    void add(const Call &call, const Caller &caller) {
        const Algorithm &algorithm = *call.callee;
        CalledKernel callee{call.callee, {}, {}, {}, 0, caller.may_end_early || (call.repeat && !call.repeat->until.empty()), {}};
        for (const Dim &d : algorithm.dims) {
            const auto bound = call.dims.find(d.name);
            if (d.kind != DimKind::symbolic || bound == call.dims.end()) continue;
            const Dim *callers = caller.algorithm.find_dim(bound->second);
            const bool is_fixed = caller.fixed.count(bound->second) || (callers && callers->kind == DimKind::fixed);
            (is_fixed ? callee.fixed : callee.dynamic)[d.name] = caller.extents.at(bound->second);
        }
        Extents symbolic = callee.fixed;
        symbolic.insert(callee.dynamic.begin(), callee.dynamic.end());
        callee.extents = all_extents(algorithm, symbolic);
        const int64_t runs = product(caller.runs, call.repeat ? caller.extents.at(call.repeat->dim) : 1);
        const std::string scope = caller.prefix + call.scope;
        const Caller inside{algorithm, callee.fixed, callee.extents, runs, callee.may_end_early, scope + "."};
        const auto [known, fresh] = positions_.emplace(key_of(callee), found_.all.size());
        if (fresh) found_.all.push_back(std::move(callee));
        CalledKernel &one = found_.all[known->second];
        one.runs = sum(one.runs, runs), one.may_end_early |= inside.may_end_early;
        one.scopes.push_back(scope);
        add_calls(inside);
    }

    Key key_of(const CalledKernel &callee) {
        const Algorithm &a = *callee.algorithm;
        auto [hashes, fresh] = hashes_.try_emplace(&a);
        if (fresh) hashes->second = {semantic_hash(a), surface_hash(a)};
        return {a.name, hashes->second.first, hashes->second.second, callee.fixed, callee.dynamic};
    }
};

}  // namespace

std::vector<CalledKernel> Callees::leaves() const {
    std::vector<CalledKernel> those;
    std::copy_if(all.begin(), all.end(), std::back_inserter(those), [](const CalledKernel &c) { return c.is_leaf() && c.runs > 0; });
    return those;
}

Callees callees_of(const Algorithm &program, const Extents &fixed, const Extents &dynamic) {
    Extents symbolic = fixed;
    symbolic.insert(dynamic.begin(), dynamic.end());
    CalleeList list;
    list.add_calls({program, fixed, all_extents(program, symbolic), 1, false, ""});
    return list.take();
}

}  // namespace tessera
