#include "generators/commands/quantize.h"

#include <cmath>
#include <cstring>
#include <iostream>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/evaluate/stored_array.h"
#include "algorithms/quantization/quantized_values.h"
#include "support/files/json_parse.h"
#include "support/files/json_reader.h"
#include "support/files/json_text.h"
#include "support/files/safetensors.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

enum class Per { tensor, channel, group };
constexpr const char *per_names[] = {"tensor", "channel", "group"};

struct QuantizeOptions {
    std::string file, out, format = "int8", scale_type = "f32";
    std::vector<std::string> tensors, keep;
    Per per = Per::channel;
    Fit fit = Fit::min_max;
    int64_t axis = 0, group = 32;
    double percent = 99.9;
    bool zero_points = false, transpose = false, simulate = false, json = false;
};

// What a name of --format stands for, where it says more than the codes.
struct Preset {
    const char *name, *codes;
    int64_t group;
    DType scales;
};
constexpr Preset presets[] = {
    {"mxfp8", "f8e4m3fn", 32, DType::f8e8m0fnu}, {"mxfp4", "f4e2m1fn", 32, DType::f8e8m0fnu}, {"nvfp4", "f4e2m1fn", 16, DType::f8e4m3fn}};

// Nothing for a format that says its codes alone.
const Preset *preset_named(const std::string &format) {
    for (const Preset &preset : presets)
        if (format == preset.name) return &preset;
    return nullptr;
}

// What may be quantised: floats of two bytes or more.
std::optional<DType> wide_float(const SafeTensor &t) {
    const std::optional<DType> type = dtype_of_safetensors(t.type);
    return type && is_float(*type) && size_of(*type) > 1 ? type : std::nullopt;
}

