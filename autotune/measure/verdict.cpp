#include "autotune/measure/verdict.h"

#include <utility>

#include "support/text/error.h"

namespace tessera {

static constexpr std::pair<Verdict, const char *> names[] = {
    {Verdict::unmeasured, "unmeasured"}, {Verdict::measured, "measured"},   {Verdict::slow, "slow"},       {Verdict::refused, "refused"},
    {Verdict::uncompiled, "uncompiled"}, {Verdict::timed_out, "timed out"}, {Verdict::crashed, "crashed"}, {Verdict::wrong, "wrong"}};

const char *name_of(Verdict verdict) {
    for (const auto &[v, name] : names)
        if (v == verdict) return name;
    throw InternalError("every verdict has a name");
}

bool is_timed(Verdict verdict) { return verdict == Verdict::measured || verdict == Verdict::slow; }

Verdict verdict_named(const std::string &name) {
    for (const auto &[v, n] : names)
        if (n == name) return v;
    throw InternalError("there is no verdict '" + name + "'");
}

}  // namespace tessera
