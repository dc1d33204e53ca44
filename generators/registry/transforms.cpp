#include "generators/registry/transforms.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/derivatives/derivatives.h"
#include "algorithms/transform/vmap/vmap.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

constexpr const char *save_word = "save", *recompute_word = "recompute";
const Handed residuals_file{"residuals", "file of residuals", "Say it with fewer patterns."};

struct Words {
    std::string text, what;
    std::vector<std::string> names = {};  // without '='
    std::vector<std::pair<std::string, std::string>> pairs = {};

    [[noreturn]] void fail(const std::string &expected) const {
        throw UserError("transform.words", "transform '" + printable(text) + "': expected " + expected + ".");
    }
};

Words words_in(const std::string &text) {
    Words words{text, ""};
    std::istringstream in(text);
    in >> words.what;
    for (std::string word; in >> word;)
        if (const size_t at = word.find('='); at == std::string::npos) words.names.push_back(word);
        else words.pairs.emplace_back(word.substr(0, at), word.substr(at + 1));
    return words;
}

std::optional<int64_t> positive(const std::string &text) {
    int64_t value = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < 1) return std::nullopt;
    return value;
}

By by_of(const Words &words) {
    By by{words.names, {}, {}};
    for (const auto &[name, choice] : words.pairs) {
        if (const std::optional<int64_t> every = positive(choice); every && !name.empty()) {
            by.residuals.groups[name] = *every;
            continue;
        }
        if (name.empty() || (choice != save_word && choice != recompute_word))
            words.fail("<stages>=save or <stages>=recompute, such as layers.*=save, or <call>=<rounds of a group>");
        by.residuals.choices.push_back({name, choice == save_word});
    }
    return by;
}

const std::vector<std::string> &names_alone(const Words &words) {
    if (!words.pairs.empty()) words.fail("names of inputs, states or parameters behind " + words.what);
    return words.names;
}

struct Kind {
    const char *word, *suffix;  // of the name
    Algorithm (*make)(const Algorithm &, const Words &);
};

constexpr Kind kinds[] = {
    {"grad", ".grad", [](const Algorithm &f, const Words &w) { return vjp(f, by_of(w)); }},
    {"value_and_grad", ".value_and_grad", [](const Algorithm &f, const Words &w) { return value_and_grad(f, by_of(w)); }},
    {"forward", ".forward", [](const Algorithm &f, const Words &w) { return forward_backward(f, by_of(w)).forward; }},
    {"backward", ".backward", [](const Algorithm &f, const Words &w) { return forward_backward(f, by_of(w)).backward; }},
    {"tangent", ".jvp",
     [](const Algorithm &f, const Words &w) {
         return jvp(f, {names_alone(w), {}, {}});
     }},
    {"transpose", ".transpose", [](const Algorithm &f, const Words &w) { return transpose(f, names_alone(w)); }},
    {"vmap", ".vmap",
     [](const Algorithm &f, const Words &w) {
         if (names_alone(w).empty()) w.fail("vmap <dim> <name>..., such as vmap B x");
         return vmap(f, symbolic_dim(w.names[0]), {w.names.begin() + 1, w.names.end()});
     }},
    {"checkpoint", "",
     [](const Algorithm &f, const Words &w) {
         const auto every = w.names.empty() && w.pairs.size() == 1 ? positive(w.pairs[0].second) : std::nullopt;
         if (!every || w.pairs[0].first.empty()) w.fail("checkpoint <call>=<rounds of a group>, such as checkpoint layers=8");
         return checkpoint(f, w.pairs[0].first, *every);
     }},
};

bool groups_rounds(const Words &words) {
    return std::any_of(words.pairs.begin(), words.pairs.end(), [](const auto &p) { return positive(p.second).has_value(); });
}

// The numbers of rounds that are known.
Extents rounds_in(const Algorithm &f, const Extents &fixed) {
    Extents rounds;
    for (const Call &call : f.calls())
        if (call.repeat)
            if (const auto known = fixed.find(call.repeat->dim); known != fixed.end()) rounds.insert(*known);
    return rounds;
}

const Kind &kind_of(const Words &words) {
    const auto *kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind &k) { return words.what == k.word; });
    if (kind != std::end(kinds)) return *kind;
    std::vector<std::string> all;
    for (const Kind &k : kinds) all.emplace_back(k.word);
    throw UserError("transform.unknown", "transform '" + printable(words.text) + "': expected one that begins with " + join(all, " or ") +
                                             ", such as 'grad x w'." + did_you_mean(words.what, all));
}

}  // namespace

Algorithm transformed(Algorithm algorithm, const std::vector<std::string> &transforms, const Extents &fixed) {
    for (const std::string &text : transforms) {
        const Words words = words_in(text);
        const Kind &kind = kind_of(words);
        if (groups_rounds(words)) algorithm = bind_extents(algorithm, rounds_in(algorithm, fixed));
        algorithm = kind.make(algorithm, words);
    }
    return algorithm;
}

By gradient_words(const std::string &text) {
    const Words words = words_in(text);
    if (words.what != "grad" && words.what != "value_and_grad") words.fail("grad or value_and_grad, which have residuals");
    return by_of(words);
}

std::string name_before(std::string name, const std::vector<std::string> &transforms) {
    for (auto text = transforms.rbegin(); text != transforms.rend(); ++text)
        if (const std::string suffix = kind_of(words_in(*text)).suffix; name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    return name;
}

std::string checkpoint_words(const std::string &text) { return "checkpoint " + text; }

std::string vmap_words(const std::string &text) {
    const size_t at = text.find('=');
    const auto is_name = [](const std::string &word) { return !word.empty() && word.find_first_of(" \t\n\r=,") == std::string::npos; };
    std::vector<std::string> words = {text.substr(0, at)};
    if (at != std::string::npos)
        for (size_t from = at + 1; from != std::string::npos + 1;) {
            const size_t end = text.find(',', from);
            words.push_back(text.substr(from, end - from));
            from = end == std::string::npos ? std::string::npos + 1 : end + 1;
        }
    if (!std::all_of(words.begin(), words.end(), is_name))
        throw UserError("transform.words", "vmap '" + printable(text) +
                                               "': expected <dim> or <dim>=<name>,<name>..., with no name empty, such as B or B=x,w.");
    return "vmap " + join(words, " ");
}

std::vector<std::string> residual_words(const std::string &text) {
    if (!text.ends_with(".json")) return {text};
    const std::string subject = printable(text);
    const nlohmann::json document = parse_json(read_regular(text, residuals_file), subject);
    std::vector<std::string> words;
    for (const JsonReader &one : JsonReader(document, subject).items()) {
        const auto fields = one.fields();
        if (fields.size() != 1)
            one.fail("json.value", "expected one pattern of stages with save or recompute, such as {\"layers.*\": \"save\"}, got " +
                                       std::to_string(fields.size()) + ".");
        const auto &[name, choice] = *fields.begin();
        const std::string said = choice.is_integer() ? std::to_string(choice.integer()) : choice.is_text() ? choice.text() : "";
        if (choice.is_integer() ? !positive(said) : said != save_word && said != recompute_word)
            choice.fail("json.value", "expected \"save\", \"recompute\" or the rounds of a group, a number of at least 1 such as 8, got " +
                                          (choice.is_integer() ? said
                                           : choice.is_text()  ? "\"" + printable(said) + "\""
                                                               : "neither a word nor a number") +
                                          ".");
        words.push_back(name + "=" + said);
    }
    return words;
}

}  // namespace tessera
