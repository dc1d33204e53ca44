#include "schedules/artifact/callee_schedules.h"

#include <algorithm>

#include "algorithms/transform/inline_calls.h"
#include "algorithms/transform/scopes.h"
#include "schedules/artifact/inherited_fields.h"
#include "schedules/artifact/merge.h"
#include "schedules/artifact/read.h"
#include "schedules/artifact/renamed_fields.h"
#include "schedules/artifact/write.h"
#include "schedules/knobs/condition.h"
#include "schedules/knobs/knob_names.h"
#include "schedules/knobs/notation.h"
#include "schedules/knobs/pattern.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

namespace {

constexpr const char *no_schedule = "none", *use_knob = "use";

// One variant, whole. The last of several has no condition.
struct Arm {
    std::vector<Condition> when;
    Fields fields;
    bool is_callees = false;  // some of its conditions are a callee's
};

bool is_use(const FieldPath &path) { return path.size() == 3 && path[0] == "stages" && path[2] == use_knob; }

std::string joined_scope(const std::string &outer, const std::string &scope) { return outer.empty() ? scope : outer + "." + scope; }

// The callee's names as the caller has them.
class CallersNames {
public:
    CallersNames(const Call &call, const Algorithm &callee) : scope_(call.scope) {
        for (const auto &[own, view] : call.tensors)  // what a round takes has a name of its own (inline_calls)
            if (!call.repeat) tensors_[own] = view.tensor;
        for (const Dim &d : callee.dims) {
            auto bound = call.dims.find(d.name);
            dims_[d.name] = bound == call.dims.end() ? scoped(d.name) : bound->second;
        }
        tensors_.insert(call.results.begin(), call.results.end());
    }

    std::string dim(const std::string &name) const { return find_dim(name).value_or(name); }
    std::string stage(const std::string &name) const { return scoped(name); }

    KnobNames names() const {
        KnobNames names;
        names.dim = [this](const std::string &d) { return dim(d); };
        names.axis = [this](const std::string &, const std::string &d) { return dim(d); };
        names.stage = [this](const std::string &name) { return stage(name); };
        names.loop = [this](const std::string &, const std::string &text) {
            LoopName name = parse_loop(text, [&](const std::string &d) { return find_dim(d).has_value(); });
            name.dim = dim(name.dim);
            return name.text();
        };
        names.tensor = [this](const std::string &name) {
            auto bound = tensors_.find(name);
            return bound == tensors_.end() ? scoped(name) : bound->second;
        };
        return names;
    }

private:
    std::string scope_;
    std::map<std::string, std::string> dims_, tensors_;

    std::string scoped(const std::string &name) const { return joined_scope(scope_, name); }

    // The pieces of a split dim have names that begin with the dim's.
    std::optional<std::string> find_dim(const std::string &name) const {
        for (size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1))
            if (auto it = dims_.find(name.substr(0, end)); it != dims_.end()) return it->second + name.substr(end);
        return std::nullopt;
    }
};

bool has_pattern(const FieldPath &path) { return std::any_of(path.begin() + 1, path.end(), is_pattern); }

KnobsByStage without_uses(KnobsByStage stages) {
    for (auto &[name, k] : stages) k.use.reset();
    std::erase_if(stages, [](const auto &s) { return s.second == Knobs{}; });
    return stages;
}

FieldPlace place_in(const std::vector<Schedule> &chain) {
    FieldPlace where;
    for (const Schedule &s : chain)
        if (&s == &chain.front()) where.schedule = s.name();
        else where.ancestors.push_back(s.name());
    return where;
}

ResolvedSchedule resolved(const std::vector<Schedule> &chain, const std::vector<Arm> &arms) {
    const FieldPlace where = place_in(chain);
    ResolvedSchedule result = resolved_of(chain, arms.back().fields);
    result.stages = without_uses(result.stages);
    for (size_t i = 0; i + 1 < arms.size(); i++)
        result.variants.push_back(
            {arms[i].when, without_uses(stages_of(arms[i].fields, where / "variants" / std::to_string(i) / "stages"))});
    return result;
}

class ProgramMerge {
public:
    ProgramMerge(const Library &library, const CalleeRules &rules, const Schedule &schedule)
        : library_(library), rules_(rules), around_({{"", schedule.name()}}) {}

