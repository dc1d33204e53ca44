#include "generators/choose/program_schedule.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <tuple>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "algorithms/transform/one_stage.h"
#include "generators/choose/callees.h"
#include "schedules/artifact/merge.h"
#include "support/processes/limited_process.h"
#include "support/processes/owned_folder.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr size_t most_workloads = 4;  // extents that one derived schedule is for
// So many stages of a callee are one space. Of more, as gradients of whole layers have, candidates would see too little: each of their
// folds is a space of its own, as those between calls are.
constexpr size_t most_together = 40;

using Key = std::tuple<std::string, std::string, std::string, Extents>;

Key key_of(const Algorithm &callee, const Extents &fixed) { return {callee.name, semantic_hash(callee), surface_hash(callee), fixed}; }

// Stages that fold nothing, in vectors along their last dim where its extent is known.
KnobsByStage vectors(const Algorithm &program, const Extents &fixed, const Target &target) {
    KnobsByStage stages;
    for (const Stage &stage : program.stages()) {
        if (is_fold(stage) || stage.dims.empty() || updates(stage)) continue;
        int bytes = 1;
        for (const Tensor &t : results_of(stage)) bytes = std::max(bytes, size_of(t.dtype));
        for (const Expr &e : expressions_of(stage))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load || is_float(n.type()))
                    bytes = std::max(bytes, n.type() == DType::index ? 4 : size_of(n.type()));
            });
        const int64_t lanes = target.vector_bytes / bytes;
        const std::string &last = stage.dims.back();
        const Dim *dim = program.find_dim(last);
        int64_t extent = dim && dim->kind == DimKind::fixed ? dim->value : 0;
        if (const auto given = fixed.find(last); given != fixed.end()) extent = given->second;
        if (extent >= lanes && lanes > 1) stages[stage.name].vector[last] = lanes;
    }
    return stages;
}

// The knobs without packings of arguments that are views: their dims are not those of the tensor, so the caller has no names for them. And
// without prefetches of results that the caller calls otherwise.
// `scope` is the call's, with those around it.
KnobsByStage without_packed_views(KnobsByStage stages, const Algorithm &program, const std::string &scope) {
    for (const Call &call : program.calls()) {
        if (scope.starts_with(call.scope + "."))
            stages = without_packed_views(std::move(stages), *call.callee, scope.substr(call.scope.size() + 1));
        if (call.scope != scope) continue;
        std::vector<std::string> gone;
        for (auto &[stage, knobs] : stages)
            std::erase_if(knobs.prefetch, [&](const auto &fetched) { return call.results.count(fetched.first) > 0; });
        for (auto &[stage, knobs] : stages)
            std::erase_if(knobs.pack, [&](const auto &packed) {
                const auto bound = call.tensors.find(packed.first);
                const bool is_view = bound != call.tensors.end() && !bound->second.index.empty();
                if (is_view) gone.push_back(stage + "." + packed.first + ".packed");
                return is_view;
            });
        for (const std::string &copy : gone) stages.erase(copy);
    }
    return stages;
}

bool is_one_space(const Algorithm &callee) {
    size_t stages = 0;
    for ([[maybe_unused]] const Stage &stage : callee.stages()) stages++;
    return callee.calls().empty() && stages <= most_together;
}

// A callee that no artifact fits, and what it is derived for.
struct Task {
    Key key;
    Algorithm bound;
    std::vector<ExpectedWorkload> workloads;
    double points = 0;  // that all calls visit
    double effort = 1;
};

Task task_of(const Key &key, const std::vector<CalledKernel> &calls) {
    Task task{key, bind_extents(*calls.front().algorithm, calls.front().fixed), {}};
    for (const CalledKernel &call : calls) task.points += points_of(task.bound, call.dynamic);
    for (const CalledKernel &call : calls) {
        if (task.workloads.size() == most_workloads) break;
        ExpectedWorkload &one = task.workloads.emplace_back();
        one.workload.extents = call.dynamic, one.workload.threads = 1;
    }
    return task;
}

