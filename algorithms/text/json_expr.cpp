#include "algorithms/text/json_expr.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "algorithms/expr/number.h"
#include "algorithms/expr/value_numbering.h"
#include "algorithms/functions/functions.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

static std::string real_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char digits[40];
    char *end = std::to_chars(digits, digits + sizeof digits, std::fabs(value), std::chars_format::hex).ptr;
    return (std::signbit(value) ? "-0x" : "0x") + std::string(digits, end);
}

static Scalar real_from(const JsonReader &reader, DType type) {
    if (reader.value().is_number()) {
        const double value = reader.value().get<double>();
        return reader.located([&] { return number("a number of a document", type, value)->value; });
    }
    const std::string &text = reader.text();
    if (text == "nan") return Scalar::of_real(type, NAN);
    bool negative = text.starts_with('-');
    std::string_view digits = std::string_view(text).substr(negative);
    double value = INFINITY;
    if (digits != "inf") {
        auto bad = [&] {
            reader.fail("json.value", std::string("expected a hexadecimal float such as \"0x1.8p+0\", exact in ") + name_of(type) +
                                          ", or \"inf\", \"-inf\", \"nan\".");
        };
        if (!digits.starts_with("0x") || digits.starts_with("0x-")) bad();
        auto [end, error] = std::from_chars(digits.data() + 2, digits.data() + digits.size(), value, std::chars_format::hex);
        if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) bad();
        if (Scalar::of_real(type, value).real != value) bad();
    }
    return Scalar::of_real(type, negative ? -value : value);
}

json to_json(const Scalar &s) {
    if (is_float(s.type)) return json::array({name_of(s.type), real_text(s.real)});
    if (s.type == DType::boolean) return json::array({name_of(s.type), s.truth()});
    return json::array({name_of(s.type), s.integer});
}

Scalar scalar_from_json(DType type, const JsonReader &reader) {
    if (is_float(type)) return real_from(reader, type);
    if (type == DType::boolean) return Scalar::of_integer(type, reader.truth());
    if (type == DType::index) return Scalar::of_integer(type, reader.integer());
    return Scalar::of_integer(type, reader.integer(traits_of(type).lowest, traits_of(type).highest));
}

static DType dtype_of(const JsonReader &reader) {
    return reader.located([&] { return dtype_named(reader.quotable()); });
}

Scalar scalar_from_json(const JsonReader &reader) {
    std::vector<JsonReader> items = reader.items();
    if (items.size() != 2)
        reader.fail("json.value", "expected a constant such as [\"i32\", 1], got " + std::to_string(items.size()) + " items.");
    return scalar_from_json(dtype_of(items[0]), items[1]);
}

namespace {

constexpr int max_levels = 16;

class Encoder {
public:
    json encode(const Expr &e) {
        int root = table_.number(e);
        std::vector<int> named = worth_naming(table_, {root}, max_levels);
        if (named.empty()) return node(root);
        json definitions = json::array();
        for (int n : named) {
            definitions.push_back(node(n));
            slots_[n] = static_cast<int>(slots_.size());
        }
        return json::array({"let", definitions, reference(root)});
    }

private:
    json reference(int n) const {
        auto it = slots_.find(n);
        return it == slots_.end() ? node(n) : json::array({"@", it->second});
    }
    json node(int n) const {
        const Expr &e = table_.expr(n);
        const Expr::Node &x = *e.get();
        json list = json::array();
        auto open = [&](auto... items) { (list.push_back(items), ...); };
        switch (x.kind) {
        case ExprKind::constant: return x.type == DType::index ? json(x.value.integer) : to_json(x.value);
        case ExprKind::variable: return x.name;
        case ExprKind::extent: open("extent", x.name); break;
        case ExprKind::parameter: open("parameter", x.name, name_of(x.type)); break;
        case ExprKind::load: open(x.guarded ? "load_or" : "load", x.name, name_of(x.type)); break;
        case ExprKind::bounded: open("bounded"); break;
        case ExprKind::operation: open(name_of(x.op)); break;
        case ExprKind::function: open_function(x.function, list); break;
        case ExprKind::bitcast: open("bitcast", name_of(x.type)); break;
        case ExprKind::cast: open("cast", name_of(x.type)); break;
        case ExprKind::left: open("left", x.number, name_of(x.type)); break;
        case ExprKind::right: open("right", x.number, name_of(x.type)); break;
        case ExprKind::input: open("input", x.number, name_of(x.type)); break;
        }
        for (int operand : table_.operands(n)) list.push_back(reference(operand));
        if (x.kind == ExprKind::cast && x.rounding != Rounding::nearest_even) list.push_back(name_of(x.rounding));
        if (x.kind == ExprKind::cast && x.saturate) list.push_back("saturate");
        return list;
    }

