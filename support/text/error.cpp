#include "support/text/error.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/text/printable.h"
#include "support/text/shortened.h"

namespace tessera {

UserError::UserError(std::string id, const std::string &message)
    : std::runtime_error("error[" + id + "]: " + shortened(printable(message, true))), id_(std::move(id)) {}

std::string UserError::message() const { return std::string(what()).substr(id_.size() + std::string_view("error[]: ").size()); }

InternalError::InternalError(const std::string &message)
    : std::logic_error("internal error: " + message + " (this is a bug in Tessera; please report it)") {}

void broken(std::string_view what) { throw InternalError(std::string(what)); }

void exhausted(const std::string &what, int error) {
    throw UserError("machine.exhausted",
                    what + ": expected room for one more process or open file; " + std::strerror(error) +
                        ". Let less run at a time (--jobs, fewer --runner), or raise the limits (ulimit -n, ulimit -u).");
}

static size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); j++) {
            size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string did_you_mean(std::string_view got, const std::vector<std::string> &candidates) {
    const std::string *best = nullptr;
    size_t least = std::max<size_t>(1, got.size() / 3) + 1;
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
