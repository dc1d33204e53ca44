#include "autotune/measure/worker_client.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "autotune/measure/packing_programs.h"
#include "autotune/measure/sampled.h"
#include "bench/measure/parameter_words.h"
#include "compiler/abi/c_names.h"
#include "compiler/emit/spec.h"
#include "compiler/interpret/interpret.h"
#include "compiler/tile/arguments.h"
#include "support/text/printable.h"

namespace tessera {

static constexpr int protocol = 3;  // of worker.c
static constexpr std::byte pattern{0xa5};
static constexpr size_t neighbours = 16;
static constexpr double max_steps = 1e8;          // of the interpreter: about a third of a second
static constexpr int64_t whole_bytes = 16 << 20;  // of a result that is compared with the base's whole
static constexpr int64_t part_bytes = 1 << 16;    // of a larger one, this much at a time
static constexpr int parts_compared = 64;
static constexpr size_t asked_at_once = 64;  // parts: so many requests fit into any pipe

static std::string protocol_line() { return fmt::format("protocol {}", protocol); }

WorkerClient::WorkerClient(const MeasurementTask &task, const TileProgram &program, const std::string &command, const WorkerLimits &limits,
                           const std::filesystem::path &log)
    : task_(task),
      program_(program),
      limits_(limits),
      extents_(all_extents(program, all_extents(task.algorithm, task.extents))),
      packings_(packings_of(task.algorithm, program, task.target)),
      process_(command, limits.memory_bytes, log, limits.stopped),
      seconds_left_(limits.seconds) {
    // A runner may come between that knows another version's commands.
    if (const std::string said = ask(protocol_line()); said != protocol_line())
        fail("it answered '" + said.substr(0, 80) + "' to '" + protocol_line() + "'");
    say(fmt::format("threads {}\n", task.threads));
    // A kernel that runs on the calling thread alone takes the time that this thread gets.
    if (task.threads == 1 && task.callers == 1 && !task.target.is_gpu()) say("clock 1\n");
    if (task.callers > 1) say(fmt::format("callers {}\n", task.callers));
    for (size_t i = 0; i < program.arguments.size(); i++) {
        const Argument &a = program.arguments[i];
        const Tensor tensor = declared_tensor(a);
        const std::vector<int64_t> shape = shape_of(tensor, extents_);
        std::string line = fmt::format("shape {} {} {} {}", i, abi_dtype(tensor.dtype), a.written ? 1 : 0, shape.size());
        for (int64_t n : shape) line += fmt::format(" {}", n);
        if (!a.written) line += fmt::format("\npacking {} {}", i, c_packing_suffix(tensor.name));
        say(line + "\n");
    }
}

void WorkerClient::fail(const std::string &why) {
    const std::string how = process_.ended();
    if (limits_.stopped && limits_.stopped()) throw Failed{Verdict::unmeasured, "it was stopped"};
    if (process_.was_late())
        throw Failed{Verdict::timed_out, printable(fmt::format("{}; --run-limit-s gives it {:g} s", how, limits_.seconds), true)};
    throw Failed{Verdict::crashed, printable(why.empty() ? how : why + "; " + how, true)};
}

void WorkerClient::say(std::string_view text) {
    const Turn turn(*this);
    if (!process_.write(text, turn.end())) fail("");
}

std::string WorkerClient::hear() {
    const Turn turn(*this);
    const std::optional<std::string> text = process_.line(turn.end());
    if (!text) fail("");
    return *text;
}

std::string WorkerClient::ask(const std::string &command) {
    say(fmt::format("limit {}\n{}\n", static_cast<int>(std::ceil(std::max(seconds_left_, 0.0))) + 1, command));
    return hear();
}

void WorkerClient::read_part(std::byte *to, int64_t bytes) {
    if (hear() != fmt::format("part {}", bytes)) fail("it did not give its results");
    const Turn turn(*this);
    if (!process_.read(to, static_cast<size_t>(bytes), turn.end())) fail("");
}

const InputTensor &WorkerClient::input_of(const Argument &a) const {
    return inputs_->tensors.at(a.packed ? a.packed->operand.name : a.tensor.name);
}

static int64_t bytes_of(DType type, const std::vector<int64_t> &shape) {
    int64_t all = size_of(type);
    for (int64_t n : shape) all *= n;
    return all;
}

void WorkerClient::give(const InputPlan &inputs) {
    inputs_ = &inputs;
    const std::vector<int64_t> words = parameter_words(program_, inputs.parameters);
    for (size_t i = 0; i < words.size(); i++) say(fmt::format("parameter {} {}\n", i, words[i]));
    for (size_t i = 0; i < program_.arguments.size(); i++) {
        const Argument &a = program_.arguments[i];
        if (!a.read) {
            say(fmt::format("blank {} {}\n", i, bytes_of(a.tensor.dtype, shape_of(a.tensor, extents_))));
            continue;
        }
        const InputTensor &input = input_of(a);
        const int64_t bytes = bytes_of(input.dtype, input.shape);
        if (input.given) {
            say(fmt::format("tensor {} {}\n", i, bytes));
            say({reinterpret_cast<const char *>(input.given->data.data()), input.given->data.size()});
        } else {
            say(fmt::format("random {} {} {} {}\n", i, bytes, static_cast<int>(input.kind()), input.seed));
        }
    }
}

WorkerClient::Ran WorkerClient::run(int which) {
    const std::string said = ask(fmt::format("run {}", which));
    Ran ran;
    int status = 0;
    unsigned long long bytes = 0;
    if (std::sscanf(said.c_str(), "ran %d %lf %llu", &status, &ran.seconds, &bytes) != 3 || !(ran.seconds >= 0))
        fail("it answered '" + said.substr(0, 80) + "'");
    ran.workspace_bytes = bytes;
    if (status == -1000) throw Failed{Verdict::wrong, "it wrote outside of its arguments"};
    if (status != 0) throw Failed{Verdict::crashed, fmt::format("it refuses its arguments with status {}", status)};
    return ran;
}

// No call is shorter than a picosecond.
static bool is_time(double seconds) { return seconds >= 1e-12 && seconds < 1e9; }

std::pair<double, double> WorkerClient::time(long calls, long base_calls) {
    const std::string said = ask(fmt::format("time {} {}", calls, base_calls));
    double own = 0, other = 0;
    if (std::sscanf(said.c_str(), "took %lf %lf", &own, &other) != 2 || !is_time(own) || !is_time(other))
        fail("it answered '" + said.substr(0, 80) + "'");
    return {own / static_cast<double>(calls), other / static_cast<double>(base_calls)};
}

void WorkerClient::time_cold() { say("cold 1\n"); }

void WorkerClient::place() {
    seconds_left_ = limits_.seconds;
    if (const std::string said = ask("place"); said != "placed") fail("it answered '" + said.substr(0, 80) + "'");
}

void WorkerClient::compare(uint64_t seed) {
    compare_packings(seed);
    const TileProgram blocks = sampled(program_, extents_, seed);
    if (steps_of(blocks, extents_) <= max_steps) compare_bits(blocks);
    else compare_nearly(seed);
}

// What an argument of the candidate holds before it runs: made here where it is used. What is packed comes from the program.
std::unique_ptr<LazyArray> WorkerClient::held_before(size_t i) {
    const Argument &a = program_.arguments[i];
    const std::vector<int64_t> shape = shape_of(a.tensor, extents_);
    const int64_t size = size_of(a.tensor.dtype);
    if (a.packed) {
        constexpr int large = 14;  // few questions
        return std::make_unique<LazyArray>(
            a.tensor.dtype, shape,
            [this, i, size](int64_t first, int64_t count, std::byte *to) {
                say(fmt::format("packed {} {} {}\n", i, first * size, count * size));
                read_part(to, count * size);
            },
            large);
    }
    if (a.read)
        return std::make_unique<LazyArray>(a.tensor.dtype, shape,
                                           [this, &a](int64_t first, int64_t count, std::byte *to) { input_of(a).make(first, count, to); });
    return std::make_unique<LazyArray>(a.tensor.dtype, shape,
                                       [size](int64_t, int64_t count, std::byte *to) { std::fill_n(to, count * size, pattern); });
}

static void check_equal(DType type, const std::byte *expected, const std::byte *got, int64_t element, const std::string &name,
                        const std::string &what) {
    if (std::memcmp(expected, got, static_cast<size_t>(size_of(type))) == 0) return;
    const Scalar e = load_scalar(type, expected), g = load_scalar(type, got);
    if (is_float(e.type) && std::isnan(e.real) && std::isnan(g.real)) return;
    throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; {} gives {:.9g}", element, name,
                                             is_float(g.type) ? g.real : static_cast<double>(g.integer), what,
                                             is_float(e.type) ? e.real : static_cast<double>(e.integer))};
}

