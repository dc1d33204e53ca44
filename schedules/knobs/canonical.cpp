#include "schedules/knobs/canonical.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedules/knobs/knob.h"

namespace tessera {

using nlohmann::json;

namespace {

constexpr size_t columns = 100;

// What a value is, as far as the order of its keys and its lines are concerned.
enum class Kind { document, stages, knobs, variants, variant, other };

Kind child_of(Kind kind, const std::string &key) {
    if (kind == Kind::document || kind == Kind::variant) {
        if (key == "stages") return Kind::stages;
        return key == "variants" ? Kind::variants : Kind::other;
    }
    if (kind == Kind::stages) return Kind::knobs;
    return Kind::other;
}

// The small objects' keys: of a split, a pack, a variant, a directive and the algorithm. Other names
// follow, sorted.
const std::vector<std::string> &inner_fields() {
    static const std::vector<std::string> names = {"how",   "size", "at",   "layout", "when", "stages", "id",
                                                   "after", "op",   "loop", "factor", "name", "surface"};
    return names;
}

std::vector<std::string> keys_of(const json &object, const std::vector<std::string> &order) {
    std::vector<std::string> keys;
    for (const std::string &key : order)
        if (object.contains(key)) keys.push_back(key);
    for (const auto &[key, value] : object.items())
        if (std::find(order.begin(), order.end(), key) == order.end()) keys.push_back(key);
    return keys;
}

const std::vector<std::string> &order_of(Kind kind) {
    static const std::vector<std::string> none;
    if (kind == Kind::document) return document_fields();
    if (kind == Kind::knobs) return knob_names();
    return kind == Kind::stages ? none : inner_fields();
}

std::string quoted(const std::string &text) { return json(text).dump(); }

void write_line(std::string &out, const json &value) {
    if (value.is_array()) {
        out += "[";
        for (size_t i = 0; i < value.size(); i++) out += i ? ", " : "", write_line(out, value[i]);
        out += "]";
    } else if (value.is_object()) {
        out += "{";
        bool first = true;
        for (const std::string &key : keys_of(value, order_of(Kind::other))) {
            out += (first ? "" : ", ") + quoted(key) + ": ";
            first = false;
            write_line(out, value[key]);
        }
        out += "}";
    } else {
        out += value.dump();
    }
}

void write(std::string &out, const json &value, Kind kind, size_t indent) {
    if (kind == Kind::other || !value.is_structured() || value.empty()) {
        const std::string line = one_line(value);
        const size_t used = out.size() - (out.rfind('\n') + 1);
        if (used + line.size() + 1 <= columns || !value.is_structured() || value.empty()) {
            out += line;
            return;
        }
    }
    const std::string margin(indent + 2, ' ');
    bool first = true;
    auto begin_item = [&] {
        out += (first ? "\n" : ",\n") + margin;
        first = false;
    };
    out += value.is_array() ? "[" : "{";
    if (value.is_array()) {
        for (const json &item : value) begin_item(), write(out, item, kind == Kind::variants ? Kind::variant : Kind::other, indent + 2);
    } else {
        for (const std::string &key : keys_of(value, order_of(kind))) {
            begin_item();
            out += quoted(key) + ": ";
            write(out, value[key], child_of(kind, key), indent + 2);
        }
    }
    out += "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

}  // namespace

const std::vector<std::string> &document_fields() {
    static const std::vector<std::string> names = {"format",   "version", "name",     "extends", "algorithm",
                                                   "requires", "stages",  "variants", "measured"};
    return names;
}

std::string one_line(const json &value) {
    std::string out;
    write_line(out, value);
    return out;
}

std::string canonical_text(const json &document) {
    std::string out;
    write(out, document, Kind::document, 0);
    return out + "\n";
}

}  // namespace tessera
