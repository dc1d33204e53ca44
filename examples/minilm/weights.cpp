#include "weights.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

static std::string content_of(const std::string &name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + name);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

Weights::Weights(const std::string &file) : file_(file), content_(content_of(file)) {
    uint64_t header = 0;
    if (content_.size() < 8) throw std::runtime_error(file + " is no safetensors file");
    std::memcpy(&header, content_.data(), 8);
    if (header > content_.size() - 8) throw std::runtime_error(file + " is cut short");
    const size_t data = 8 + header;
    const nlohmann::json entries = nlohmann::json::parse(content_.begin() + 8, content_.begin() + static_cast<std::ptrdiff_t>(data));
    for (const auto &[name, entry] : entries.items()) {
        if (name == "__metadata__" || entry.at("dtype") != "F32") continue;
        const auto range = entry.at("data_offsets").get<std::vector<size_t>>();
        Entry made{entry.at("shape").get<std::vector<int64_t>>(), data + range.at(0), range.at(1) - range.at(0)};
        size_t count = 1;
        for (int64_t extent : made.extents) count *= static_cast<size_t>(extent);
        if (range[0] > range[1] || made.begin + made.bytes > content_.size() || made.bytes != count * sizeof(float))
            throw std::runtime_error(file + ": the bytes of tensor " + name + " do not fit");
        entries_[name] = std::move(made);
    }
}

Weight Weights::tensor(const std::string &name) const {
    const auto it = entries_.find(name);
    if (it == entries_.end()) throw std::runtime_error(file_ + " has no tensor " + name + " of type F32");
    Weight weight{it->second.extents, std::vector<float>(it->second.bytes / sizeof(float))};
    std::memcpy(weight.values.data(), content_.data() + it->second.begin, it->second.bytes);
    return weight;
}
