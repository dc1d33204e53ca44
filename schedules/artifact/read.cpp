#include "schedules/artifact/read.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "schedules/knobs/canonical.h"
#include "schedules/knobs/knob.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

using nlohmann::json;

namespace {

constexpr size_t max_variants = 64;
constexpr int64_t max_stages = 8;  // of a pack

std::string shortened(const json &value) {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 57) + "…";
}

std::string described(const json &value) { return shortened(value) + " (" + value.type_name() + ")"; }

void want(bool holds, const json &value, const FieldPlace &where, const std::string &expected, const std::string &remedy) {
    if (!holds) where.fail("schedule.type", "expected " + expected + "; got " + described(value) + ". " + remedy);
}

const json &object(const json &value, const FieldPlace &where, const std::string &expected) {
    want(value.is_object(), value, where, expected, "Write it in braces.");
    return value;
}

const json &array(const json &value, const FieldPlace &where, const std::string &expected) {
    want(value.is_array(), value, where, expected, "Write it in brackets, even if it has one element.");
    return value;
}

std::string string(const json &value, const FieldPlace &where, const std::string &expected) {
    want(value.is_string(), value, where, expected, "Write it in quotes.");
    return value.get<std::string>();
}

// Which families there are is the compiler's to say; here a name is only a name.
std::string family(const json &value, const FieldPlace &where) {
    const std::string name = string(value, where, "an instruction family");
    const auto is_of_names = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), is_of_names);
    want(is_name, value, where, "an instruction family, a name of letters, digits and '_'", "Write one such as fma or dot2.");
    return name;
}

int64_t integer(const json &value, const FieldPlace &where, int64_t low, int64_t high, const std::string &what) {
    const std::string expected = what + " from " + std::to_string(low) + " to " + std::to_string(high);
    want(value.is_number_integer(), value, where, "an integer, " + expected, "Write a number without quotes, point or exponent.");
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    const int64_t number = huge ? INT64_MAX : value.get<int64_t>();
    if (huge || number < low || number > high)
        where.fail("schedule.range", "expected " + expected + "; got " + shortened(value) + ". Choose a number in that range.");
    return number;
}

std::string choice(const json &value, const FieldPlace &where, const std::vector<std::string> &choices) {
    const std::string got = string(value, where, "one of " + join(choices));
    if (std::find(choices.begin(), choices.end(), got) == choices.end())
        where.fail("schedule.choice", "there is no '" + got + "' here; choose one of " + join(choices) + "." + did_you_mean(got, choices));
    return got;
}

void known_fields(const json &value, const FieldPlace &where, const std::vector<std::string> &fields) {
    for (const auto &[key, field] : value.items())
        if (std::find(fields.begin(), fields.end(), key) == fields.end())
            (where / key)
                .fail("schedule.unknown-field", "there is no field '" + key + "' here; the fields are " + join(fields) +
                                                    ". Remove it or correct its name." + did_you_mean(key, fields));
}

const json &field(const json &value, const FieldPlace &where, const std::string &name) {
    if (!value.contains(name))
        where.fail("schedule.missing-field",
                   "expected a field '" + name + "'; it has " + (value.empty() ? "none" : shortened(value)) + ". Add it.");
    return value[name];
}

// Calls read(key, value, place) for what a map holds; nulls, which delete, are passed over.
template <typename Read>
void each(const json &map, const FieldPlace &where, const std::string &what, Read read) {
    for (const auto &[key, value] : object(map, where, "an object of " + what).items())
        if (!value.is_null()) read(key, value, where / key);
}

Extents extents(const json &map, const FieldPlace &where, int64_t high, const std::string &what) {
    Extents result;
    each(map, where, "dims and " + what,
         [&](const std::string &dim, const json &value, const FieldPlace &at) { result[dim] = integer(value, at, 1, high, what); });
    return result;
}

Extents tiles(const json &map, const FieldPlace &where) { return extents(map, where, max_tile, "a tile's extent"); }

