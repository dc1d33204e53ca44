// Values of a caller as inputs of a callee, whose extents are symbols of its own: a part of a graph (outline.h), the body of a loop.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "algorithms/import/onnx/context.h"

namespace tessera::onnx {

// Symbols of a callee while it is found out which of them must be one, and which are numbers.
struct Symbols {
    std::map<std::string, std::string> same_as;
    std::set<std::string> fixed;

    std::string root(std::string name) const;
    void learn(const Space::Unify &unify);
    void learn(const Space::Fix &fix);
};

class Inward {
public:
    // `keeps_numbers`: an extent that is a number in the caller is one here. Else it is a symbol until something needs the number.
    Inward(Space &space, const Space &caller, const Symbols &symbols, bool keeps_numbers);

    // A caller's extent in the callee. Each axis asks once, in one order whatever is known.
    Expr extent_of(const Expr &in_caller);
    // A tile as an input called `tensor`, its dims in the order of the caller's tile; a constant stays one. Nothing where it is neither,
    // or has dims that are none of its axes'.
    std::optional<Value> input(const Value &from, const std::string &tensor);

private:
    Space &space_;
    const Space &caller_;
    const Symbols &symbols_;
    const bool keeps_numbers_;
    std::map<std::string, Expr> by_root_;
    int next_ = 0;
};

// What `make` gives of symbols, tried again with what each try learns. Nothing after 64 tries.
template <class Make>
auto with_symbols(Make make) -> std::optional<decltype(make(std::declval<const Symbols &>()))> {
    Symbols symbols;
    for (int tries = 0; tries < 64; tries++) {
        try {
            return make(symbols);
        } catch (const Space::Unify &u) { symbols.learn(u); } catch (const Space::Fix &f) {
            symbols.learn(f);
        }
    }
    return std::nullopt;
}

// The callee's dims as dims of the caller, each bound to one of its own that has the same extent.
class Binding {
public:
    Binding(Space &caller, const Algorithm &callee, const Space::Meaning &meaning, std::set<std::string> taken = {})
        : caller_(caller), callee_(callee), meaning_(meaning), taken_(std::move(taken)) {}

    std::string operator()(const std::string &dim);
    // The tile over the bound dims of one of the callee's tensors; its dims from `leading` on are theirs, those before stay.
    Tile argument(const Tile &tile, const std::string &tensor, size_t leading = 0);
    // A constant that the callee takes as an input.
    Tile weight(const Weight &weight, const std::string &tensor);
    // A result of the call as the value that it is in the callee, in the caller's canonical dims; `leading` dims in front stay.
    Value result(const Value &in_callee, const Tile &tile, size_t leading = 0);

private:
    Space &caller_;
    const Algorithm &callee_;
    const Space::Meaning &meaning_;
    std::set<std::string> taken_;
    std::map<std::string, std::string> bound_;
};

}  // namespace tessera::onnx
