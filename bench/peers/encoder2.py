"""A step of training of examples/encoder2 beside PyTorch, eager and torch.compile: ./tessera peers encoder2

    encoder2.py PROGRAM... [--rounds N] [--threads 1 2] [--cpu] [--no-compile]
    encoder2.py PROGRAM --losses STEPS --text FILE

A step is a batch, all gradients with dropout, clipping and AdamW, in f32. PyTorch has its fastest parts of each: rms_norm, scaled dot product
attention, the fused AdamW. One process for us and one for PyTorch, which take turns: in each round each side makes steps for about as long.
Milliseconds a step: the least and the median of all rounds. --cpu counts the time that the processor worked, not the time that passed,
which is for one thread on a machine that others use. --losses trains both without dropout from the same weights on the same batches, and
says by how much losses differ at most.
"""
import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "consumer"))
from encoder2_twin import batch, first_weights  # noqa: E402

SECONDS = 0.4  # of a turn
RATE, WARM_UP, DECAY, LONGEST, BETAS = 3e-3, 20, 0.01, 1.0, (0.9, 0.99)  # of the example's Recipe


class Ours:
    def __init__(self, program, threads):
        self.process = subprocess.Popen([program, "time", "--threads", str(threads), "--text", text_for_timing()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.sizes = [int(n) for n in self.process.stdout.readline().split()]

    def times(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        return [float(ms) for ms in self.process.stdout.readline().split()]

    def cpu_seconds(self):
        return time.clock_gettime(~self.process.pid << 3 | 2)  # Linux's clock of another process


def text_for_timing():
    """A file of bytes that nobody learns anything from."""
    path = Path(tempfile.gettempdir()) / "tessera_encoder2_text"
    path.write_bytes(np.random.default_rng(1).integers(32, 127, 1 << 17, dtype=np.uint8).tobytes())
    return str(path)


def shapes_of(B, S, L, D, H, E, F, V):
    return {"table": (V, D), "places": (S, D), "norm_attention": (L, D), "query": (L, D, H, E), "key": (L, D, H, E), "value": (L, D, H, E),
            "out": (L, H, E, D), "norm_mlp": (L, D), "up": (L, D, F), "down": (L, F, D), "norm_head": (D,), "head": (D, V)}


class Peer:
    """The same encoder as a user of PyTorch writes it."""

    def __init__(self, sizes, weights, dropout, compiles):
        self.sizes, self.dropout = sizes, dropout
        self.w = {name: [torch.nn.Parameter(part) for part in w] if name in BLOCKS else torch.nn.Parameter(w) for name, w in weights.items()}
        self.parameters = [p for w in self.w.values() for p in (w if isinstance(w, list) else [w])]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=RATE, betas=BETAS, eps=1e-8, weight_decay=DECAY, fused=True)
        self.loss = torch.compile(self.forward) if compiles else self.forward
        self.text = np.frombuffer(Path(text_for_timing()).read_bytes(), np.uint8)
        self.made = 0

    def block(self, x, i):
        B, S, L, D, H, E, _, _ = self.sizes
        w = {name: self.w[name][i] for name in BLOCKS}
        a = F.rms_norm(x, (D,), w["norm_attention"], 1e-5)
        q, k, v = ((a @ w[n].reshape(D, H * E)).view(B, S, H, E).transpose(1, 2) for n in ("query", "key", "value"))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        x = x + F.dropout(seen.transpose(1, 2).reshape(B, S, H * E) @ w["out"].reshape(H * E, D), self.dropout)
        hidden = F.gelu(F.rms_norm(x, (D,), w["norm_mlp"], 1e-5) @ w["up"])
        return x + F.dropout(hidden @ w["down"], self.dropout)

    def forward(self, ids, targets):
        x = F.dropout(F.embedding(ids, self.w["table"]) + self.w["places"], self.dropout)
        for i in range(self.sizes[2]):
            x = self.block(x, i)
        logits = F.rms_norm(x, (self.sizes[3],), self.w["norm_head"], 1e-5) @ self.w["head"]
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def step(self, text, seed=1):
        self.made += 1
        ids, targets = (torch.from_numpy(a) for a in batch(text, self.sizes[0], self.sizes[1], seed, self.made))
        loss = self.loss(ids, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, LONGEST)
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * min(1, self.made / WARM_UP)
        self.optimizer.step()
        return loss

    def times(self, steps):
        made = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step(self.text)
            made.append((time.perf_counter() - start) * 1e3)
        return made

    def cpu_seconds(self):
        return time.process_time()


BLOCKS = ("norm_attention", "query", "key", "value", "out", "norm_mlp", "up", "down")


def random_weights(sizes):
    torch.manual_seed(1)
    return {n: torch.ones(s) if n.startswith("norm") else torch.randn(s) * sizes[3] ** -0.5 for n, s in shapes_of(*sizes).items()}


def turn(side, by_cpu):
    """Milliseconds a step of one turn, by the clock or by the processor."""
    steps = max(1, round(SECONDS / (side.last / 1e3)))
    begin = side.cpu_seconds()
    ms = side.times(steps)
    side.last = statistics.median(ms)
    return (side.cpu_seconds() - begin) * 1e3 / steps if by_cpu else statistics.median(ms)


def compare_times(program, threads, args):
    torch.set_num_threads(threads)
    ours = Ours(program, threads)
    sides = {"tessera": ours}
    for name, compiles in (("PyTorch", False), ("torch.compile", True))[:1 if args.no_compile else 2]:
        sides[name] = Peer(ours.sizes, random_weights(ours.sizes), 0.1, compiles)
    for side in sides.values():
        side.times(3)
        side.last = statistics.median(side.times(3))
    made = {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, side in sides.items():
            made[name].append(turn(side, args.cpu))
            time.sleep(0.02)
    ours.process.stdin.close()
    print("{0} texts of {1} bytes, {2} blocks, D {3}, {4} heads, F {6}, V {7}".format(*ours.sizes) + f", {threads} threads:", flush=True)
    for name, ms in made.items():
        ratio = statistics.median(p / o for p, o in zip(ms, made["tessera"]))
        print(f"  {name:14} {min(ms):8.2f} least, {statistics.median(ms):8.2f} median ms a step; its time beside ours, round by round: {ratio:.2f}", flush=True)


def compare_losses(program, steps, text):
    with tempfile.TemporaryDirectory() as folder:
        for made, more in (("0", []), (str(steps), ["--dropout", "0"])):
            subprocess.run([program, "train", "--steps", made, *more, "--text", text, "--out", f"{folder}/{made}"], check=True, stdout=subprocess.DEVNULL)
        ours = Ours(program, 1)
        ours.process.stdin.close()
        weights = first_weights(f"{folder}/0/checkpoint.safetensors", shapes_of(*ours.sizes))
        with open(f"{folder}/{steps}/loss.csv", newline="", encoding="utf-8") as stream:
            losses = [float(row["loss"]) for row in csv.DictReader(stream)]
    learnt = np.fromfile(text, np.uint8)
    learnt = learnt[:len(learnt) // 10 * 9]
    peer = Peer(ours.sizes, {n: torch.from_numpy(w.astype(np.float32)) for n, w in weights.items()}, 0.0, False)
    theirs = [peer.step(learnt).item() for _ in range(steps)]
    worst = max(abs(a - b) / b for a, b in zip(losses, theirs))
    print(f"{steps} losses, from {losses[0]:.4f} to {losses[-1]:.4f}: at most {worst:.2e} from PyTorch's, relative")


def main():
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("programs", nargs="+", help="builds of examples/encoder2")
    said.add_argument("--rounds", type=int, default=15)
    said.add_argument("--threads", type=int, nargs="+", default=[1])
    said.add_argument("--cpu", action="store_true")
    said.add_argument("--no-compile", action="store_true")
    said.add_argument("--losses", type=int)
    said.add_argument("--text")
    args = said.parse_args()
    torch.set_num_threads(1)
    if args.losses:
        return compare_losses(args.programs[0], args.losses, args.text)
    for program in args.programs:
        for threads in args.threads:
            compare_times(program, threads, args)


main()