    // A document has the definitions of functions that do not ship, for whoever reads it.
    static void open_function(const FunctionRef &f, json &list) {
        const FunctionRef *standard = find_function(f->name);
        if (standard && *standard == f) return list.push_back(f->name);
        list.push_back("apply");
        json written = {{"name", f->name}, {"arity", f->arity}, {"f32", to_json(f->in_f32)}, {"f64", to_json(f->in_f64)}};
        if (f->facts.derivative.known())
            for (const DType type : {DType::f32, DType::f64})
                for (const Expr &e : f->facts.derivative.of(type)) written["derivative"][name_of(type)].push_back(to_json(e));
        list.push_back(std::move(written));
    }

    ValueNumbering table_;
    std::map<int, int> slots_;
};

class Decoder {
public:
    explicit Decoder(const Declared &declared) : declared_(declared) {}

    Expr decode(const JsonReader &reader) {
        const json &value = reader.value();
        if (!value.is_array() || value.empty() || value[0] != "let") return node(reader, 0);
        std::vector<JsonReader> items = reader.items();
        wants(reader, items, 3, 3);
        for (const JsonReader &definition : items[1].items()) definitions_.push_back(node(definition, 0));
        return node(items[2], 0);
    }

private:
    static void wants(const JsonReader &reader, const std::vector<JsonReader> &items, size_t lo, size_t hi) {
        if (items.size() >= lo && items.size() <= hi) return;
        std::string expected = std::to_string(lo) + (hi == lo ? "" : hi == SIZE_MAX ? " or more" : " to " + std::to_string(hi));
        reader.fail("json.expression",
                    "'" + items[0].quotable() + "' is an array of " + expected + " items, got " + std::to_string(items.size()) + ".");
    }

    Expr node(const JsonReader &reader, int depth) {
        if (depth > json_max_depth)
            reader.fail("json.expression",
                        "an expression nests deeper than " + std::to_string(json_max_depth) + " levels; name parts of it with \"let\".");
        if (reader.is_integer()) return Expr(reader.integer());
        if (reader.is_text()) return variable(reader.text());
        std::vector<JsonReader> items = reader.items();
        if (items.empty()) reader.fail("json.expression", "expected an expression such as [\"add\", a, b], got an empty array.");
        Expr e = table_.unique(compound(reader, items, depth));
        if (table_.height(table_.number(e)) > expr_max_height)
            reader.fail("json.expression",
                        "the expression has more than " + std::to_string(expr_max_height) + " levels; make stages of its parts.");
        return e;
    }

