// All that cannot be imported, said at once.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tessera::onnx {

// What could not be imported, by its words, so that a thousand nodes of one kind are one line.
struct Refusals {
    struct Line {
        std::string first, remedy;
        int64_t count = 0;
    };
    std::map<std::string, Line> lines;
    std::vector<std::string> order;
    std::set<std::string> unknown;  // values that nothing is known of, since what makes them is refused

    void add(const std::string &why, const std::string &node, const std::string &remedy);
    void report() const;  // UserError onnx.refused where there is any
};

}  // namespace tessera::onnx
