// A Schedule is exactly its JSON document: what one author stated, not yet merged with what it inherits (merge.h). Every
// call gives a new value and changes nothing, so hand-written schedules, mutators and crossover share them:
//
//   Schedule base = Schedule("linear_gelu/avx512").stage("acc", block({{"M", 96}, {"N", 384}}).micro({{"M", 8}, {"N", 48}}));
//   Schedule small = Schedule("linear_gelu/small").extends(base).with_block("acc", {{"M", 48}});  // N stays 384
//
// The format is schedules/tessera-schedule.schema.json. Field by field:
//
//   { "format": "tessera-schedule", "version": 1, "name", "extends",
//     "algorithm": {"name", "surface"}, "requires": [feature],
//     "stages": { stage: { knob: what it says } },     the knobs: schedules/knobs/knob.h
//     "variants": [ {"when": [condition], "stages"} ],
//     "measured": { anything } }
//
// In a child null deletes what it inherits: a stage, a knob, or one dim, operand or level of it. What is stated in C++ is
// checked where it is merged, with the same errors as what is parsed.
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/knobs/knob.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The knobs of one stage, stated one after the other. Each knob has the form of its JSON; a second call on a map adds
// to it and on anything else replaces it.
class StageKnobs {
public:
    StageKnobs();
    explicit StageKnobs(const nlohmann::json &knobs);

    StageKnobs place(const std::string &where) const;  // "root", "inline", "y.micro"
    StageKnobs block(const Extents &extents) const;
    StageKnobs k(const Extents &extents) const;
    StageKnobs micro(const Extents &extents) const;
    StageKnobs level(const std::string &name, const Extents &extents) const;
    StageKnobs loops(const std::vector<std::string> &names) const;
    StageKnobs vector(const Extents &lanes) const;
    StageKnobs unroll(const Extents &iterations) const;
    StageKnobs parallel(const std::vector<std::string> &loops) const;
    StageKnobs pack(const std::string &operand, const std::string &at, const std::vector<std::string> &layout = {}) const;
    // `loop` is that of a stage, "y.M"; without one, at the point itself.
    StageKnobs prefetch(const std::string &operand, const std::string &loop = "", int64_t ahead = 1) const;
    StageKnobs layout(const std::vector<std::string> &axes) const;
    StageKnobs tail(const std::string &dim, Tail policy) const;
    StageKnobs split(const std::string &dim, Split::How how, int64_t size = 0) const;  // passes: no size
    StageKnobs tree(const std::string &dim, const std::vector<int64_t> &lanes) const;  // {"split": {dim: {"lanes": lanes}}}
    StageKnobs stream(const std::string &loop) const;
    StageKnobs instruction(const std::string &family) const;
    StageKnobs call(const std::string &how) const;      // "inline" or "once"
    StageKnobs use(const std::string &schedule) const;  // of the scope of a call
    StageKnobs warps(int64_t count) const;
    StageKnobs directive(const Directive &directive) const;
    StageKnobs without_directive(const std::string &id) const;  // deletes an inherited one
    StageKnobs remove(const std::string &knob) const;           // deletes an inherited knob

    const nlohmann::json &document() const { return *document_; }

private:
    StageKnobs with(Knob knob, const nlohmann::json &value) const;
    std::shared_ptr<const nlohmann::json> document_;
};

StageKnobs block(const Extents &extents);
StageKnobs place(const std::string &where);

class Schedule {
public:
    explicit Schedule(const std::string &name);  // UserError schedule.name

    // From a document's text; `subject` names it in errors. UserError json.*, and schedule.* as in read.h.
    static Schedule parse(std::string_view text, const std::string &subject);
    static Schedule from_json(const nlohmann::json &document, const std::string &subject);

    Schedule named(const std::string &name) const;
    Schedule extends(const std::string &parent) const;  // looked up in a Library when it is merged
    Schedule extends(const Schedule &parent) const;     // this value
    Schedule for_algorithm(const std::string &name, const std::string &surface = "") const;
    Schedule require(const std::vector<std::string> &features) const;

    // States these knobs of the stage beside those that the schedule states already.
    Schedule stage(const std::string &stage, const StageKnobs &knobs) const;
    Schedule with_block(const std::string &stage, const Extents &extents) const;
    Schedule with_k(const std::string &stage, const Extents &extents) const;
    Schedule with_micro(const std::string &stage, const Extents &extents) const;
    Schedule with_vector(const std::string &stage, const Extents &lanes) const;
    // Without the knob, inherited or not: states null in a child, takes it back in a schedule without a parent.
    Schedule remove(const std::string &stage, const std::string &knob) const;
    // Takes back what the schedule itself states, so that what it inherits shows again.
    Schedule unset(const std::string &stage, const std::string &knob) const;
    // Adds a variant for where every condition holds; earlier ones come first.
    Schedule variant(const std::vector<std::string> &when, const std::string &stage, const StageKnobs &knobs) const;
    Schedule with_measured(const nlohmann::json &provenance) const;

    std::string name() const;
    std::string parent_name() const;                                            // "" without a parent
    const Schedule *parent() const { return parent_.get(); }                    // where it was given as a value
    const std::optional<std::filesystem::path> &file() const { return file_; }  // where it was read from one
    Schedule from_file(const std::filesystem::path &file) const;

    const nlohmann::json &document() const { return *document_; }
    std::string text() const;  // canonical (canonical.h)
    std::string hash() const;  // "sha256:…" of the text

    // The same document. Who hands in the parent is no part of it.
    friend bool operator==(const Schedule &a, const Schedule &b) { return a.text() == b.text(); }

private:
    Schedule() = default;
    Schedule with(nlohmann::json document) const;
    std::shared_ptr<const nlohmann::json> document_;
    std::shared_ptr<const Schedule> parent_;
    std::optional<std::filesystem::path> file_;
};

}  // namespace tessera
