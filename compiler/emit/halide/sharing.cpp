#include "compiler/emit/halide/sharing.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tessera::emit {

using namespace Halide::Internal;
namespace H = Halide;
using HExpr = Halide::Expr;

namespace {

struct Use {
    int64_t times = 0;  // in other nodes
    int64_t size = 1;   // in nodes, as a tree
};
using Uses = std::map<const IRNode *, Use>;

class CountUses : public IRGraphVisitor {
public:
    Uses uses;
    void run(const HExpr &e) { include(e); }

private:
    static constexpr int64_t countless = int64_t{1} << 40;
    int64_t within = 0;  // the sizes of the operands seen so far of the node around

    void include(const HExpr &e) override {
        Use &use = uses[e.get()];
        if (use.times++ == 0) {
            const int64_t outer = within;
            within = 0;
            e.accept(this);
            use.size += within;
            within = outer;
        }
        within = std::min(countless, within + use.size);
    }
};

class NameShared : public IRGraphMutator {
public:
    explicit NameShared(const Uses &u) : uses(u) {}
    using IRGraphMutator::mutate;

    HExpr run(const HExpr &e) {
        HExpr result = mutate(e);
        for (size_t i = lets.size(); i-- > 0;) result = Halide::Internal::Let::make(lets[i].first, lets[i].second, result);
        return result;
    }

    HExpr mutate(const HExpr &e) override {
        if (!deserves_name(e)) return IRGraphMutator::mutate(e);
        auto it = named.find(e.get());
        if (it != named.end()) return it->second;
        const HExpr value = IRGraphMutator::mutate(e);
        lets.emplace_back(unique_name("shared"), value);
        return named[e.get()] = Variable::make(e.type(), lets.back().first);
    }

private:
    static constexpr int64_t large = 100;
    const Uses &uses;
    std::map<const IRNode *, HExpr> named;
    std::vector<std::pair<std::string, HExpr>> lets;

    bool deserves_name(const HExpr &e) const {
        const Use &use = uses.at(e.get());
        if (use.times < 2 || use.size < 2 || e.type().is_handle()) return false;
        return use.size > large || !(e.type() == H::Int(32) || e.type().is_bool());
    }
};

}  // namespace

HExpr name_shared(const HExpr &e) {
    CountUses counted;
    counted.run(e);
    return NameShared(counted.uses).run(e);
}

}  // namespace tessera::emit
