"""residual_plans.py <program>: plans of residuals against SciPy's mixed-integer programs (HiGHS) of the same model, on 50 random graphs.

A result is kept or computed again once, from what it reads. The plan takes no more bytes than its budget, and the least seconds.
"""
import json
import subprocess
import sys

try:
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def least_seconds(nodes, budget):
    n = len(nodes)  # variables: kept, then again
    rows, low = [], []
    def at_least(value, **terms):
        row = np.zeros(2 * n)
        for name, factor in terms.items():
            row[int(name[1:]) + (n if name[0] == "a" else 0)] += factor
        rows.append(row)
        low.append(value)
    upper = np.ones(2 * n)
    for v, (_, _, is_read, is_kept, reads) in enumerate(nodes):
        if is_read:
            at_least(1, **{f"k{v}": 1, f"a{v}": 1})
        if is_kept:
            upper[n + v] = 0
        for u in set(reads):
            at_least(0, **{f"k{u}": 1, f"a{u}": 1, f"a{v}": -1})
    memory = np.array([node[0] for node in nodes] + [0] * n, float)
    constraints = [LinearConstraint(np.array(rows), low, np.inf), LinearConstraint(memory[None, :], -np.inf, budget)]
    seconds = np.array([0] * n + [node[1] for node in nodes], float)
    solved = milp(seconds, constraints=constraints, integrality=np.ones(2 * n), bounds=Bounds(0, upper))
    assert solved.success, solved.message
    return solved.fun


compared = 0
for graph in json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout):
    for budget, taken, seconds in graph["plans"]:
        best = least_seconds(graph["nodes"], budget)
        assert taken <= budget, (graph, budget, taken)
        assert abs(seconds - best) <= 1e-6 * max(1, best), (graph, budget, seconds, best)
        compared += 1
print(f"{compared} plans are the best of SciPy's")
