#include "generators/commands/lowering_text.h"

#include <map>

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
        text_ += "\n== " + step.name;
        auto last = last_.find(step.of);
        if (last == last_.end()) text_ += "\n" + step.text;
        else if (const std::string changes = line_changes(last->second, step.text); changes.empty()) text_ += ": changes nothing\n";
        else text_ += "\n" + changes;
        last_[step.of] = step.text;
    }
    const std::string &text() const { return text_; }

private:
    std::string text_;
    std::map<LoweringStep::Of, std::string> last_;  // text of each
};

}  // namespace

std::string lowering_text(const PreparedKernel &p) {
    StepsText steps;
    lower_variants(p.declared.name, p.resolved, p.bound, p.target, nullptr, [&](const std::vector<Condition> &when) {
        steps.begin_variant(when);
        return [&](const LoweringStep &step) { steps.add(step); };
    });
    return steps.text();
}

}  // namespace tessera
