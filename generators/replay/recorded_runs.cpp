#include "generators/replay/recorded_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

using nlohmann::ordered_json;

std::vector<BundledTarget> targets_here(const std::string &file, const std::optional<KeyBytes> &public_key) {
    std::vector<BundledTarget> all = OpenedBundle(file, public_key).targets();
    std::erase_if(all, [](const BundledTarget &t) { return !t.runs_here; });
    return all;
}

namespace {

// What is said of one kernel: by <kernel>.<name>, or else by <name>.
template <typename Value>
const Value *said(const std::map<std::string, Value> &values, const std::string &kernel, const std::string &name,
                  std::set<std::string> &used) {
    for (const std::string &key : {kernel + "." + name, name})
        if (const auto found = values.find(key); found != values.end()) {
            used.insert(key);
            return &found->second;
        }
    return nullptr;
}

std::map<std::string, std::string> parameter_words(const std::vector<std::string> &words) {
    std::map<std::string, std::string> all;
    for (const std::string &word : words) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos || equals == 0 || !all.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
            throw UserError("record.parameter", "--parameter " + printable(word) + ": expected [<kernel>.]<parameter>=<value>, each once.");
    }
    return all;
}

// As records have it: floats in hexadecimal, rounded to the type.
std::string value_text(const std::string &kernel, const TessParameterInfo &parameter, const std::string &word) {
    const int32_t dtype = parameter.type.code | parameter.type.bits << 8;
    const char *begin = word.data(), *end = begin + word.size();
    if (dtype == TESS_F32 || dtype == TESS_F64) {
        double value = 0;
        const auto [at, error] = std::from_chars(begin, end, value);
        if (error == std::errc() && at == end && std::isfinite(value))
            return dtype == TESS_F32 ? fmt::format("{:a}", static_cast<float>(value)) : fmt::format("{:a}", value);
    } else if (dtype == TESS_BOOL && (word == "true" || word == "false" || word == "1" || word == "0")) {
        return word == "true" || word == "1" ? "1" : "0";
    } else {
        int64_t value = 0;
        const auto [at, error] = std::from_chars(begin, end, value);
        if (error == std::errc() && at == end) return std::to_string(value);
    }
    throw UserError("record.parameter", "parameter '" + quotable(parameter.name) + "' of kernel '" + quotable(kernel) +
                                            "': expected a value of its type, got '" + quotable(word) + "'.");
}

class Recorder {
public:
    explicit Recorder(const RecordRequest &request) : request_(request), parameters_(parameter_words(request.parameters)) {}

    // What to run of a kernel; its outputs are not known yet.
    ordered_json run_of(const OpenedBundle &bundle, const std::string &name) {
        const TessKernel kernel = bundle.kernel(name);
        TessKernelInfo info{};
        info.size = sizeof info;
        expect(tess_kernel_info(&kernel, &info));
        return {{"kernel", name},
                {"extents", extents_of(kernel, info)},
                {"inputs", inputs_of(bundle, kernel, info)},
                {"parameters", parameters_of(kernel, info)},
                {"outputs", ordered_json::array()}};
    }

    // Refuses what no kernel has.
    void check_used() const {
        for (const auto &[name, extent] : request_.extents)
            if (!used_.count(name))
                throw UserError("record.extent",
                                "--extents " + printable(name) + ": no kernel that is recorded has such a dim that is not fixed.");
        for (const auto &[name, value] : parameters_)
            if (!used_.count(name))
                throw UserError("record.parameter",
                                "--parameter " + printable(name) + ": no kernel that is recorded has such a parameter.");
    }

private:
    static void expect(int32_t status) {
        if (status != TESS_OK)
            throw UserError("bundle.code", std::string("a kernel of the bundle does not describe itself: ") + tess_status_kind(status) +
                                               ". Make the bundle again.");
    }

    ordered_json extents_of(const TessKernel &kernel, const TessKernelInfo &info) {
        ordered_json all = ordered_json::object();
        std::vector<std::string> missing;
        for (int32_t i = 0; i < info.dims; i++) {
            TessDimInfo dim{};
            dim.size = sizeof dim;
            expect(tess_kernel_dim(&kernel, i, &dim));
            if (dim.fixed >= 0) continue;
            if (const int64_t *extent = said(request_.extents, info.name, dim.name, used_)) all[dim.name] = *extent;
            else if (dim.equal_to < 0) missing.push_back(std::string(dim.name) + "=…");
        }
        if (!missing.empty())
            throw UserError("record.extent", "kernel '" + quotable(info.name) +
                                                 "': expected extents of its dims that are not fixed, got none of some. Add --extents " +
                                                 printable(join(missing, " ")) + ".");
        return all;
    }

