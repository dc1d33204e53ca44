// What a search makes small: time, of one call or of many side by side, or bytes as long as the time stays within bounds.
#pragma once
#include <string>
#include <vector>

#include "autotune/measure/measurement.h"
#include "costmodel/model/cost_model.h"

namespace tessera {

enum class Metric {
    latency,     // of one call on the threads that it is tuned for
    throughput,  // of as many callers as there are threads, each with data of its own, on one thread each
    code_size,   // bytes of machine code
    workspace,   // bytes of scratch memory
};
const char *name_of(Metric metric);
bool is_speed(Metric metric);

struct Goal {
    Metric metric = Metric::latency;
    double min_speed = 0.9;  // of the base's: what is surely slower is no answer where bytes are to be small
    int callers = 1;         // of throughput
};

// How many times better than the base, by what is surely reached: the ratio of speeds, or of bytes, each with 64 more so that none
// is divided by. At most a hundredth for what is too slow.
double gain_over(const Measurement &base, const Measurement &measured, const Goal &goal);

// Ranks candidates by a goal: by `time` alone, or by the bytes that their features tell, those last that `time` expects to be too slow.
class GoalModel : public CostModel {
public:
    // `time` outlives it.
    GoalModel(CostModel &time, const Goal &goal) : time_(time), goal_(goal) {}
    void set_base(const Featured &base) { base_ = {base}; }
    std::vector<double> predict(const std::vector<Featured> &candidates) const override;
    void update(const std::vector<Example> &examples) override { time_.update(examples); }
    void load(const std::filesystem::path &file) override { time_.load(file); }
    void save(const std::filesystem::path &file) const override { time_.save(file); }

private:
    CostModel &time_;
    Goal goal_;
    std::vector<Featured> base_;  // one, once it is known
};

}  // namespace tessera