    // The chain's variants for `program`, the last without a condition. `chosen` are the uses for its calls that a caller states.
    std::vector<Arm> merge(const std::vector<Schedule> &chain, const Algorithm &program, const Extents &fixed, const Fields &chosen,
                           const std::string &scope, bool may_match) {
        const Algorithm inlined = inline_calls(program);
        const Fields own = merged_chain(chain, {}, false, false);
        const bool is_made_of_another = scope.empty() && rules_.made_of;
        check_scopes(own, program, is_made_of_another);
        const auto stated = own.find({"variants"});
        const json variants = stated == own.end() ? json::array() : stated->second.value;
        std::vector<Arm> all;
        for (size_t v = 0; v <= variants.size(); v++) {
            const json *variant = v < variants.size() ? &variants[v] : nullptr;
            const FieldPlace where = place_in(chain);
            auto state_variant = [&](Fields &fields) {
                if (variant) apply(fields, json{{"stages", (*variant)["stages"]}}, where.schedule, {}, never);
            };
            Fields said = own;
            state_variant(said);
            for (const auto &[path, field] : chosen) said[path] = field;
            const std::vector<Condition> when =
                variant ? read_conditions((*variant)["when"], where / "variants" / std::to_string(v) / "when") : std::vector<Condition>();
            std::vector<Arm> below = callees_of(program, inlined, fixed, said, scope, may_match);
            const Fields inherited = is_made_of_another ? inherited_by_roles(said, inlined, fixed) : Fields{};
            for (Arm &arm : below) {
                give_way_to_roles(arm.fields, inherited);
                arm = together(arm, {{}, inherited});
                const bool is_plain = when.empty() && arm.when.empty();
                give_way_to_patterns(arm.fields, said, inlined);
                arm.fields = merged_chain(chain, std::move(arm.fields), is_plain, program.calls().empty());
                state_variant(arm.fields);
                arm.fields.erase({"variants"});
                arm.when.insert(arm.when.begin(), when.begin(), when.end());
                all.push_back(std::move(arm));
            }
        }
        return reachable(std::move(all), program);
    }

    std::vector<CalleeSchedule> take_used() { return std::move(used_); }
    std::vector<std::string> take_left_out() { return std::move(left_out_); }

private:
    const Library &library_;
    const CalleeRules &rules_;
    std::vector<CalleeSchedule> used_;
    std::vector<std::string> left_out_;
    std::map<std::string, std::optional<Schedule>> matched_;   // by scope
    std::vector<std::pair<std::string, std::string>> around_;  // scopes and schedules that are being merged, outermost first

    static void add_scopes(const Algorithm &program, const std::string &prefix, std::vector<std::string> &scopes) {
        for (const Call &call : program.calls()) {
            scopes.push_back(prefix + call.scope);
            add_scopes(*call.callee, prefix + call.scope + ".", scopes);
        }
    }

    void check_scopes(const Fields &own, const Algorithm &program, bool is_made_of_another) const {
        std::vector<std::string> scopes;
        add_scopes(program, "", scopes);
        if (is_made_of_another)
            for (const StageRole &role : rules_.made_of->roles) scopes.push_back(role.stage);
        for (const auto &[path, field] : own)
            if (is_use(path) && std::find(scopes.begin(), scopes.end(), path[1]) == scopes.end())
                FieldPlace{field.set_by, pointer_of(path), {}}.fail(
                    "schedule.unknown-stage",
                    program.name + " has no call '" + path[1] + "'" +
                        (is_made_of_another ? ", nor such a stage with a role of " + rules_.made_of->algorithm.name : "") + "; " +
                        (scopes.empty() ? "it calls nothing"
                                        : std::string(is_made_of_another ? "there are " : "its calls are ") + join(scopes)) +
                        ". Name one in full, or remove the knob." + did_you_mean(path[1], scopes));
    }

