#include <algorithm>

#include "autotune/space/sketch.h"
#include "compiler/instructions/families.h"

namespace tessera {

// How many points of a fold or a scan are written out one after the other, its register tile in each of them.
void Sketch::ask_unrolled(const PlannedStage &s, const Tiles &t, Knobs &k) {
    constexpr int64_t max_statements = 128;
    std::vector<std::string> dims = s.view.reduced;
    if (!s.view.scanned.empty()) dims.push_back(s.view.scanned);
    int64_t statements = 1;
    for (const auto &[d, extent] : k.micro) statements *= extent;
    if (k.micro.count(t.vector)) statements /= t.lanes;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
        if (runs_over_pieces(*d)) continue;
        int64_t points = k.k.count(*d) ? k.k.at(*d) : *d == s.view.scanned ? s.sizes.at(*d) : plan_->extent(*d);
        if (*d == t.group) points /= find_family(*k.instruction)->shape.k;
        std::vector<Answer> answers = {{"1", 1}};
        auto add = [&](int64_t several, double prior) {
            if (several > points || several * statements > max_statements) return;
            answers.push_back({std::to_string(several), points % several == 0 ? prior : 0.3 * prior});
        };
        for (int64_t several : {2, 4, 8}) {
            if (points < several && points > several / 2) add(points, 0.1);  // all of a short dim
            add(several, several == 8 ? 0.03 : 0.1);
        }
        const int64_t unrolled = std::stoll(ask(s.view.stage->name, "unroll." + *d, answers, true));
        if (unrolled > 1) k.unroll[*d] = unrolled;
        statements *= unrolled;
    }
}

// What the last tile of a dim does, where it may be a part of one: compute all of it and store what there is, go point by point, or compute
// a smaller register tile.
void Sketch::ask_tails(const PlannedStage &s, const Tiles &t, Knobs &k) {
    for (const std::string &d : s.view.pure) {
        const int64_t unit = k.micro.count(d) ? k.micro.at(d) : d == t.vector ? t.lanes : 1;
        const Dim *dim = plan_->algorithm().find_dim(d);
        const bool is_any = dim && dim->kind != DimKind::fixed && dim->multiple_of % unit != 0;
        if (unit == 1 || (!is_any && plan_->extent(d) % unit == 0 && s.sizes.at(d) % unit == 0)) continue;
        std::vector<Answer> answers = {{name_of(Tail::mask), 1}};
        if (!t.fragments) answers.push_back({name_of(Tail::loop), 0.1});
        // Rows of fragments beyond the last are read from where they lie.
        const bool of_rows = t.fragments && d != t.vector;
        if (of_rows || (k.micro.count(d) && unit > (d == t.vector ? t.lanes : 1)))
            answers.push_back({name_of(Tail::narrow), of_rows ? 2 : 0.5});
        const std::string policy = ask(s.view.stage->name, "tail." + d, answers);
        for (Tail tail : {Tail::loop, Tail::narrow})
            if (policy == name_of(tail)) k.tail[d] = tail;
    }
}

}  // namespace tessera
