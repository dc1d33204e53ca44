#include "schedules/knobs/former_names.h"

#include <cctype>
#include <optional>
#include <sstream>

namespace tessera {

namespace {

// `part` with `to` in place of `from`, where `from` ends the text before its features and begins it or follows a '_', '-' or '.'.
std::optional<std::string> renamed(const std::string &part, const std::string &from, const std::string &to) {
    const size_t end = std::min(part.find('+'), part.size());
    if (!part.substr(0, end).ends_with(from)) return std::nullopt;
    const size_t begin = end - from.size();
    if (begin > 0 && std::isalnum(static_cast<unsigned char>(part[begin - 1]))) return std::nullopt;
    return part.substr(0, begin) + to + part.substr(end);
}

std::vector<std::string> parts_of(const std::string &name) {
    std::vector<std::string> parts;
    std::istringstream stream(name);
    for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
    return parts;
}

}  // namespace

const std::vector<FormerName> &former_target_names() {
    static const std::vector<FormerName> names = {{"avx512_bf16", "znver4"}, {"avx512_fp16", "sapphirerapids"}};
    return names;
}

std::string current_target_name(const std::string &name) {
    const size_t end = std::min(name.find('+'), name.size());
    for (const FormerName &former : former_target_names())
        if (name.substr(0, end) == former.was) return former.is + name.substr(end);
    return name;
}

std::string current_schedule_name(const std::string &name) {
    std::string current;
    for (std::string part : parts_of(name)) {
        for (const FormerName &former : former_target_names())
            if (const auto today = renamed(part, former.was, former.is)) part = *today;
        current += (current.empty() ? "" : "/") + part;
    }
    return current;
}

std::vector<std::string> former_schedule_names(const std::string &current) {
    std::vector<std::string> spellings = {""};
    for (const std::string &part : parts_of(current)) {
        std::vector<std::string> longer;
        for (const std::string &begun : spellings) {
            const std::string before = begun.empty() ? "" : begun + "/";
            longer.push_back(before + part);
            for (const FormerName &former : former_target_names())
                if (const auto then = renamed(part, former.is, former.was)) longer.push_back(before + *then);
        }
        spellings = longer;
    }
    spellings.erase(spellings.begin());  // the first is the current name
    return spellings;
}

}  // namespace tessera