    ordered_json inputs_of(const OpenedBundle &bundle, const TessKernel &kernel, const TessKernelInfo &info) const {
        constexpr uint64_t most_number = uint64_t{1} << 62;  // of JSON in bundles
        const ordered_json seed = request_.seed > most_number ? ordered_json(std::to_string(request_.seed)) : ordered_json(request_.seed);
        ordered_json all = ordered_json::array();
        for (int32_t i = 0; i < info.tensors; i++) {
            TessTensorInfo tensor{};
            tensor.size = sizeof tensor;
            expect(tess_kernel_tensor(&kernel, i, &tensor));
            if (tensor.role == TESS_ROLE_OUTPUT || (tensor.role == TESS_ROLE_INPUT && bundle.is_weight(info.name, tensor.name))) continue;
            all.push_back({{"argument", tensor.name}, {"seed", seed}, {"step", request_.step}});
        }
        return all;
    }

    ordered_json parameters_of(const TessKernel &kernel, const TessKernelInfo &info) {
        ordered_json all = ordered_json::array();
        for (int32_t i = 0; i < info.parameters; i++) {
            TessParameterInfo parameter{};
            parameter.size = sizeof parameter;
            expect(tess_kernel_parameter(&kernel, i, &parameter));
            const std::string *word = said(parameters_, info.name, parameter.name, used_);
            if (!word)
                throw UserError("record.parameter", "kernel '" + quotable(info.name) + "': expected a value of parameter '" +
                                                        quotable(parameter.name) + "', got none. Add --parameter " +
                                                        printable(parameter.name) + "=….");
            all.push_back({{"name", parameter.name}, {"value", value_text(info.name, parameter, *word)}});
        }
        return all;
    }

    const RecordRequest &request_;
    std::map<std::string, std::string> parameters_;
    std::set<std::string> used_;
};

std::string text_of(const ordered_json &runs) {
    return ordered_json{{"format", "tessera-replay"}, {"version", 1}, {"runs", runs}}.dump(2) + "\n";
}

// An output that was recorded before is the same, or something is broken.
void add_output(ordered_json &outputs, const ReplayedOutput &o) {
    for (const ordered_json &known : outputs)
        if (known["argument"] == o.argument && known["bits"] == o.bits) {
            if (known["sha256"] != o.got)
                throw UserError("record.bits", "kernel '" + quotable(o.kernel) + "', argument '" + quotable(o.argument) + "': code for " +
                                                   quotable(o.target) +
                                                   " was expected to give the result of another target with the same order of operations, "
                                                   "and gave another. Run it again; if it "
                                                   "stays so, report it.");
            return;
        }
    outputs.push_back({{"argument", o.argument}, {"bits", o.bits}, {"sha256", o.got}});
}

}  // namespace

Record record_runs(const std::string &file, const RecordRequest &request) {
    Recorder recorder(request);
    ordered_json runs = ordered_json::array();
    const OpenedBundle best(file, request.public_key);
    std::vector<std::string> known;
    for (const BundledKernel &kernel : best.kernels()) {
        known.push_back(kernel.name);
        const bool is_asked =
            request.kernels.empty() || std::find(request.kernels.begin(), request.kernels.end(), kernel.name) != request.kernels.end();
        if (is_asked && !kernel.target.empty()) runs.push_back(recorder.run_of(best, kernel.name));
    }
    for (const std::string &name : request.kernels)
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw UserError("record.kernel", "--kernel " + printable(name) + ": the bundle has no such kernel; it has " +
                                                 printable(join(known)) + "." + did_you_mean(name, known));
    if (runs.empty())
        throw UserError("record.kernel",
                        "file '" + quotable(file) + "': expected code that this processor runs, got none. Record it where it runs.");
    recorder.check_used();

    Record record;
    for (const BundledTarget &target : targets_here(file, request.public_key)) {
        const OpenedBundle bundle(file, request.public_key, target.features);
        ordered_json own = ordered_json::array();
        std::vector<size_t> numbers;  // of the runs that this target has code for
        const std::vector<BundledKernel> kernels = bundle.kernels();
        for (size_t i = 0; i < runs.size(); i++)
            for (const BundledKernel &kernel : kernels)
                if (kernel.name == runs[i]["kernel"] && kernel.target == target.name) {
                    own.push_back(runs[i]);
                    own.back()["outputs"] = ordered_json::array();
                    numbers.push_back(i);
                }
        if (own.empty()) continue;
        record.targets.push_back(target.name);
        for (const ReplayedOutput &o : bundle.replay(text_of(own), request.threads)) add_output(runs[numbers.at(o.run)]["outputs"], o);
    }
    record.runs = runs.size();
    for (const ordered_json &run : runs) record.outputs += run["outputs"].size();
    record.text = text_of(runs);
    return record;
}

}  // namespace tessera
