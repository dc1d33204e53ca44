#include "schedules/check/check_effect.h"

#include <algorithm>

#include "schedules/knobs/knob.h"
#include "support/containers/contains.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class Effects {
public:
    Effects(const Stage &stage, const Knobs &knobs, const Algorithm &algorithm, const FieldPlace &where)
        : stage_(stage),
          k_(knobs),
          where_(where),
          subject_(algorithm.name + "." + stage.name),
          reduced_(reduced_dims(stage)),
          scanned_(scanned_dim(stage)) {
        for (const Tensor &t : results_of(stage))
            if (contains(algorithm.outputs, t.name)) output_ = t.name;
    }

    void run() const {
        if (scatters(stage_)) scattered();
        if (k_.place && k_.place->kind == Place::Kind::inlined) nowhere(" is inlined, so it has no loops and no storage of its own");
        if (k_.place && k_.place->kind == Place::Kind::beside && k_.place->loop.empty())
            nowhere(" is beside '" + k_.place->stage + "', so it has that stage's loops and none of its own");
        lanes();
        unrolled();
        tails();
        layout();
    }

private:
    const Stage &stage_;
    const Knobs &k_;
    const FieldPlace &where_;
    std::string subject_;
    std::vector<std::string> reduced_;
    std::string scanned_, output_;

    [[noreturn]] void refuse(const FieldPlace &at, const std::string &why) const { at.fail("schedule.no-effect", subject_ + why); }

    bool folds_over(const std::string &dim) const { return contains(reduced_, dim) || dim == scanned_; }

    // Knobs of loops and storage, on a stage that has none that a schedule could change.
    void nowhere(const std::string &why, const std::vector<Knob> &but = {}) const {
        for_each_knob(k_, [&](Knob knob, const auto &field) {
            if (rule_of(knob).about == About::loops && is_stated(field) && !contains(but, knob))
                refuse(where_ / name_of(knob), why + ", and '" + name_of(knob) + "' would change nothing. Delete it (null).");
        });
    }

    // Along computed positions there are no points to tile, only parts of the result that an iteration owns.
    void scattered() const {
        if (k_.place && k_.place->kind == Place::Kind::at)
            (where_ / "place")
                .fail("schedule.place",
                      subject_ + " folds to a computed destination, which may be anywhere in its result. Place it at root.");
        const std::vector<std::string> ordinary = ordinary_dims(stage_);
        auto is_computed = [&](const std::string &d) { return contains(stage_.dims, d) && !contains(ordinary, d); };
        auto no_points = [&](const FieldPlace &at, const std::string &dim) {
            if (is_computed(dim))
                refuse(at, " computes the position along '" + dim + "', and '" + dim +
                               "' has no loop but over parts of the result that iterations own (block). Delete it (null).");
        };
        for (const auto &[dim, tile] : k_.block)
            if (contains(reduced_, dim)) no_points(where_ / "block" / dim, dim);
        for (const auto &[dim, tile] : k_.micro) no_points(where_ / "micro" / dim, dim);
        for (const auto &[dim, count] : k_.unroll) no_points(where_ / "unroll" / dim, dim);
        for (const auto &[name, level] : k_.levels)
            for (const auto &[dim, tile] : level) no_points(where_ / name / dim, dim);
        for (const std::string &loop : k_.parallel) no_points(where_ / "parallel", loop);
        for (const std::string &loop : k_.loops) no_points(where_ / "loops", loop);
    }

    void lanes() const {
        for (const auto &[dim, count] : k_.vector) {
            const FieldPlace at = where_ / "vector" / dim;
            if (contains(reduced_, dim))
                refuse(at, " folds over '" + dim +
                               "' one element after the other, and lanes along it would change nothing. Delete it (null), or split the "
                               "fold: \"split\": {\"" +
                               dim + "\": {\"how\": \"lanes\", \"size\": " + std::to_string(count) + "}}.");
            if (dim == scanned_)
                refuse(at, " scans along '" + dim +
                               "' in order, and lanes along it would change nothing. Delete it (null), or split the scan.");
            auto tile = k_.micro.find(dim);
            if (tile != k_.micro.end() && tile->second % count)
                at.fail("schedule.lanes", subject_ + ": its register tile has " + std::to_string(tile->second) + " of " + dim +
                                              ", which are not whole vectors of " + std::to_string(count) +
                                              " lanes. Make micro a multiple of vector.");
        }
    }

    void unrolled() const {
        for (const auto &[dim, count] : k_.unroll) {
            const FieldPlace at = where_ / "unroll" / dim;
            const std::string rest = ", and unroll would change nothing. Delete it (null)";
            if (!contains(stage_.dims, dim) && !folds_over(dim))
                refuse(at, " has no loop over '" + dim + "', which is a dim of the fold's parts" + rest + ".");
            if (k_.vector.count(dim) && !k_.micro.count(dim))
                refuse(at, " runs over '" + dim + "' in vectors and not point by point" + rest + ", or state micro, which is unrolled.");
            if (k_.micro.count(dim) && !contains(k_.loops, dim))
                refuse(at, " has no loop over '" + dim + "' point by point: micro cuts the dim, and is unrolled itself" + rest + ".");
        }
    }

    void tails() const {
        for (const auto &[dim, policy] : k_.tail) {
            const bool padded = contains(stage_.dims, dim) && dim != scanned_ && (k_.micro.count(dim) || k_.vector.count(dim));
            if (!padded)
                refuse(where_ / "tail" / dim, " has no loop over '" + dim +
                                                  "' whose last step may be a part of one: only register tiles (micro) and lanes (vector) "
                                                  "along a dim that is not folded are such. "
                                                  "Delete it (null), or state one of them.");
            const auto micro = k_.micro.find(dim), lanes = k_.vector.find(dim);
            if (policy == Tail::narrow && (micro == k_.micro.end() || micro->second <= (lanes == k_.vector.end() ? 1 : lanes->second)))
                refuse(where_ / "tail" / dim, " has no register tile of several rows or vectors along '" + dim +
                                                  "', and narrow would compute what mask does. Delete it (null), or state a larger micro.");
        }
    }

    void layout() const {
        if (k_.layout.empty()) return;
        if (const auto writes = writes_of(stage_); !writes.empty())
            refuse(where_ / "layout", " writes the state '" + writes[0]->state +
                                          "', which its caller lays out, and a layout would change nothing. Delete it (null).");
        if (!output_.empty())
            refuse(where_ / "layout", " computes the output '" + output_ +
                                          "', which its caller lays out, and a layout would change nothing. Delete it (null).");
    }
};

}  // namespace

void check_effect(const Stage &stage, const Knobs &knobs, const Algorithm &algorithm, const FieldPlace &where) {
    Effects(stage, knobs, algorithm, where).run();
}

}  // namespace tessera
