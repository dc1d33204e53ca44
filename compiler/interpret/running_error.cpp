#include "compiler/interpret/running_error.h"

#include <algorithm>
#include <array>

#include "algorithms/evaluate/tape_codes.h"
#include "algorithms/expr/match.h"
#include "algorithms/functions/conversions.h"
#include "compiler/instructions/families.h"
#include "compiler/interpret/function_image.h"
#include "compiler/interpret/interpret.h"
#include "compiler/interpret/operation_error.h"
#include "support/text/error.h"

namespace tessera {

namespace {

DType type_of(Kind kind) {
    switch (kind) {
    case Kind::f32: return DType::f32;
    case Kind::f64: return DType::f64;
    case Kind::i64: return DType::i64;
    case Kind::i32: return DType::i32;
    case Kind::boolean: return DType::boolean;
    }
    return DType::i64;
}

double number(DType type, Register r) {
    if (is_in_f32(type)) return r.f32;
    return type == DType::f64 ? r.f64 : static_cast<double>(r.integer);
}

// The bounds of elements, by where the elements lie. Memory that is not here holds what is exact.
class ErrorMemory {
public:
    // Exact from now on.
    void begin(const std::byte *at, size_t count, size_t element) {
        auto it = blocks_.lower_bound(at);
        if (it != blocks_.begin() && std::prev(it)->second.end > at) --it;
        while (it != blocks_.end() && it->first < at + count * element) it = blocks_.erase(it);
        if (count) blocks_[at] = {at + count * element, element, std::vector<double>(count)};
    }
    double *find(const std::byte *at) {
        auto it = blocks_.upper_bound(at);
        if (it == blocks_.begin()) return nullptr;
        Block &block = (--it)->second;
        return at < block.end ? &block.errors[static_cast<size_t>(at - it->first) / block.element] : nullptr;
    }

private:
    struct Block {
        const std::byte *end = nullptr;
        size_t element = 1;
        std::vector<double> errors;
    };
    std::map<const std::byte *, Block> blocks_;
};

class ErrorFollower final : public Follower {
public:
    ErrorMemory memory;
    std::string unknown;     // the first reason
    bool is_adrift = false;  // what runs may not be what would run

    Expr prepared(const Expr &e) override;
    void begins(size_t registers, const std::vector<std::pair<int, int>> &passed) override {
        std::vector<double> inside(registers);
        for (const auto &[from, to] : passed) inside[static_cast<size_t>(to)] = error(from);
        frames_.push_back(std::move(inside));
    }
    void ends() override { frames_.pop_back(); }
    void allocated(const TensorView &view) override {
        size_t count = 1;
        for (int64_t e : view.extents) count *= static_cast<size_t>(e);
        memory.begin(view.data, count, static_cast<size_t>(size_of(view.dtype)));
    }
    void evaluated(const Tape &tape, const Register *frame, const TensorView *tensors) override;
    void depends_on(int slot) override {
        if (error(slot) == 0) return;
        lose("what runs, or which element is meant, depends on a rounded value");
        is_adrift = true;
    }
    void steps(const Instruction *family) override { machine_ = family && !family->is_exact ? family : nullptr; }
    void stored(const std::byte *address, int slot) override {
        const double of_machine = machine_ ? (machine_->shape.k + 2) * 0x1p-23 * magnitude_ : 0;
        if (double *to = memory.find(address)) *to = of_machine > 0 ? raised(error(slot) + of_machine) : error(slot);
    }

private:
    std::vector<std::vector<double>> frames_;  // of the programs that run, the innermost last
    FunctionImages images_;
    const Instruction *machine_ = nullptr;  // whose step runs, where its vendor does not publish what it rounds
    double magnitude_ = 0;                  // of the accumulator and the products that the step adds
    bool has_accumulator_ = false;

