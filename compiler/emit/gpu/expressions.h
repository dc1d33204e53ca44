// Expressions of a tile program in the common part of OpenCL C, CUDA C++ and, for extents, C99.
#pragma once
#include <functional>

#include "algorithms/expr/value_numbering.h"
#include "compiler/emit/gpu/names.h"
#include "compiler/tile/wide_positions.h"
#include "compiler/tile/tile_program.h"

namespace tessera::emit_gpu {

// Types of a value in a register and of an element in memory.
const char *value_type(DType type);
const char *stored_type(DType type);

// The definitions that every kernel file begins with, in one of the two languages.
std::string definitions(bool cuda, bool uses_double);

class Expressions {
public:
    Expressions(const Names &names, Names &temporaries) : names_(names), temporaries_(temporaries) {}

    // How a buffer's element is written; tensors have their own rule for positions.
    std::function<std::string(const std::string &buffer, const std::vector<std::string> &index)> element;
    // Whether an index expression is known not to be negative.
    std::function<bool(const Expr &)> not_negative = [](const Expr &) { return false; };
    bool uses_double = false;
    std::string position_type = "int";
    // Which positions are long; told before anything is written.
    WidePositions widths;

    // One text for each root. Definitions of what several of them use, or one twice, are added to `lines`.
    std::vector<std::string> texts(const std::vector<Expr> &roots, std::vector<std::string> &lines);
    std::string text(const Expr &e, std::vector<std::string> &lines) { return texts({e}, lines)[0]; }

private:
    struct Piece {
        std::string text;
        int precedence = 0;
    };
    const Names &names_;
    Names &temporaries_;
    ValueNumbering table_;
    std::map<int, std::string> named_;

    Piece piece(const Expr &e);
    Piece node(const Expr &e);
    Piece operation(const Expr &e);
    Piece conversion(const Expr &e);
    Piece infix(const Expr &a, const char *sign, const Expr &b, int precedence);
    std::string call(const std::string &function, const std::vector<Expr> &args);
    std::string extended(const Expr &e, int most);  // to long
    std::string inner(const Expr &e, int most);     // with parentheses where it binds less than that
};

}  // namespace tessera::emit_gpu
