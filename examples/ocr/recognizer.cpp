#include "recognizer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "ocr_kernel.h"

namespace {

std::string read_file(const std::string &name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + name);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

void check(int32_t status, const TessFault &fault) {
    if (status == TESS_OK) return;
    char message[256];
    tess_status_message(status, &fault, ocr_kernel_argument_names, message, sizeof message);
    throw std::runtime_error(message);
}

}  // namespace

Weights::Weights(const std::string &file) {
    const std::string bytes = read_file(file);
    uint64_t header = 0;
    if (bytes.size() < 8) throw std::runtime_error(file + " is no safetensors file");
    std::memcpy(&header, bytes.data(), 8);
    if (header > bytes.size() - 8) throw std::runtime_error(file + " is cut short");
    const size_t data = 8 + header;
    values_.resize((bytes.size() - data) / sizeof(float));
    std::memcpy(values_.data(), bytes.data() + data, values_.size() * sizeof(float));
    const nlohmann::json entries = nlohmann::json::parse(bytes.substr(8, header));
    for (const auto &[name, entry] : entries.items()) {
        if (name == "__metadata__") continue;
        Tensor tensor{entry.at("shape").get<std::vector<int64_t>>()};
        const auto offsets = entry.at("data_offsets").get<std::vector<size_t>>();
        size_t count = 1;
        for (const int64_t extent : tensor.extents) count *= static_cast<size_t>(extent);
        tensor.first = offsets.at(0) / sizeof(float);
        const bool fits = offsets.at(0) % sizeof(float) == 0 && count <= values_.size() && tensor.first <= values_.size() - count;
        if (entry.at("dtype") != "F32" || !fits) throw std::runtime_error(file + ": tensor " + name + " does not fit");
        tensors_[name] = std::move(tensor);
    }
}

TessTensor Weights::tensor(const std::string &name) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) throw std::runtime_error("the model has no tensor " + name);
    const std::vector<int64_t> &extents = it->second.extents;
    return tess_dense(const_cast<float *>(values_.data() + it->second.first), TESS_F32, static_cast<int32_t>(extents.size()),
                      extents.data());
}

// The kernel's arguments are the line, the weights by name, and the probabilities.
Recognizer::Recognizer(const std::string &folder) : weights_(folder + "/model.safetensors"), workspace_(nullptr, std::free) {
    std::istringstream lines(read_file(folder + "/characters.txt"));
    for (std::string line; std::getline(lines, line);) characters_.push_back(line);
    tensors_.push_back(tess_dense(nullptr, TESS_F32, 3, nullptr));
    size_t next = 1;
    for (; ocr_kernel_argument_names[next + 1]; next++) tensors_.push_back(weights_.tensor(ocr_kernel_argument_names[next]));
    tensors_.push_back(tess_dense(nullptr, TESS_F32, 2, nullptr));
    for (const TessTensor &tensor : tensors_) table_.push_back(&tensor);
}

const std::vector<float> &Recognizer::probabilities(const Line &line) {
    const auto classes = static_cast<int64_t>(characters_.size()) + 1;
    const int64_t positions = (line.columns + 3) / 8;
    const int64_t x_extents[] = {Line::rows, line.columns, Line::channels}, y_extents[] = {positions, classes};
    output_.resize(static_cast<size_t>(positions * classes));
    tensors_.front() = tess_dense(const_cast<float *>(line.values.data()), TESS_F32, 3, x_extents);
    tensors_.back() = tess_dense(output_.data(), TESS_F32, 2, y_extents);
    TessFault fault = tess_fault();
    TessContext context = tess_context();
    context.fault = &fault;
    TessKernel kernel = tess_kernel();
    check(ocr_kernel_describe(&kernel), fault);
    uint64_t bytes = 0;
    check(tess_call_workspace(&kernel, table_.data(), &context, &bytes), fault);
    if (bytes > workspace_bytes_) {
        workspace_.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
        workspace_bytes_ = workspace_ ? bytes : 0;
    }
    context.workspace = workspace_.get();
    context.workspace_bytes = workspace_bytes_;
    check(ocr_kernel_table(table_.data(), &context), fault);
    return output_;
}

Reading Recognizer::decode(const std::vector<float> &y) const {
    const size_t classes = characters_.size() + 1;
    Reading reading;
    size_t before = 0, kept = 0;
    for (auto row = y.begin(); row != y.end(); row += static_cast<ptrdiff_t>(classes)) {
        const auto best = std::max_element(row, row + static_cast<ptrdiff_t>(classes));
        const auto character = static_cast<size_t>(best - row);
        if (character != 0 && character != before) {
            reading.text += characters_[character - 1];
            reading.confidence += *best;
            kept++;
        }
        before = character;
    }
    if (kept) reading.confidence /= static_cast<double>(kept);
    return reading;
}