Extents lanes(const json &map, const FieldPlace &where) {
    Extents result = extents(map, where, 64, "a number of lanes");
    for (const auto &[dim, count] : result)
        if (count & (count - 1))
            (where / dim)
                .fail("schedule.range", "expected a power of two from 1 to 64 as the number of lanes; got " + std::to_string(count) +
                                            ". Choose a power of two.");
    return result;
}

// A list of names, each of them once.
std::vector<std::string> set_of(const json &list, const FieldPlace &where) {
    const std::vector<std::string> names = read_strings(list, where);
    std::set<std::string> seen;
    for (size_t i = 0; i < names.size(); i++)
        if (!seen.insert(names[i]).second)
            (where / std::to_string(i)).fail("schedule.repeated", "'" + names[i] + "' is listed twice. Remove one of them.");
    return names;
}

// "<dim>/<digits>" or "<dim>%<digits>".
bool has_form_of_axis(const std::string &text) {
    const size_t cut = text.find_last_of("/%"), digit = cut == std::string::npos ? cut : text.find_first_not_of("0123456789", cut + 1);
    return cut != std::string::npos && cut + 1 < text.size() && digit == std::string::npos && parse_axis(text.substr(0, cut)) &&
           text.find_first_of("/%") == cut;
}

std::vector<LayoutAxis> layout(const json &list, const FieldPlace &where) {
    std::vector<LayoutAxis> axes;
    const std::vector<std::string> texts = read_strings(list, where);
    for (size_t i = 0; i < texts.size(); i++) {
        const std::optional<LayoutAxis> axis = parse_axis(texts[i]);
        if (!axis && has_form_of_axis(texts[i]))
            (where / std::to_string(i))
                .fail("schedule.range", "expected a factor from 1 to " + std::to_string(max_tile) + "; got '" + texts[i] +
                                            "'. Choose a number in that range.");
        if (!axis)
            (where / std::to_string(i))
                .fail("schedule.syntax",
                      "expected an axis of the form \"N\", \"N/48\", \"N%48\" or \"N%48/2\", whose first number is a multiple of the "
                      "second; got '" +
                          texts[i] + "'. Write one of the four.");
        axes.push_back(*axis);
    }
    return axes;
}

Pack pack(const json &value, const FieldPlace &where) {
    known_fields(object(value, where, "an object with at, layout and stages"), where, {"at", "layout", "stages"});
    Pack result;
    if (value.contains("at")) result.at = string(value["at"], where / "at", "a loop of the stage, \"root\" or \"prepack\"");
    if (value.contains("layout")) result.layout = layout(value["layout"], where / "layout");
    if (value.contains("stages")) result.stages = integer(value["stages"], where / "stages", 1, max_stages, "a number of slices");
    return result;
}

PrefetchRule prefetch(const json &value, const std::set<std::string> &stages, const FieldPlace &where) {
    known_fields(object(value, where, "an object with loop and ahead"), where, {"loop", "ahead"});
    PrefetchRule result;
    if (!value.contains("loop")) {
        if (value.contains("ahead"))
            (where / "ahead").fail("schedule.syntax", "\"ahead\" needs a loop. Name one, as in \"loop\": \"y.M\", or remove it.");
        return result;
    }
    const std::string text = string(value["loop"], where / "loop", "a loop of a stage");
    const std::optional<Place> place = parse_place(text, stages);
    if (!place || place->kind != Place::Kind::at)
        (where / "loop").fail("schedule.syntax", "expected a loop of a stage such as \"y.M\"; got '" + text + "'. Write it in this form.");
    result.stage = place->stage, result.loop = place->loop;
    result.ahead = value.contains("ahead") ? integer(value["ahead"], where / "ahead", 1, 64, "a number of iterations") : 1;
    return result;
}