// Fetches what is there of an argument, or of what is packed in its place, and compares it where it is expected to be anything.
void WorkerClient::compare_with(const LazyArray &expected, size_t i, bool packed, const std::string &what) {
    const Argument &a = program_.arguments[i];
    const DType type = expected.dtype();
    const int64_t size = size_of(type);
    const std::vector<std::byte> untouched(static_cast<size_t>(size), pattern);
    const bool has_untouched = packed || !a.read;
    const std::vector<std::pair<int64_t, int64_t>> ranges = expected.used();
    std::vector<std::byte> got;
    for (size_t begin = 0; begin < ranges.size(); begin += asked_at_once) {
        const size_t end = std::min(begin + asked_at_once, ranges.size());
        std::string questions;
        for (size_t r = begin; r < end; r++)
            questions += fmt::format("{} {} {} {}\n", packed ? "packed" : "read", i, ranges[r].first * size, ranges[r].second * size);
        say(questions);
        for (size_t r = begin; r < end; r++) {
            const auto [first, count] = ranges[r];
            got.resize(static_cast<size_t>(count * size));
            read_part(got.data(), count * size);
            for (int64_t n = 0; n < count; n++) {
                const std::byte *e = expected.at(first + n), *g = got.data() + n * size;
                if (!has_untouched || std::memcmp(e, untouched.data(), untouched.size()) != 0)
                    check_equal(type, e, g, first + n, a.tensor.name, what);
            }
        }
    }
}

