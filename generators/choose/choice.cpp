#include "generators/choose/choice.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "algorithms/transform/given_extents.h"
#include "compiler/compile/variants.h"
#include "generators/choose/derived_schedule.h"
#include "generators/registry/algorithm_file.h"
#include "schedules/check/check.h"
#include "schedules/knobs/pattern.h"

namespace tessera {

namespace fs = std::filesystem;

std::optional<Schedule> named_schedule(const std::string &name, const Library &library) {
    if (name == "none") return {};
    return name.ends_with(".json") ? read_schedule(name) : library.find(name);
}

KnobsByStage knobs_for(const KernelRequest &request, const Choice &choice, const Extents &extents) {
    return knobs_for(choice.applied.resolved, request.bound, request.target, extents);
}

static void take(Choice &choice, TakenSchedule taken) {
    choice.applied = std::move(taken.applied), choice.callees = std::move(taken.callees);
}

Choice choice_of(const Schedule &schedule, const KernelRequest &request, const Library &library, bool family_only) {
    Choice choice;
    choice.match.how = Match::How::named, choice.match.schedule = schedule;
    Chooser chooser(library, request.target, family_only);
    chooser.set_made_of(request.declared.name, request.made_of);
    take(choice, chooser.take(schedule, request.declared, request.fixed));
    return choice;
}

namespace {

// One choice, step by step, each of which may fail with what was noted before it.
class Choosing {
public:
    Choosing(const Registry &registry, const KernelOptions &options, const KernelRequest &request, const PreparationObserver &observer)
        : registry_(registry),
          options_(options),
          request_(request),
          observer_(observer),
          folders_(registry.schedule_folders(options.schedule_dirs)),
          library_(registry.library(folders_)),
          chooser_(library_, request.target, options.family_only, observer) {
        chooser_.set_made_of(request.declared.name, request.made_of);
    }

    Choice chosen() {
        const bool inherits = !options_.inherit.empty() && options_.inherit != "none";
        if (inherits && options_.made_of.empty() && request_.transforms.empty())
            throw UserError("command.inherit",
                            "--inherit '" + options_.inherit + "': " + request_.declared.name +
                                " is not known to be made of another algorithm; --grad or --made-of says of which. Leave it "
                                "out.");
        if (options_.schedule.empty() && !inherits) match();
        else if (!options_.schedule.empty() && options_.schedule != "derived") name();
        const bool is_named = choice_.match.how == Match::How::named;
        const std::string derived = is_named || choice_.match.schedule || !options_.derives ? "" : derive();
        if (!options_.derives && options_.schedule.empty() && !choice_.match.schedule) inherit_alone();
        if (!is_named) note_match(derived);
        if (!choice_.match.schedule) return std::move(choice_);
        if (made_) {
            take(choice_, made_->taken), choice_.compiled = made_->compiled;
        } else {
            take(choice_, chooser_.take(*choice_.match.schedule, request_.declared, request_.fixed));
        }
        watch_callees();
        for (const CalleeMatch &callee : choice_.callees) note_callee(callee);
        for (const std::string &what : choice_.applied.program.left_out) note("choice.left-out", request_.declared.name + ": " + what);
        if (!options_.schedule.empty()) note_idle_patterns();  // those that ship are for more than one size
        check(choice_.applied.resolved, request_.declared);
        check_requires(choice_.applied.resolved, request_.target);
        return std::move(choice_);
    }

private:
    const Registry &registry_;
    const KernelOptions &options_;
    const KernelRequest &request_;
    const PreparationObserver &observer_;
    const std::vector<fs::path> folders_;
    const Library library_;
    Chooser chooser_;
    Choice choice_;
    std::shared_ptr<const MadeKernel> made_;

    void note(const std::string &id, const std::string &text) {
        choice_.notes.push_back({id, text});
        if (observer_.notes) observer_.notes(choice_.notes.back());
    }

    void name() {
        choice_.match.how = Match::How::named;
        choice_.match.schedule = named_schedule(options_.schedule, library_);
    }

    void match() {
        const Algorithm &declared = request_.declared;
        if (options_.given || is_algorithm_file(options_.algorithm)) choice_.match = chooser_.applying(declared, request_.fixed);
        else if (!request_.options.empty() || !request_.transforms.empty())
            choice_.match = chooser_.fitting(declared, request_.options, request_.fixed);
        else if (options_.family_only) choice_.match = chooser_.family(declared, request_.fixed);
        else choice_.match = chooser_.best(declared, request_.options, request_.fixed);
        made_ = std::exchange(choice_.match.made, nullptr);
        choice_.watched = looked_at(declared, choice_.match, folders_);
    }

