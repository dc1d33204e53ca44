#include "algorithms/text/shared_text.h"

#include <climits>

namespace tessera {

SharedText::SharedText(const std::vector<Expr> &expressions, int few) {
    std::vector<int> roots;
    for (const Expr &e : expressions)
        if (e.defined()) roots.push_back(table_.number(e));
    for (int n : worth_naming(table_, roots, INT_MAX, few)) {
        Expr definition = compact(table_.expr(n));
        std::string name = std::to_string(definitions_.size());
        definitions_.push_back("$" + name + " = " + to_string(definition));
        compact_.insert_or_assign(n, parameter(name, definition.type()));
    }
}

std::string SharedText::operator()(const Expr &e) { return to_string(compact(e)); }

std::string SharedText::operator()(const std::vector<Expr> &expressions) {
    std::string text;
    for (const Expr &e : expressions) text += (text.empty() ? "" : ", ") + (*this)(e);
    return text;
}

std::string SharedText::finish(const std::string &indent, const std::string &text) const {
    std::string lines = indent + text + "\n";
    for (const std::string &definition : definitions_) lines += indent + "  " + definition + "\n";
    return lines;
}

Expr SharedText::compact(const Expr &e) {
    if (!e.defined()) return e;
    const int n = table_.number(e);
    if (auto known = compact_.find(n); known != compact_.end()) return known->second;
    std::vector<Expr> args;
    bool same = true;
    for (const Expr &arg : e->args) {
        args.push_back(compact(arg));
        same = same && args.back().get() == arg.get();
    }
    return compact_.emplace(n, same ? e : rebuild(e, std::move(args))).first->second;
}

}  // namespace tessera
