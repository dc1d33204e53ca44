#include "model.h"

#include <cctype>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

Matrix zeros(int64_t rows, int64_t columns) { return {rows, columns, std::vector<float>(static_cast<size_t>(rows * columns))}; }

Matrix transposed(const Matrix &m) {
    Matrix t = zeros(m.columns, m.rows);
    for (int64_t r = 0; r < m.rows; r++)
        for (int64_t c = 0; c < m.columns; c++) t.at(c, r) = m.at(r, c);
    return t;
}

static std::string read_file(const std::string &name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + name);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

Weights::Weights(const std::string &file) : bytes_(read_file(file)) {
    uint64_t header = 0;
    if (bytes_.size() < 8) throw std::runtime_error(file + " is no safetensors file");
    std::memcpy(&header, bytes_.data(), 8);
    if (header > bytes_.size() - 8) throw std::runtime_error(file + " is cut short");
    size_t data = 8 + header;
    const nlohmann::json entries = nlohmann::json::parse(bytes_.substr(8, header));
    for (auto &[name, entry] : entries.items()) {
        if (name == "__metadata__" || entry.at("dtype") != "F32") continue;
        auto shape = entry.at("shape").get<std::vector<int64_t>>();
        auto offsets = entry.at("data_offsets").get<std::vector<size_t>>();
        if (shape.empty() || shape.size() > 2) continue;
        int64_t rows = shape.size() == 2 ? shape[0] : 1, columns = shape.back();
        if (data + offsets.at(1) > bytes_.size() || offsets.at(1) - offsets.at(0) != sizeof(float) * rows * columns)
            throw std::runtime_error(file + ": tensor " + name + " does not fit");
        tensors_[name] = {{rows, columns}, {data + offsets[0], data + offsets[1]}};
    }
}

Matrix Weights::tensor(const std::string &name) const {
    auto it = tensors_.find(name);
    if (it == tensors_.end()) throw std::runtime_error("the model has no tensor " + name);
    auto [shape, range] = it->second;
    Matrix m = zeros(shape.first, shape.second);
    std::memcpy(m.values.data(), bytes_.data() + range.first, range.second - range.first);
    return m;
}

Vocabulary::Vocabulary(const std::string &file) {
    std::istringstream lines(read_file(file));
    std::string line;
    for (int64_t id = 0; std::getline(lines, line); id++) ids_[line] = id;
}

std::vector<int64_t> Vocabulary::encode(const std::string &text) const {
    std::vector<std::string> words;
    bool open = false;
    for (char c : text) {
        unsigned char u = static_cast<unsigned char>(c);
        if (std::isalnum(u)) {
            if (!open) words.emplace_back();
            words.back() += static_cast<char>(std::tolower(u));
        } else if (!std::isspace(u)) {
            words.emplace_back(1, c);
        }
        open = std::isalnum(u);
    }
    std::vector<int64_t> ids = {ids_.at("[CLS]")};
    for (const std::string &word : words) {
        for (size_t start = 0; start < word.size();) {
            size_t end = word.size();
            while (end > start && !ids_.count((start ? "##" : "") + word.substr(start, end - start))) end--;
            if (end == start) {
                ids.push_back(ids_.at("[UNK]"));
                break;
            }
            ids.push_back(ids_.at((start ? "##" : "") + word.substr(start, end - start)));
            start = end;
        }
    }
    ids.push_back(ids_.at("[SEP]"));
    return ids;
}
