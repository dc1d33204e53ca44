// What a person sees of a campaign while it runs.
#pragma once
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "autotune/search/campaign.h"
#include "generators/commands/error_form.h"
#include "generators/commands/notes.h"
#include "support/processes/interruption.h"

namespace tessera {

std::string trials_text(int trials, int budget);                    // "  12 of 64 trials", "  12 trials" where only time ends them
std::string verdicts_text(const std::map<Verdict, int> &verdicts);  // "12 measured, 1 crashed"
// How near the roofline, where the rates of the machine were measured; assumed ones would promise too much or too little.
std::string bound_text(double bound, double seconds, bool calibrated);

std::string stopped_text(size_t trials, size_t budget);  // "stopped after 9 of 30 trials; --resume goes on from here"
// A document for standard output, whatever bytes the names of files in it have.
std::string document_text(const nlohmann::ordered_json &document);

// "1.250 of the base's speed", "2.10 times less code than the base": a gain_over.
std::string gain_text(double gain, Metric metric);

// Tells stderr at once what comes of Ctrl-C now, and of a second one. `place`: of what would be written.
void say_what_stopping_does(Interruption &interruption, const Progress &progress, const std::string &place, const std::string &records,
                            bool quiet);

// On a terminal one line that changes; elsewhere a line where the best changes, and for every sixteenth trial.
class ProgressLine {
public:
    ProgressLine(bool quiet, bool calibrated, Metric metric);
    void show(const Progress &progress);
    ~ProgressLine();

private:
    bool terminal_, quiet_, calibrated_;
    Metric metric_;
    double best_ = 0;
    int trials_ = 0;
    Phase phase_ = Phase::searching;
};

}  // namespace tessera
