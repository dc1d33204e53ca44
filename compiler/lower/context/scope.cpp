#include "compiler/lower/context/scope.h"

#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera {

using StoredByTensor = std::map<std::string, std::shared_ptr<const Stored>>;

Scope::Scope(const std::vector<Dim> &dims, const std::vector<Parameter> &parameters)
    : facts(dims, parameters), stored_(std::make_shared<const StoredByTensor>()) {}

void Scope::open_loop(const std::string &name, const std::string &variable) {
    open_loops = std::make_shared<const OpenLoop>(OpenLoop{name, variable, open_loops});
}

void Scope::store(const std::string &tensor, Stored stored) {
    auto more = std::make_shared<StoredByTensor>(*stored_);
    (*more)[tensor] = std::make_shared<const Stored>(std::move(stored));
    stored_ = std::move(more);
}

const Stored *Scope::find(const std::string &tensor) const {
    auto it = stored_->find(tensor);
    return it == stored_->end() ? nullptr : it->second.get();
}

const Stored &Scope::at(const std::string &tensor) const {
    const Stored *stored = find(tensor);
    if (!stored) throw InternalError("what is read or written has storage (" + tensor + ")");
    return *stored;
}

// The distance from `origin`. Of a minimum it is the lesser of two distances, in which loop variables cancel.
static Expr relative_to(const Expr &origin, const Expr &index, const Bounds &facts) {
    if (origin.is_constant(0) || !index.is_operation(Op::min)) return simplify(index - origin, facts);
    return simplify(min(simplify(index->args[0] - origin, facts), simplify(index->args[1] - origin, facts)), facts);
}

std::vector<Expr> index_along(const Stored &where, std::vector<Expr> index) {
    if (!where.by_points) return index;
    const std::optional<std::vector<Expr>> point = point_of(*where.by_points, index);
    if (!point)
        throw UserError("schedule.place",
                        where.by_points->name +
                            ": what loads it reads rows of its flat axis, which may be of any segment, and it is placed in a "
                            "loop. Place it at root.");
    return *point;
}

std::vector<Expr> locate(const Stored &where, const std::vector<Expr> &index, const Bounds &facts) {
    std::vector<Expr> axes;
    for (size_t i = 0; i < index.size(); i++) axes.push_back(relative_to(where.origin[i], index[i], facts));
    if (where.layout.empty()) return axes;
    std::map<std::string, Expr> relative;
    for (size_t i = 0; i < index.size(); i++) relative[where.dims[i]] = axes[i];
    axes.clear();
    for (const LayoutAxis &axis : where.layout) {
        Expr e = relative.at(axis.dim);
        if (axis.within) e = simplify(e % Expr(axis.within), facts);
        if (axis.factor) e = simplify(axis.remainder ? e % Expr(axis.factor) : e / Expr(axis.factor), facts);
        axes.push_back(e);
    }
    return axes;
}

}  // namespace tessera
