"""Recurrences: generated kernels beside NumPy in double precision, and pieces of a sequence with the bits of the whole."""
import numpy as np
import pytest

from tessera import Dim, Tensor, f32, jit, tile
from tessera.stdlib import function

T, N, I, H = 9, 3, 5, 12


def logistic(x):
    return 1 / (1 + np.exp(-x))


def gates_of(x, w, r, b, rb, h, order):
    """What the input and the state give to each gate, in ONNX's order."""
    count = len(order)
    of_x, of_h = np.split(x @ w + b, count, -1), np.split(h @ r + rb, count, -1)
    return [of_x[i] for i in order], [of_h[i] for i in order]


def lstm_oracle(x, w, r, b, rb, h, c, order=(0, 1, 2, 3)):
    y = []
    for step in x:
        i, o, f, g = (a + b for a, b in zip(*gates_of(step, w, r, b, rb, h, order)))
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
        y.append(h)
    return np.array(y), h, c


def gru_oracle(x, w, r, b, rb, h, order=(0, 1, 2)):
    y = []
    for step in x:
        of_x, of_h = gates_of(step, w, r, b, rb, h, order)
        z, reset = logistic(of_x[0] + of_h[0]), logistic(of_x[1] + of_h[1])
        h = (1 - z) * np.tanh(of_x[2] + reset * of_h[2]) + z * h
        y.append(h)
    return np.array(y), h


def rnn_oracle(x, w, r, b, rb, h):
    y = []
    for step in x:
        h = np.tanh(step @ w + b + h @ r + rb)
        y.append(h)
    return np.array(y), h


def weights(rng, gates):
    """w, r, b and recurrent_b"""
    return [rng.standard_normal(s).astype("f4") / 2 for s in [(I, gates * H), (H, gates * H), (gates * H,), (gates * H,)]]


ORACLES = {"lstm": (4, 2, lstm_oracle), "gru": (3, 1, gru_oracle), "rnn": (1, 1, rnn_oracle)}
PYTORCH = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}


@pytest.mark.parametrize("schedule", ["none", None])
@pytest.mark.parametrize("kind", ORACLES)
def test_the_library_s_are_numpy_s_and_pieces_give_the_same_bits(rng, kind, schedule):
    gates, states, oracle = ORACLES[kind]
    x, held = rng.standard_normal((T, N, I)).astype("f4"), weights(rng, gates)
    start = [rng.standard_normal((N, H)).astype("f4") for _ in range(states)]
    f = function(kind)
    if schedule:
        f = f.with_schedule(schedule)
    y, *last = map(np.from_dlpack, f(x, *held, *start))
    for made, expected in zip([y, *last], oracle(*(a.astype("f8") for a in [x, *held, *start]))):
        np.testing.assert_allclose(made, expected, atol=2e-6)
    for pieces in ([1] * T, [2, 0, 4, 3]):
        rows, now, at = [], start, 0
        for length in pieces:
            some, *now = map(np.from_dlpack, f(np.ascontiguousarray(x[at:at + length]), *held, *now))
            rows.append(some)
            at += length
        np.testing.assert_array_equal(np.concatenate(rows), y)
        for made, whole in zip(now, last):
            np.testing.assert_array_equal(made, whole)


@pytest.mark.parametrize("kind", PYTORCH)
def test_weights_as_pytorch_has_them(rng, kind):
    gates, states, oracle = ORACLES[kind]
    x, (w, r, b, rb) = rng.standard_normal((T, N, I)).astype("f4"), weights(rng, gates)
    start = [rng.standard_normal((N, H)).astype("f4") for _ in range(states)]
    f = function(kind, gates="pytorch", transpose_w="yes").with_schedule("none")
    made = f(x, np.ascontiguousarray(w.T), np.ascontiguousarray(r.T), b, rb, *start)
    for result, expected in zip(made, oracle(*(a.astype("f8") for a in [x, w, r, b, rb, *start]), order=PYTORCH[kind])):
        np.testing.assert_allclose(np.from_dlpack(result), expected, atol=2e-6)