    // Fields of the stages that use a schedule of the algorithm which this one was made of.
    Fields inherited_by_roles(const Fields &said, const Algorithm &inlined, const Extents &fixed) {
        const MadeOf &of = *rules_.made_of;
        Arm all;
        for (const StageRole &role : of.roles) {
            const auto stated = said.find({"stages", role.stage, use_knob});
            if (stated == said.end() || stated->second.value == no_schedule) continue;
            const Schedule schedule = used(stated->second, role.stage);
            const std::vector<Schedule> chain = library_.ancestry(schedule);
            CalleeRules rules = rules_;
            rules.made_of = nullptr;
            Extents known;
            for (const Dim &d : of.algorithm.dims)
                if (const auto extent = fixed.find(d.name); extent != fixed.end() && d.kind == DimKind::symbolic) known.insert(*extent);
            ProgramMerge there(library_, rules, schedule);
            const std::vector<Arm> arms = there.merge(chain, of.algorithm, known, {}, "", true);
            if (rules_.check) check_applies(resolved(chain, arms), of.algorithm, stated->second.set_by, role.stage);
            InheritedFields fields = inherited_fields(role, arm_for(arms, of.algorithm, known).fields, inlined, inline_calls(of.algorithm));
            // Two products whose results one stage reads may both say how it is computed: the first one does.
            std::erase_if(fields.fields, [&](const auto &f) {
                const bool is_taken = f.first[0] == "stages" && all.fields.count(f.first) > 0;
                if (is_taken) fields.left_out.push_back(pointer_of(f.first) + ": " + all.fields.at(f.first).set_by + " states it");
                return is_taken;
            });
            all = together(all, {{}, fields.fields});
            if (const auto features = arms.back().fields.find({"requires"}); features != arms.back().fields.end())
                all = together(all, {{}, {{features->first, {features->second.value, features->second.set_by, {}, 0}}}});
            for (const std::string &what : fields.left_out)
                left_out_.push_back(role.stage + " takes of " + schedule.name() + " no " + what);
            note_use({role.stage, chain, true});
            for (const CalleeSchedule &callee : there.take_used()) note_use(callee);
        }
        return all.fields;
    }

    // The first that applies whatever the extents are which are not known.
    static const Arm &arm_for(const std::vector<Arm> &arms, const Algorithm &algorithm, const Extents &known) {
        const auto holds_there = [&](const Condition &c) {
            const Dim *dim = c.dim.empty() ? nullptr : algorithm.find_dim(c.dim);
            if (!dim) return false;
            if (const auto extent = known.find(c.dim); extent != known.end()) return holds(c, extent->second);
            return dim->kind == DimKind::fixed ? holds(c, dim->value) : dim->kind == DimKind::symbolic && always_hold({c}, *dim);
        };
        for (const Arm &arm : arms)
            if (std::all_of(arm.when.begin(), arm.when.end(), holds_there)) return arm;
        return arms.back();
    }

    // A null that deletes nothing is an error where `strict`: of ancestors only where what they delete cannot be of a callee's schedule,
    // in whose place a child may use another.
    static Fields merged_chain(const std::vector<Schedule> &chain, Fields below, bool strict, bool strict_ancestors) {
        for (size_t i = chain.size(); i-- > 0;) {
            std::vector<std::string> ancestors;
            for (size_t a = i + 1; a < chain.size(); a++) ancestors.push_back(chain[a].name());
            const bool must_delete = strict && (i == 0 || strict_ancestors);
            apply(below, chain[i].document(), chain[i].name(), ancestors, [&](const FieldPath &) { return must_delete; });
        }
        return below;
    }

    // A pattern of the caller is over what callees' schedules state, although it is below names that are written in full.
    static void give_way_to_patterns(Fields &below, const Fields &own, const Algorithm &inlined) {
        for (const auto &[pattern, field] : own) {
            if (pattern[0] != "stages" || !has_pattern(pattern)) continue;
            std::erase_if(below, [&, &address = pattern](const auto &f) {
                return f.first[0] == "stages" && inlined.find_stage(f.first[1]) && matches_path(address, f.first);
            });
        }
    }

    // A stage that uses a schedule by its role takes nothing of the one that its call uses.
    static void give_way_to_roles(Fields &below, const Fields &inherited) {
        std::set<std::string> stages;
        for (const auto &[path, field] : inherited)
            if (path[0] == "stages") stages.insert(path[1]);
        std::erase_if(below, [&](const auto &f) { return f.first[0] == "stages" && stages.count(f.first[1]) > 0; });
    }

    // Whether the fields say how the stages of a call are computed.
    static bool says_how(const Fields &said, const Call &call, const Algorithm &program, const Algorithm &inlined) {
        return std::any_of(said.begin(), said.end(), [&](const auto &f) {
            const FieldPath &path = f.first;
            if (path[0] != "stages" || path[2] == use_knob || path[2] == name_of(Knob::call)) return false;
            if (!is_pattern(path[1])) return is_within(path[1], call, program);
            return std::ranges::any_of(inlined.stages(),
                                       [&](const Stage &s) { return is_within(s.name, call, program) && matches(path[1], s.name); });
        });
    }

