"""The application of examples/minilm beside onnxruntime and PyTorch, as far as they are installed: ./tessera peers minilm

    minilm.py <minilm> <folder of the model> [--rounds N] [--threads 1 2] [--weights f32 bf16 int8] [--cpu]

One process for us and one for the peers, which take turns: in each round each side runs the same batch for about as long, and waits until
the threads of the one before sleep. Milliseconds a call; the median of all rounds. Before it is timed, a peer must give our vectors. --cpu, for one thread on a machine that
others use, counts the time that the processor worked for us, not the time that passed."""
import argparse
import os
import subprocess
import sys
import time

import numpy as np

from bert import onnxruntime_encoder, padded, pytorch_encoder, read_safetensors

SHAPES = [(1, 16), (1, 128), (8, 128)]
WORD = 1012  # the application's `time` runs batches of it
SECONDS = 0.15  # of a turn
SENTENCES = ["A cat is sleeping on the warm window sill.", "Yes.", "The central bank raised its interest rate by half a percent."]


class Application:
    """Ours, which runs what lines of its input say."""

    def __init__(self, app, model, weights, threads):
        self.process = subprocess.Popen([app, "--weights", weights, "--threads", str(threads), model, "time"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def times(self, shape, calls):
        print(*shape, calls, file=self.process.stdin, flush=True)
        return [float(ms) for ms in self.process.stdout.readline().split()]

    def cpu_seconds(self):
        return time.clock_gettime(~self.process.pid << 3 | 2)  # Linux's clock of another process

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer:
    """A function of ids and keep."""

    def __init__(self, encode, convert):
        self.encode, self.convert = encode, convert

    def times(self, shape, calls):
        arguments = [self.convert(array) for array in (np.full(shape, WORD, "i4"), np.ones(shape, bool))]
        made = []
        for _ in range(calls):
            start = time.perf_counter()
            self.encode(*arguments)
            made.append((time.perf_counter() - start) * 1e3)
        return made

    def cpu_seconds(self):
        return time.process_time()

    def close(self):
        pass


def peers(weights, threads):
    """Those that are here, by name."""
    made = {}
    try:
        made["onnxruntime"] = Peer(onnxruntime_encoder(weights, threads), lambda array: array.astype("i4"))
    except (ImportError, OSError):
        pass
    try:
        import torch
        torch.set_num_threads(threads)
        made["PyTorch"] = Peer(pytorch_encoder(weights), torch.from_numpy)
    except (ImportError, OSError):
        pass
    return made


def turn(side, shape, calls, cpu):
    """Milliseconds of a call."""
    start = side.cpu_seconds()
    times = side.times(shape, calls)
    return (side.cpu_seconds() - start) * 1e3 / calls if cpu else np.median(times)


def compare(sides, app, model):
    """What they make of sentences, beside ours."""
    text = "".join(s + "\n" for s in SENTENCES)

    def ours(what):
        return [line.split() for line in subprocess.run([app, model, what], input=text, capture_output=True, check=True, text=True)
                .stdout.splitlines()]
    ids, keep = padded([[int(t) for t in line] for line in ours("tokens")])
    vectors = np.array(ours("embed"), "f4")
    for name, side in sides.items():
        error = np.abs(np.asarray(side.encode(side.convert(ids.astype("i4")), side.convert(keep))) - vectors).max()
        if not error < 1e-5:
            sys.exit(f"{name} gives other vectors: they differ by {error:.1e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--weights", nargs="+", default=["f32", "bf16", "int8"])
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.cpu and options.threads != [1]:
        parser.error("--cpu is for --threads 1")
    weights = read_safetensors(os.path.join(options.model, "model.safetensors"))
    for threads in options.threads:
        theirs = peers(weights, threads)
        if not theirs:
            print("neither onnxruntime nor PyTorch is installed: ./tessera peers minilm installs the first")
        compare(theirs, options.app, options.model)
        sides = {f"ours, {w}": Application(options.app, options.model, w, threads) for w in options.weights} | theirs
        print(f"{threads} thread{'s' if threads > 1 else ''}, ms{'':12}" + "".join(f"{name:>14}" for name in sides))
        for shape in SHAPES:
            calls = {name: max(1, int(SECONDS * 1e3 / min(side.times(shape, 3)))) for name, side in sides.items()}
            times = {name: [] for name in sides}
            for _ in range(options.rounds):
                for name, side in sides.items():
                    times[name].append(turn(side, shape, calls[name], options.cpu))
                    time.sleep(0.02)
            print(f"  {shape[0]} x {shape[1]:3} tokens, median  " + "".join(f"{np.median(t):14.2f}" for t in times.values()))
            print(f"  {'':13} least   " + "".join(f"{min(t):14.2f}" for t in times.values()), flush=True)
        for side in sides.values():
            side.close()


if __name__ == "__main__":
    main()