GATES, K1, H1 = Dim.fixed("G", 4 * H), Dim.fixed("K", H), Dim.fixed("H", H)


@jit(schedule="none")
def both_ways(x: Tensor["T", "N", "I", f32], w: Tensor["I", GATES, f32], r: Tensor[K1, GATES, f32], h: Tensor["N", H1, f32],
              c: Tensor["N", H1, f32]) -> Tensor["T", "N", H1, f32]:
    with tile.scope("forward"):
        ahead, _, _ = tile.lstm(x, w, r, h, c, "T")
    with tile.scope("backward"):
        back, _, _ = tile.lstm(x, w, r, h, c, "T", backward=True)
    return ahead + back


def test_both_directions_of_tiles(rng):
    x, (w, r, b, _) = rng.standard_normal((T, N, I)).astype("f4"), weights(rng, 4)
    h, c = rng.standard_normal((N, H)).astype("f4"), rng.standard_normal((N, H)).astype("f4")
    zero = np.zeros_like(b)
    wide = [a.astype("f8") for a in (w, r, zero, zero, h, c)]
    expected = lstm_oracle(x.astype("f8"), *wide)[0] + lstm_oracle(x[::-1].astype("f8"), *wide)[0][::-1]
    np.testing.assert_allclose(both_ways(x, w, r, h, c), expected, atol=4e-6)


@pytest.mark.parametrize("shared", ["no", "yes"])
def test_a_recurrence_with_matrices(rng, shared):
    a = rng.standard_normal((H, H) if shared == "yes" else (T, N, H, H)).astype("f4") / 4
    b, h = rng.standard_normal((T, N, H)).astype("f4"), rng.standard_normal((N, H)).astype("f4")
    f = function("linear_recurrence", shared=shared).with_schedule("none")
    y, last = map(np.from_dlpack, f(a, b, h))
    now, expected = h.astype("f8"), []
    for t in range(T):
        now = np.einsum("hk,nk->nh" if shared == "yes" else "nhk,nk->nh", a if shared == "yes" else a[t], now) + b[t]
        expected.append(now)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(last, y[-1])
    now = h
    for t in range(T):
        some, now = map(np.from_dlpack, f(a if shared == "yes" else a[t:t + 1], b[t:t + 1], now))
        np.testing.assert_array_equal(some[0], y[t])


@pytest.mark.parametrize("depthwise,dilation", [("no", 1), ("no", 2), ("yes", 1), ("yes", 3)])
def test_a_causal_convolution_in_pieces(rng, depthwise, dilation):
    L, C, O, R = 11, 6, 10, 4
    J = (R - 1) * dilation
    x, history = rng.standard_normal((N, L, C)).astype("f4"), rng.standard_normal((N, J, C)).astype("f4")
    w = rng.standard_normal((R, C) if depthwise == "yes" else (R, C, O)).astype("f4")
    f = function("causal_conv1d", depthwise=depthwise, dilation=dilation).with_schedule("none")
    y, last = map(np.from_dlpack, f(x, w, history))
    both = np.concatenate([history, x], 1).astype("f8")
    taps = [both[:, r * dilation:r * dilation + L] for r in range(R)]
    expected = sum(t * w[r] if depthwise == "yes" else t @ w[r] for r, t in enumerate(taps))
    np.testing.assert_allclose(y, expected, atol=2e-5)
    np.testing.assert_array_equal(last, both[:, L:].astype("f4"))
    rows, now, at = [], history, 0
    for length in (1, 1, 5, 0, 4):
        some, now = map(np.from_dlpack, f(np.ascontiguousarray(x[:, at:at + length]), w, now))
        rows.append(some)
        at += length
    np.testing.assert_array_equal(np.concatenate(rows, 1), y)
    np.testing.assert_array_equal(now, last)
