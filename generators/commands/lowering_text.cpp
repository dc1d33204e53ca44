#include "generators/commands/lowering_text.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/text/line_changes.h"

namespace tessera {

namespace {

class StepsText {
public:
    void begin_variant(const std::vector<Condition> &when) {
        last_.clear();
        if (!when.empty() || !text_.empty()) text_ += "# " + condition_text(when) + "\n";
    }
    void add(const LoweringStep &step) {
        text_ += "\n== " + (step.call.empty() ? "" : "call " + step.call + ": ") + step.name;
        const std::pair of(step.call, step.of);
        auto last = last_.find(of);
        if (last == last_.end()) text_ += "\n" + step.text;
        else if (const std::string changes = line_changes(last->second, step.text); changes.empty()) text_ += ": changes nothing\n";
        else text_ += "\n" + changes;
        last_[of] = step.text;
    }
    const std::string &text() const { return text_; }

private:
    std::string text_;
    std::map<std::pair<std::string, LoweringStep::Of>, std::string> last_;  // text of each, by call
};

}  // namespace

std::string lowering_text(const ScheduledKernel &p) {
    StepsText steps;
    lower_variants(p.request.bound, p.choice.applied.resolved, p.request.target, [&](const std::vector<Condition> &when) {
        steps.begin_variant(when);
        return [&](const LoweringStep &step) { steps.add(step); };
    });
    return steps.text();
}

}  // namespace tessera