    Expr compound(const JsonReader &reader, const std::vector<JsonReader> &items, int depth) {
        const std::string &kind = items[0].text();
        auto operands = [&](size_t from) { return list_of(items, from, depth); };
        auto position = [&] { return static_cast<int>(items[1].integer(0, 1 << 20)); };
        if (kind == "@") {
            wants(reader, items, 2, 2);
            if (definitions_.empty())
                reader.fail("json.expression", "\"@\" refers to a definition of \"let\", and there is none before it.");
            return definitions_[static_cast<size_t>(items[1].integer(0, static_cast<int64_t>(definitions_.size()) - 1))];
        }
        if (kind == "extent") return wants(reader, items, 2, 2), extent(items[1].text());
        if (kind == "parameter") return wants(reader, items, 2, 3), parameter_of(reader, items);
        if (kind == "left") return wants(reader, items, 3, 3), left(position(), dtype_of(items[2]));
        if (kind == "right") return wants(reader, items, 3, 3), right(position(), dtype_of(items[2]));
        if (kind == "input") return wants(reader, items, 3, 3), input(position(), dtype_of(items[2]));
        if (kind == "load") {
            wants(reader, items, 2, SIZE_MAX);
            auto [name, type, index] = read_of(reader, items, depth);
            return load(name, type, items.size() == 2 ? own_index(name) : index);
        }
        if (kind == "load_or") {
            wants(reader, items, 4, SIZE_MAX);
            auto [name, type, index] = read_of(reader, items, depth);
            if (index.size() < 2) wants(reader, items, 5, SIZE_MAX);
            const Expr fill = index.back(), guard = index[index.size() - 2];
            index.resize(index.size() - 2);
            return load_or(name, type, items.size() == 4 ? own_index(name) : index, guard, fill);
        }
        if (kind == "bounded") {
            wants(reader, items, 4, 4);
            std::vector<Expr> x = operands(1);
            return bounded(x[0], x[1], x[2]);
        }
        if (kind == "bitcast") {
            wants(reader, items, 3, 3);
            DType type = dtype_of(items[1]);
            Expr value = node(items[2], depth + 1);
            return reader.located([&] { return bitcast(type, value); });
        }
        if (kind == "apply") return wants(reader, items, 3, SIZE_MAX), checked_function(reader, function_of(items[1]), operands(2));
        if (const FunctionRef *f = find_function(kind)) return checked_function(reader, *f, operands(1));
        if (kind == "cast") return wants(reader, items, 3, 5), cast_of(items, depth);
        if (is_dtype(kind)) return wants(reader, items, 2, 2), constant(scalar_from_json(dtype_named(kind), items[1]));
        Op op = operation_of(items[0]);
        auto count = static_cast<size_t>(arity(op)) + 1;
        wants(reader, items, count, count);
        return checked(reader, op, operands(1));
    }

    // Numbers take the type of the floats that they stand beside.
    std::vector<Expr> list_of(const std::vector<JsonReader> &items, size_t from, int depth) {
        std::vector<Expr> list(items.size() > from ? items.size() - from : 0);
        std::optional<DType> type;
        for (size_t i = from; i < items.size(); i++) {
            if (items[i].value().is_number_float()) continue;
            list[i - from] = node(items[i], depth + 1);
            if (is_float(list[i - from].type())) type = list[i - from].type();
        }
        for (size_t i = from; i < items.size(); i++) {
            if (!items[i].value().is_number_float()) continue;
            if (!type)
                items[i].fail("json.expression",
                              "a number takes the type of floats beside it, and there are none; give it one: [\"f32\", 0.5].");
            list[i - from] = constant(scalar_from_json(*type, items[i]));
        }
        return list;
    }

    struct Read {
        std::string name;
        DType type;
        std::vector<Expr> operands;  // what stands behind name and type
    };

    // The name and the type of what a load reads, which a declared tensor has.
    Read read_of(const JsonReader &reader, const std::vector<JsonReader> &items, int depth) {
        const std::string &name = items[1].text();
        const auto known = declared_.tensors.find(name);
        const bool is_word = items.size() > 2 && items[2].is_text();
        if (is_word && (is_dtype(items[2].text()) || known == declared_.tensors.end()))
            return {name, dtype_of(items[2]), list_of(items, 3, depth)};
        if (known == declared_.tensors.end()) {
            std::vector<std::string> names;
            for (const auto &[tensor, t] : declared_.tensors) names.push_back(tensor);
            reader.fail("json.expression", "no type is given, and there is no tensor or result '" + items[1].quotable() +
                                               "' before this; there are " + join(names) + "." + did_you_mean(items[1].quotable(), names) +
                                               " Give it one: [\"load\", \"x\", \"f32\", i, j].");
        }
        return {name, known->second.dtype, list_of(items, 2, depth)};
    }

    std::vector<Expr> own_index(const std::string &name) const {
        std::vector<Expr> index;
        for (const std::string &dim : declared_.tensors.at(name).dims) index.push_back(variable(dim));
        return index;
    }

    Expr parameter_of(const JsonReader &reader, const std::vector<JsonReader> &items) const {
        if (items.size() == 3) return parameter(items[1].text(), dtype_of(items[2]));
        const auto known = declared_.parameters.find(items[1].text());
        if (known == declared_.parameters.end())
            reader.fail("json.expression", "no type is given, and there is no parameter '" + items[1].quotable() +
                                               "'; give it one: [\"parameter\", \"eps\", \"f32\"].");
        return parameter(known->first, known->second);
    }