// The lanes of a reduction tree.
std::vector<int64_t> tree_levels(const json &list, const FieldPlace &where) {
    constexpr size_t most = 8;
    std::vector<int64_t> levels;
    for (size_t i = 0; i < array(list, where, "an array of lanes, most first").size(); i++) {
        const FieldPlace at = where / std::to_string(i);
        levels.push_back(integer(list[i], at, 2, max_tile, "a number of lanes"));
        if (i > 0 && (levels[i] >= levels[i - 1] || levels[i - 1] % levels[i] != 0))
            at.fail("schedule.range", "expected fewer lanes than the " + std::to_string(levels[i - 1]) + " before, of which they are a " +
                                          "divisor; got " + std::to_string(levels[i]) + ". Write the levels of a tree as in [64, 16, 4].");
    }
    if (levels.empty() || levels.size() > most)
        where.fail("schedule.range", "expected from 1 to " + std::to_string(most) + " levels of a reduction tree; got " +
                                         std::to_string(levels.size()) + ". Write them as in [64, 16, 4].");
    return levels;
}

Split split(const json &value, const FieldPlace &where) {
    known_fields(object(value, where, "an object with lanes, or with how and size"), where, {"how", "size", "lanes"});
    if (value.contains("lanes")) {
        for (const char *other : {"how", "size"})
            if (value.contains(other))
                (where / other)
                    .fail("schedule.unknown-field",
                          std::string("a reduction tree, which 'lanes' states, has no '") + other + "'. Remove one of the two.");
        return {Split::How::tree, 0, tree_levels(value["lanes"], where / "lanes")};
    }
    static const std::vector<std::string> ways = {"chunks", "threads", "lanes", "online", "passes"};
    const std::string how = choice(field(value, where, "how"), where / "how", ways);
    Split result{static_cast<Split::How>(std::find(ways.begin(), ways.end(), how) - ways.begin())};
    if (result.how != Split::How::passes) {
        result.size = integer(field(value, where, "size"), where / "size", 1, max_tile, "the size of a piece");
    } else if (value.contains("size")) {
        (where / "size").fail("schedule.unknown-field", "a split into passes runs over the whole dim and has no size. Remove it.");
    }
    return result;
}

Tail tail(const json &value, const FieldPlace &where) {
    static const std::vector<std::string> policies(tail_names.begin(), tail_names.end());
    const std::string policy = choice(value, where, policies);
    return static_cast<Tail>(std::find(policies.begin(), policies.end(), policy) - policies.begin());
}

std::optional<Directive> directive(const json &value, const FieldPlace &where) {
    known_fields(object(value, where, "an object with id, after, op, loop and factor"), where, {"id", "after", "op", "loop", "factor"});
    Directive d;
    d.id = string(field(value, where, "id"), where / "id", "a name for the directive");
    const json &op = field(value, where, "op");
    if (op.is_null()) return std::nullopt;
    d.op = choice(op, where / "op", {"unroll", "vectorize", "parallel"});
    d.loop = string(field(value, where, "loop"), where / "loop", "a loop, for example \"block.N\"");
    if (value.contains("after")) d.after = string(value["after"], where / "after", "the id of another directive");
    if (value.contains("factor")) d.factor = integer(value["factor"], where / "factor", 1, d.op == "vectorize" ? 64 : 256, "a factor");
    return d;
}

std::vector<Directive> directives(const json &list, const FieldPlace &where) {
    std::vector<Directive> result;
    std::set<std::string> ids;
    for (size_t i = 0; i < array(list, where, "an array of directives").size(); i++) {
        const FieldPlace at = where / std::to_string(i);
        const std::optional<Directive> d = directive(list[i], at);
        if (!ids.insert(list[i]["id"].get<std::string>()).second)
            (at / "id").fail("schedule.directive",
                             "two directives have the id '" + list[i]["id"].get<std::string>() + "'; an id names one. Rename one of them.");
        if (d) result.push_back(*d);
    }
    return result;
}

