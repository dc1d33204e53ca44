"""What one call from Python costs with PyTorch's tensors: directly, through PyTorch's dispatcher, and PyTorch's own addition, in turns."""
import statistics
import time

import torch

from tessera import Tensor, f32, jit
from tessera.torch import register

ELEMENTS, CALLS, ROUNDS = 1024, 2000, 41


@jit
def add(x: Tensor["N", f32], z: Tensor["N", f32]) -> Tensor["N", f32]:
    return x + z


def nanoseconds(call):
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - start) / CALLS


def main():
    torch.set_num_threads(1)
    operator = register(add, "tessera_bench::add")
    x, z, y = (torch.ones(ELEMENTS) for _ in range(3))
    calls = {
        "torch.add(x, z, out=y)": lambda: torch.add(x, z, out=y),
        "add(x, z, out=y)": lambda: add(x, z, out=y),
        "torch.add(x, z)": lambda: torch.add(x, z),
        "add(x, z)": lambda: add(x, z),
        "torch.ops.tessera_bench.add(x, z)": lambda: operator(x, z),
    }
    times = {name: [] for name in calls}
    for call in calls.values():
        nanoseconds(call)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(nanoseconds(call))
    print(f"{ELEMENTS} elements, ns a call: the median of {ROUNDS} rounds of {CALLS} calls each, in turns, and the least")
    for name, taken in times.items():
        print(f"{name:36} {statistics.median(taken):7.0f} {min(taken):7.0f}")


if __name__ == "__main__":
    main()
