"""Contests of Python functions: contestants take turns, so that a change of the machine's pace meets all of them. Calls that run on the
calling thread alone are timed by the thread's own clock, which stands still while another program has the processor."""
import random
import statistics
import time


def seconds(call, least=2e-3, clock=time.thread_time, before=None):
    """Of one call, from as many as take `least`; what `before` does ahead of each is no part of it."""
    spent, calls = 0.0, 0
    if before is None:
        start = clock()
        while spent <= least:
            call()
            calls += 1
            spent = clock() - start
        return spent / calls
    while spent <= least:
        before()
        start = clock()
        call()
        spent += clock() - start
        calls += 1
    return spent / calls


def turns(calls, rounds, pause=0, **how):
    """The seconds of each of a dictionary of calls, a list of one for each round; the order changes from round to round. `pause` seconds
    pass before each contestant, for threads of the one before to fall asleep."""
    names, taken = list(calls), {name: [] for name in calls}
    for call in calls.values():
        seconds(call, **how)
    for i in range(rounds):
        for name in names[i % len(names):] + names[:i % len(names)]:
            time.sleep(pause)
            taken[name].append(seconds(calls[name], **how))
    return taken


def median_with_interval(values):
    """The median and its 95 % interval, by drawing from the values again."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(500))
    return statistics.median(values), medians[12], medians[487]


def contest(ours, theirs, rounds):
    """The best time of both sides; the 95 % interval of the median of the ratio of our speed to theirs."""
    taken = turns({"ours": ours, "theirs": theirs}, rounds)
    _, low, high = median_with_interval([y / x for x, y in zip(taken["ours"], taken["theirs"])])
    return min(taken["ours"]), min(taken["theirs"]), low, high


def fastest(calls, **how):
    """The name of the fastest of a dictionary of calls."""
    if len(calls) == 1:
        return next(iter(calls))
    for call in calls.values():
        seconds(call, **how)
    return min(calls, key=lambda name: min(seconds(calls[name], **how) for _ in range(3)))
