"""Contests of calls that run on the calling thread alone: contestants take turns, so that a change of the machine's pace meets all
of them, and are timed by the thread's own clock, which stands still while another program has the processor."""
import random
import statistics
import time


def seconds(call, least=2e-3):
    """Of one call, from as many as take `least`."""
    start, calls = time.thread_time(), 0
    while True:
        call()
        calls += 1
        now = time.thread_time()
        if now - start > least:
            return (now - start) / calls


def contest(ours, theirs, rounds):
    """The best time of both sides; the 95 % interval of the median of the ratio of our speed to theirs."""
    seconds(ours), seconds(theirs)
    a, b = [], []
    for _ in range(rounds):
        a.append(seconds(ours))
        b.append(seconds(theirs))
    ratios = [y / x for x, y in zip(a, b)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(500))
    return min(a), min(b), medians[12], medians[487]


def fastest(calls):
    """The name of the fastest of a dictionary of calls."""
    for call in calls.values():
        seconds(call)
    return min(calls, key=lambda name: min(seconds(calls[name]) for _ in range(3)))
