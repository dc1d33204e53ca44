"""Pictures of what was measured, with matplotlib, which the package does not install.

    plots.search(linear_silu.autotune(...).search)          # each trial's speed, and the best so far
    plots.roofline(linear_silu.profile(M=512, N=1536, K=384))

Each draws into `axes`, or into those of pyplot's current figure, and gives them back.
"""
from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Mapping
from typing import Any

from tessera import compiler
from tessera.errors import CompilationError


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        return importlib.import_module("matplotlib.pyplot").gca()
    except ModuleNotFoundError as missing:
        raise CompilationError("plots.matplotlib", f"plots are drawn by matplotlib, and there is no module '{missing.name}'; "
                                                   "pip install matplotlib, or give axes of your own") from None


@functools.cache
def machine(target: str = "host") -> dict[str, Any]:
    """The peaks and bandwidths of this machine, as `tessera doctor --calibrate` measures them: about two seconds, once for each process."""
    return json.loads(compiler.run(["doctor", "--calibrate", "--target", target, "--seconds", "0.1"]))["measured"]


def search(found: Mapping[str, Any] | None, *, axes: Any = None) -> Any:
    """The trials of a search (Jit.search) in order: their speed as a multiple of that of the schedule to beat, and the best so far."""
    if found is None:
        raise CompilationError("plots.search", "this function was not searched for here: expected the `search` of a function that autotune gave, got None")
    trials = [t for t in found["trials"] if t["ratio"] > 0]
    best = [max(t["ratio"] for t in trials[:i + 1]) for i in range(len(trials))]
    axes = _axes(axes)
    axes.plot([t["number"] for t in trials], [t["ratio"] for t in trials], "o", alpha=0.5, label="a trial")
    axes.step([t["number"] for t in trials], best, where="post", label="the best so far")
    axes.set(xlabel="trial", ylabel="speed, schedule to beat = 1", title=found["task"].replace(" ", "\n"))
    axes.legend()
    return axes


def roofline(*profiles: Mapping[str, Any], limits: Mapping[str, Any] | None = None, labels: tuple[str, ...] = (), axes: Any = None) -> Any:
    """Kernels (Jit.profile) below what this machine can do: operations a second over operations a byte. Bytes are those of arguments and
    results, each once. `limits` are measured here unless given (machine()); `labels` are the schedules' names unless given."""
    if not profiles:
        raise CompilationError("plots.roofline", "expected profiles to draw, as Jit.profile gives them; got none")
    limits = machine() if limits is None else limits
    said = {(p["numerics"], p["threads"] > 1) for p in profiles}
    if len(said) > 1:
        raise CompilationError("plots.roofline", "these kernels have not one roof: expected profiles of one numerics, on one thread or on all")
    [(numerics, parallel)] = said
    if numerics not in limits["peaks"]:
        raise CompilationError("plots.roofline", f"no peak of {numerics} is measured; there are {', '.join(limits['peaks'])}")
    threads = "all_threads" if parallel else "one_thread"
    peak, bandwidth = limits["peaks"][numerics][threads], limits["read"]["memory"][threads]
    ridge = peak / bandwidth
    points = [(p["operations"] / p["bytes"], p["operations"] / p["median_s"]) for p in profiles]
    xs = [min(ridge, *(x for x, _ in points)) / 4, ridge, max(ridge, *(x for x, _ in points)) * 4]
    axes = _axes(axes)
    axes.plot(xs, [min(peak, x * bandwidth) / 1e9 for x in xs], color="black", label=f"this machine, {numerics}")
    for (x, y), label in zip(points, labels or [p["schedule"] for p in profiles]):
        axes.plot([x], [y / 1e9], "o", label=f"{label}: {y / min(peak, x * bandwidth):.0%} of the roof")
    axes.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="10⁹ operations per second", title=profiles[0]["kernel"])
    axes.legend()
    return axes
