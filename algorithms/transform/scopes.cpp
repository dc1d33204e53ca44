#include "algorithms/transform/scopes.h"

namespace tessera {

static bool begins(const std::string &name, const std::string &with) { return !with.empty() && name.starts_with(with + "."); }

const Call *call_around(const Algorithm &caller, const std::string &name) {
    const Call *found = nullptr;
    for (const Call &call : caller.calls())
        if (begins(name, call.scope) && (!found || call.scope.size() > found->scope.size())) found = &call;
    if (!found) return nullptr;
    for (const Stage &own : caller.stages())
        if ((name == own.name || begins(name, own.name)) && own.name.size() > found->scope.size()) return nullptr;
    return found;
}

bool is_within(const std::string &name, const Call &call, const Algorithm &caller) {
    const Call *around = call_around(caller, name);
    return around && around->scope == call.scope;
}

}  // namespace tessera
