// The two kinds of error: the user's, which has a stable id and says what to do, and ours.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// A mistake in what a user handed in. what() is "error[<id>]: <message>"; the message names the subject, what was
// expected, what was found, what there is to choose from, and the remedy.
class UserError : public std::runtime_error {
public:
    UserError(std::string id, const std::string &message);
    const std::string &id() const { return id_; }
    std::string message() const;  // what() without the id

private:
    std::string id_;
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
