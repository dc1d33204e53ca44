"""Trains a causal encoder of two blocks over bytes on the licences that every Debian has, or goes on with it."""
import argparse
import os
import time
from pathlib import Path

import numpy as np

from network import EXTENTS, initial, loss_of
from tessera import Tensor, f32, jit, tile
from tessera.state import load, look, save
from tessera.stdlib import adamw


@jit(schedule="none")
def clipped(g: Tensor["N", f32], longest: f32) -> Tensor["N", f32]:
    """g, or as much of it as is `longest` long."""
    length = tile.sqrt(tile.sum(g * g, "N")).named("length")
    return g * tile.minimum(longest / tile.maximum(length, 1e-30), 1.0)


def batch(text, *seed):
    """Ids and the bytes that follow them, (B, S) each, the same for the same seed."""
    starts = np.random.default_rng(seed).integers(0, len(text) - EXTENTS["S"], EXTENTS["B"])
    rows = np.stack([text[s:s + EXTENTS["S"] + 1] for s in starts]).astype(np.int32)
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])


def advance(state, text, seed, rate=3e-3, warm_up=20, decay=0.01, longest=1.0, beta1=0.9, beta2=0.99, epsilon=1e-8):
    """One step of AdamW, in place: the loss before it, and the length that the gradient had before it was clipped."""
    step, g = len(state["losses"]) + 1, np.empty_like(state["w"])
    loss = loss_of(state["w"], *batch(text, seed, step), g)
    rate *= min(1, step / warm_up)
    adamw(state["m"], state["v"], state["w"], clipped(g, longest), beta1, beta2, epsilon,
          scale=(1 - beta2**step) ** -0.5, step=rate / (1 - beta1**step), decay=1 - rate * decay)
    state["losses"] = np.append(state["losses"], np.float32(loss))
    return loss, float(np.linalg.norm(g))


def read(path):
    """The state of a checkpoint."""
    _, stored = look(path)
    state = {name: np.empty(tensor.shape, tensor.dtype) for name, tensor in stored.items()}
    load(path, state)
    return state


def replace(path, write):
    """The file is the old one or the new one, whenever the power goes."""
    beside = path.with_name(path.name + ".new")
    with open(beside, "wb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def curve(losses):
    """The losses as a picture, from 0 to what they begin with."""
    top = max(losses, default=1.0)
    points = " ".join(f"{40 + 560 * i / max(1, len(losses) - 1):.1f},{220 - 200 * y / top:.1f}" for i, y in enumerate(losses))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="620" height="250" font-family="sans-serif" font-size="12"><path d="M40 20V220H600" fill="none" '
            f'stroke="#888"/><polyline points="{points}" fill="none" stroke="#06c"/><text x="4" y="24">{top:.2f}</text><text x="4" y="224">0</text>'
            f'<text x="40" y="240">step 1</text><text x="600" y="240" text-anchor="end">{len(losses)}</text><text x="300" y="16">loss, nats a byte</text></svg>\n')


def main(arguments=None):
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--steps", type=int, default=200, help="how many there are in all (200)")
    said.add_argument("--every", type=int, default=50, help="steps between checkpoints (50)")
    said.add_argument("--seed", type=int, default=1)
    said.add_argument("--out", type=Path, default=Path("build/encoder2"), help="the folder of checkpoint.safetensors, loss.csv and loss.svg")
    said.add_argument("--text", type=Path, default=Path("/usr/share/common-licenses"), help="a folder of texts; the first by name is held out")
    said.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    args = said.parse_args(arguments)
    held_out, *files = [np.fromfile(f, np.uint8) for f in sorted(args.text.iterdir()) if f.is_file() and not f.is_symlink()]
    text = np.concatenate(files)
    args.out.mkdir(parents=True, exist_ok=True)
    saved = args.out / "checkpoint.safetensors"
    state = read(saved) if args.resume else initial(args.seed)

    def held():
        return np.mean([loss_of(state["w"], *batch(held_out, 0, i)) for i in range(4)])

    print(f"{len(state['w'])} weights, {len(text)} bytes; held-out loss {held():.3f} after step {len(state['losses'])}")
    begin = time.perf_counter()
    for step in range(len(state["losses"]) + 1, args.steps + 1):
        loss, length = advance(state, text, args.seed)
        if step % args.every == 0 or step == args.steps:
            print(f"step {step}: loss {loss:.3f}, held-out {held():.3f}, gradient {length:.2f} long, {time.perf_counter() - begin:.1f} s", flush=True)
            save(saved, state, step=step, seed=args.seed)
    losses = [float(y) for y in state["losses"]]
    replace(args.out / "loss.csv", lambda s: s.write(("step,loss\n" + "".join(f"{i},{y!r}\n" for i, y in enumerate(losses, 1))).encode()))
    replace(args.out / "loss.svg", lambda s: s.write(curve(losses).encode()))


if __name__ == "__main__":
    main()
