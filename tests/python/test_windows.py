"""Convolutions and pools over any number of dims, and resizing, beside NumPy."""
import numpy as np
import pytest

from tessera import Dim, Tensor, f32, jit, tile
from tessera.errors import CompilationError


def seen_through(x, taps, stride, padding, dilation, outside):
    """x's windows along all its axes: positions, then taps."""
    x = np.pad(x.astype("f8"), padding, constant_values=outside)
    reach = [d * (t - 1) + 1 for t, d in zip(taps, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach)
    return view[tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, d) for d in dilation)]


WINDOW = {"stride": (2, 1, 3), "padding": ((1, 0), (0, 2), (1, 1)), "dilation": (1, 2, 1)}


def test_convolution_and_pools_over_three_dims(rng):
    along = {"D": "T", "H": "R", "W": "S"}

    @jit(schedule="none")
    def conv(x: Tensor["D", "H", "W", f32], w: Tensor["T", "R", "S", f32]):
        return tile.conv(x, w, along, [], ["O", "P", "Q"], **WINDOW)

    @jit(schedule="none")
    def pools(x: Tensor["D", "H", "W", f32]):
        for taps in "TRS":
            tile.dim(taps, 2)
        how = {"positions": ["O", "P", "Q"], **WINDOW}
        most = tile.max_pool(x, along, **how)
        with tile.scope("mean"):  # which keeps the names of stages apart
            mean = tile.average_pool(x, along, **how)
        with tile.scope("own"):
            return most, mean, tile.average_pool(x, along, **how, counts_padding=False)

    x, w = rng.standard_normal((5, 7, 6)).astype("f4"), rng.standard_normal((2, 2, 2)).astype("f4")
    seen = seen_through(x, w.shape, outside=0, **WINDOW)
    np.testing.assert_allclose(conv(x, w), np.tensordot(seen, w, 3), rtol=1e-5, atol=1e-5)
    most, mean, own = pools(x)
    np.testing.assert_array_equal(most, seen_through(x, w.shape, outside=-np.inf, **WINDOW).max((3, 4, 5)))
    np.testing.assert_allclose(mean, seen.mean((3, 4, 5)), rtol=1e-5, atol=1e-6)
    inside = seen_through(np.ones_like(x), w.shape, outside=0, **WINDOW).sum((3, 4, 5))
    np.testing.assert_allclose(own, seen.sum((3, 4, 5)) / inside, rtol=1e-5, atol=1e-6)


def test_transposed_convolution_is_the_transpose(rng):
    @jit(schedule="none")
    def back(g: Tensor["P", "Q", "O", f32], w: Tensor["R", "S", "C", "O", f32]):
        return tile.transposed_conv(g, w, {"P": "R", "Q": "S"}, ["O"], ["H", "W"], stride=(2, 1), padding=((1, 0), (0, 2)),
                                    dilation=(1, 2), end=(1, 0))

    g, w = rng.standard_normal((3, 5, 4)).astype("f4"), rng.standard_normal((3, 2, 6, 4)).astype("f4")
    full = np.zeros((2 * 2 + 3, 4 + 2 * 1 + 1, 6))
    for r in range(3):
        for s in range(2):
            full[r:r + 5:2, 2 * s:2 * s + 5] += g.astype("f8") @ w[r, s].T.astype("f8")
    expected = np.concatenate([full[1:], np.zeros((1, 7, 6))])[:, :5]
    np.testing.assert_allclose(back(g, w), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["nearest", "linear", "cubic"])
def test_resize(rng, by):
    @jit(schedule="none")
    def wider(x: Tensor["H", Dim.symbolic("W", min=1), f32]):
        tile.dim("Q", 11)
        return tile.resize(x, "W", "Q", by=by)

    x = rng.standard_normal((3, 5)).astype("f4")
    place = (np.arange(11) + 0.5) * 5 / 11 - 0.5

    def at(i):
        return x[:, np.clip(i, 0, 4).astype(int)].astype("f8")

    low, t = np.floor(place), place - np.floor(place)

    def keys(d, a=-0.75):
        d = np.abs(d)
        return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)

    expected = {"nearest": lambda: at(np.ceil(place - 0.5)), "linear": lambda: at(low) * (1 - t) + at(low + 1) * t,
                "cubic": lambda: sum(at(low + k) * keys(t - k) for k in (-1, 0, 1, 2))}[by]()
    np.testing.assert_allclose(wider(x), expected, rtol=1e-5, atol=1e-5)


def test_what_cannot_be():
    def declared(apply):
        @jit(schedule="none")
        def f(x: Tensor["H", "W", f32]):
            tile.dim("R", 2)
            return apply(x)
        return lambda: f(np.zeros((4, 4), "f4"))

    with pytest.raises(CompilationError, match="there is no interpolation 'bilinear'; there are nearest, linear, cubic"):
        declared(lambda x: tile.resize(x, "H", "R", by="bilinear"))()
    with pytest.raises(CompilationError, match="max_pool: stride has 2 numbers for 1 dims; give one, or one for each"):
        declared(lambda x: tile.max_pool(x, {"H": "R"}, ["P"], stride=(1, 2)))()
    with pytest.raises(CompilationError, match="max_pool: along 'H' a stride or dilation is below 1, or a padding below 0"):
        declared(lambda x: tile.max_pool(x, {"H": "R"}, ["P"], dilation=0))()
    with pytest.raises(CompilationError, match="max_pool: padding has 2 elements for 1 dims"):
        declared(lambda x: tile.max_pool(x, {"H": "R"}, ["P"], padding=(1, 2)))()