void check_directives(const Knobs &k, const FieldPlace &where) {
    for (const Directive &d : k.directives) {
        auto fail = [&](Knob knob) {
            (where / name_of(Knob::directives))
                .fail("schedule.directive", "directive '" + d.id + "' changes the loop '" + d.loop + "', which the knob '" + name_of(knob) +
                                                "' owns. Change the knob or delete the directive with {\"id\": \"" + d.id +
                                                "\", \"op\": null}.");
        };
        if (std::count(k.parallel.begin(), k.parallel.end(), d.loop)) fail(Knob::parallel);
        if (std::any_of(k.micro.begin(), k.micro.end(), [&](const auto &tile) { return d.loop == "micro." + tile.first; }))
            fail(Knob::micro);
        if (k.vector.count(d.loop)) fail(Knob::vector);
        if (k.unroll.count(d.loop)) fail(Knob::unroll);
    }
}

Place place(const json &value, const std::set<std::string> &stages, const FieldPlace &where) {
    const std::string text = string(value, where, "a place");
    const std::optional<Place> place = parse_place(text, stages);
    if (!place)
        where.fail("schedule.syntax",
                   "expected \"root\", \"inline\", a loop of a stage such as \"y.micro\", \"beside y\", or \"beside y in block.M\"; got '" +
                       text + "'. Write one of these.");
    return *place;
}

std::map<std::string, Extents> levels(const json &value, const FieldPlace &where) {
    std::map<std::string, Extents> result;
    each(value, where, "levels", [&](const std::string &level, const json &extents, const FieldPlace &at) {
        if (level.empty() || level == "block" || level == "k" || level == "micro" || level == "root" ||
            level.find('.') != std::string::npos)
            at.fail("schedule.syntax",
                    "expected a name for a level that is not block, k, micro or root and has no '.'; got '" + level + "'. Rename it.");
        result[level] = tiles(extents, at);
    });
    return result;
}

std::string use(const json &value, const FieldPlace &where) {
    const std::string name = string(value, where, "the name of a callee's schedule, or \"none\"");
    if (!is_schedule_name(name))
        where.fail("schedule.outside", "expected the name of a callee's schedule, such as \"linear_gelu/avx512\", or \"none\"; got " +
                                           shortened(value) + ". Name one of a schedule folder.");
    return name;
}

// A knob's form and range.
void read_knob(Knob knob, const json &value, const std::set<std::string> &stages, const FieldPlace &where, Knobs &k) {
    switch (knob) {
    case Knob::place: k.place = place(value, stages, where); break;
    case Knob::block: k.block = tiles(value, where); break;
    case Knob::k: k.k = tiles(value, where); break;
    case Knob::micro: k.micro = tiles(value, where); break;
    case Knob::levels: k.levels = levels(value, where); break;
    case Knob::loops: k.loops = set_of(value, where); break;
    case Knob::vector: k.vector = lanes(value, where); break;
    case Knob::unroll: k.unroll = extents(value, where, 256, "a number of unrolled iterations"); break;
    case Knob::parallel: k.parallel = set_of(value, where); break;
    case Knob::pack:
        each(value, where, "operands and packs",
             [&](const std::string &operand, const json &how, const FieldPlace &at) { k.pack[operand] = pack(how, at); });
        break;
    case Knob::prefetch:
        each(value, where, "operands and when",
             [&](const std::string &operand, const json &when, const FieldPlace &at) { k.prefetch[operand] = prefetch(when, stages, at); });
        break;
    case Knob::stream: k.stream = string(value, where, "a loop of the stage"); break;
    case Knob::layout: k.layout = layout(value, where); break;
    case Knob::tail:
        each(value, where, "dims and policies",
             [&](const std::string &dim, const json &policy, const FieldPlace &at) { k.tail[dim] = tail(policy, at); });
        break;
    case Knob::split:
        each(value, where, "dims and splits",
             [&](const std::string &dim, const json &how, const FieldPlace &at) { k.split[dim] = split(how, at); });
        break;
    case Knob::instruction: k.instruction = family(value, where); break;
    case Knob::call: k.call = choice(value, where, {"inline", "once"}); break;
    case Knob::use: k.use = use(value, where); break;
    case Knob::warps: k.warps = integer(value, where, 1, 32, "a number of warps"); break;
    case Knob::directives: k.directives = directives(value, where); break;
    }
}

}  // namespace

