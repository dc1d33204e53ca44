// The two kinds of error: the user's, which has a stable id and says what to do, and ours.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/text/span.h"

namespace tessera {

// A mistake in what a user handed in. what() is "error[<id>]: <message>"; the message names the subject, what was
// expected, what was found, what there is to choose from, and the remedy. Thrown while a SpanScope lives, what() begins with that line:
// "linear.cpp:9: error[shape.dot]: …".
class UserError : public std::runtime_error {
public:
    UserError(std::string id, const std::string &message);
    // What to do stands behind the message, and is told apart for programs.
    UserError(std::string id, const std::string &message, const std::string &remedy);
    const std::string &id() const { return id_; }
    std::string message() const;  // what() without the line and the id
    std::string words() const;    // what() without the line
    // What the message is about, as all begin with it: "linear.acc" of "linear.acc: it …"; "" where none is told apart.
    std::string subject() const;

    // What programs ask of an error. Each is empty where it is not known.
    const Span &span() const { return span_; }                 // where what it is about is declared
    const std::string &stage() const { return stage_; }        // of which stage or call of an algorithm it speaks: "acc", "ffn.up.acc"
    const std::string &document() const { return document_; }  // a JSON document, as messages call it
    const std::string &pointer() const { return pointer_; }    // the place in it (RFC 6901); "": the whole of it
    // Each says it where nothing is said yet: throw UserError(…).about(stage.name, stage.span).
    UserError &about(const std::string &stage, const Span &declared = {});
    UserError &at(const std::string &document, const std::string &pointer);
    const std::string &remedy() const { return remedy_; }  // what to do: a part of the message
    // what(), and below it where the stage is declared, if that is no part of what() already.
    std::string report() const;

private:
    std::string id_, stage_, document_, pointer_, remedy_;
    Span span_;
    size_t prefix_ = 0;  // bytes of what() that say the line
};

// A broken invariant of Tessera itself. Never the user's fault; what() asks for a report.
class InternalError : public std::logic_error {
public:
    explicit InternalError(const std::string &message);
};

[[noreturn]] void broken(std::string_view what);  // throws InternalError
// Throws UserError machine.exhausted: limits of the machine or of this process leave no room for `what`, such as one more process
// or open file. `error` is errno.
[[noreturn]] void exhausted(const std::string &what, int error);
// Throws InternalError unless `condition` holds.
inline void require(bool condition, std::string_view what) {
    if (!condition) broken(what);
}

// " Did you mean 'K'?" for the candidate nearest to `got` by edit distance, or "" when none is near.
std::string did_you_mean(std::string_view got, const std::vector<std::string> &candidates);

// "M, N, K", or "none" for an empty list.
std::string join(const std::vector<std::string> &names, std::string_view separator = ", ");

}  // namespace tessera