// The search takes its time where the program does: a callee with the mean share of the work or more has all the candidates, others have
// fewer.
void share_effort(std::vector<Task> &tasks) {
    constexpr double least = 0.125;
    double all = 0;
    for (const Task &t : tasks) all += t.points;
    for (Task &t : tasks) t.effort = std::clamp(t.points * static_cast<double>(tasks.size()) / std::max(all, 1.0), least, 1.0);
}

std::vector<const Stage *> own_folds(const Algorithm &program) {
    std::vector<const Stage *> folds;
    for (const Stage &stage : program.stages())
        if (std::holds_alternative<Reduce>(stage.body) && !scatters(stage) && !updates(stage) && program.half_bytes.empty())
            folds.push_back(&stage);
    return folds;
}

// Derives the tasks' schedules in children, one for each processor at a time. What comes out does not depend on how many there are.
class Children {
public:
    Children(const std::vector<Task> &tasks, const Target &target, CostModel &model) : tasks_(tasks), target_(target), model_(model) {}

    void run(std::map<Key, KnobsByStage> &derived, const std::function<void(size_t)> &judged) {
        const size_t most = std::max(1u, std::thread::hardware_concurrency());
        while (next_ < tasks_.size() || !running_.empty()) {
            while (next_ < tasks_.size() && running_.size() < most) start(next_++);
            std::vector<LimitedProcess *> processes;
            for (const Running &r : running_) processes.push_back(r.process.get());
            const size_t done = *LimitedProcess::wait_for_any(processes);
            const size_t task = running_[done].task;
            running_[done].process->finish();
            running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(done));
            derived.emplace(tasks_[task].key, resolve(read_schedule(schedule_file(task)), Library()).stages);
            size_t candidates = 0;
            std::ifstream(count_file(task)) >> candidates;
            judged(candidates);
        }
    }

private:
    struct Running {
        size_t task;
        std::unique_ptr<LimitedProcess> process;
    };

    std::filesystem::path schedule_file(size_t task) const { return folder_.path() / (std::to_string(task) + ".json"); }
    std::filesystem::path count_file(size_t task) const { return folder_.path() / (std::to_string(task) + ".count"); }

    void start(size_t task) {
        constexpr double an_hour = 3600;
        Limits limits;
        limits.seconds = an_hour;
        const Activity deriving{tasks_[task].bound.name, "deriving its schedule", "derive.limit",
                                "Name a schedule, '--schedule none' among them", ""};
        running_.push_back({task, std::make_unique<LimitedProcess>(deriving, limits, [this, task] {
                                const Derivation made =
                                    derive(tasks_[task].bound, target_, tasks_[task].workloads, model_, {}, tasks_[task].effort);
                                write_into(schedule_file(task), tuned_schedule("derived", made.stages, {}, Library(), {}).text());
                                write_into(count_file(task), std::to_string(made.candidates));
                            })});
    }

    const std::vector<Task> &tasks_;
    const Target &target_;
    CostModel &model_;
    OwnedFolder folder_;
    std::vector<Running> running_;
    size_t next_ = 0;
};

}  // namespace

