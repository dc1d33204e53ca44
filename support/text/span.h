// Where somebody wrote what an error is about: a line of C++ or of Python. It is for people alone: no hash, no file that Tessera writes
// and no comparison has it.
#pragma once
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

namespace tessera {

struct Span {
    const char *file = "";  // as the compiler or the interpreter names it; lives as long as the program
    uint32_t line = 0;      // from 1; 0: nobody knows

    Span() = default;
    // So that a function says `Span where = std::source_location::current()`: the line that calls it.
    Span(const std::source_location &at) : file(at.file_name()), line(at.line()) {}
    // A line of another language. The name is copied and kept.
    Span(std::string_view file_name, uint32_t line_number);

    explicit operator bool() const { return line > 0; }
    std::string file_name() const;  // without its folders, so that no path of a machine is shown
    std::string text() const;       // "linear.cpp:9"; "" where nobody knows
    friend bool operator==(const Span &a, const Span &b) {
        return a.line == b.line && std::string_view(a.file) == std::string_view(b.file);
    }
};

// As long as it lives, what this thread declares and what it throws (UserError) stands at the span, whatever functions say of their
// callers. A face in another language holds one around each call. Scopes nest: the inner one counts.
class SpanScope {
public:
    explicit SpanScope(const Span &span);
    // For a function that takes `where`: the same, unless an outer scope lives. So the line is that of whoever called the outermost one.
    static SpanScope entered(const Span &where);
    ~SpanScope();
    SpanScope(const SpanScope &) = delete;
    SpanScope &operator=(const SpanScope &) = delete;

    static const Span &current();  // of this thread; none where no scope lives

private:
    Span before_;
};

}  // namespace tessera