    // What the schedules of all calls state together, in names of the program: an arm for each combination of theirs.
    std::vector<Arm> callees_of(const Algorithm &program, const Algorithm &inlined, const Extents &fixed, const Fields &said,
                                const std::string &scope, bool may_match) {
        constexpr size_t most = 64;
        std::vector<Arm> all = {Arm{}};
        for (const Call &call : program.calls()) {
            const std::vector<Arm> own = callee_of(call, program, inlined, fixed, said, scope, may_match);
            std::vector<Arm> product;
            for (const Arm &left : all)
                for (const Arm &right : own) product.push_back(together(left, right));
            all = reachable(std::move(product), program);
            if (all.size() > most)
                throw UserError("schedule.variants",
                                program.name + ": expected at most " + std::to_string(most) +
                                    " variants, each of which is compiled; the variants of its callees' schedules make " +
                                    std::to_string(all.size()) + " combinations. Use schedules with fewer variants.");
        }
        return all;
    }

    static Arm together(const Arm &a, const Arm &b) {
        Arm both = a;
        both.is_callees |= b.is_callees;
        for (const Condition &c : b.when)
            if (std::find(both.when.begin(), both.when.end(), c) == both.when.end()) both.when.push_back(c);
        for (const auto &[path, field] : b.fields) {
            auto [own, added] = both.fields.try_emplace(path, field);
            if (added) continue;
            if (path != FieldPath{"requires"})
                broken("no two calls have a stage together: " + pointer_of(path) + " is set by " + own->second.set_by + " and by " +
                       field.set_by);
            std::set<std::string> features;  // of all callees
            for (const Field *f : {&std::as_const(own->second), &field})
                for (const json &feature : f->value) features.insert(feature.get<std::string>());
            if (own->second.set_by != field.set_by) own->second.set_by += ", " + field.set_by;
            own->second.value = features;
        }
        return both;
    }

    std::vector<Arm> callee_of(const Call &call, const Algorithm &program, const Algorithm &inlined, const Extents &fixed,
                               const Fields &said, const std::string &scope, bool may_match) {
        const Algorithm &callee = *call.callee;
        const std::string full = joined_scope(scope, call.scope);
        const auto stated = said.find({"stages", call.scope, use_knob});
        Fields inner;  // uses for calls of the callee, in its own names
        for (const auto &[path, field] : said)
            if (is_use(path) && is_within(path[1], call, program))
                inner[{"stages", path[1].substr(call.scope.size() + 1), use_knob}] = field;
        const Extents known = known_extents(call, program, fixed);
        std::optional<Schedule> schedule;
        const bool is_named = stated != said.end() && stated->second.value != no_schedule;
        if (is_named) schedule = used(stated->second, call.scope);
        else if (stated == said.end() && may_match && rules_.match && !says_how(said, call, program, inlined))
            schedule = match_for(full, callee, known);
        if (!schedule && (callee.calls().empty() || inner.empty())) return {Arm{}};
        const std::vector<Schedule> chain = schedule ? library_.ancestry(*schedule) : std::vector<Schedule>{Schedule("none")};
        if (is_named) refuse_cycle(*schedule, full, stated->second.set_by);
        if (schedule) note_use({full, chain, is_named});
        around_.emplace_back(full, chain.front().name());
        const std::vector<Arm> arms = merge(chain, callee, known, inner, full, schedule.has_value());
        around_.pop_back();
        if (!schedule) return renamed(arms, call, full, {});
        if (is_named && rules_.check) check_applies(resolved(chain, arms), callee, stated->second.set_by, call.scope);
        const Field how{schedule->name(), "the best match for " + callee.name, {}};
        return renamed(arms, call, full, is_named ? Fields{} : Fields{{{"stages", call.scope, use_knob}, how}});
    }

    // Extents of the callee's dims that the kernel or the caller fixes.
    static Extents known_extents(const Call &call, const Algorithm &program, const Extents &fixed) {
        Extents known;
        for (const Dim &d : call.callee->dims) {
            auto bound = call.dims.find(d.name);
            if (d.kind != DimKind::symbolic || bound == call.dims.end()) continue;
            const Dim *callers = program.find_dim(bound->second);
            if (auto extent = fixed.find(bound->second); extent != fixed.end()) known[d.name] = extent->second;
            else if (callers && callers->kind == DimKind::fixed) known[d.name] = callers->value;
        }
        return known;
    }

