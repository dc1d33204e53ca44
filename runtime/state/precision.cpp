#include "runtime/state/precision.h"

#include <cmath>

#include "runtime/state/refusal.h"

using tessera::state::refuse;

namespace {

constexpr int32_t lowest = -126, highest = 126;  // normal numbers of f32, and so are their reciprocals
constexpr int64_t longest_stay = INT64_C(1) << 40;

bool fits(const TessPrecisionConfig &config, const TessPrecision &p, double largest) {
    return std::isfinite(largest) && std::ldexp(largest, static_cast<int>(p.exponent)) <= config.range;
}

// Halves the scale, if it may be halved.
void shrink(const TessPrecisionConfig &config, TessPrecision &p) {
    if (p.exponent > config.least) p.exponent--;
    p.clean = 0;
}

void step_narrow(const TessPrecisionConfig &config, TessPrecision &p, bool overflows) {
    if (overflows) {
        shrink(config, p);
        if (++p.overflows < config.patience) return;
        p.is_wide = 1, p.overflows = 0;
    } else if (++p.clean >= config.grow) {
        if (p.exponent < config.most) p.exponent++;
        p.clean = 0, p.overflows = 0, p.stay = config.stay;
    }
}

void step_wide(const TessPrecisionConfig &config, TessPrecision &p, double largest) {
    if (!fits(config, p, largest)) return shrink(config, p);
    if (++p.clean < p.stay) return;
    p.is_wide = 0, p.clean = 0;
    if (p.stay < longest_stay) p.stay *= 2;
}

}  // namespace

TessPrecisionConfig tess_precision_config(void) { return {sizeof(TessPrecisionConfig), INFINITY, 16, 0, 24, 4, 1000, 100}; }

TessStateStatus tess_precision_start(const TessPrecisionConfig *config, TessPrecision *precision, TessStateError *error) {
    if (!config || !precision) return refuse(error, TESS_STATE_ARGUMENT, "precision: the %s is null.", config ? "result" : "config");
    const TessPrecisionConfig &c = *config;
    if (c.size != sizeof c)
        return refuse(error, TESS_STATE_ARGUMENT, "precision: size: expected %d, got %lld. Begin with tess_precision_config().",
                      static_cast<int>(sizeof c), static_cast<long long>(c.size));
    if (c.least < lowest || c.least > c.first || c.first > c.most || c.most > highest)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "precision: exponents of scales: expected %d <= least <= first <= most <= %d, got %d, %d and %d.", lowest, highest,
                      c.least, c.first, c.most);
    if (c.patience < 1 || c.grow < 1 || c.stay < 1 || c.stay > longest_stay)
        return refuse(error, TESS_STATE_ARGUMENT,
                      "precision: patience, grow and stay: expected numbers of at least 1, stay at most %lld, got %d, %lld and %lld.",
                      static_cast<long long>(longest_stay), c.patience, static_cast<long long>(c.grow), static_cast<long long>(c.stay));
    if (!(c.range > 0))
        return refuse(error, TESS_STATE_ARGUMENT, "precision: range: expected the largest number of the narrow type, got %g.", c.range);
    *precision = {c.first, 0, 0, 0, c.stay, 0, 0};
    return TESS_STATE_OK;
}

TessStateStatus tess_precision_check(const TessPrecisionConfig *config, const TessPrecision *precision, TessStateError *error) {
    const TessPrecision &p = *precision;
    const struct {
        const char *name;
        int64_t value, from, to;
    } fields[] = {{"exponent", p.exponent, config->least, config->most},
                  {"is_wide", p.is_wide, 0, 1},
                  {"clean", p.clean, 0, INT64_MAX},
                  {"overflows", p.overflows, 0, INT64_MAX},
                  {"stay", p.stay, 1, longest_stay},
                  {"updates", p.updates, 0, INT64_MAX},
                  {"skipped", p.skipped, 0, INT64_MAX}};
    for (const auto &f : fields)
        if (f.value < f.from || f.value > f.to)
            return refuse(error, TESS_STATE_ARGUMENT,
                          "precision: field '%s' of its state: expected %lld to %lld, got %lld. Load what a step of this config left.",
                          f.name, static_cast<long long>(f.from), static_cast<long long>(f.to), static_cast<long long>(f.value));
    return TESS_STATE_OK;
}

double tess_precision_scale(const TessPrecision *p) { return p->is_wide ? 1 : std::ldexp(1, static_cast<int>(p->exponent)); }

int32_t tess_precision_step(const TessPrecisionConfig *config, TessPrecision *precision, double largest) {
    TessPrecision &p = *precision;
    const bool counts = std::isfinite(largest);
    if (p.is_wide) step_wide(*config, p, largest);
    else step_narrow(*config, p, !counts);
    counts ? p.updates++ : p.skipped++;
    return counts;
}
