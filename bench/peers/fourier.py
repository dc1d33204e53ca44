"""Complex transforms of some lengths in f32, on one thread, beside SciPy's pocketfft: the two by turns, so that other work on the machine
slows both. fourier.py GENERATOR [points ...]"""
import json
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.fft

TURNS, BATCH, SECONDS = 5, 8, 0.3


def ours(generator, points):
    command = [generator, "bench", "fft", "--option", f"points={points}", "--extents", f"B={BATCH}", "--seconds", str(SECONDS), "--json",
               "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_s"]


def scipys(points):
    x = np.random.default_rng(1).standard_normal((BATCH, points, 2)).astype("f4").view("c8")[..., 0]
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        scipy.fft.fft(x, workers=1)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    generator, *lengths = sys.argv[1:]
    print(f"| points, {BATCH} transforms | ours, us | SciPy {scipy.__version__}, us | SciPy's time over ours |\n|---|---|---|---|")
    for points in map(int, lengths or [7, 97, 127, 1009, 1021, 4099]):
        pairs = [(ours(generator, points), scipys(points)) for _ in range(TURNS)]
        own, other = (statistics.median(side) * 1e6 for side in zip(*pairs))
        print(f"| {points} | {own:.1f} | {other:.1f} | {statistics.median(b / a for a, b in pairs):.2f} |", flush=True)


main()
