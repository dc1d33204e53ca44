"""Derivatives of functions from Python: what they give, what they are called with, and what is refused."""
import copy
import pickle

import numpy as np
import pytest

import tessera as ts
from tessera import CompilationError, Dim, Tensor, autodiff, f32, f64, i32, jit, tile
from tessera.stdlib import function


@jit(schedule="none")
def affine(x: Tensor["M", "K", f64], w: Tensor["K", "N", f64], b: Tensor["N", f64], scale: f64 = 2.0) -> Tensor["M", "N", f64]:
    return tile.tanh(tile.dot(x, w) * scale + b)


@jit(schedule="none")
def loss(x: Tensor["M", "K", f64], w: Tensor["K", f64], t: Tensor["M", f64]):
    rest = tile.dot(x, w) - t
    return tile.sum(rest * rest, over="M")


@pytest.fixture
def values(rng):
    return [rng.standard_normal(s) for s in [(5, 7), (7, 3), (3,)]]


def test_vjp_is_the_gradient(values, rng):
    x, w, b = values
    g = rng.standard_normal((5, 3))
    back = ts.vjp(affine, by=("w", "x"))
    assert back.arguments == ["x", "w", "b", "scale", "y.grad"] and back.algorithm.name == "affine.grad"
    w_grad, x_grad = back(x, w, b, 1.5, g)
    inner = g * (1 - np.tanh(x @ w * 1.5 + b) ** 2) * 1.5
    np.testing.assert_allclose(x_grad, inner @ w.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(w_grad, x.T @ inner, rtol=1e-12, atol=1e-14)
    assert ts.vjp(affine, by="b")(x, w, b, 1.5, g).shape == (3,)
    assert affine.vjp("b").algorithm.semantic_hash == ts.vjp(affine, by="b").algorithm.semantic_hash


def test_jvp_is_the_difference(values, rng):
    x, w, b = values
    d = rng.standard_normal(w.shape)
    y, change = ts.jvp(affine, by="w")(x, w, b, 2.0, d)
    np.testing.assert_array_equal(y, affine(x, w, b))
    h = 1e-6
    np.testing.assert_allclose(change, (affine(x, w + h * d, b) - affine(x, w - h * d, b)) / (2 * h), rtol=1e-7, atol=1e-8)


def test_value_and_grad_of_one_number(rng):
    x, w, t = (rng.standard_normal(s) for s in [(9, 4), (4,), (9,)])
    y, w_grad = ts.value_and_grad(loss, by="w")(x, w, t)
    assert y == loss(x, w, t)
    np.testing.assert_allclose(w_grad, 2 * x.T @ (x @ w - t), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(ts.grad(loss, by="w")(x, w, t), w_grad)
    # The product of the Hessian and a vector, by composition.
    d = rng.standard_normal(4)
    _, change = ts.jvp(ts.grad(loss, by="w"), by="w")(x, w, t, d)
    np.testing.assert_allclose(change, 2 * x.T @ (x @ d), rtol=1e-12, atol=1e-13)


def test_transpose(rng):
    @jit(schedule="none")
    def mixed(x: Tensor["M", "K", f64], w: Tensor["K", "N", f64]) -> Tensor["M", "N", f64]:
        return tile.dot(x, w)

    w, g = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    back = ts.transpose(mixed, "x")
    assert back.arguments == ["x", "w", "y.grad"]
    np.testing.assert_allclose(back(np.full((5, 7), np.nan), w, g), g @ w.T, rtol=1e-12, atol=1e-14)


def test_choices_go_on():
    @autodiff
    @jit(fix=("N",), target="avx2", schedule="linear/avx2")
    def above(x: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
        """Doubles."""
        return x * 2

    @jit(fix=("N",))
    @autodiff
    def below(x: Tensor["M", "N", f32]) -> Tensor["M", "N", f32]:
        return x * 2

    for made in (above, below, copy.copy(above), pickle.loads(pickle.dumps(below))):
        assert made.choices.autodiff and not made.vjp().choices.autodiff and made.vjp().choices.fix == ("N",)
    assert above.__doc__ == "Doubles." and above.vjp().choices.target == "avx2" and above.vjp().choices.schedule is None
    assert function("linear").with_schedule("none").vjp("w").choices.schedule == "none"


def test_what_has_no_derivative_is_refused():
    @jit
    def integers(x: Tensor["M", i32]) -> Tensor["M", i32]:
        return x + x

    @jit
    def family(x: Tensor["M", f32], n: int = 1):
        return x * n

    def stopped(x: Tensor["M", f32]) -> Tensor["M", f32]:
        return tile.stop_gradient(x)

    for make, id, words in [(lambda: ts.vjp(integers), "derivative.nothing", "it has no float input or parameter"),
                            (lambda: ts.vjp(affine, by="q"), "derivative.unknown", "by the float input, state or parameter 'q'"),
                            (lambda: ts.vjp(affine, by=("x", "x")), "derivative.unknown", "twice"),
                            (lambda: ts.grad(affine), "derivative.scalar", "of one number"),
                            (lambda: ts.transpose(affine, "x"), "derivative.linear", "it is not linear in x"),
                            (lambda: autodiff(integers), "derivative.nothing", "no float"),
                            (lambda: jit(autodiff(stopped)), "derivative.nothing", "no float output changes"),
                            (lambda: ts.vjp(family), "python.function", "specialised(...)"),
                            (lambda: ts.jvp(len), "python.function", "got builtin_function_or_method")]:
        with pytest.raises(CompilationError) as error:
            make()
        assert error.value.id == id and words in str(error.value)
    assert ts.vjp(autodiff(family).specialised(n=3)).algorithm.outputs[0][0] == "x.grad"


@jit(schedule="none")
def encoder_layer(x: Tensor["M", "D", f64], w: Tensor["D", "E", f64], g: Tensor["D", f64]) -> Tensor["M", "E", f64]:
    return tile.tanh(tile.dot(tile.rmsnorm(x, g, over="D"), w).named("acc"))


@jit(schedule="none")
def encoder(x: Tensor["M", 8, f64], w: Tensor[Dim.symbolic("L", multiple_of=2), 8, Dim.fixed("E", 8), f64],
            g: Tensor[8, f64]) -> Tensor["M", Dim.fixed("E", 8), f64]:
    return tile.repeat("layers", encoder_layer, "L", x, w, g, carried={"x": "y"})


@pytest.mark.parametrize("layers", [0, 2, 4])
def test_gradients_of_layers_by_repeat(rng, layers):
    x, w, g, y_grad = (rng.standard_normal(s) for s in [(3, 8), (layers, 8, 8), (8,), (3, 8)])
    back = ts.vjp(encoder, by=("x", "w", "g"))
    gradients = back(x, w, g, y_grad)
    direction = [rng.standard_normal(a.shape) for a in (x, w, g)]
    h = 1e-6
    up, down = (encoder(*(a + s * d for a, d in zip((x, w, g), direction))) for s in (h, -h))
    inner = sum((a * d).sum() for a, d in zip(gradients, direction))
    np.testing.assert_allclose(inner, (y_grad * (up - down)).sum() / (2 * h), rtol=1e-6, atol=1e-8)
    _, change = ts.jvp(encoder, by=("x", "w", "g"))(x, w, g, *direction)
    np.testing.assert_allclose((change * y_grad).sum(), inner, rtol=1e-11, atol=1e-12)
    # Saved, and in groups: the same bits.
    for other in (ts.vjp(encoder, by=("x", "w", "g"), saved="layers.*"), ts.vjp(ts.checkpoint(encoder, "layers", 2), by=("x", "w", "g"))):
        for a, b in zip(gradients, other(x, w, g, y_grad)):
            np.testing.assert_array_equal(a, b)


def test_residuals_from_a_file_and_in_two_parts(rng, tmp_path):
    x, w, g, y_grad = (rng.standard_normal(s) for s in [(3, 8), (4, 8, 8), (8,), (3, 8)])
    by = ("x", "w", "g")
    gradients = ts.vjp(encoder, by=by)(x, w, g, y_grad)
    plan = tmp_path / "plan.json"
    plan.write_text('[{"layers": 2}, {"layers.each.acc": "save"}, {"*": "recompute"}]')
    for a, b in zip(gradients, ts.vjp(encoder, by=by, saved=str(plan))(x, w, g, y_grad)):
        np.testing.assert_array_equal(a, b)
    for saved in ("layers.acc", "*=recompute", str(plan)):
        forward, backward = ts.forward_backward(encoder, by=by, saved=saved)
        y, *residuals = forward(x, w, g)
        np.testing.assert_array_equal(y, encoder(x, w, g))
        values = dict(zip((o[0] for o in forward.algorithm.outputs), (y, *residuals)))
        values |= {"x": x, "w": w, "g": g, "y.grad": y_grad}
        for a, b in zip(gradients, backward(*(values[name] for name in backward.arguments))):
            np.testing.assert_array_equal(a, b)
        # By place: residuals come as the second takes them. y is an output that it does not read here.
        names = [o[0] for o in forward.algorithm.outputs]
        assert [n for n in backward.arguments if n in names] == [n for n in names if n in backward.arguments]
    with pytest.raises(CompilationError, match="derivative.residuals"):
        ts.vjp(encoder, by=by, saved="layers.acc=keep")
    with pytest.raises(CompilationError, match=r"derivative.residuals.*'layers.ac', which fit none; there are .*'layers.acc'\?"):
        ts.vjp(encoder, by=by, saved="layers.ac")
    for broken in ("garbage", '{"layers": 2}', "[1]", "[{}]", '[{"layers": [2]}]', '[{"layers": 2.5}]', '[{"layers": "0"}]', '[{"layers": 0}]',
                   '[{"layers": true}]', '[{"a": "save", "b": "save"}]'):
        plan.write_text(broken)
        with pytest.raises(CompilationError, match=r"derivative.residuals.*plan.json"):
            ts.vjp(encoder, by=by, saved=str(plan))
    with pytest.raises(CompilationError, match="plan of residuals"):
        ts.vjp(encoder, by=by, saved=str(tmp_path / "none.json"))


def test_vmap_is_a_loop(rng):
    x, w, g = (rng.standard_normal(s) for s in [(5, 3, 8), (2, 8, 8), (8,)])
    many = ts.vmap(encoder, "B", mapped="x")
    assert many.algorithm.name == "encoder.vmap"
    np.testing.assert_array_equal(many(x, w, g), [encoder(one, w, g) for one in x])
    scales = np.array([1.0, 2.5, -1.0])
    x, w, b = (rng.standard_normal(s) for s in [(5, 7), (7, 3), (3,)])
    np.testing.assert_array_equal(ts.vmap(affine, "B", mapped="scale")(x, w, b, scales), [affine(x, w, b, float(s)) for s in scales])
    # Gradients of each, and the gradient of all.
    g = rng.standard_normal((4, 5, 3))
    many_x = rng.standard_normal((4, 5, 7))
    each = ts.vmap(ts.vjp(affine, by="x"), "B", mapped=("x", "y.grad"))(many_x, w, b, 2.0, g)
    np.testing.assert_array_equal(each, ts.vjp(ts.vmap(affine, "B", mapped="x"), by="x")(many_x, w, b, 2.0, g))
    with pytest.raises(CompilationError, match="vmap.unknown"):
        ts.vmap(affine, "B", mapped="z")


def test_residuals_are_handed_over_by_place(rng):
    @jit(schedule="none")
    def twice(x: Tensor["M", "D", f64], w: Tensor["D", "E", f64], v: Tensor["E", "F", f64]) -> Tensor["M", "F", f64]:
        inner = tile.tanh(tile.dot(x, w).named("up")).named("inner")
        return tile.tanh(tile.dot(inner, v).named("down"))

    x, w, v, g = (rng.standard_normal((4, 4)) for _ in range(4))
    forward, backward = ts.forward_backward(twice, by=("x", "w"))
    names = [o[0] for o in forward.algorithm.outputs]
    assert names[0] == "y" and len(names) > 1 and backward.arguments == ["x", "w", "v", "y.grad", *names]
    for one, other in zip(backward(x, w, v, g, *forward(x, w, v)), ts.vjp(twice, by=("x", "w"))(x, w, v, g)):  # all shapes agree
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("call, words", [
    (lambda: ts.vjp(affine, by=3), "vjp: by: expected a name or a sequence of names"),
    (lambda: ts.jvp(affine, by=("x", 3)), "jvp: by: expected"),
    (lambda: ts.vjp(affine, of={"y": 1}), "vjp: of: expected"),
    (lambda: ts.grad(loss, by=None), "grad: by: expected"),
    (lambda: ts.value_and_grad(loss, of=("y",)), "value_and_grad: of: expected the name of one output"),
    (lambda: ts.vjp(affine, saved=8), "vjp: saved: expected"),
    (lambda: ts.forward_backward(affine, saved=[8]), "forward_backward: saved: expected"),
    (lambda: ts.transpose(loss, 1.5), "transpose: linear_in: expected"),
    (lambda: ts.vmap(affine, 3), "vmap: over: expected the name of a dim or a Dim"),
    (lambda: ts.vmap(affine, "B", mapped=b"x"), "vmap: mapped: expected"),
    (lambda: ts.checkpoint(encoder, 3, 2), "checkpoint: scope: expected"),
    (lambda: ts.checkpoint(encoder, "layers", True), "checkpoint: every: expected a whole number from 1"),
    (lambda: ts.checkpoint(encoder, "layers", "2"), "checkpoint: every: expected"),
    (lambda: ts.checkpoint(encoder, "layers", 0), "checkpoint: every: expected"),
    (lambda: ts.with_rule(affine, differs=1), "with_rule: differs: expected True or False"),
])
def test_arguments_of_wrong_types_are_named(call, words):
    with pytest.raises(CompilationError, match=r"error\[python.argument\]: " + words + r".*, got .*\.$"):
        call()


def gradient_of(f, *arguments):
    """Of the sum of what an elementwise function gives."""
    made = ts.vjp(f)
    gradients = made(*arguments, np.ones_like(arguments[0]))
    return [g.tolist() for g in (gradients if isinstance(gradients, tuple) else (gradients,))]


def test_gradients_at_ties_at_zero_and_at_nan():
    nan = np.nan

    @jit(schedule="none")
    def relu(x: Tensor["N", f64]) -> Tensor["N", f64]:
        return tile.relu(x)

    @jit(schedule="none")
    def absolute(x: Tensor["N", f64]) -> Tensor["N", f64]:
        return abs(x)

    @jit(schedule="none")
    def larger(x: Tensor["N", f64], z: Tensor["N", f64]) -> Tensor["N", f64]:
        return tile.maximum(x, z)

    @jit(schedule="none")
    def smaller(x: Tensor["N", f64], z: Tensor["N", f64]) -> Tensor["N", f64]:
        return tile.minimum(x, z)

    @jit(schedule="none")
    def clamped(x: Tensor["N", f64]) -> Tensor["N", f64]:
        return tile.minimum(tile.maximum(x, -1.0), 1.0)

    @jit(schedule="none")
    def largest(x: Tensor["N", f64]):
        return tile.max(x, over="N")

    at = np.array([-2.0, -0.0, 0.0, 2.0, nan])
    assert gradient_of(relu, at) == [[0, 0, 0, 1, 0]] and gradient_of(absolute, at) == [[-1, 0, 0, 1, 0]]
    # The second of two equal operands counts, and so where one is NaN.
    x, z = np.array([1.0, 2.0, 3.0, nan, 1.0]), np.array([1.0, 1.0, 4.0, 1.0, nan])
    assert gradient_of(larger, x, z) == [[0, 1, 0, 0, 0], [1, 0, 1, 1, 1]]
    assert gradient_of(smaller, x, z) == [[0, 0, 1, 0, 0], [1, 1, 0, 1, 1]]
    assert gradient_of(clamped, np.array([-2.0, -1.0, 0.0, 1.0, 2.0, nan])) == [[0, 0, 1, 0, 0, 0]]
    np.testing.assert_array_equal(ts.grad(largest)(np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5])
    assert np.isnan(ts.grad(largest)(np.array([1.0, nan, nan]))).all()