// A kernel that packs does so in one way for all elements, so blocks of it tell.
void WorkerClient::compare_packings(uint64_t seed) {
    for (const auto &[i, packing] : packings_) {
        const Tensor &from = packing.arguments[0].tensor, &to = packing.arguments[1].tensor;
        const Extents extents = all_extents(packing, extents_);
        const InputTensor &operand = input_of(program_.arguments[i]);
        LazyArray given(from.dtype, shape_of(from, extents),
                        [&](int64_t first, int64_t count, std::byte *at) { operand.make(first, count, at); });
        LazyArray result(to.dtype, shape_of(to, extents),
                         [&](int64_t, int64_t count, std::byte *at) { std::fill_n(at, count * size_of(to.dtype), pattern); });
        InterpretOptions unchecked;
        unchecked.checked = false;
        interpret(sampled(packing, extents, seed), {{from.name, given.view(from.name)}, {to.name, result.view(to.name)}}, extents, {},
                  unchecked);
        compare_with(result, i, true, "the tile program that packs it");
    }
}

void WorkerClient::compare_bits(const TileProgram &blocks) {
    LazyArrays arrays;
    std::map<std::string, TensorView> views;
    for (size_t i = 0; i < program_.arguments.size(); i++) {
        const std::string &name = program_.arguments[i].tensor.name;
        views[name] = arrays.emplace(i, held_before(i)).first->second->view(name);
    }
    InterpretOptions unchecked;
    unchecked.checked = false;
    interpret(blocks, views, extents_, inputs_->parameters, unchecked);
    for (const auto &[i, array] : arrays)
        if (program_.arguments[i].written) compare_with(*array, i, false, "its tile program");
}

static double largest_of(const std::vector<double> &values, size_t begin, size_t end) {
    double largest = 0;
    for (size_t i = begin; i < end; i++)
        if (std::isfinite(values[i])) largest = std::max(largest, std::abs(values[i]));
    return largest;
}

// An error is small beside what lies around it: what an addition in another order changes grows with the sums.
static void check_near(const Array &got, const Array &base, int64_t first, const std::string &name) {
    const double near = !is_float(got.dtype)         ? 0
                        : is_narrow_float(got.dtype) ? std::max(3e-2, std::ldexp(1.5, -traits_of(got.dtype).mantissa))
                                                     : 1e-3;
    const std::vector<double> values = got.values(), expected = base.values();
    double largest = 0;  // of those around it
    for (size_t at = 0; at < values.size(); at++) {
        if (at % neighbours == 0) largest = largest_of(expected, at, std::min(at + neighbours, expected.size()));
        if (!(std::abs(values[at] - expected[at]) <= near * largest) && !(std::isnan(values[at]) && std::isnan(expected[at])) &&
            values[at] != expected[at])
            throw Failed{Verdict::wrong, fmt::format("element {} of {} is {:.9g}; the base gives {:.9g}", first + static_cast<int64_t>(at),
                                                     name, values[at], expected[at])};
    }
}

// Ranges of elements: all of what is not large, and otherwise the first, the last and some between.
static std::vector<std::pair<int64_t, int64_t>> parts_to_compare(int64_t elements, int64_t size, uint64_t seed) {
    if (elements * size <= whole_bytes) return {{0, elements}};
    RandomNumbers random(seed);
    const int64_t count = part_bytes / size;
    std::vector<std::pair<int64_t, int64_t>> parts = {{0, count}, {elements - count, count}};
    while (parts.size() < parts_compared) parts.emplace_back(random.below((elements - count) / 8) * 8, count);
    return parts;
}

void WorkerClient::compare_nearly(uint64_t seed) {
    struct Part {
        size_t argument;
        int64_t first;
        Array got;
    };
    auto fetch = [&](size_t i, int64_t first, int64_t count) {
        Array array(program_.arguments[i].tensor.dtype, {count});
        say(fmt::format("read {} {} {}\n", i, first * size_of(array.dtype), array.data.size()));
        read_part(array.data.data(), static_cast<int64_t>(array.data.size()));
        return array;
    };
    std::vector<Part> parts;
    for (size_t i = 0; i < program_.arguments.size(); i++) {
        const Argument &a = program_.arguments[i];
        if (!a.written) continue;
        const int64_t size = size_of(a.tensor.dtype), elements = bytes_of(a.tensor.dtype, shape_of(a.tensor, extents_)) / size;
        for (const auto &[first, count] : parts_to_compare(elements, size, seed)) parts.push_back({i, first, fetch(i, first, count)});
    }
    run(1);
    for (const Part &p : parts)
        check_near(p.got, fetch(p.argument, p.first, p.got.size()), p.first, program_.arguments[p.argument].tensor.name);
}

}  // namespace tessera
