"""Attention's gradients by q, k and v beside PyTorch's scaled dot product attention: ./tessera peers attention [--rounds N] [--threads N]

12 heads, 64 wide, f32. Ours is one function of q, k, v and o.grad with all extents fixed, which computes again what it reads of the forward pass; so it stands
beside PyTorch's backward pass alone, which has that saved, and beside both of its passes. The sides take turns; results must lie within
1e-4 of each other. On one thread milliseconds are those that the processor worked, on several those that passed; medians of all rounds."""
import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import tessera as ts
from tessera.stdlib import function

HEADS, WIDTH = 12, 64
CASES = [("attention", 128), ("attention", 512), ("attention", 1024), ("attention_causal", 512), ("attention_causal", 1024)]


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--rounds", type=int, default=11)
    said.add_argument("--threads", type=int, default=1)
    args = said.parse_args()
    torch.set_num_threads(args.threads)
    ts.threads(args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter
    torch.manual_seed(1)
    for name, S in CASES:
        q, k, v = (torch.randn(1, HEADS, S, WIDTH, requires_grad=True) for _ in range(3))
        o_grad = torch.randn(1, HEADS, S, WIDTH)
        backward = ts.vjp(function(name, fix=("H", "S", "T", "D", "E")), by=("q", "k", "v"))
        given = [t.detach()[0] for t in (q, k, v, o_grad)]
        forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=name == "attention_causal")  # noqa: E731
        o = forward()
        sides = {"ours": lambda: backward(*given), "back": lambda: torch.autograd.grad(o, (q, k, v), o_grad, retain_graph=True),
                 "both": lambda: torch.autograd.grad(forward(), (q, k, v), o_grad)}
        far = max((a - b[0]).abs().max().item() for a, b in zip(sides["ours"](), sides["back"]()))
        if not far <= 1e-4:
            sys.exit(f"error[attention.far]: {name}, S {S}: gradients differ from PyTorch's by {far:.1e}; expected at most 1e-4")
        calls = max(1, 2_000_000 // (S * S))
        made = {side: [] for side in sides}
        for _ in range(args.rounds + 1):  # the first warms up
            for side, act in sides.items():
                start = clock()
                for _ in range(calls):
                    act()
                made[side].append((clock() - start) / calls * 1e3)
        ours, *theirs = (statistics.median(ms[1:]) for ms in made.values())
        of_back, of_both = (statistics.median(p / o for p, o in zip(made[side][1:], made["ours"][1:])) for side in ("back", "both"))
        print(f"{name}, S {S}: {ours:.2f} ms; PyTorch backward {theirs[0]:.2f}, both passes {theirs[1]:.2f}; their time beside ours {of_back:.2f} and "
              f"{of_both:.2f}; {far:.0e} apart", flush=True)


main()
