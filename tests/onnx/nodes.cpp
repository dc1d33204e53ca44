// ONNX's own tests of operators: each is a model of a node with its inputs and outputs, which collect.py writes into a folder. The model is
// imported, the reference interpreter runs it, and results are compared within ONNX's tolerances.
//
//     onnx_nodes <folder> [<expected file>] [--only <part of a name>]
//
// It prints a line for each test that does not pass. With an expected file, whose lines are "name: reason", it fails if a test that is not
// listed does not pass, or one that is listed does: the list only shrinks.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "algorithms/evaluate/reference.h"
#include "algorithms/import/onnx/import.h"
#include "support/text/error.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path &file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

struct Named {
    std::string name;
    Array array;
};

std::vector<Named> tensors_of(const fs::path &folder, const std::string &kind, const onnx::Model &model) {
    std::vector<Named> all;
    for (int i = 0; fs::exists(folder / (kind + "_" + std::to_string(i) + ".pb")); i++) {
        const std::string content = content_of(folder / (kind + "_" + std::to_string(i) + ".pb"));
        const onnx::TensorData tensor = onnx::read_tensor(content, kind);
        all.push_back({tensor.name, onnx::elements(tensor, model)});
    }
    return all;
}

// "" where they agree.
std::string difference(const Array &got, const Array &wanted, double relative, double absolute) {
    if (got.extents != wanted.extents) {
        std::string text = "shape";
        for (int64_t e : got.extents) text += " " + std::to_string(e);
        text += ", expected";
        for (int64_t e : wanted.extents) text += " " + std::to_string(e);
        return text;
    }
    if (got.dtype != wanted.dtype) return std::string("type ") + name_of(got.dtype) + ", expected " + name_of(wanted.dtype);
    for (int64_t i = 0; i < got.size(); i++) {
        const Scalar a = got.get(i), b = wanted.get(i);
        bool same = a.integer == b.integer;
        if (is_float(got.dtype))
            same = (std::isnan(a.real) && std::isnan(b.real)) || a.real == b.real ||
                   std::abs(a.real - b.real) <= absolute + relative * std::abs(b.real);
        if (!same)
            return "element " + std::to_string(i) + " is " + std::to_string(is_float(got.dtype) ? a.real : static_cast<double>(a.integer)) +
                   ", expected " + std::to_string(is_float(got.dtype) ? b.real : static_cast<double>(b.integer));
    }
    return "";
}

// Runs what was imported; "" where all outputs are as they should be.
std::string wrong_result(const onnx::Imported &imported, const std::vector<Named> &inputs, const std::vector<Named> &outputs) {
    std::map<std::string, Array> given;
    for (const onnx::Weight &w : imported.weights) given[w.name] = w.array;
    for (const auto &[own, name] : imported.inputs)
        for (const Named &n : inputs)
            if (n.name == name) given[own] = n.array;
    const std::map<std::string, Array> results = evaluate(imported.program, given);
    for (const auto &[own, name] : imported.outputs)
        for (const Named &n : outputs) {
            if (n.name != name) continue;
            const bool half = is_narrow_float(n.array.dtype);
            const std::string why = difference(results.at(own), n.array, half ? 1e-2 : 1e-3, half ? 1e-3 : 1e-6);
            if (!why.empty()) return "WRONG " + name + ": " + why;
        }
    return "";
}

std::string run_one(const fs::path &folder) {
    try {
        const auto model = onnx::read_model(folder / "model.onnx");
        if (fs::exists(folder / "skip")) return "data that are no tensors";
        const std::vector<Named> inputs = tensors_of(folder, "input", *model), outputs = tensors_of(folder, "output", *model);
        onnx::Imported imported;
        onnx::ImportOptions options;
        // Inputs that decide shapes are bound: first none, then integers but the first input, all but the first, integers with the first,
        // and at last all.
        for (int tries = 0;; tries++) {
            try {
                imported = onnx::import_model(*model, options);
                break;
            } catch (const UserError &) {
                if (tries == 4) throw;
                options.bind.clear();
                for (size_t i = 0; i < inputs.size(); i++) {
                    const bool is_small = !is_float(inputs[i].array.dtype) && inputs[i].array.size() <= 64;
                    if (tries == 3 || ((tries == 2 || i > 0) && (tries == 1 || is_small))) options.bind[inputs[i].name] = inputs[i].array;
                }
            }
        }
        std::string why = wrong_result(imported, inputs, outputs);
        if (!why.empty() || options.bind.size() == inputs.size()) return why;
        // A node whose inputs are all constants is computed while it is imported; what cannot be is refused.
        for (const Named &n : inputs) options.bind[n.name] = n.array;
        try {
            imported = onnx::import_model(*model, options);
        } catch (const UserError &) { return ""; }
        why = wrong_result(imported, inputs, outputs);
        return why.empty() ? "" : why + ", of constants";
    } catch (const UserError &e) {
        std::string text = e.message();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return text;
    } catch (const std::exception &e) {
        std::string text = e.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        return "BROKEN " + text.substr(0, 300);
    }
}

}  // namespace

int main(int argc, char **argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::string only;
    for (size_t i = 0; i + 1 < words.size(); i++)
        if (words[i] == "--only") only = words[i + 1], words.resize(i);
    std::map<std::string, std::string> expected;
    if (words.size() > 1) {
        std::ifstream in(words[1]);
        for (std::string line; std::getline(in, line);)
            if (const size_t colon = line.find(':'); !line.empty() && line[0] != '#' && colon != std::string::npos)
                expected[line.substr(0, colon)] = line.substr(colon + 1);
    }
    std::vector<fs::path> folders;
    for (const auto &entry : fs::directory_iterator(words.at(0)))
        if (entry.is_directory() && entry.path().string().find("_expanded") == std::string::npos &&
            (only.empty() || entry.path().filename().string().find(only) != std::string::npos))
            folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    int passed = 0, unexpected = 0;
    for (const fs::path &folder : folders) {
        const std::string name = folder.filename().string(), why = run_one(folder);
        passed += why.empty();
        if (why.empty() && expected.count(name))
            std::printf("%s: passes, and is listed as one that does not\n", name.c_str()), unexpected++;
        if (why.empty()) continue;
        if (words.size() > 1 && expected.count(name) && !why.starts_with("WRONG") && !why.starts_with("BROKEN")) continue;
        std::printf("%s: %s\n", name.c_str(), why.c_str());
        unexpected += words.size() > 1;
    }
    std::printf("%d of %zu pass\n", passed, folders.size());
    return unexpected ? 1 : 0;
}
