"""examples/encoder2: the gradient beside differences, that it learns, and that a run that was stopped goes on bit for bit."""
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

_root = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def train():
    """The script as a module, which finds network.py beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(_root / "examples" / "encoder2"))
        patch.delitem(sys.modules, "network", raising=False)
        yield importlib.import_module("train")
        del sys.modules["train"], sys.modules["network"]


@pytest.fixture(scope="module")
def network(train):
    return sys.modules["network"]


@pytest.fixture(scope="module")
def text():
    return np.concatenate([np.fromfile(f, np.uint8) for f in sorted((_root / "docs").glob("*.md"))])


def test_the_gradient_is_what_differences_say(train, network, text, rng):
    """Along random directions in all weights, and in those of each function alone. The loss in f32 is good to some 1e-6, so steps are long."""
    w, ids = network.initial(3)["w"], train.batch(text, 5)
    g = np.full_like(w, np.nan)
    network.loss_of(w, *ids, g)
    assert np.isfinite(g).all()
    parts = [[view for f in network.parts(np.arange(w.size)) for view in f], *network.parts(np.arange(w.size)), *[[v] for v in network.parts(np.arange(w.size))[1]]]
    for chosen in parts:
        places = np.concatenate([view.ravel() for view in chosen])
        d = np.zeros(w.size)
        # As far as the gradient has no part along it, a difference says little: half of it is random, half of it is the gradient.
        noise, along = rng.standard_normal(places.size), g[places].astype(np.float64)
        d[places] = noise / np.linalg.norm(noise) + along / np.linalg.norm(along)
        h = 0.03
        above, below = (network.loss_of((w + s * h * d).astype(np.float32), *ids) for s in (1, -1))
        assert (above - below) / (2 * h) == pytest.approx(g @ d, rel=0.01, abs=2e-4)


def test_later_places_do_not_change_earlier_ones(network, rng):
    """The blocks are causal."""
    first, one, *_ = network.parts(network.initial(3)["w"])
    x = rng.standard_normal((8, 64, 64)).astype(np.float32)
    changed = x.copy()
    changed[:, 40:] += 1
    y, z = network.block(x, *one), network.block(changed, *one)
    np.testing.assert_array_equal(y[:, :40], z[:, :40])
    assert (y[:, 40:] != z[:, 40:]).any(axis=2).all()


def test_the_loss_falls(train, network, text):
    """From that of bytes drawn evenly or worse, log 256 = 5.55 nats, by at least 1.5 in 30 steps."""
    state = network.initial(1)
    for _ in range(30):
        train.advance(state, text, 1)
    assert state["losses"][0] > 5.4
    assert state["losses"][-5:].mean() < state["losses"][0] - 1.5


def test_what_goes_on_is_bit_for_bit_what_never_stopped(train, tmp_path, capsys):
    said = ["--text", str(_root / "docs"), "--every", "4"]
    train.main([*said, "--out", str(tmp_path / "once"), "--steps", "9"])
    train.main([*said, "--out", str(tmp_path / "twice"), "--steps", "5"])
    train.main([*said, "--out", str(tmp_path / "twice"), "--steps", "9", "--resume"])
    once, twice = (train.read(tmp_path / name / "checkpoint.safetensors") for name in ("once", "twice"))
    assert len(once["losses"]) == 9 and sorted(once) == sorted(twice)
    for name in once:
        assert once[name].tobytes() == twice[name].tobytes(), name
    for name in ("loss.csv", "loss.svg"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()
    assert (tmp_path / "once" / "loss.csv").read_text().count("\n") == 10
    assert "held-out loss" in capsys.readouterr().out


def test_a_write_that_fails_leaves_the_file_that_was_there(train, tmp_path):
    file = tmp_path / "loss.csv"
    train.replace(file, lambda stream: stream.write(b"old"))

    def fails(stream):
        stream.write(b"ne")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        train.replace(file, fails)
    assert file.read_bytes() == b"old"