    std::optional<Schedule> match_for(const std::string &scope, const Algorithm &callee, const Extents &known) {
        auto [match, added] = matched_.try_emplace(scope);
        if (added) match->second = rules_.match(scope, callee, known);
        return match->second;
    }

    Schedule used(const Field &stated, const std::string &scope) const {
        const std::string name = stated.value.get<std::string>();
        try {
            return library_.find(name);
        } catch (const UserError &error) {
            if (error.id() != "schedule.missing") throw;
            FieldPlace{stated.set_by, pointer_of({"stages", scope, use_knob}), {}}.fail("schedule.missing-callee", error.message());
        }
    }

    void refuse_cycle(const Schedule &schedule, const std::string &scope, const std::string &stated_by) const {
        std::string path;
        bool is_around = false;
        for (const auto &[at, name] : around_) {
            path += name + (at.empty() ? "" : " at " + at) + " -> ";
            is_around = is_around || name == schedule.name();
        }
        if (is_around)
            throw UserError("schedule.cycle", "schedule '" + stated_by + "': it uses itself: " + path + schedule.name() + " at " + scope +
                                                  ". Use another schedule there, or \"none\".");
    }

    void check_applies(const ResolvedSchedule &schedule, const Algorithm &callee, const std::string &stated_by,
                       const std::string &scope) const {
        try {
            rules_.check(schedule, callee);
        } catch (const UserError &error) {
            FieldPlace{stated_by, pointer_of({"stages", scope, use_knob}), {}}.fail(
                "schedule.use", "expected a schedule that applies to '" + callee.name + "', which the call '" + scope + "' is of; '" +
                                    schedule.name + "' does not: " + error.message() + " Use one of " + callee.name + ", or \"none\".");
        }
    }

    void note_use(const CalleeSchedule &use) {
        const bool known = std::any_of(used_.begin(), used_.end(), [&](const CalleeSchedule &u) {
            return u.scope == use.scope && u.ancestry.front().name() == use.ancestry.front().name();
        });
        if (!known) used_.push_back(use);
    }

    // In names of the caller, with `more`.
    static std::vector<Arm> renamed(const std::vector<Arm> &arms, const Call &call, const std::string &scope, const Fields &more) {
        const Algorithm callee = inline_calls(*call.callee);
        const CallersNames callers(call, callee);
        std::vector<Arm> result;
        for (const Arm &arm : arms) {
            Arm own;
            const std::optional<std::vector<Condition>> when = undecided(arm.when, callers, call, callee);
            if (!when) continue;
            own.when = *when, own.is_callees = !own.when.empty();
            own.fields = renamed(arm.fields, callers, callee, call.scope, scope);
            own.fields.insert(more.begin(), more.end());
            result.push_back(std::move(own));
        }
        return result;
    }

    // Nothing where a dim that is the callee's alone decides that they do not hold.
    static std::optional<std::vector<Condition>> undecided(const std::vector<Condition> &when, const CallersNames &callers,
                                                           const Call &call, const Algorithm &callee) {
        std::vector<Condition> left;
        for (Condition c : when) {
            const Dim *dim = c.dim.empty() ? nullptr : callee.find_dim(c.dim);
            if (dim && dim->kind == DimKind::fixed && !call.dims.count(c.dim)) {
                if (!holds(c, dim->value)) return std::nullopt;
                continue;
            }
            if (dim) c.dim = callers.dim(c.dim);
            left.push_back(c);
        }
        return left;
    }

    static Fields renamed(const Fields &fields, const CallersNames &callers, const Algorithm &callee, const std::string &call,
                          const std::string &scope) {
        auto from = [&](const std::string &by) { return by.find(" at ") == std::string::npos ? by + " at " + scope : by; };
        Fields result;
        for (const auto &[path, field] : fields)
            if (path == FieldPath{"requires"}) result[path] = {field.value, from(field.set_by), {}, 0};
            else if (is_use(path)) result[{path[0], joined_scope(call, path[1]), path[2]}] = {field.value, from(field.set_by), {}, 0};
        const Fields stages = renamed_fields(
            written_stages(fields, callee), callers.names(), [&](const FieldPath &path) { return stated_by(path, fields); }, from);
        result.insert(stages.begin(), stages.end());
        return result;
    }