ProgramDerivation program_schedule(const KernelRequest &request, const Extents &extents, const Target &target, CostModel &model,
                                   Chooser &chooser, const DeriveProgress &progress, const UsesByStage &uses) {
    const Algorithm &declared = request.declared;
    ProgramDerivation made{Schedule(declared.name), {}, 0};
    Extents dynamic = extents;
    const std::vector<ExpectedWorkload> usual = expected_workloads(request.bound, extents);
    if (!usual.empty())
        for (const auto &[dim, extent] : usual[0].workload.extents)
            if (!request.fixed.count(dim)) dynamic.emplace(dim, extent);
    // What is known of a callee at a call decides which schedule it takes; calls that differ in dynamic extents share one.
    std::map<Key, std::vector<CalledKernel>> called;
    const Callees callees = callees_of(declared, request.fixed, dynamic);
    for (const CalledKernel &kernel : callees.all)
        if (is_one_space(*kernel.algorithm)) called[key_of(*kernel.algorithm, kernel.fixed)].push_back(kernel);
    std::map<Key, KnobsByStage> derived;
    std::map<Key, Schedule> shipped;
    std::vector<Task> tasks;
    std::set<Key> folds;
    const auto add_folds = [&](const Algorithm &program, const Extents &fixed, const Extents &open) {
        for (const Stage *fold : own_folds(program)) {
            if (&program == &declared && uses.count(fold->name)) continue;
            const auto kernel = std::make_shared<const Algorithm>(one_stage(program, *fold));
            const Key key = key_of(*kernel, fixed);
            if (folds.insert(key).second) tasks.push_back(task_of(key, {{kernel, fixed, open, {}, 1, false, {}}}));
        }
    };
    add_folds(declared, request.fixed, dynamic);
    for (const CalledKernel &kernel : callees.all)
        if (!is_one_space(*kernel.algorithm) && !(kernel.is_leaf() && chooser.applying(*kernel.algorithm, kernel.fixed).schedule))
            add_folds(*kernel.algorithm, kernel.fixed, kernel.dynamic);
    for (const auto &[key, kernels] : called) {
        const CalledKernel &first = kernels.front();
        if (const Match match = chooser.applying(*first.algorithm, first.fixed); match.schedule) {
            shipped.emplace(key, *match.schedule);
            continue;
        }
        tasks.push_back(task_of(key, kernels));
    }
    share_effort(tasks);
    Children(tasks, target, model).run(derived, [&](size_t candidates) { progress(made.candidates += candidates); });
    // What a program's stages take, apart from its calls.
    bool with_folds = true;
    const auto reader_with = [&](const std::string &stage) -> std::string {  // that has its loops by role too
        for (const StageRole &role : request.made_of->roles)
            if (role.stage == stage && !role.reader_of.empty()) return role.reader;
        return "";
    };
    const auto own_knobs = [&](const Algorithm &program, const Extents &fixed) {
        Extents known = fixed;
        if (&program == &declared && !uses.empty()) known.insert(dynamic.begin(), dynamic.end());
        KnobsByStage stages = vectors(program, known, target);
        for (const Stage *fold : own_folds(program))
            if (const auto it = derived.find(key_of(one_stage(program, *fold), fixed)); with_folds && it != derived.end())
                stages.insert(it->second.begin(), it->second.end());
        return stages;
    };
    const auto own_schedule = [&](const Algorithm &program, const Extents &fixed) {
        KnobsByStage stages = own_knobs(program, fixed);
        const bool uses_any = &program == &declared && !uses.empty();
        if (uses_any)
            for (const auto &[stage, schedule] : uses) stages.erase(reader_with(stage));
        Schedule own =
            tuned_schedule(program.name + "/" + program.numerics.name + "/" + target.name, stages, {}, Library(), target.features)
                .for_algorithm(program.name, surface_hash(program));
        if (uses_any)
            for (const auto &[stage, schedule] : uses) own = own.stage(stage, StageKnobs().use(schedule));
        return own;
    };
    const auto match = [&](const std::string &scope, const Algorithm &callee, const Extents &fixed) -> std::optional<Schedule> {
        const Key key = key_of(callee, fixed);
        if (const auto it = shipped.find(key); it != shipped.end()) return it->second;
        const auto at_call = [&](const KnobsByStage &stages) {
            const std::string own_name = callee.name + "/" + callee.numerics.name + "/" + target.name;
            return tuned_schedule(own_name, without_packed_views(stages, declared, scope), {}, Library(), target.features)
                .for_algorithm(callee.name, surface_hash(callee));
        };
        if (const auto it = derived.find(key); it != derived.end()) return at_call(it->second);
        if (const Match applying = chooser.applying(callee, fixed); applying.schedule || is_one_space(callee)) return applying.schedule;
        if (callee.calls().empty()) return at_call(own_knobs(callee, fixed));
        return own_schedule(callee, fixed);  // its calls are matched below it
    };
    const auto whole = [&] {
        const Schedule own = own_schedule(declared, request.fixed);
        if (!uses.empty() && declared.calls().empty()) return own;
        const AppliedSchedule applied = applied_schedule(own, declared, request.fixed, chooser.library(), match, request.made_of);
        return flatten(own, applied.program, declared);
    };
    made.schedule = whole();
    with_folds = false;
    if (!folds.empty()) made.without_folds = whole();
    return made;
}

}  // namespace tessera
