#include "compiler/emit/c/storage.h"

#include <bit>
#include <set>

#include "compiler/tile/fragments.h"
#include "compiler/tile/kinds.h"
#include "support/containers/contains.h"

namespace tessera::emit_c {

static bool straight(const TileBody &body) {
    for (const auto &node : body) {
        if (store_of(*node)) continue;
        const Loop *loop = std::get_if<Loop>(node.get());
        if (!loop || loop->kind != LoopKind::unrolled || !written_out(*loop) || !straight(loop->body)) return false;
    }
    return true;
}

bool in_vectors(const Loop &loop) {
    if (loop.kind != LoopKind::vector || !loop.count.is_constant()) return false;
    const int64_t n = loop.count->value.integer;
    return n >= 2 && n <= 64 && std::has_single_bit(static_cast<uint64_t>(n)) && straight(loop.body);
}

std::optional<int64_t> written_out(const Loop &loop) {
    if (loop.kind != LoopKind::unrolled || !loop.count.is_constant()) return {};
    return loop.count->value.integer;
}

namespace {

// constant + sum of variable * coefficient
struct Affine {
    int64_t constant = 0;
    std::map<std::string, int64_t> coefficients;
};

std::optional<Affine> affine(const Expr &e) {
    if (e.is_constant()) return Affine{e->value.integer, {}};
    if (e.kind() == ExprKind::variable) return Affine{0, {{e->name, 1}}};
    if (e.kind() != ExprKind::operation || (e->op != Op::add && e->op != Op::sub && e->op != Op::mul)) return {};
    auto a = affine(e->args[0]), b = affine(e->args[1]);
    if (!a || !b) return {};
    if (e->op == Op::mul) {
        if (!a->coefficients.empty()) std::swap(a, b);
        if (!a->coefficients.empty()) return {};
        for (auto &[name, c] : b->coefficients) c *= a->constant;
        b->constant *= a->constant;
        return b;
    }
    const int64_t sign = e->op == Op::add ? 1 : -1;
    a->constant += sign * b->constant;
    for (const auto &[name, c] : b->coefficients) a->coefficients[name] += sign * c;
    return a;
}

class Uses {
public:
    Uses(const Buffer &buffer, const std::map<std::string, Expr> &known) : buffer_(buffer), known_(known) {}

    std::optional<int> lanes(const TileBody &body) {
        count_ = 1;
        for (const Expr &e : buffer_.extents) {
            if (!e.is_constant()) return {};
            count_ *= e->value.integer;
        }
        visit(body);
        if (!all_named_ || (lanes_ > 0 && count_ % lanes_)) return {};
        return std::max(lanes_, 0);
    }

private:
    const Buffer &buffer_;
    const std::map<std::string, Expr> &known_;
    int64_t count_ = 1;
    int lanes_ = -1;  // of the uses so far
    bool all_named_ = true;
    std::set<std::string> unrolled_;
    const Loop *vector_ = nullptr;
    bool in_task_ = false;

    void visit(const TileBody &body) {
        for (const auto &node : body) visit(*node);
    }

    void visit(const TileNode &node) {
        for (const Expr &e : expressions_of(node))
            walk(e, [&](const Expr &n) {
                if (n.kind() != ExprKind::load || n->name != buffer_.name) return;
                use(std::vector<Expr>(n->args.begin(), n->args.begin() + static_cast<std::ptrdiff_t>(buffer_.extents.size())));
            });
        if (auto store = store_of(node); store && store->buffer == buffer_.name) use(store->index);
        if (auto *move = std::get_if<Move>(&node); move && contains(buffers_of(*move), buffer_.name)) all_named_ = false;
        const Loop *loop = std::get_if<Loop>(&node);
        const auto unrolled = unrolled_;
        const Loop *vector = vector_;
        const bool in_task = in_task_;
        if (loop && written_out(*loop)) unrolled_.insert(loop->variable);
        if (loop && in_vectors(*loop)) vector_ = loop;
        if (loop && loop->kind == LoopKind::parallel) in_task_ = true;
        for (const TileBody *inner : bodies_of(node)) visit(*inner);
        unrolled_ = unrolled, vector_ = vector, in_task_ = in_task;
    }

    void use(const std::vector<Expr> &index) {
        Expr position = 0;
        for (size_t i = 0; i < index.size(); i++) position = (i ? position * buffer_.extents[i] : position) + index[i];
        const auto at = affine(known_.empty() ? position : substitute(position, known_));
        int lanes = 0;
        if (in_task_ || !at) return void(all_named_ = false);
        for (const auto &[name, c] : at->coefficients) {
            if (c == 0 || unrolled_.count(name)) continue;
            if (!vector_ || name != vector_->variable || c != 1) return void(all_named_ = false);
            lanes = static_cast<int>(vector_->count->value.integer);
        }
        if (lanes) {
            if (at->constant % lanes) all_named_ = false;
            for (const auto &[name, c] : at->coefficients)
                if (name != vector_->variable && c % lanes) all_named_ = false;
        }
        if (lanes_ >= 0 && lanes_ != lanes) all_named_ = false;
        lanes_ = lanes;
    }
};

}  // namespace

std::optional<int> named_lanes(const Buffer &buffer, const TileBody &body, const std::map<std::string, Expr> &known) {
    if (!traits_of(buffer.space).of_thread) return {};
    return Uses(buffer, known).lanes(body);
}

}  // namespace tessera::emit_c
