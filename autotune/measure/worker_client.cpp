#include "autotune/measure/worker_client.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "autotune/measure/packing_programs.h"
#include "autotune/measure/sampled.h"
#include "bench/measure/caller.h"
#include "compiler/emit/spec.h"
#include "compiler/interpret/interpret.h"
#include "support/text/printable.h"

namespace tessera {

using Clock = LineProcess::Clock;

static constexpr std::byte pattern{0xa5};
static constexpr size_t neighbours = 16;
static constexpr double max_steps = 3e8;  // of the interpreter: about a second

WorkerClient::WorkerClient(const MeasurementTask &task, const TileProgram &program, const std::string &command, const WorkerLimits &limits,
                           const std::filesystem::path &log)
    : task_(task),
      program_(program),
      limits_(limits),
      extents_(all_extents(program, all_extents(task.algorithm, task.extents))),
      packings_(packings_of(task.algorithm, program, task.target)),
      process_(command, limits.memory_bytes, log, limits.stopped),
      end_(LineProcess::after(limits.seconds)) {
    say_limit();
    say(fmt::format("threads {}\n", task.threads));
    // A kernel that runs on the calling thread alone takes the time that this thread gets.
    if (task.threads == 1 && task.callers == 1 && !task.target.is_gpu()) say("clock 1\n");
    if (task.callers > 1) say(fmt::format("callers {}\n", task.callers));
    for (size_t i = 0; i < program.arguments.size(); i++) {
        const Argument &a = program.arguments[i];
        const Tensor &tensor = a.packed ? a.packed->operand : a.tensor;
        const std::vector<int64_t> shape = shape_of(tensor, extents_);
        std::string line = fmt::format("shape {} {} {} {}", i, abi_dtype(tensor.dtype), a.written ? 1 : 0, shape.size());
        for (int64_t n : shape) line += fmt::format(" {}", n);
        say(line + "\n");
    }
}

void WorkerClient::fail(const std::string &why) {
    const std::string how = process_.ended();
    if (limits_.stopped && limits_.stopped()) throw Failed{Verdict::unmeasured, "it was stopped"};
    throw Failed{Verdict::crashed, printable(why.empty() ? how : why + "; " + how, true)};
}

void WorkerClient::say(std::string_view text) {
    if (!process_.write(text, end_)) fail("");
}

std::string WorkerClient::hear() {
    const std::optional<std::string> text = process_.line(end_);
    if (!text) fail("");
    return *text;
}

// The program ends itself too, on a machine where nothing else would end it.
void WorkerClient::say_limit() {
    const double left = std::chrono::duration<double>(end_ - Clock::now()).count();
    say(fmt::format("limit {}\n", static_cast<int>(std::ceil(std::max(left, 0.0))) + 1));
}

void WorkerClient::aside(const std::function<void()> &work) {
    say("limit 0\n");
    const auto start = Clock::now();
    work();
    end_ += Clock::now() - start;
    say_limit();
}

Array WorkerClient::held_before(const Argument &a, const Inputs &inputs) const {
    if (a.packed) return inputs.tensors.at(a.packed->operand.name);
    if (a.read) return inputs.tensors.at(a.tensor.name);
    Array array(a.tensor.dtype, shape_of(a.tensor, extents_));
    std::fill(array.data.begin(), array.data.end(), pattern);
    return array;
}

WorkerClient::Ran WorkerClient::run_on(const Inputs &inputs) {
    const std::vector<int64_t> words = parameter_words(program_, inputs.parameters);
    for (size_t i = 0; i < words.size(); i++) say(fmt::format("parameter {} {}\n", i, words[i]));
    for (size_t i = 0; i < program_.arguments.size(); i++) {
        const Array array = held_before(program_.arguments[i], inputs);
        say(fmt::format("tensor {} {}\n", i, array.data.size()));
        say({reinterpret_cast<const char *>(array.data.data()), array.data.size()});
    }
    return run(0);
}

WorkerClient::Ran WorkerClient::run(int which) {
    say(fmt::format("run {}\n", which));
    const std::string said = hear();
    Ran ran;
    int status = 0;
    unsigned long long bytes = 0;
    if (std::sscanf(said.c_str(), "ran %d %lf %llu", &status, &ran.seconds, &bytes) != 3 || !(ran.seconds >= 0))
        fail("it answered '" + said.substr(0, 80) + "'");
    ran.workspace_bytes = bytes;
    if (status == -1000) throw Failed{Verdict::wrong, "it wrote outside of its arguments"};
    if (status != 0) throw Failed{Verdict::crashed, fmt::format("it refuses its arguments with status {}", status)};
    for (size_t i = 0; i < program_.arguments.size(); i++) {
        if (!program_.arguments[i].written) continue;
        Array array(program_.arguments[i].tensor.dtype, shape_of(program_.arguments[i].tensor, extents_));
        if (hear() != fmt::format("tensor {} {}", i, array.data.size())) fail("it did not give its results");
        if (!process_.read(array.data.data(), array.data.size(), end_)) fail("");
        ran.written.emplace(i, std::move(array));
    }
    return ran;
}

// No call is shorter than a picosecond.
static bool is_time(double seconds) { return seconds >= 1e-12 && seconds < 1e9; }

std::pair<double, double> WorkerClient::time(long calls, long base_calls) {
    say(fmt::format("time {} {}\n", calls, base_calls));
    const std::string said = hear();
    double own = 0, other = 0;
    if (std::sscanf(said.c_str(), "took %lf %lf", &own, &other) != 2 || !is_time(own) || !is_time(other))
        fail("it answered '" + said.substr(0, 80) + "'");
    return {own / static_cast<double>(calls), other / static_cast<double>(base_calls)};
}

void WorkerClient::time_cold() { say("cold 1\n"); }

void WorkerClient::compare(const Ran &ran, const Inputs &inputs, uint64_t seed) {
    bool interpreted = false;
    aside([&] {
        const TileProgram blocks = sampled(program_, extents_, seed);
        interpreted = steps_of(blocks, extents_) <= max_steps;
        if (interpreted) compare_bits(blocks, ran, inputs);
    });
    if (!interpreted) compare_nearly(ran, run(1));
}

static double largest_of(const std::vector<double> &values, size_t begin, size_t end) {
    double largest = 0;
    for (size_t i = begin; i < end; i++)
        if (std::isfinite(values[i])) largest = std::max(largest, std::abs(values[i]));
    return largest;
}

// An error is small beside what lies around it: what an addition in another order changes grows with the sums.
void WorkerClient::compare_nearly(const Ran &ran, const Ran &base) const {
    for (const auto &[i, got] : ran.written) {
        const double near = !is_float(got.dtype) ? 0 : is_narrow_float(got.dtype) ? 3e-2 : 1e-3;
        const std::vector<double> values = got.values(), expected = base.written.at(i).values();
        double largest = 0;  // of those around it
        for (size_t at = 0; at < values.size(); at++) {
            if (at % neighbours == 0) largest = largest_of(expected, at, std::min(at + neighbours, expected.size()));
            if (!(std::abs(values[at] - expected[at]) <= near * largest) && !(std::isnan(values[at]) && std::isnan(expected[at])) &&
                values[at] != expected[at])
                throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; the base gives {:.9g}", at,
                                                         program_.arguments[i].tensor.name, values[at], expected[at])};
        }
    }
}

