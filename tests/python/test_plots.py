"""What plots draw, told to axes that only write it down, so that matplotlib is not needed."""
import sys

import pytest

from tessera import CompilationError, plots

LIMITS = {"peaks": {"f32": {"one_thread": 200e9, "all_threads": 400e9}}, "read": {"memory": {"one_thread": 40e9, "all_threads": 50e9}}}
PROFILE = {"kernel": "linear", "schedule": "linear/avx2", "numerics": "f32", "threads": 1, "operations": 10e9, "bytes": 1e9, "median_s": 0.1}
SEARCH = {"task": "linear/f32 N8", "trials": [{"number": n, "ratio": r} for n, r in enumerate([1.0, 0.5, 0.0, 1.5, 1.25])]}


class Axes:
    def __init__(self):
        self.lines, self.texts, self.has_legend = [], {}, False

    def plot(self, xs, ys, *form, label, **_):
        self.lines.append((label, list(xs), list(ys)))

    def step(self, xs, ys, *, where, label):
        assert where == "post"
        self.plot(xs, ys, label=label)

    def set(self, **texts):
        self.texts.update(texts)

    def legend(self):
        self.has_legend = True


def test_search():
    axes = Axes()
    assert plots.search(SEARCH, axes=axes) is axes
    assert axes.lines == [("a trial", [0, 1, 3, 4], [1.0, 0.5, 1.5, 1.25]),  # trial 2 could not be measured
                          ("the best so far", [0, 1, 3, 4], [1.0, 1.0, 1.5, 1.5])]
    assert axes.texts["title"] == "linear/f32\nN8" and axes.has_legend
    with pytest.raises(CompilationError, match=r"plots.search.*not searched for here: expected the `search` of a function that autotune gave, got None"):
        plots.search(None, axes=axes)


def test_roofline():
    axes = Axes()
    fast = {**PROFILE, "operations": 100e9, "median_s": 1.0, "schedule": "linear/avx512"}
    assert plots.roofline(PROFILE, fast, limits=LIMITS, axes=axes) is axes
    roof, slow, quick = axes.lines
    assert roof == ("this machine, f32", [1.25, 5.0, 400.0], [50.0, 200.0, 200.0])
    assert slow == ("linear/avx2: 50% of the roof", [10.0], [100.0])
    assert quick == ("linear/avx512: 50% of the roof", [100.0], [100.0])
    assert axes.texts["xscale"] == axes.texts["yscale"] == "log" and axes.texts["title"] == "linear"


def test_roofline_below_the_ridge_and_on_all_threads():
    axes = Axes()
    plots.roofline({**PROFILE, "operations": 1e9, "threads": 4}, limits=LIMITS, labels=("mine",), axes=axes)
    assert axes.lines == [("this machine, f32", [0.25, 8.0, 32.0], [12.5, 400.0, 400.0]), ("mine: 20% of the roof", [1.0], [10.0])]


@pytest.mark.parametrize("profiles, words", [
    ([], "expected profiles to draw, as Jit.profile gives them; got none"),
    ([PROFILE, {**PROFILE, "threads": 2}], "not one roof: expected profiles of one numerics, on one thread or on all"),
    ([{**PROFILE, "numerics": "qint8"}], "no peak of qint8 is measured; there are f32")])
def test_rooflines_that_are_refused(profiles, words):
    with pytest.raises(CompilationError, match=words) as error:
        plots.roofline(*profiles, limits=LIMITS, axes=Axes())
    assert error.value.id == "plots.roofline"


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(CompilationError, match="drawn by matplotlib, and there is no module 'matplotlib.*'; pip install matplotlib, or give axes"):
        plots.search(SEARCH)


def test_the_machine_is_measured():
    measured = plots.machine()
    assert measured["peaks"]["f32"]["one_thread"] > 0 and measured["read"]["memory"]["all_threads"] > 0