    double &error(int slot) { return frames_.back()[static_cast<size_t>(slot)]; }
    double lose(const char *why) {
        if (unknown.empty()) unknown = why;
        return unknown_error;
    }
    double error_of(const Tape::Instruction &i, const Register *frame);
    double operation(Op op, Kind kind, const Tape::Instruction &i, const Register *frame);
    double load(const Tape &tape, const Tape::Instruction &i, const Register *frame, const TensorView *tensors);
    bool judge(const Tape::Application &applied, const Register *frame);
};

Expr ErrorFollower::prepared(const Expr &e) {
    // What dot2 does, found again: by name, in real arithmetic it does nothing.
    static const Expr first = input(0, DType::f32), second = input(1, DType::f32);
    static const std::array forms = {flush_subnormals(first, DType::f32), flush_tiny_sum(first, second)};
    static const std::array patterns = {definition_of(forms[0]), definition_of(forms[1])};
    return rewrite(e, [](const Expr &n) -> Expr {
        if (!n.is_operation(Op::select) || n.type() != DType::f32) return {};
        for (size_t i = 0; i < forms.size(); i++)
            if (Matcher m; m.match(patterns[i], n)) {
                Operands operands;
                for (const auto &[number, operand] : m.inputs) operands.push_back(operand);
                return applied(forms[i]->function, operands);
            }
        return {};
    });
}

void ErrorFollower::evaluated(const Tape &tape, const Register *frame, const TensorView *tensors) {
    magnitude_ = 0, has_accumulator_ = false;
    const std::vector<Tape::Instruction> &code = tape.instructions();
    auto next = tape.applications().begin();
    const auto last = tape.applications().end();
    for (size_t at = 0; at < code.size();) {
        bool is_judged = false;
        for (; next != last && next->first <= at && !is_judged; ++next)
            if (next->first == at && next->last > at && judge(*next, frame)) at = next->last, is_judged = true;
        if (is_judged) continue;
        const Tape::Instruction &i = code[at++];
        if (i.code == code_load) {
            error(i.target) = load(tape, i, frame, tensors);
        } else if (i.code == code_skip_unless) {
            const bool is_certain = error(i.a) == 0;
            if (!is_certain) error(i.target) = lose("whether an element is read depends on a rounded value");
            if (!is_certain || !frame[i.a].integer) at += static_cast<size_t>(i.detail);
        } else {
            error(i.target) = error_of(i, frame);
        }
    }
}

// Whether something is known of the function; otherwise its definition is followed.
bool ErrorFollower::judge(const Tape::Application &f, const Register *frame) {
    const double value = number(f.type, frame[f.target]);
    std::vector<RealInterval> x;
    for (int slot : f.arguments) {
        const Approximate a{number(f.type, frame[slot]), error(slot)};
        if (f.function->facts.rounds) {
            const double bound = value == a.value ? a.error : raised(a.error + std::fabs(a.value - value));
            error(f.target) = bound < unknown_error ? bound : lose("a result is not finite");
            return true;
        }
        x.push_back(a.interval());
    }
    if (!FunctionImages::is_known(*f.function)) {
        if (images_.has_one_definition(*f.function)) return false;
        error(f.target) = lose("a function is defined differently in f64, and no bound on the difference is stated");
        return true;
    }
    double bound = std::isnan(value) ? unknown_error : distance(value, images_.image(*f.function, x));
    if (!(bound < unknown_error)) bound = lose("a function's argument is rounded so much that its result may be anything");
    error(f.target) = bound;
    return true;
}

double ErrorFollower::load(const Tape &tape, const Tape::Instruction &i, const Register *frame, const TensorView *tensors) {
    const int *access = tape.access(i);
    const TensorView &t = tensors[access[0]];
    int64_t offset = 0;
    for (int k = 0; k < access[1]; k++) {
        if (error(access[2 + k]) != 0) return lose("which element is read depends on a rounded value");
        offset += frame[access[2 + k]].integer * t.strides[static_cast<size_t>(k)];
    }
    const double *found = memory.find(t.data + offset * size_of(t.dtype));
    return found ? *found : 0;
}

double ErrorFollower::operation(Op op, Kind kind, const Tape::Instruction &i, const Register *frame) {
    const int count = arity(op);
    const DType type = type_of(kind);
    const bool is_real = is_float(type);
    const double errors[3] = {error(i.a), count > 1 ? error(i.b) : 0, count > 2 ? error(i.c) : 0};
    if (!is_real && errors[0] == 0 && errors[1] == 0 && errors[2] == 0) return 0;
    const Approximate a{number(type, frame[i.a]), errors[0]};
    const Approximate b = count > 1 ? Approximate{number(type, frame[i.b]), errors[1]} : Approximate{};
    const Approximate c = count > 2 ? Approximate{number(type, frame[i.c]), errors[2]} : Approximate{};
    if (machine_ && is_real && op == Op::fma) {
        const auto most = [](const Approximate &x) { return std::fabs(x.value) + x.error; };
        magnitude_ += most(a) * most(b) + (has_accumulator_ ? 0 : most(c));
        has_accumulator_ = true;
    }
    if (is_comparison(op)) return comparison_error(op, a, b);
    const double value = number(type, frame[i.target]);
    const double bound = is_real ? float_error(op, type, value, a, b, c) : integer_error(op, type, value, a, b, c);
    if (bound < unknown_error || !unknown.empty()) return bound;
    if (!is_real) return lose("bits or quotients of an integer that a rounded value decides");
    if (!std::isfinite(value)) return lose("a result is not finite");
    return op == Op::div ? lose("a divisor may be 0") : op == Op::sqrt ? lose("a square root may be of a negative value") : bound;
}

double ErrorFollower::error_of(const Tape::Instruction &i, const Register *frame) {
    const double first = error(i.a);
    switch (i.code) {
    case code_select: {
        if (first == 0) return error(frame[i.a].integer ? i.b : i.c);
        const auto type = static_cast<DType>(i.detail);
        return choice_error(number(type, frame[i.target]), {number(type, frame[i.b]), error(i.b)}, {number(type, frame[i.c]), error(i.c)});
    }
    case code_move: return first;
    case code_clamp: {
        if (first == 0 && error(i.b) == 0 && error(i.c) == 0) return 0;
        const double lowest = static_cast<double>(frame[i.b].integer), highest = static_cast<double>(frame[i.c].integer - 1);
        if (error(i.b) != 0 || error(i.c) != 0) return lose("the bounds of a position are rounded values");
        const RealInterval x = Approximate{static_cast<double>(frame[i.a].integer), first}.interval();
        const auto clamped = [&](double end) { return std::max(std::min(end, highest), lowest); };
        return distance(static_cast<double>(frame[i.target].integer), {clamped(x.lo), clamped(x.hi)});
    }
    case code_f32_to_f64: return first;
    case code_f32_bits:
    case code_f32_of_bits:
    case code_bitcast:
    case code_f64_bits: return first == 0 ? 0 : lose("the bits of a rounded value are used");
    default: break;
    }
    const auto converted = [&](DType from, DType to, Rounding rounding = Rounding::nearest_even, bool saturate = false) {
        const double bound = conversion_error(from, to, rounding, saturate, number(to, frame[i.target]), {number(from, frame[i.a]), first});
        return bound < unknown_error ? bound : lose("a value that is converted may lie outside of the type, or is not finite");
    };
    switch (i.code) {
    case code_f64_to_f32: return converted(DType::f64, DType::f32);
    case code_f32_to_bf16: return converted(DType::f32, DType::bf16);
    case code_f32_to_f16: return converted(DType::f32, DType::f16);
    case code_integer_to_f32: return converted(DType::i64, DType::f32);
    case code_integer_to_f64: return converted(DType::i64, DType::f64);
    case code_convert:
        return converted(static_cast<DType>(i.detail & 63), static_cast<DType>(i.detail >> 6 & 63),
                         static_cast<Rounding>(i.detail >> 12 & 3), (i.detail >> 14 & 1) != 0);
    default: return operation(static_cast<Op>(i.code / 5), static_cast<Kind>(i.code % 5), i, frame);
    }
}

}  // namespace

RunningErrors running_errors(const TileProgram &program, const std::map<std::string, TensorView> &arguments, const Extents &extents,
                             const std::map<std::string, Scalar> &parameters) {
    ErrorFollower bounds;
    for (const auto &[name, view] : arguments) {
        require(view.strides == row_major_strides(view.extents), "argument " + name + " is dense where its errors are bounded");
        bounds.allocated(view);
    }
    InterpretOptions options;
    options.checked = false;
    options.follower = &bounds;
    interpret(program, arguments, extents, parameters, options);
    RunningErrors result;
    bool is_unknown = false;
    for (const Argument &a : program.arguments) {
        if (!a.written) continue;
        const TensorView &view = arguments.at(a.tensor.name);
        std::vector<double> &all = result.bounds[a.tensor.name];
        int64_t count = 1;
        for (int64_t e : view.extents) count *= e;
        for (int64_t i = 0; i < count; i++) {
            const double one = *bounds.memory.find(view.data + i * size_of(view.dtype));
            all.push_back(bounds.is_adrift || std::isnan(one) ? unknown_error : one);
            is_unknown |= !(all.back() < unknown_error);
        }
    }
    if (is_unknown) result.unknown = bounds.unknown.empty() ? "an operand is not known" : bounds.unknown;
    return result;
}

}  // namespace tessera
