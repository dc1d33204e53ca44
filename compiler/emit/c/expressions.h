// Expressions of a run of straight-line stores as C: what several of them use is computed once and has a name, what one
// of them uses stands where it is used.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <variant>

#include "compiler/emit/c/names.h"
#include "compiler/emit/c/operations.h"
#include "compiler/tile/tile_program.h"

namespace tessera::emit_c {

// A buffer as C sees it. Named storage has one variable for each `lanes` elements (0: for each element); other buffers
// have a pointer or an array.
struct Place {
    Buffer buffer;
    bool named = false;
    int lanes = 0;
    bool strided = false;  // by the run-time strides of an argument
    bool written = false;  // an argument that is
};

// What a name of the program is in the function that is being written.
struct Scope {
    std::function<std::string(const std::string &variable)> variable;
    std::function<std::string(const std::string &dim)> extent;
    std::function<std::string(const std::string &parameter)> parameter;
    std::function<std::string(const std::string &buffer, size_t axis)> stride;
    std::function<const Place &(const std::string &buffer)> place;
    std::function<std::string(const std::string &buffer)> pointer;
    std::function<std::string(const std::string &buffer, int64_t slot)> slot;  // of named storage
};

// The lanes of a vector loop.
struct Lanes {
    std::string variable;
    int count = 0;
};

// Precedences of C, lowest binds closest.
enum { primary, prefix, product, sum, relation, conditional };

// Sums and products of positions without those of 0 and 1.
Expr plus(const Expr &a, const Expr &b);
Expr minus(const Expr &a, const Expr &b);
Expr times(const Expr &a, const Expr &b);

// A constant as C writes it.
std::string literal(const Scalar &value);

class Run {
public:
    Run(Operations &operations, const Scope &scope, Identifiers &identifiers)
        : operations_(operations), scope_(scope), identifiers_(identifiers) {}

    // buffer[index…] = value where guard. Everything is in terms of what stays a variable in C.
    void store(const std::string &buffer, const std::vector<Expr> &index, const Expr &value, const Expr &guard,
               const std::optional<Lanes> &lanes);
    // Asks for the cache line of buffer[index…].
    void prefetch(const std::string &buffer, const std::vector<Expr> &index);
    // The last line of text() is this expression by itself.
    void scalar(const Expr &e);
    bool empty() const { return statements_.empty(); }

    // The statements, one a line without indentation. The identifiers that it takes are added to `taken`.
    std::vector<std::string> text(std::vector<std::string> &taken);

private:
    struct Piece {
        std::string text;                   // or an operand:
        int term = -1, max_precedence = 0;  // above which it needs parentheses
    };
    struct Term {
        CType type;
        std::vector<Piece> pieces;
        int precedence = 0;
        bool cheap = false;  // never worth a name
        std::string hint;
        int uses = 0;
        std::string name;
    };
    struct Value {
        int term = -1;
        CType type;
        int lanes() const { return type.lanes; }
    };
    struct Linear {
        Expr base, step;  // base + lane * step
    };

    Operations &operations_;
    const Scope &scope_;
    Identifiers &identifiers_;
    std::vector<Term> terms_;
    std::unordered_map<std::string, int> known_;
    std::map<std::string, int> versions_;
    std::vector<std::vector<Piece>> statements_;
    std::optional<Lanes> lanes_;
    Value context_;                                             // loads happen only where it holds; no term: everywhere
    std::map<std::pair<const Expr::Node *, int>, Value> done_;  // under each context
    std::vector<Expr> kept_;

    Value make(CType type, std::vector<Piece> pieces, int precedence, bool cheap = false, const std::string &hint = "",
               const std::string &key = "");
    Value leaf(CType type, const std::string &text, int precedence = 0);
    Value call(CType type, const std::string &function, const std::vector<Value> &arguments, const std::string &hint = "");
    Value infix(CType type, const Value &a, const std::string &sign, const Value &b, int precedence, int left, int right);
    Value emit(const Expr &e);
    Value emit_node(const Expr &e);
    Value emit_constant(const Scalar &s);
    Value emit_load(const Expr &e);
    Value emit_operation(const Expr &e);
    Value emit_cast(const Expr &e);
    std::optional<Value> grouped(const Expr &e);
    std::optional<Value> words_of(const std::vector<Expr> &elements);
    Value compare(Op op, const Expr &a, const Expr &b);
    Value widened(const Value &v, int lanes);
    Value negated(const Value &v);
    Value both(const Value &a, const Value &b);  // of conditions
    bool varies(const Expr &e) const { return lanes_ && uses_variable(e, lanes_->variable); }
    std::optional<Linear> linear(const Expr &e) const;
    Expr flat(const Place &place, const std::string &buffer, const std::vector<Expr> &index) const;
    std::vector<Piece> access(const Expr &position, const std::string &buffer, std::string &how);
    Piece operand(const Value &v, int max_precedence = 99) const { return {"", v.term, max_precedence}; }
    std::string render(int term, std::vector<std::string> &lines, std::vector<std::string> &taken);
    std::string render(const std::vector<Piece> &pieces, std::vector<std::string> &lines, std::vector<std::string> &taken);
};

}  // namespace tessera::emit_c