std::vector<float> values_of(std::string_view bytes, DType type) {
    const auto size = static_cast<size_t>(size_of(type));
    std::vector<float> values(bytes.size() / size);
    if (type == DType::f32) {
        if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
    for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(load_scalar(type, bytes.data() + i * size).real);
    return values;
}

// Why a tensor stays as it is; empty where it is quantized.
std::string why_kept(const SafeTensor &t, const QuantizeOptions &o) {
    const auto any = [&](const std::vector<std::string> &patterns) {
        return std::any_of(patterns.begin(), patterns.end(), [&](const std::string &p) { return matches_pattern(t.name, p); });
    };
    if (!wide_float(t)) return "no floats of 16 bits or more";
    if (t.bytes.empty()) return "no elements";
    if (any(o.keep)) return "kept by --keep";
    if (!o.tensors.empty()) return any(o.tensors) ? "" : "another name";
    return t.extents.size() > 1 ? "" : "fewer than two axes";
}

// "t (F32 [0, 5]: no elements)".
std::string described(const SafeTensor &t, const QuantizeOptions &o) {
    return fmt::format("{} ({} [{}]: {})", printable(t.name), printable(t.type), fmt::join(t.extents, ", "), why_kept(t, o));
}

// One tensor of the table.
struct Row {
    std::string name;
    size_t before = 0, after = 0;
    QuantizationError error;
};

struct Plan {
    const CodeFormat *format = nullptr;
    ScaleRule rule;
    Per per = Per::channel;
    int64_t axis = 0, group = 0;

    explicit Plan(const QuantizeOptions &o) : per(o.per), axis(o.axis), group(o.group) {
        rule = {o.fit, o.percent, o.zero_points, dtype_named(o.scale_type)};
        const Preset *preset = preset_named(o.format);
        if (preset) per = Per::group, group = preset->group, rule.scales = preset->scales;
        format = &code_format(preset ? preset->codes : o.format);
    }
    Blocks blocks(size_t rank) const {
        return per == Per::tensor ? per_tensor(rank) : per == Per::channel ? per_channel(rank, axis) : per_group(rank, axis, group);
    }
    std::string scheme() const {
        std::string text = std::string("per ") + per_names[static_cast<int>(per)];
        if (per == Per::group) text += " of " + std::to_string(group);
        if (per != Per::tensor) text += ", axis " + std::to_string(axis);
        text += std::string(", ") + fit_names[static_cast<int>(rule.fit)];
        if (rule.fit == Fit::percentile) text += fmt::format(" {:g}", rule.percent);
        if (rule.zero_points) text += ", zero points";
        return text + ", scales " + name_of(rule.scales);
    }
    // What the file's metadata say of one tensor.
    ordered_json document(const SafeTensor &t, bool transposed) const {
        ordered_json made = {{"format", format->name}, {"per", per_names[static_cast<int>(per)]}};
        if (per != Per::tensor) made["axis"] = axis;
        if (per == Per::group) made["group"] = group;
        made["scales"] = name_of(rule.scales);
        made["zero_points"] = rule.zero_points;
        made["fit"] = fit_names[static_cast<int>(rule.fit)];
        if (rule.fit == Fit::percentile) made["percentile"] = rule.percent;
        made["transposed"] = transposed, made["type"] = t.type, made["shape"] = t.extents;
        return made;
    }
};

void print(const std::vector<Row> &rows, const Plan &plan, const QuantizeOptions &o, size_t others) {
    size_t before = 0, after = 0, width = 6;
    for (const Row &row : rows) before += row.before, after += row.after, width = std::max(width, printable(row.name).size());
    if (o.json) {
        ordered_json document = {
            {"format", "tessera-quantize"}, {"codes", plan.format->name}, {"scheme", plan.scheme()}, {"tensors", ordered_json::array()}};
        for (const Row &row : rows) {
            ordered_json one = {{"name", row.name},
                                {"bytes_before", row.before},
                                {"bytes_after", row.after},
                                {"largest_error", row.error.largest},
                                {"relative_rms_error", row.error.relative}};
            one["sqnr_db"] = std::isfinite(row.error.decibels()) ? ordered_json(row.error.decibels()) : ordered_json();
            document["tensors"].push_back(one);
        }
        document["bytes_before"] = before, document["bytes_after"] = after, document["bytes_copied"] = others;
        std::cout << lossy_json_text(document, 2) << "\n";
        return;
    }
    std::cout << fmt::format("{}, {}\n", plan.format->name, plan.scheme());
    std::cout << fmt::format("{:{}} {:>12} {:>12} {:>10} {:>9} {:>8}\n", "tensor", width, "bytes", "after", "max error", "relative",
                             "SQNR dB");
    for (const Row &row : rows)
        std::cout << fmt::format("{:{}} {:12} {:12} {:>10.2e} {:>9.2e} {:>8.2f}\n", printable(row.name), width, row.before, row.after,
                                 row.error.largest, row.error.relative, row.error.decibels());
    std::cout << fmt::format("{:{}} {:12} {:12}\n", "all", width, before, after);
    std::cout << fmt::format("copied as they are: {} bytes; written: {}{}\n", others, printable(o.out),
                             o.simulate ? ", with what codes stand for in place of codes" : "");
}

constexpr const char *metadata_name = "tessera.quantization";

// What the file says of codes that it has already, which stays.
ordered_json known_quantization(const Safetensors &file, const std::string &subject) {
    ordered_json about = {{"format", "tessera-quantization"}, {"version", 1}, {"tensors", ordered_json::object()}};
    const auto known = file.metadata().find(metadata_name);
    if (known == file.metadata().end()) return about;
    const nlohmann::json document = parse_json(known->second, subject + ": " + metadata_name);
    const JsonReader reader(document, subject + ": " + metadata_name);
    if (reader.at("format").text() != "tessera-quantization" || reader.at("version").integer(0) != 1)
        reader.fail("quantization.metadata", "expected format tessera-quantization and version 1, as this program writes; got another.");
    for (const auto &[name, entry] : reader.at("tensors").fields()) about["tensors"][name] = document["tensors"][name];
    return about;
}

// Options that a format says already, or that something else would have to ask for.
void check_options(const CommandLine &line, const QuantizeOptions &o) {
    const auto refuse = [](const std::string &what) { throw UserError("command.arguments", what); };
    if (const Preset *preset = preset_named(o.format))
        for (const char *name : {"--per", "--group", "--scales"})
            if (line.has(name))
                refuse(fmt::format("{}: --format {} says it already: groups of {} with scales of {}. Leave it out.", name, preset->name,
                                   preset->group, name_of(preset->scales)));
    if (line.has("--group") && o.per != Per::group) refuse("--group: expected --per group with it. Add that, or leave it out.");
    if (line.has("--percentile") && o.fit != Fit::percentile)
        refuse("--percentile: expected --scale percentile with it. Add that, or leave it out.");
}

int run(const QuantizeOptions &o) {
    const Plan plan(o);
    const Safetensors file(o.file);
    std::vector<SafeTensor> written;
    std::vector<std::vector<StoredTensor>> kept;  // the bytes of what is new
    std::vector<Row> rows;
    ordered_json about = known_quantization(file, o.file);
    size_t others = 0;
    for (const SafeTensor &t : file.tensors()) {
        if (!why_kept(t, o).empty()) {
            written.push_back(t), others += t.bytes.size();
            continue;
        }
        try {
            const DType type = *wide_float(t);
            const std::vector<float> values = values_of(t.bytes, type);
            const QuantizedValues q = quantize(values, t.extents, plan.blocks(t.extents.size()), *plan.format, plan.rule);
            const std::vector<StoredTensor> real = stored_tensors(q, t.name, o.transpose);
            kept.push_back(o.simulate ? std::vector{stored_floats(t.name, type, t.extents, dequantize(q))} : real);
            Row row{t.name, t.bytes.size(), 0, o.simulate ? error_of(values_of(kept.back()[0].bytes, type), values) : error_of(q, values)};
            for (const StoredTensor &stored : real) row.after += stored.bytes.size();
            rows.push_back(row);
        } catch (const UserError &error) {
            throw UserError(error.id(),
                            "tensor '" + t.name + "' of '" + o.file + "': " + error.message() + " --keep leaves a tensor as it is.");
        }
        for (const StoredTensor &stored : kept.back())
            written.push_back({stored.name, safetensors_type(stored.type).value(), stored.extents, stored.bytes});
        about["tensors"][t.name] = plan.document(t, o.transpose);
    }
    if (rows.empty()) {
        constexpr size_t most = 8;
        std::vector<std::string> all;
        for (const SafeTensor &t : file.tensors())
            if (all.size() < most) all.push_back(described(t, o));
        const std::string rest = file.tensors().size() > most ? fmt::format(" and {} more", file.tensors().size() - most) : "";
        throw UserError("quantization.pattern",
                        "'" + o.file + "': expected floats with elements, " +
                            (o.tensors.empty() ? "of two axes or more" : "whose names are like '" + join(o.tensors, "', '") + "'") +
                            "; there is nothing to quantize. The file has " + join(all) + rest + ".");
    }
    std::map<std::string, std::string> metadata = file.metadata();
    if (!o.simulate) metadata[metadata_name] = json_text(about);
    write_safetensors(o.out, std::move(written), metadata);
    print(rows, plan, o, others);
    return exit_ok;
}

}  // namespace

