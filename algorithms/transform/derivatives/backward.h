// Reverse mode, while it goes over an algorithm: the steps that are linear in tangents, transposed from the last to the first.
#pragma once
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/transform/derivatives/contribution.h"
#include "algorithms/transform/derivatives/request.h"
#include "algorithms/transform/derivatives/rounds.h"
#include "algorithms/transform/derivatives/rule_call.h"

namespace tessera::differentiation {

enum class BackwardKind : uint8_t { vjp, grad, value_and_grad, transpose, round };

class Backward {
public:
    Backward(Request request, BackwardKind kind);

    Algorithm run();
    RoundBackward run_round(const RoundWiring &wiring);
    ForwardPart run_forward_part();
    ForwardBackward run_apart();

private:
    struct LinearCall {
        Call given;
        RoundActivity active;
        RoundWiring wiring;
        RoundBackward backward;
        std::map<std::string, std::string> stacks;  // what the rounds forward left, by the callee's tensor
    };
    struct RuleCall {
        Call given, primal;
        RoundActivity active;
        RulePart part;
    };
    using LinearStep = std::variant<std::pair<const Stage *, LinearStage>, LinearCall, RuleCall>;

    Request request_;
    BackwardKind kind_;
    Program p_;
    Contributor contributor_;
    LinearScope scope_;
    std::vector<LinearStep> linear_;
    std::map<std::string, std::vector<Contribution>> given_;  // to tensors
    size_t forward_ = 0;                                      // steps of the forward part
    std::vector<ForwardPart> within_;

    // Forward.
    void add_primal(const RoundWiring &wiring);
    void add_primal(const Call &call);
    void add_rounds(const Call &call);
    void add_by_rule(const Call &call);
    void seed();
    void make();
    void check_residuals() const;  // UserError derivative.residuals
    ForwardPart part_of(const std::vector<Step> &steps) const;
    std::string seed_by_input(const std::string &of, const std::vector<std::string> &dims, DType type, const std::string &name);

    // Backward, stages: backward.cpp.
    void transpose_all();
    void transpose(const std::pair<const Stage *, LinearStage> &step);
    void transpose(const Stage &stage, const LinearResult &result);
    Cotangent through_scan(const LinearResult &result, const Cotangent &cotangent);
    Cotangent cotangent_of(const Tensor &t);
    Expr total(const std::vector<Contribution> &all) const;
    Expr named(const std::string &result, const std::string &name);
    Tensor source_tensor(const Term &term) const;
    std::string add_output(const Source &s, DType type);

    // Calls that repeat: backward_rounds.cpp.
    void transpose(const LinearCall &call);
    Tensor stored_cotangent(const Tensor &result);
    Tensor sum_before(const Call &call, const Source &s);

    // Calls of algorithms with a rule: backward_rules.cpp.
    void transpose(const RuleCall &call);

    // What `output` of the call `back`, the gradient by a tensor or a parameter of the callee, gives to what that is bound to.
    void give(const Call &given, const Call &back, const Source &s, const std::string &output);
};

// UserError derivative.linear where the adjoint reads what the request's algorithm is said to be linear in, or where that algorithm gives
// more than 0 for zeros.
void check_linear(const Request &request, const Algorithm &adjoint);

}  // namespace tessera::differentiation
