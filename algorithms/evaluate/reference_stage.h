// Runs the stages of one algorithm, one after the other, for the reference interpreter (reference.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/evaluate/array.h"
#include "algorithms/evaluate/needed_boxes.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

class StageRunner {
public:
    // Calls are left to who runs the stages; `extents` holds every fixed and symbolic dim, `parameters` every parameter.
    StageRunner(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, Scalar> &parameters);
    void add(const std::string &name, Array array);
    void add_constant(const Tensor &tensor);
    void check_shapes();                           // of the arrays, along derived dims: UserError reference.extent
    void limit(std::map<std::string, Box> boxes);  // only these boxes of the dims of stages are computed, and no other stage
    void run(const Stage &stage);                  // its results join the arrays
    const Array &array(const std::string &name) const { return arrays_.at(name); }
    int64_t extent_of(const std::string &dim);              // that no index decides, of arrays that are there
    void set_index(const std::string &dim, int64_t index);  // for stages that do not go over it
    std::map<std::string, Array> take();                    // all arrays

private:
    // Nested loops over some dims. A derived extent is evaluated when its loop is entered, so it may use outer indices.
    struct Loop {
        int index, extent;   // registers
        int size = -1;       // position in sizes_, when derived
        Interval only = {};  // of the indices
    };
    using Loops = std::vector<Loop>;

    // A monoid over its parts, grouped by their extra dims: a group's parts step together at each of its points.
    struct Group {
        std::vector<size_t> parts;
        std::vector<std::string> dims;
        Tape step;
        Loops loops;
        int64_t points = 1;
    };
    struct Fold {
        std::vector<Group> groups;                  // those with extra dims first: they read the others' values from before the step
        std::vector<std::vector<Register>> values;  // of each part: for every place, as many as its group has points
    };

    Expr with_sizes(const Expr &root) const;
    Tape compile(const std::vector<Expr> &declared);
    Loops loops_of(const std::vector<std::string> &dims);
    Loops points_of(const Stage &stage, const std::string &but = "");  // over its box, without one dim
    Interval range_of(const Loop &loop) const;                         // of its indices, once it is entered; hi < lo: none
    void add_result(const Stage &stage, const Tensor &result);
    int64_t enter(const Loop &loop);
    template <typename Body>
    void each(const Loops &loops, size_t depth, const Body &body);
    int64_t position(const Loops &loops);  // row-major, of the current indices
    int64_t points(const std::vector<std::string> &dims);
    void keep_rows(const Stage &stage);    // of the running stage
    int64_t element(const Loops &points);  // in results, without extra dims of parts: of the current indices
    void evaluate_sizes();

    Fold make_fold(const Monoid &monoid, const std::vector<Expr> &inputs);
    void reset(Fold &fold, int64_t places);  // to identities
    void absorb(Fold &fold, int64_t place);  // place: which copy of the parts
    void store(const Fold &fold, int64_t place, int64_t row);

    void run(const Stage &stage, const Map &map);
    void run(const Stage &stage, const Reduce &reduce);
    void run(const Stage &stage, const Scan &scan);

    const Algorithm &a_;
    std::map<std::string, int> dims_;  // dim -> register of its index; its extent is the next one
    std::map<std::string, int> parameters_;
    int left_ = 0, first_ = 0;  // registers: of left(0); where tapes begin
    std::vector<Register> frame_;
    std::map<std::string, Array> arrays_;
    std::map<std::string, int> ids_;
    std::vector<TensorView> views_;
    std::map<std::string, size_t> size_of_dim_;
    std::vector<Tape> sizes_;       // of derived dims
    std::vector<Array *> results_;  // of the running stage, by part
    bool is_limited_ = false;
    std::map<std::string, Box> boxes_;  // by stage
    const Monoid *monoid_ = nullptr;    // of the running stage
    // The axes of its results where it keeps rows; without any they are the points, in order.
    struct Axis {
        int index, extent;  // registers
        int first = -1;     // of Rows: the result of firsts_ that is added
    };
    std::vector<Axis> axes_;
    std::optional<Tape> firsts_;
};

}  // namespace tessera
