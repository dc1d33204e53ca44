#include "schedules/knobs/notation.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

namespace tessera {

namespace {

std::optional<int64_t> parse_integer(const std::string &text) {
    int64_t value = 0;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
    return value;
}

bool is_level(const std::string &part) { return part == "block" || part == "k" || part == "micro"; }

// Where the loop's name begins if the schedule says nothing of the stage: at the last level, or at the last dim, which
// the suffixes of a split dim belong to.
size_t guess_loop(const std::vector<std::string> &parts) {
    for (size_t i = parts.size() - 1; i >= 1; i--)
        if (is_level(parts[i]) && !(i >= 2 && is_level(parts[i - 1]))) return i;
    size_t i = parts.size() - 1;
    while (i >= 2 && (parts[i] == "o" || parts[i] == "i")) i--;
    return i;
}

std::string strip(const std::string &text) {
    const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

bool is_word(const std::string &text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

}  // namespace

static constexpr std::string_view beside = "beside ", in_loop = " in ";

std::optional<Place> parse_place(const std::string &text, const std::set<std::string> &stages) {
    if (text == "root") return Place{};
    if (text == "inline") return Place{Place::Kind::inlined, "", ""};
    if (text.starts_with(beside)) {
        const std::string host = text.substr(beside.size());
        const size_t at = host.find(in_loop);
        if (at == std::string::npos) return is_word(host) ? std::optional(Place{Place::Kind::beside, host, ""}) : std::nullopt;
        const std::string stage = host.substr(0, at), loop = host.substr(at + in_loop.size());
        return is_word(stage) && is_word(loop) ? std::optional(Place{Place::Kind::beside, stage, loop}) : std::nullopt;
    }
    std::vector<std::string> parts;
    std::istringstream words(text + ".");
    for (std::string part; std::getline(words, part, '.');) {
        if (!is_word(part)) return std::nullopt;
        parts.push_back(part);
    }
    if (parts.size() < 2) return std::nullopt;
    size_t cut = 0;
    std::string stage;
    for (size_t i = 0, at = 0; i + 1 < parts.size(); i++) {
        at += parts[i].size() + (i ? 1 : 0);
        if (stages.count(text.substr(0, at))) cut = at;
    }
    if (cut == 0) {
        const size_t loop = guess_loop(parts);
        for (size_t i = 0; i < loop; i++) cut += parts[i].size() + (i ? 1 : 0);
    }
    return Place{Place::Kind::at, text.substr(0, cut), text.substr(cut + 1)};
}

std::string to_string(const Place &place) {
    if (place.kind == Place::Kind::root) return "root";
    if (place.kind == Place::Kind::beside)
        return std::string(beside) + place.stage + (place.loop.empty() ? "" : std::string(in_loop) + place.loop);
    return place.kind == Place::Kind::inlined ? "inline" : place.stage + "." + place.loop;
}

LoopName parse_loop(const std::string &text, const std::function<bool(const std::string &)> &is_dim) {
    if (is_dim(text)) return {"", text};
    const size_t dot = text.find('.');
    return dot == std::string::npos ? LoopName{text, ""} : LoopName{text.substr(0, dot), text.substr(dot + 1)};
}

std::optional<LayoutAxis> parse_axis(const std::string &text) {
    const size_t cut = text.find_last_of("/%");
    if (cut == std::string::npos) return is_word(text) ? std::optional(LayoutAxis{text, 0, false}) : std::nullopt;
    const std::optional<int64_t> factor = parse_integer(text.substr(cut + 1));
    if (!factor || *factor < 1 || *factor > max_tile) return std::nullopt;
    const std::string of = text.substr(0, cut);
    if (const size_t percent = of.find('%'); text[cut] == '/' && percent != std::string::npos) {
        const std::optional<int64_t> within = parse_integer(of.substr(percent + 1));
        if (!is_word(of.substr(0, percent)) || !within || *within > max_tile || *within <= *factor || *within % *factor)
            return std::nullopt;
        return LayoutAxis{of.substr(0, percent), *factor, false, *within};
    }
    return is_word(of) ? std::optional(LayoutAxis{of, *factor, text[cut] == '%'}) : std::nullopt;
}

std::string to_string(const LayoutAxis &axis) {
    if (axis.factor == 0) return axis.dim;
    return axis.dim + (axis.within ? "%" + std::to_string(axis.within) : "") + (axis.remainder ? "%" : "/") + std::to_string(axis.factor);
}

bool hold_each_index_once(const std::vector<LayoutAxis> &axes) {
    if (axes.size() == 1) return axes[0].factor == 0;
    auto only = [&](const auto &fits) -> const LayoutAxis * {
        const auto found = std::find_if(axes.begin(), axes.end(), fits);
        return found != axes.end() && std::count_if(axes.begin(), axes.end(), fits) == 1 ? &*found : nullptr;
    };
    const LayoutAxis *digit = only([](const LayoutAxis &a) { return a.factor > 0 && !a.remainder && a.within == 0; });
    for (size_t held = 1; digit; held++) {
        if (held == axes.size()) return digit->remainder;
        const int64_t left = digit->factor;
        digit = only([&](const LayoutAxis &a) { return a.within == left || (a.remainder && a.factor == left); });
    }
    return false;
}

std::optional<Condition> parse_condition(const std::string &text) {
    const size_t cut = text.find_first_of("<>=!");
    Condition c;
    if (cut == std::string::npos) {
        c.feature = strip(text);
        return is_word(c.feature) ? std::optional(c) : std::nullopt;
    }
    c.relation = text.substr(cut, cut + 1 < text.size() && text[cut + 1] == '=' ? 2 : 1);
    if (c.relation == "=" || c.relation == "!") return std::nullopt;
    const std::optional<int64_t> bound = parse_integer(strip(text.substr(cut + c.relation.size())));
    std::string left = text.substr(0, cut);
    if (const size_t percent = left.find('%'); percent != std::string::npos) {
        const std::optional<int64_t> modulus = parse_integer(strip(left.substr(percent + 1)));
        if (!modulus || *modulus < 1) return std::nullopt;
        c.modulus = *modulus;
        left = left.substr(0, percent);
    }
    c.dim = strip(left);
    if (!bound || !is_word(c.dim)) return std::nullopt;
    c.bound = *bound;
    return c;
}

std::string to_string(const Condition &c) {
    if (c.dim.empty()) return c.feature;
    return c.dim + (c.modulus ? " % " + std::to_string(c.modulus) : "") + " " + c.relation + " " + std::to_string(c.bound);
}

bool is_schedule_name(const std::string &name) {
    if (name.empty() || name.size() > 200 || name.back() == '/') return false;
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '/');) {
        const bool plain = std::all_of(part.begin(), part.end(), [](unsigned char c) {
            return (c < 128 && std::isalnum(c)) || c == '_' || c == '-' || c == '+' || c == '.';
        });
        if (part.empty() || part == "." || part == ".." || !plain) return false;
    }
    return true;
}

}  // namespace tessera