FieldPlace FieldPlace::operator/(const std::string &key) const {
    std::string escaped;
    for (char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return {schedule, pointer + "/" + escaped, ancestors};
}

void FieldPlace::fail(const std::string &id, const std::string &message) const {
    UserError error(id, printable("schedule '" + schedule + "'" + (ancestors.empty() ? "" : " (extends " + join(ancestors) + ")") +
                                  (pointer.empty() ? "" : " at " + pointer) + ": " + message));
    const std::string_view of_stage = "/stages/";
    if (pointer.starts_with(of_stage)) error.about(pointer.substr(of_stage.size(), pointer.find('/', of_stage.size()) - of_stage.size()));
    throw error.at("schedule '" + schedule + "'", pointer);
}

std::vector<std::string> read_strings(const json &list, const FieldPlace &where) {
    std::vector<std::string> result;
    for (size_t i = 0; i < array(list, where, "an array of strings").size(); i++)
        result.push_back(string(list[i], where / std::to_string(i), "a string"));
    return result;
}

Knobs read_knobs(const json &stage, const std::set<std::string> &stages, const FieldPlace &where) {
    Knobs k;
    each(stage, where, "knobs", [&](const std::string &name, const json &value, const FieldPlace &at) {
        if (const std::optional<Knob> knob = knob_named(name)) read_knob(*knob, value, stages, at, k);
    });
    for (const auto &[knob, value] : stage.items())
        if (!knob_named(knob))
            (where / knob)
                .fail("schedule.unknown-knob", "there is no knob '" + knob + "'; the knobs are " + join(knob_names()) +
                                                   ". Correct its name or remove it." + did_you_mean(knob, knob_names()));
    check_directives(k, where);
    return k;
}

std::vector<Condition> read_conditions(const json &when, const FieldPlace &where) {
    std::vector<Condition> conditions;
    const std::vector<std::string> texts = read_strings(when, where);
    for (size_t i = 0; i < texts.size(); i++) {
        const std::optional<Condition> c = parse_condition(texts[i]);
        if (!c)
            (where / std::to_string(i))
                .fail("schedule.syntax", "expected a condition such as \"M <= 16\", \"N % 16 == 0\" or \"avx512_bf16\"; got '" + texts[i] +
                                             "'. Write it in one of these forms.");
        conditions.push_back(*c);
    }
    return conditions;
}

namespace {

void check_stages(const json &stages, const FieldPlace &where) {
    std::set<std::string> names;
    for (const auto &[name, knobs] : object(stages, where, "an object of stages and their knobs").items()) names.insert(name);
    for (const auto &[name, knobs] : stages.items())
        if (!knobs.is_null()) {
            if (knobs.is_object() && knobs.empty())
                (where / name)
                    .fail("schedule.empty-stage",
                          "the stage '" + name + "' has no knobs, so it says nothing. State one, or remove the stage.");
            read_knobs(knobs, names, where / name);
        }
}

// What is shown of a schedule, in notes, tables and messages, is then safe to show.
void check_texts(const json &value, const FieldPlace &where) {
    auto want_printable = [](const std::string &text, const FieldPlace &at) {
        if (printable(text) != text)
            at.fail("schedule.characters",
                    "expected text without control and format characters; got '" + text.substr(0, 60) + "'. Remove them.");
    };
    if (value.is_string()) return want_printable(value.get<std::string>(), where);
    if (value.is_array())
        for (size_t i = 0; i < value.size(); i++) check_texts(value[i], where / std::to_string(i));
    if (value.is_object())
        for (const auto &[key, entry] : value.items()) {
            want_printable(key, where / key);
            check_texts(entry, where / key);
        }
}

std::set<std::string> condition_texts(const json &when, const FieldPlace &where) {
    std::set<std::string> texts;
    for (const Condition &c : read_conditions(when, where)) texts.insert(to_string(c));
    return texts;
}

void check_variants(const json &variants, const FieldPlace &where) {
    if (array(variants, where, "an array of variants").size() > max_variants)
        where.fail("schedule.variants", "expected at most " + std::to_string(max_variants) + " variants, each of which is compiled; got " +
                                            std::to_string(variants.size()) + ". Let one stand for several of them.");
    std::vector<std::set<std::string>> earlier;
    for (size_t i = 0; i < variants.size(); i++) {
        const FieldPlace at = where / std::to_string(i);
        known_fields(object(variants[i], at, "an object with when and stages"), at, {"when", "stages"});
        const std::set<std::string> when = condition_texts(field(variants[i], at, "when"), at / "when");
        check_stages(field(variants[i], at, "stages"), at / "stages");
        if (when.empty())
            (at / "when")
                .fail("schedule.dead-variant",
                      "expected a condition; got none, so that it always applies and neither a later variant nor the stages outside "
                      "variants ever do. State a condition, or move its stages there.");
        for (size_t j = 0; j < earlier.size(); j++)
            if (std::includes(when.begin(), when.end(), earlier[j].begin(), earlier[j].end()))
                (at / "when")
                    .fail("schedule.dead-variant",
                          "it never applies, since variant " + std::to_string(j) + ", which comes before it, does wherever " +
                              join({earlier[j].begin(), earlier[j].end()}, " and ") + ". Put it first, or remove it.");
        earlier.push_back(when);
    }
}

std::string name_in(const json &document, const FieldPlace &where, const std::string &key) {
    const std::string name = string(document[key], where / key, "a schedule's name");
    if (!is_schedule_name(name))
        (where / key)
            .fail(key == "name" ? "schedule.name" : "schedule.outside",
                  "expected a schedule's name inside the schedule folders: letters, digits, '_', '-', '+' and '.' in parts joined by '/', "
                  "none of them '.' or '..'; got " +
                      shortened(document[key]) + ". Name it as in \"linear_gelu/avx512\".");
    return name;
}

}  // namespace

void check_document(const json &document, const std::string &subject) {
    FieldPlace where{subject, "", {}};
    object(document, where, "an object");
    const json &format = field(document, where, "format");
    if (format != "tessera-schedule")
        (where / "format")
            .fail("schedule.format", "expected \"tessera-schedule\"; got " + shortened(format) + ". Hand in a schedule artifact.");
    const json &version = field(document, where, "version");
    want(version.is_number_integer(), version, where / "version", "an integer", "This Tessera reads version 1.");
    if (version != 1)
        (where / "version")
            .fail("schedule.version", "the artifact has version " + version.dump() +
                                          "; this Tessera reads version 1. Use the Tessera that wrote it, or write the artifact anew.");
    field(document, where, "name");
    where.schedule = name_in(document, where, "name");
    if (document.contains("extends")) name_in(document, where, "extends");
    check_texts(document, where);
    known_fields(document, where, document_fields());
    if (document.contains("algorithm")) {
        const FieldPlace at = where / "algorithm";
        known_fields(object(document["algorithm"], at, "an object with name, surface and transforms"), at,
                     {"name", "surface", "transforms"});
        for (const auto &[key, value] : document["algorithm"].items())
            if (key == "transforms") read_strings(value, at / key);
            else string(value, at / key, "a string");
    }
    if (document.contains("requires") && !document["requires"].is_null()) set_of(document["requires"], where / "requires");
    if (document.contains("stages")) check_stages(document["stages"], where / "stages");
    if (document.contains("variants") && !document["variants"].is_null()) check_variants(document["variants"], where / "variants");
    if (document.contains("measured")) object(document["measured"], where / "measured", "an object");
}

}  // namespace tessera
