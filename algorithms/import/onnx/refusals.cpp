#include "algorithms/import/onnx/refusals.h"

#include "support/text/error.h"

namespace tessera::onnx {

void Refusals::add(const std::string &why, const std::string &node, const std::string &remedy) {
    Line &line = lines[why];
    if (line.count++ == 0) line.first = node, line.remedy = remedy, order.push_back(why);
}

void Refusals::report() const {
    if (order.empty()) return;
    std::string text = "the model has what Tessera cannot import:";
    for (const std::string &why : order) {
        const Line &line = lines.at(why);
        text += "\n  " + why + (why.ends_with('.') ? "" : ":") + " " + line.first +
                (line.count > 1 ? " and " + std::to_string(line.count - 1) + " more" : "") + ". " + line.remedy;
    }
    throw UserError("onnx.refused", text);
}

}  // namespace tessera::onnx
