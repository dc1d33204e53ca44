#include "algorithms/build/chirp.h"

#include "algorithms/build/butterfly.h"

namespace tessera {

namespace {

using Numbers = std::vector<std::complex<double>>;

// What is left of n without factors 2, 3 and 5, and how many passes take those away: eights count as one.
struct Factors {
    int64_t rest;
    double passes = 0;
};

Factors factors_of(int64_t n) {
    Factors f{n};
    for (const auto &[prime, passes] : {std::pair<int64_t, double>{2, 1.0 / 3}, {3, 1.0}, {5, 1.0}})
        for (; f.rest % prime == 0; f.rest /= prime) f.passes += passes;
    return f;
}

// The transform of x[first + i * step], i < n, where roots[i] = exp(-2 pi i / roots.size() * i).
Numbers transformed(const Numbers &x, size_t first, size_t step, size_t n, const Numbers &roots) {
    if (n == 1) return {x[first]};
    const size_t radix = n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 5, part = n / radix, turn = roots.size() / n;
    std::vector<Numbers> parts;
    for (size_t r = 0; r < radix; r++) parts.push_back(transformed(x, first + r * step, step * radix, part, roots));
    Numbers y(n);
    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < radix; r++) y[k] += parts[r][k % part] * roots[r * k % n * turn];
    return y;
}

}  // namespace

bool is_smooth(int64_t n) { return n >= 1 && factors_of(n).rest == 1; }

int64_t convolution_points(int64_t n) {
    int64_t best = 1;
    while (best < 2 * n - 1) best *= 2;
    const auto cost = [](int64_t m) { return static_cast<double>(m) * (1 + factors_of(m).passes); };
    for (int64_t m = best - 1; m >= 2 * n - 1; m--)
        if (is_smooth(m) && cost(m) < cost(best)) best = m;
    return best;
}

std::vector<std::complex<double>> chirp(int64_t n) {
    Numbers w;
    for (int64_t j = 0; j < n; j++) {
        const Turn t = turn(j * j % (2 * n), 2 * n);
        w.emplace_back(t.cosine, t.sine);
    }
    return w;
}

std::vector<std::complex<double>> chirp_spectrum(int64_t n, int64_t m) {
    const Numbers w = chirp(n);
    Numbers circle(static_cast<size_t>(m)), roots;
    for (size_t l = 0; l < w.size(); l++) circle[l] = circle[(circle.size() - l) % circle.size()] = w[l] / static_cast<double>(m);
    for (int64_t i = 0; i < m; i++) {
        const Turn t = turn(i, m);
        roots.emplace_back(t.cosine, -t.sine);
    }
    return transformed(circle, 0, 1, circle.size(), roots);
}

}  // namespace tessera
