#include "support/text/error.h"

#include <algorithm>
#include <cstring>

#include "support/text/printable.h"
#include "support/text/shortened.h"

namespace tessera {

static std::string line_before(const Span &span) { return span ? span.text() + ": " : ""; }

UserError::UserError(std::string id, const std::string &message)
    : std::runtime_error(line_before(SpanScope::current()) + "error[" + id + "]: " + shortened(printable(message, true))),
      id_(std::move(id)),
      span_(SpanScope::current()),
      prefix_(line_before(span_).size()) {}

UserError::UserError(std::string id, const std::string &message, const std::string &remedy)
    : UserError(std::move(id), message + " " + remedy) {
    remedy_ = shortened(printable(remedy, true));
}

std::string UserError::subject() const {
    const std::string all = message();
    const size_t end = all.find(": ");
    return end == std::string::npos ? "" : all.substr(0, end);
}

std::string UserError::words() const { return what() + prefix_; }
std::string UserError::message() const { return words().substr(id_.size() + std::string_view("error[]: ").size()); }

UserError &UserError::about(const std::string &stage, const Span &declared) {
    if (stage_.empty()) stage_ = stage;
    if (!span_) span_ = declared;
    return *this;
}

UserError &UserError::at(const std::string &document, const std::string &pointer) {
    if (document_.empty()) document_ = document, pointer_ = pointer;
    return *this;
}

std::string UserError::report() const {
    const bool is_below = span_ && prefix_ == 0 && !stage_.empty();
    return what() + (is_below ? "\n  '" + printable(stage_) + "' is declared at " + span_.text() + "." : "");
}

InternalError::InternalError(const std::string &message)
    : std::logic_error("internal error: " + message + " (this is a bug in Tessera; please report it)") {}

void broken(std::string_view what) { throw InternalError(std::string(what)); }

void exhausted(const std::string &what, int error) {
    throw UserError("machine.exhausted",
                    what + ": expected room for one more process or open file; " + std::strerror(error) +
                        ". Let less run at a time (--jobs, fewer --runner), or raise the limits (ulimit -n, ulimit -u).");
}

// In halves: a letter in the other case is half an edit, and two that changed places are one (Damerau 1964).
static size_t edit_distance(std::string_view a, std::string_view b) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    for (size_t j = 0; j <= b.size(); j++) row[j] = 2 * j;
    for (size_t i = 1; i <= a.size(); i++) {
        next[0] = 2 * i;
        for (size_t j = 1; j <= b.size(); j++) {
            const size_t change = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
            next[j] = std::min({row[j] + 2, next[j - 1] + 2, row[j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) next[j] = std::min(next[j], before[j - 2] + 2);
        }
        before.swap(row), row.swap(next);
    }
    return row[b.size()];
}

std::string did_you_mean(std::string_view got, const std::vector<std::string> &candidates) {
    const std::string *best = nullptr;
    size_t least = 2 * std::max<size_t>(1, got.size() / 3) + 1;
    for (const std::string &candidate : candidates) {
        size_t distance = edit_distance(got, candidate);
        if (distance < least) best = &candidate, least = distance;
    }
    return best ? " Did you mean '" + *best + "'?" : "";
}

std::string join(const std::vector<std::string> &names, std::string_view separator) {
    if (names.empty()) return "none";
    std::string text;
    for (const std::string &name : names) text += (text.empty() ? "" : std::string(separator)) + name;
    return text;
}

}  // namespace tessera