    // Tried on leaves for the reason that `checked` gives.
    static Expr checked_function(const JsonReader &reader, const FunctionRef &function, const std::vector<Expr> &operands) {
        reader.located([&] {
            Operands leaves;
            for (const Expr &e : operands) leaves.push_back(parameter("operand" + std::to_string(leaves.size()), e.type()));
            return applied(function, leaves);
        });
        return applied(function, Operands(operands.begin(), operands.end()));
    }

    FunctionRef function_of(const JsonReader &reader) {
        FunctionRef &known = functions_[reader.value().dump()];
        if (known) return known;
        reader.only({"name", "arity", "f32", "f64", "derivative"});
        const std::string name = reader.at("name").text();
        const int arity = static_cast<int>(reader.at("arity").integer(1, max_function_arguments));
        const Expr in_f32 = expr_from_json(reader.at("f32")), in_f64 = expr_from_json(reader.at("f64"));
        FunctionFacts facts;
        if (const auto derivative = reader.find("derivative")) {
            derivative->only({"f32", "f64"});
            for (const JsonReader &e : derivative->at("f32").items()) facts.derivative.in_f32.push_back(expr_from_json(e));
            for (const JsonReader &e : derivative->at("f64").items()) facts.derivative.in_f64.push_back(expr_from_json(e));
        }
        return known = reader.located([&] { return make_function(name, arity, in_f32, in_f64, facts); });
    }

    Expr cast_of(const std::vector<JsonReader> &items, int depth) {
        Rounding rounding = Rounding::nearest_even;
        bool saturate = false;
        for (size_t i = 3; i < items.size(); i++) {
            const std::string word = items[i].text();
            const auto *named = std::find_if(std::begin(roundings), std::end(roundings), [&](Rounding r) { return name_of(r) == word; });
            if (named == std::end(roundings) && word != "saturate")
                items[i].fail("json.value", "expected \"toward_zero\", \"up\", \"down\", \"nearest_even\" or \"saturate\", got \"" +
                                                items[i].quotable() + "\".");
            if (word == "saturate") saturate = true;
            else rounding = *named;
        }
        const DType type = dtype_of(items[1]);
        const Expr value = node(items[2], depth + 1);
        return items[1].located([&] { return cast(type, value, rounding, saturate); });
    }

    // The types are tried on leaves, because the message of a mistake prints the operands as trees, and a text of a few
    // lines can share so much that its tree has no end.
    Expr checked(const JsonReader &reader, Op op, std::vector<Expr> operands) {
        reader.located([&] {
            std::vector<Expr> leaves;
            for (const Expr &e : operands) leaves.push_back(parameter("operand" + std::to_string(leaves.size()), e.type()));
            return operation(op, leaves);
        });
        return operation(op, std::move(operands));
    }

    static bool is_dtype(const std::string &name) {
        return std::any_of(dtypes.begin(), dtypes.end(), [&](const DTypeTraits &traits) { return name == traits.name; });
    }

    static Op operation_of(const JsonReader &reader) {
        std::vector<std::string> kinds = {"extent", "parameter", "load",  "load_or", "bounded", "bitcast",
                                          "cast",   "left",      "right", "input",   "@",       "apply"};
        for (const FunctionRef &f : standard_functions()) kinds.push_back(f->name);
        for (const OpRow &row : op_table) {
            if (reader.text() == row.name) return row.op;
            kinds.emplace_back(row.name);
        }
        reader.fail("json.expression", "there is no kind of expression '" + reader.quotable() + "'; the kinds are " + join(kinds) +
                                           ", and constants by their type." + did_you_mean(reader.quotable(), kinds));
    }

    const Declared &declared_;
    ValueNumbering table_;
    std::vector<Expr> definitions_;
    std::map<std::string, FunctionRef> functions_;  // by their text: equal ones are one
};

}  // namespace

json to_json(const Expr &e) { return Encoder().encode(e); }

Expr expr_from_json(const JsonReader &reader, const Declared &declared) { return Decoder(declared).decode(reader); }
Expr expr_from_json(const json &value) { return expr_from_json(JsonReader(value, "expression")); }

}  // namespace tessera