    static Field stated_by(const FieldPath &path, const Fields &fields) {
        const Field *origin = origin_of(path, fields);
        require(origin != nullptr, "a field that is written out is stated by somebody");
        return *origin;
    }

    // What a callee's conditions leave: without combinations that no extents meet, conditions that all do, and what is behind an arm
    // that always applies where it does. Those of the program's own schedule are for its check.
    static std::vector<Arm> reachable(std::vector<Arm> arms, const Algorithm &program) {
        std::vector<Dim> dims;  // whose extents are known, or bounded
        for (const Dim &d : program.dims) {
            if (d.kind == DimKind::derived) continue;
            dims.push_back(d.kind == DimKind::fixed ? symbolic_dim(d.name) : d);
            if (d.kind == DimKind::fixed) dims.back().min = dims.back().max = d.value;
        }
        std::vector<Arm> result;
        for (Arm &arm : arms) {
            if (arm.is_callees)
                std::erase_if(arm.when, [&](const Condition &c) {
                    const auto dim = std::find_if(dims.begin(), dims.end(), [&](const Dim &d) { return d.name == c.dim; });
                    return dim != dims.end() && always_hold({c}, *dim);
                });
            auto meets = [&](const Dim &d) { return !extents_that_meet(arm.when, d).empty(); };
            auto comes_before = [&](const Arm &other) {
                return std::all_of(other.when.begin(), other.when.end(),
                                   [&](const Condition &c) { return std::find(arm.when.begin(), arm.when.end(), c) != arm.when.end(); });
            };
            if (arm.is_callees && !std::all_of(dims.begin(), dims.end(), meets)) continue;
            if (std::any_of(result.begin(), result.end(), comes_before)) continue;
            result.push_back(std::move(arm));
        }
        return result;
    }
};

std::map<FieldPath, json> values_of(const KnobsByStage &stages) {
    json document = {{"stages", json::object()}};
    for (const auto &[name, knobs] : stages) document["stages"][name] = json_of(knobs);
    std::map<FieldPath, json> all;
    for (const auto &[path, value] : statements(document)) all[path] = value;
    return all;
}

// What a variant states to turn `from` into `to`.
json differences(const KnobsByStage &from, const KnobsByStage &to) {
    const std::map<FieldPath, json> below = values_of(from), wanted = values_of(to);
    Fields stated;
    size_t order = 0;
    auto state = [&](const FieldPath &path, const json &value) { stated[path] = {value, "", {}, order++}; };
    for (const auto &[path, value] : below)
        if (!wanted.count(path)) state(path, path[2] == name_of(Knob::directives) ? json{{"id", path[3]}, {"op", nullptr}} : json());
    for (const auto &[path, value] : wanted)
        if (auto own = below.find(path); own == below.end() || own->second != value) state(path, value);
    return document_of(stated).value("stages", json::object());
}

}  // namespace

ProgramSchedule resolve_program(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Library &library,
                                const CalleeRules &rules) {
    const std::vector<Schedule> chain = library.ancestry(schedule);
    ProgramSchedule result;
    ProgramMerge merge(library, rules, schedule);
    const std::vector<Arm> arms = merge.merge(chain, declared, fixed, {}, "", true);
    result.resolved = resolved(chain, arms);
    result.fields = arms.back().fields;
    result.callees = merge.take_used();
    result.left_out = merge.take_left_out();
    return result;
}

Schedule flatten(const Schedule &schedule, const ProgramSchedule &program, const Algorithm &declared) {
    Fields fields = program.fields;
    std::erase_if(fields, [](const auto &f) { return is_use(f.first); });
    if (!program.callees.empty())
        for (const Call &call : declared.calls()) fields[{"stages", call.scope, use_knob}] = {no_schedule, schedule.name(), {}, 0};
    json document = document_of(fields);
    for (const char *own : {"format", "version", "name", "measured"})
        if (schedule.document().contains(own)) document[own] = schedule.document()[own];
    for (const Variant &variant : program.resolved.variants) {
        json one = {{"when", json::array()}, {"stages", differences(program.resolved.stages, variant.stages)}};
        for (const Condition &c : variant.when) one["when"].push_back(to_string(c));
        document["variants"].push_back(one);
    }
    return Schedule::from_json(document, schedule.name());
}

}  // namespace tessera
