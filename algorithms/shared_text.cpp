#include "algorithms/shared_text.h"

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
        names_[table_.number(definition)] = parameter(name, definition.type());
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
    return rewrite(e, [&](const Expr &rebuilt) {
        auto it = names_.find(table_.number(rebuilt));
        return it == names_.end() ? Expr() : it->second;
    });
}

}  // namespace tessera
