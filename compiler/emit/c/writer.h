// The C function that is being written, inside those that it is a task of: its lines, the identifiers in scope, and what it
// takes from the frame and from the functions around it.
#pragma once
#include "compiler/emit/c/expressions.h"
#include "compiler/tile/tile_program.h"

namespace tessera::emit_c {

// A variable or a pointer, and the function it is declared in.
struct Local {
    std::string identifier, type;
    size_t function = 0;
};

class Writer {
public:
    Writer(const TileProgram &program, const std::string &stem, Operations &operations);

    // Between begin and finish, lines go to the new function. A task is written while the function that starts it is.
    void begin();
    void begin_task();
    struct Finished {
        std::string text;                             // the whole function
        std::map<std::string, std::string> captured;  // by identifier, the type of what a task takes from around it
    };
    // `head` ends where the brace follows. A task has a closure of type <head's name>_closure.
    Finished finish(const std::string &head, const std::string &task = "");
    bool in_task() const { return functions_.size() > 1; }

    void line(const std::string &text);
    void open(const std::string &text) { line(text), functions_.back().depth++; }
    void indent() { functions_.back().depth++; }
    void close(const std::string &text = "}") { functions_.back().depth--, line(text); }

    // What it needs at its head.
    void use_call() { functions_.back().call = true; }
    void use_workspace(bool of_worker);
    std::string bound();  // the lines that bind words of the frame, so far

    Operations &operations() { return operations_; }
    const std::vector<int64_t> &spec() const { return spec_; }
    std::string extent(const std::string &dim);
    std::string pointer(const std::string &buffer);
    DType dtype(const std::string &buffer) const { return scope_.place(buffer).buffer.dtype; }
    // How many elements lie between neighbours along an axis.
    std::string distance(const std::string &buffer, size_t axis);
    Run run() { return Run(operations_, scope_, functions_.back().identifiers); }
    void write(Run &run);               // its lines
    std::string scalar(const Expr &e);  // an expression, after the lines that it needs

    // Declarations last until the block ends.
    class Block {
    public:
        explicit Block(Writer &writer);
        ~Block();
        Block(const Block &) = delete;
        Block &operator=(const Block &) = delete;

    private:
        Writer &writer_;
        std::vector<std::string> outer_;
        std::map<std::string, Local> variables_, pointers_;
        std::map<std::string, Place> places_;
    };
    std::string take(const std::string &name);  // an identifier
    std::string declare_variable(const std::string &name, const std::string &type);
    std::string declare_pointer(const Buffer &buffer);
    void declare_named(const Buffer &buffer, int lanes, std::vector<std::string> slots);

private:
    struct Function {
        std::string lines;
        int depth = 1;
        Identifiers identifiers;
        std::map<int64_t, std::string> frame;         // by slot: the line that binds it
        std::map<std::string, std::string> captured;  // by identifier: its type
        bool call = false, layout = false, shared_memory = false, worker_memory = false;
    };

    const TileProgram &program_;
    const std::string stem_;
    Operations &operations_;
    const std::vector<int64_t> spec_;
    Scope scope_;
    std::vector<Function> functions_;
    Identifiers arguments_;
    std::vector<std::string> argument_names_;
    std::map<std::string, std::string> frame_names_;
    std::set<std::string> frame_taken_;
    std::map<std::string, Local> variables_, pointers_;
    std::map<std::string, Place> places_;
    std::map<std::string, std::vector<std::string>> slots_;
    std::vector<std::string> kept_;  // identifiers that the open block took

    std::string frame_name(const std::string &prefix, const std::string &name);
    std::string parameter(const std::string &name);
    std::string stride(const std::string &buffer, size_t axis);
    size_t argument(const std::string &name) const;
    std::string reach(const std::map<std::string, Local> &table, const std::string &name);
};

}  // namespace tessera::emit_c
