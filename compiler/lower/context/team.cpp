#include "compiler/lower/context/team.h"

#include "compiler/lower/context/built.h"
#include "support/text/error.h"

namespace tessera {

int64_t Team::of(const std::string &dim) const {
    for (auto &[d, n] : along)
        if (d == dim) return n;
    return 1;
}

Team team_of(const Cursor &at) {
    Team team;
    if (is_by_warps(at.nest->step)) team.kind = LoopKind::warp;
    const Extents &parts = at.nest->knobs.micro;
    for (const std::string &d : tile_dims(at)) {
        const Expr &size = at.pieces.at(d).size;
        require(size.is_constant(), "a tile of a block has constant extents (" + at.stage().name + "." + d + ")");
        int64_t micro = parts.count(d) ? parts.at(d) : 1;
        if (size->value.integer % micro)
            throw UserError("schedule.threads", at.stage().name + ": a tile of " + std::to_string(size->value.integer) + " along " + d +
                                                    " is not made of whole parts of " + std::to_string(micro) +
                                                    ", one for each thread; use levels, micro and vector that divide one another.");
        int64_t n = size->value.integer / micro;
        if (n == 1) continue;
        team.along.emplace_back(d, n);
        team.threads *= n;
    }
    return team;
}

void name_threads(Team &team, const Lowering &lowering, Scope &scope, Names &names) {
    team.thread = names.unique(name_of(team.kind));
    scope.facts.set(team.thread, Expr(0), Expr(team.threads - 1));
    for (size_t i = 0; i < team.along.size(); i++) {
        auto &[d, n] = team.along[i];
        team.digits[d] = variable(team.along.size() == 1 ? team.thread : names.unique(team.thread + "." + lowering.plain(d)));
        scope.facts.set(team.digits[d]->name, Expr(0), Expr(n - 1));
        team.rests.push_back(i == 0                       ? team.thread
                             : i + 1 == team.along.size() ? team.digits[d]->name
                                                          : names.unique(team.thread + ".rest"));
    }
}

TileBody by_threads(const Team &team, TileBody body) {
    int64_t below = 1;
    for (size_t i = team.along.size(); i-- > 1;) {
        below *= team.along[i].second;
        Expr rest = variable(team.rests[i - 1]);
        body = in_let(team.rests[i], rest % Expr(below), std::move(body));
        body = in_let(team.digits.at(team.along[i - 1].first)->name, rest / Expr(below), std::move(body));
    }
    return in_loop(team.thread, Expr(team.threads), team.kind, std::move(body));
}

}  // namespace tessera