Array WorkerClient::packed_by(const TileProgram &packing, const Inputs &inputs) const {
    const Tensor &from = packing.arguments[0].tensor, &to = packing.arguments[1].tensor;
    const Extents extents = all_extents(packing, extents_);
    Array operand = inputs.tensors.at(from.name), result(to.dtype, shape_of(to, extents));
    InterpretOptions unchecked;
    unchecked.checked = false;
    interpret(packing, {{from.name, operand.view(from.name)}, {to.name, result.view(to.name)}}, extents, {}, unchecked);
    return result;
}

void WorkerClient::compare_bits(const TileProgram &blocks, const Ran &ran, const Inputs &inputs) const {
    std::map<std::string, Array> arrays;
    std::map<std::string, TensorView> views;
    for (const Argument &a : program_.arguments) arrays.emplace(a.tensor.name, held_before(a, inputs));
    for (const auto &[i, packing] : packings_) arrays.at(program_.arguments[i].tensor.name) = packed_by(packing, inputs);
    for (auto &[name, array] : arrays) views[name] = array.view(name);
    InterpretOptions unchecked;
    unchecked.checked = false;
    interpret(blocks, views, extents_, inputs.parameters, unchecked);
    for (const auto &[i, got] : ran.written) {
        const Argument &a = program_.arguments[i];
        const Array &expected = arrays.at(a.tensor.name);
        const size_t size = static_cast<size_t>(size_of(a.tensor.dtype));
        const std::vector<std::byte> untouched(size, pattern);
        for (size_t at = 0; at < expected.data.size(); at += size) {
            if (!a.read && std::memcmp(&expected.data[at], untouched.data(), size) == 0) continue;
            if (std::memcmp(&expected.data[at], &got.data[at], size) == 0) continue;
            const Scalar e = load_scalar(a.tensor.dtype, &expected.data[at]), g = load_scalar(a.tensor.dtype, &got.data[at]);
            if (is_float(e.type) && std::isnan(e.real) && std::isnan(g.real)) continue;
            throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; its tile program gives {:.9g}", at / size, a.tensor.name,
                                                     is_float(g.type) ? g.real : static_cast<double>(g.integer),
                                                     is_float(e.type) ? e.real : static_cast<double>(e.integer))};
        }
    }
}

}  // namespace tessera
