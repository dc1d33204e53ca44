#include "compiler/check/code_size.h"

#include <algorithm>
#include <set>
#include <utility>

#include "algorithms/expr/value_numbering.h"
#include "compiler/instructions/families.h"
#include "support/containers/address_map.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int64_t countless = int64_t{1} << 40;

int64_t times(int64_t a, int64_t b) { return b > 0 && a > countless / b ? countless : a * b; }

int64_t most_instructions(bool is_written_out) { return is_written_out ? max_written_out : max_in_formula; }

class Counter {
public:
    // Whether equal values are found to be one, which takes longer; otherwise only those that are the same object.
    Counter(const Target &target, bool finds_equal) : vector_bytes_(target.vector_bytes), finds_equal_(finds_equal) {
        for (const Instruction &family : families())
            if (is_emitted(family) && is_on(family, target)) families_.push_back({family, cost_of(family, target).instructions});
    }

    CodeSize size(const TileProgram &program) {
        find_vectors(program.body, false);
        run_without_loops(program.body);
        return size_;
    }

private:
    using Run = std::map<std::string, int64_t>;  // instructions by the buffer that they compute

    int64_t vector_bytes_;
    const bool finds_equal_;
    std::vector<std::pair<Instruction, int>> families_;  // and how many instructions a step is
    CodeSize size_;
    std::map<std::string, const Alloc *> allocs_;  // in scope, by the buffer's name
    std::set<const Alloc *> in_vectors_;
    int64_t living_ = 0;
    bool is_written_out_ = false;  // something of the run that is counted
    ValueNumbering values_;
    std::set<int> seen_;

    // The buffers that are computed a vector at a time. Those of two versions of a stage have one name.
    void find_vectors(const TileBody &body, bool in_vector) {
        for (const auto &node : body)
            std::visit(Overloaded{
                           [&](const Loop &n) { find_vectors(n.body, in_vector || n.kind == LoopKind::vector); },
                           [&](const Guard &n) { find_vectors(n.then, in_vector), find_vectors(n.otherwise, in_vector); },
                           [&](const Let &n) { find_vectors(n.body, in_vector); },
                           [&](const Alloc &n) {
                               allocs_[n.buffer.name] = &n;
                               find_vectors(n.body, in_vector);
                           },
                           [&](const Compute &n) {
                               auto found = allocs_.find(n.buffer);
                               if (in_vector && found != allocs_.end()) in_vectors_.insert(found->second);
                           },
                           [](const LeafNode auto &) {},
                       },
                       *node);
    }

    void run_without_loops(const TileBody &body) {
        Run run;
        const bool was_written_out = std::exchange(is_written_out_, false);
        add(body, 1, 1, run);
        const bool is_written_out = std::exchange(is_written_out_, was_written_out);
        int64_t all = 0;
        for (const auto &[buffer, n] : run) all += n;
        if (all - most_instructions(is_written_out) <= size_.instructions - most_instructions(size_.is_written_out)) return;
        size_.instructions = all, size_.is_written_out = is_written_out;
        size_.computes = std::max_element(run.begin(), run.end(), [](auto &a, auto &b) { return a.second < b.second; })->first;
    }

    void add(const TileBody &body, int64_t copies, int64_t lanes, Run &run) {
        for (const auto &node : body) {
            const bool in_row = is_in_row(*node);
            const int64_t living = living_;
            if (!in_row) seen_.clear();
            // What an outer tile keeps can wait in memory while an inner one is computed: those of one fold stand side by side.
            std::visit(Overloaded{
                           [&](const StoreNode auto &n) { store(n.buffer, n.value, copies, lanes, run); },
                           [&](const Loop &n) { living_ = 0, add(n, copies, lanes, run); },
                           [&](const Guard &n) {
                               living_ = 0;
                               for (const TileBody *version : {&n.then, &n.otherwise})
                                   if (copies == 1 && lanes == 1) run_without_loops(*version);
                                   else add(*version, copies, lanes, run);
                           },
                           [&](const Let &n) { living_ = 0, add(n.body, copies, lanes, run); },
                           [&](const Alloc &n) {
                               keep(n);
                               if (!only<Alloc>(n.body)) living_ = 0;
                               add(n.body, copies, lanes, run);
                           },
                           [&](const Move &n) { run[n.to.buffer] += copies; },
                           [&](const Fragment &n) { run[n.accumulator] += copies; },
                           [](const LeafNode auto &) {},
                       },
                       *node);
            living_ = living;
            if (!in_row) seen_.clear();
        }
    }

    void add(const Loop &loop, int64_t copies, int64_t lanes, Run &run) {
        const int64_t count = loop.count.is_constant() ? std::max<int64_t>(loop.count->value.integer, 0) : 1;
        if (loop.kind == LoopKind::vector) add(loop.body, copies, times(lanes, count), run);
        else if (loop.kind == LoopKind::unrolled) add(loop.body, times(copies, count), lanes, run);
        else run_without_loops(loop.body);
    }

    // What stores in a row have in common is computed once (emit/store_run.h).
    static bool is_in_row(const TileNode &node) {
        auto *loop = std::get_if<Loop>(&node);
        return loop ? loop->kind == LoopKind::vector && loop->body.size() == 1 : store_of(node).has_value();
    }

