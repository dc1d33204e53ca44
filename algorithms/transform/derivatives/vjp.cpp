#include "algorithms/transform/derivatives/backward.h"
#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera {

using differentiation::Backward;
using differentiation::BackwardKind;
using differentiation::checked;

Algorithm vjp(const Algorithm &f, const By &by) { return Backward(checked(f, by), BackwardKind::vjp).run(); }
Algorithm grad(const Algorithm &f, const By &by) { return Backward(checked(f, by), BackwardKind::grad).run(); }
Algorithm value_and_grad(const Algorithm &f, const By &by) { return Backward(checked(f, by), BackwardKind::value_and_grad).run(); }
Algorithm transpose(const Algorithm &f, const std::vector<std::string> &linear_in) {
    return Backward(checked(f, {linear_in, {}}), BackwardKind::transpose).run();
}

ForwardBackward forward_backward(const Algorithm &f, const By &by) { return Backward(checked(f, by), BackwardKind::vjp).run_apart(); }

ForwardPart forward_part(const Algorithm &f, const By &by) {
    By all = by;
    all.residuals.choices = {{"*", true}};
    return Backward(checked(f, all), BackwardKind::vjp).run_forward_part();
}

}  // namespace tessera
