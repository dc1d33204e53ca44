#include "algorithms/transform/derivatives/rounds.h"

#include <algorithm>

#include "support/text/error.h"

namespace tessera::differentiation {

std::vector<std::string> dims_in_caller(const Call &call, const std::vector<std::string> &callees) {
    std::vector<std::string> dims;
    for (const std::string &d : callees) {
        const auto bound = call.dims.find(d);
        dims.push_back(bound != call.dims.end() ? bound->second : call.scope.empty() ? d : call.scope + "." + d);
    }
    return dims;
}

void bind_dims(Program &caller, Call &call) {
    const Algorithm &callee = *call.callee;
    std::erase_if(call.dims, [&](const auto &d) { return !callee.find_dim(d.first); });
    for (const Dim &d : callee.dims) {
        if (d.kind != DimKind::symbolic || call.dims.count(d.name)) continue;
        const auto like = call.dims.find(d.equals);
        require(like != call.dims.end(), "a dim of a derived callee is like one that the call binds");
        call.dims[d.name] = caller.dim_like(like->second, {});
    }
}

bool varies(const Call &call, const Expr &e) { return uses_variable(e, call.repeat->dim); }
bool varies(const Call &call, const View &view) {
    return std::any_of(view.index.begin(), view.index.end(), [&](const Expr &e) { return varies(call, e); });
}

}  // namespace tessera::differentiation