    // Index arithmetic goes into addresses, so only values count, each shared one once.
    void store(const std::string &buffer, const Expr &value, int64_t copies, int64_t lanes, Run &run) {
        int64_t instructions = 1;
        is_written_out_ = is_written_out_ || copies > 1 || times(lanes, size_of(value.type())) > vector_bytes_;
        AddressSet met;
        auto is_new = [&](const Expr &e) { return finds_equal_ ? seen_.insert(values_.number(e)).second : met.insert(e.get()); };
        std::function<void(const Expr &)> count = [&](const Expr &e) {
            if (e.type() == DType::index || !is_new(e)) return;
            for (const auto &[family, each] : families_)
                if (const std::vector<Expr> operands = match(family, e); !operands.empty()) {
                    instructions += each;
                    for (const Expr &operand : operands) count(operand);
                    return;
                }
            const bool is_load = e.kind() == ExprKind::load;
            if (is_load || e.kind() == ExprKind::operation || e.kind() == ExprKind::cast)
                instructions += (times(lanes, size_of(e.type())) + vector_bytes_ - 1) / vector_bytes_;
            for (const Expr &arg : is_load ? Operands{} : e->args) count(arg);
        };
        count(value);
        run[buffer] += times(copies, instructions);
    }

    void keep(const Alloc &alloc) {
        const Buffer &b = alloc.buffer;
        if (b.space != Space::registers) return;
        int64_t elements = 1;
        for (const Expr &e : b.extents) elements = times(elements, e.is_constant() ? e->value.integer : 1);
        living_ += in_vectors_.count(&alloc) ? (times(elements, size_of(b.dtype)) + vector_bytes_ - 1) / vector_bytes_ : elements;
        if (living_ > size_.registers) size_.registers = living_, size_.keeps = b.name;
    }
};

// The stage that a buffer belongs to, of those with knobs; the buffer's own name where there is none.
std::string stage_of(const std::string &buffer, const KnobsByStage &stages) {
    std::string found;
    for (const auto &[name, k] : stages)
        if ((buffer == name || buffer.starts_with(name + ".")) && name.size() > found.size()) found = name;
    return found.empty() ? buffer : found;
}

// " (micro: 64 of M * 64 of N)"
std::string knobs_text(const std::string &stage, const KnobsByStage &stages) {
    auto found = stages.find(stage);
    if (found == stages.end()) return "";
    std::vector<std::string> knobs;
    auto add = [&](const std::string &knob, const Extents &extents) {
        std::vector<std::string> factors;
        for (const auto &[dim, n] : extents) factors.push_back(std::to_string(n) + " of " + dim);
        if (!factors.empty()) knobs.push_back(knob + ": " + join(factors, " * "));
    };
    add("micro", found->second.micro), add("unroll", found->second.unroll), add("vector", found->second.vector);
    return knobs.empty() ? "" : " (" + join(knobs, "; ") + ")";
}

}  // namespace

CodeSize code_size(const TileProgram &program, const Target &target) { return Counter(target, true).size(program); }

std::vector<std::string> check_code_size(const TileProgram &program, const KnobsByStage &stages, const Target &target) {
    std::vector<std::string> notes;
    if (target.is_gpu()) return notes;
    CodeSize size = Counter(target, false).size(program);  // at most that
    if (size.instructions > most_instructions(size.is_written_out)) size = code_size(program, target);
    const std::string keeper = stage_of(size.keeps, stages), computer = stage_of(size.computes, stages);
    const std::string kept = program.name + "." + keeper + ": its register tile" + knobs_text(keeper, stages) + " keeps " +
                             std::to_string(size.registers) + " values at a time, and " + target.name + " has " +
                             std::to_string(target.vector_registers) + " registers";
    const int64_t limit = max_register_files * target.vector_registers;
    if (size.registers >= limit)
        throw UserError("schedule.register-tile", kept + "; expected fewer than " + std::to_string(limit) +
                                                      ", since compiling takes minutes beyond. Make micro smaller, or vector wider.");
    if (size.instructions > max_in_formula && !size.is_written_out)
        throw UserError("schedule.formula", program.name + "." + computer + ": its formula takes " + std::to_string(size.instructions) +
                                                " instructions for each element; expected at most " + std::to_string(max_in_formula) +
                                                ", since compiling takes minutes beyond. Give parts of it names (named): each is a stage "
                                                "then, computed once and compiled alone.");
    if (size.instructions > max_written_out && size.is_written_out)
        throw UserError(
            "schedule.register-tile",
            program.name + "." + computer + ": " + (size.instructions >= countless ? "countless" : std::to_string(size.instructions)) +
                " instructions are written out in a row" + knobs_text(computer, stages) + "; expected at most " +
                std::to_string(max_written_out) + ", since compiling takes minutes beyond. Make micro or unroll smaller, or vector wider.");
    if (size.registers > target.vector_registers) notes.push_back(kept + ", so some go through memory");
    for (const TileProgram &inner : program.programs)
        for (const std::string &note : check_code_size(inner, stages, target)) notes.push_back(note);
    return notes;
}

}  // namespace tessera