    // Says how the schedule was derived. For "host", the named target's stated cache sizes are used, not this machine's, so that the
    // build machine cannot change the result.
    std::string derive() {
        const Target target = options_.target == "host" ? target_named(request_.target.name) : request_.target;
        const std::optional<Schedule> inherits = options_.schedule.empty() ? inherited() : std::nullopt;
        const Extents extents = parse_shape(options_.derive_for, "--derive-for");
        given_extents(request_.bound, extents);  // deriving completes them, and its words are about dims that nobody gave
        const DerivedSchedule derived = derived_schedule(registry_, request_, extents, target, chooser_, observer_, inherits);
        choice_.match.schedule = derived.schedule;
        choice_.match.how = derived.inherits_any ? Match::How::inherited : Match::How::derived;
        made_ = derived.made;
        std::string text = derived.inherits_any ? "by the roles of its stages from '" + inherits->name() + "'" : "derived";
        if (derived.candidates > 0 && derived.inherits_any) text += ", other folds derived";
        if (derived.candidates > 0) text += fmt::format(" from {} candidates in {:.1f} s", derived.candidates, derived.seconds);
        return derived.file ? text + ", kept in " + derived.file->string() : text;
    }

    // What the algorithm takes that this one was made of.
    std::optional<Schedule> inherited() {
        if (!request_.made_of || options_.inherit == "none") return std::nullopt;
        if (!options_.inherit.empty()) return library_.find(options_.inherit);
        const Algorithm &before = request_.made_of->algorithm;
        Extents known;
        for (const Dim &d : before.dims)
            if (const auto extent = request_.fixed.find(d.name); extent != request_.fixed.end() && d.kind == DimKind::symbolic)
                known.insert(*extent);
        Match match = chooser_.fitting(before, request_.options, known);
        const std::vector<fs::path> more = looked_at(before, match, folders_);
        choice_.watched.insert(choice_.watched.end(), more.begin(), more.end());
        return match.schedule;
    }

    // Where nothing is derived.
    void inherit_alone() {
        const std::optional<Schedule> inherits = inherited();
        if (!inherits || request_.target.is_gpu()) return;
        if (auto schedule = inherited_schedule(*inherits, request_, chooser_))
            choice_.match.schedule = std::move(schedule), choice_.match.how = Match::How::inherited;
    }

    // `derived` says how, where the schedule was derived.
    void note_match(const std::string &derived) {
        const Match &match = choice_.match;
        const std::string kernel = request_.declared.name + " on " + request_.target.name + ": ";
        for (const std::string &why : match.passed_over) note("choice.passed-over", kernel + "passed over " + why);
        std::string taken = "no schedule, so that the one to beat is the space's most likely";
        if (match.schedule) taken = "schedule '" + match.schedule->name() + "'";
        const char *tuned = match.is_predicted ? ", predicted, not measured, for " : ", tuned for ";
        if (match.how == Match::How::exact) taken += std::string(tuned) + "this shape";
        if (match.how == Match::How::nearest) {
            taken += std::string(tuned) + "the nearest shape,";
            for (const auto &[dim, extent] : match.tuned_for) taken += " " + dim + "=" + std::to_string(extent);
        }
        if (!derived.empty()) taken += ", " + derived;
        note("choice.schedule", kernel + taken + "; --schedule chooses another");
    }

    // For calls that the schedule says nothing of.
    void note_callee(const CalleeMatch &callee) {
        const std::string call = request_.declared.name + " on " + request_.target.name + ": call '" + callee.scope + "': ";
        for (const std::string &why : callee.match.passed_over) note("choice.passed-over", call + "passed over " + why);
        if (callee.match.schedule)
            note("choice.callee-schedule", call + "schedule '" + callee.match.schedule->name() + "', the best match for " +
                                               callee.callee.name + "; \"" + callee.scope +
                                               "\": {\"use\": …} in the schedule chooses another");
    }

    void note_idle_patterns() {
        for (const std::string &idle : idle_patterns(choice_.applied.program.resolved, request_.declared))
            note("schedule.idle-pattern", "schedule '" + choice_.applied.resolved.name + "': " + idle);
    }

    void watch_callees() {
        std::set<fs::path> all(choice_.watched.begin(), choice_.watched.end());
        for (const CalleeMatch &callee : choice_.callees)
            for (const fs::path &path : looked_at(callee.callee, callee.match, folders_)) all.insert(path);
        for (const CalleeSchedule &callee : choice_.applied.program.callees)
            for (const Schedule &s : callee.ancestry)
                if (s.file()) all.insert(*s.file());
        choice_.watched.assign(all.begin(), all.end());
    }
};

}  // namespace

Choice choose(const Registry &registry, const KernelOptions &options, const KernelRequest &request, const PreparationObserver &observer) {
    return Choosing(registry, options, request, observer).chosen();
}

}  // namespace tessera
