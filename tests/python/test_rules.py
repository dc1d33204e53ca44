"""Derivatives that authors state, from Python: where those of stages are no number, on purpose another, of what is called, and refused."""
import numpy as np
import pytest

import tessera as ts
from tessera import CompilationError, Tensor, f32, f64, jit, tile


@jit(schedule="none")
def safe_backward(x: Tensor["N", f64], y_grad: Tensor["N", f64]) -> Tensor["N", f64]:
    return y_grad * (1.0 - 1.0 / (tile.exp(x) + 1.0))


@jit(schedule="none")
def plain(x: Tensor["N", f64]) -> Tensor["N", f64]:
    return tile.log(tile.exp(x) + 1.0)


safe = ts.with_rule(plain, backward=safe_backward)


def test_a_gradient_that_is_a_number_everywhere():
    x, g = np.array([-800.0, -1, 0, 1, 800]), np.ones(5)
    with np.errstate(all="ignore"):
        assert np.isnan(ts.vjp(plain)(x, g)[4])
    # 1 / (1 + exp(-x)), in float64.
    np.testing.assert_allclose(ts.vjp(safe)(x, g), [0, 0.2689414213699951, 0.5, 0.7310585786300049, 1], rtol=1e-14, atol=1e-300)
    _, change = ts.jvp(safe)(x, 2 * g)
    np.testing.assert_allclose(change, [0, 0.5378828427399902, 1, 1.4621171572600098, 2], rtol=1e-14, atol=1e-300)
    np.testing.assert_array_equal(safe(x), plain(x))
    assert safe.algorithm.semantic_hash == plain.algorithm.semantic_hash


def test_a_rule_of_what_is_called():
    @jit(schedule="none")
    def loss(x: Tensor["N", f64], w: Tensor["N", f64]):
        return tile.sum(tile.call("safe", safe, x * w) * w, over="N")

    x, w = np.array([1.0, 900.0, -2.0]), np.array([0.5, 1.0, -1.0])
    value, x_grad, w_grad = ts.value_and_grad(loss)(x, w)
    y, slope = np.logaddexp(0, x * w), 1 - 1 / (1 + np.exp(np.minimum(x * w, 700)))
    assert np.isinf(value) and np.isfinite(x_grad).all()  # the value overflows, the gradient by x does not
    np.testing.assert_allclose(x_grad, slope * w * w, rtol=1e-13)
    np.testing.assert_allclose(w_grad[[0, 2]], (slope * x * w + y)[[0, 2]], rtol=1e-13)


def test_a_clipped_gradient_by_decorator():
    @jit(schedule="none")
    def clipped(y_grad: Tensor["N", f32], most: f32):
        return {"x_grad": tile.minimum(tile.maximum(y_grad, -most), most)}  # `most` has none

    @ts.with_rule(backward=clipped, differs=True)
    @jit(schedule="none")
    def gate(x: Tensor["N", f32], most: f32) -> Tensor["N", f32]:
        return x * 1.0

    g = np.array([-7, 0.25, 3], np.float32)
    np.testing.assert_array_equal(ts.vjp(gate, by="x")(g, 1.0, g), np.array([-1, 0.25, 1], np.float32))
    with pytest.raises(CompilationError, match=r"derivative\.linear"):
        ts.jvp(gate, by="x")
    assert gate.arguments == ["x", "most"]


def test_what_is_wrong_is_refused():
    @jit(schedule="none")
    def twice(x: Tensor["N", f64], y_grad: Tensor["N", f64]) -> Tensor["N", f64]:
        return y_grad * 2.0 * (1.0 - 1.0 / (tile.exp(x) + 1.0))

    with pytest.raises(CompilationError, match=r"rule-law.*backward of its rule, twice.*differs on purpose"):
        ts.with_rule(plain, backward=twice)
    with pytest.raises(CompilationError, match=r"gives 2 results; expected 1, x\.grad"):
        @jit(schedule="none")
        def two(x: Tensor["N", f64], y_grad: Tensor["N", f64]):
            return y_grad * 1.0, x * 1.0

        ts.with_rule(plain, backward=two)
    with pytest.raises(CompilationError, match="jvp, backward, or both; got neither"):
        ts.with_rule(plain)
    with pytest.raises(CompilationError, match="expected a function under @jit, got int"):
        ts.with_rule(plain, backward=3)