// Names come from strangers: the library's usual way of matching goes deeper with each letter, and may try every way to match.
#ifdef __GLIBCXX__
static constexpr auto linear_time = std::regex_constants::__polynomial;
#else
static constexpr auto linear_time = std::regex::ECMAScript;
#endif

bool matches_pattern(const std::string &name, const std::string &pattern) {
    if (pattern.starts_with("re:")) {
        try {
            return std::regex_match(name, std::regex(pattern.substr(3), std::regex::ECMAScript | linear_time));
        } catch (const std::regex_error &error) {
            throw UserError("quantization.pattern", "'" + pattern + "': expected a regular expression behind 're:'; " + error.what() + ".");
        }
    }
    // Where a star was, the rest is tried from each later place; only the last star needs that.
    size_t n = 0, p = 0, star = std::string::npos, from = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') star = p++, from = n;
        else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) p++, n++;
        else if (star != std::string::npos) p = star + 1, n = ++from;
        else return false;
    }
    return pattern.find_first_not_of('*', p) == std::string::npos;
}

Command quantize_command(ProgramLine &program) {
    auto o = std::make_shared<QuantizeOptions>();
    const CommandLine line =
        program.command("quantize", "Quantise a model's tensors to codes of few bits with scales, and print the errors that this causes");
    line.option("file", o->file, "The model, a safetensors file").required();
    line.option("-o,--out", o->out, "The safetensors file to write").takes("FILE").required();
    std::vector<std::string> formats = code_format_names();
    for (const Preset &preset : presets) formats.emplace_back(preset.name);
    line.option("--tensors", o->tensors,
                "Tensors to quantise: a pattern with * and ?, or re: and a regular expression. Default: all floats with two axes or more")
        .takes("PATTERN")
        .one_value_each();
    line.option("--keep", o->keep, "Tensors among them to leave as they are").takes("PATTERN").one_value_each();
    line.option("--format", o->format, "Format of the codes. mxfp8, mxfp4 and nvfp4 also decide groups and scales")
        .one_of(formats)
        .shows_default();
    line.choice("--per", o->per, {"tensor", "channel", "group"}, "Elements that share a scale: a channel, a group or the whole tensor")
        .shows_default("channel");
    line.option("--axis", o->axis, "Axis of the channels, or along which groups lie; below 0 counts from the last")
        .shows_default("0, of groups -1");
    line.option("--group", o->group, "Elements of a group").shows_default();
    line.option("--scales", o->scale_type, "Type of the scales").one_of({"f32", "f16", "bf16", "f8e8m0fnu", "f8e4m3fn"}).shows_default();
    line.choice("--scale", o->fit, {"minmax", "percentile", "mse"},
                "Rule that chooses scales: by extremes, a percentile, or the least square error")
        .shows_default("minmax");
    line.option("--percentile", o->percent, "Percentile for --scale percentile").number_in(50, 100).shows_default();
    line.flag("--zero-points", o->zero_points, "Allow ranges of integers that are not symmetric around 0, with zero points");
    line.flag("--symmetric", o->zero_points, "No zero points. This is the default").excludes(line.added("--zero-points"));
    line.flag("--transpose", o->transpose, "Write [N, K] as [K, N], as products with --numerics int8 take it");
    line.flag("--simulate", o->simulate, "Write the quantised values in the tensor's own type and shape, to try a program's accuracy")
        .excludes(line.added("--transpose"));
    line.flag("--json", o->json, "Print JSON");
    return {line, [=] {
                const bool grouped = o->per == Per::group || preset_named(o->format);
                if (!line.has("--axis")) o->axis = grouped ? -1 : 0;
                if (line.has("--symmetric")) o->zero_points = false;
                check_options(line, *o);
                return run(*o);
            }};
}

}  // namespace tessera
