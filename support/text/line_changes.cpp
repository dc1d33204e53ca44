#include "support/text/line_changes.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace tessera {

static std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// A table of longest common subsequences has so many entries at most; longer texts are replaced as a whole.
static constexpr size_t max_table = size_t{1} << 24;

std::string line_changes(const std::string &before, const std::string &after) {
    if (before == after) return "";
    const std::vector<std::string> a = lines_of(before), b = lines_of(after);
    const bool compares = (a.size() + 1) * (b.size() + 1) <= max_table;
    // longest[i][j]: how many lines a[i…] and b[j…] have in common, in order.
    std::vector<std::vector<size_t>> longest;
    if (compares) longest.assign(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = compares ? a.size() : 0; i-- > 0;)
        for (size_t j = b.size(); j-- > 0;)
            longest[i][j] = a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    std::string changes;
    bool leaves_out = false;
    auto add = [&](const char *sign, const std::string &line) {
        if (std::exchange(leaves_out, false)) changes += "  …\n";
        changes += sign + line + "\n";
    };
    size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (compares && i < a.size() && j < b.size() && a[i] == b[j]) {
            leaves_out = true, i++, j++;
        } else if (i < a.size() && (!compares || j == b.size() || longest[i + 1][j] >= longest[i][j + 1])) {
            add("- ", a[i++]);
        } else {
            add("+ ", b[j++]);
        }
    }
    if (leaves_out) changes += "  …\n";
    return changes;
}

}  // namespace tessera
