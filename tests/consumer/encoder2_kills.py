"""Trains with examples/encoder2 until it has made all steps, and kills it without notice on the way, each time after another few steps and at
a random moment of the next one, which may be while it writes. What is left are, byte for byte, the files of a run that was not killed.

    encoder2_kills.py PROGRAM TEXT FOLDER KILLS

makes the folders `whole` and `killed` in FOLDER.
"""
import random
import subprocess
import sys
import time
from pathlib import Path

program, text, folder, kills = sys.argv[1:]
whole, killed_in = Path(folder, "whole"), Path(folder, "killed")
common = [program, "train", "--steps", str(4 * int(kills)), "--text", text]
command = [*common, "--every", "1", "--out", str(killed_in), "--resume"]
draw = random.Random(1)


def run(lines=None):
    """Whether it came to its end, before it said so many lines."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        begin = seconds = time.perf_counter()
        for n, _ in enumerate(child.stdout, 1):
            seconds, begin = time.perf_counter() - begin, time.perf_counter()
            if n == lines:
                time.sleep(draw.uniform(0, 1.2) * min(seconds, 2))
                child.kill()
                break
        if child.wait() > 0:
            sys.exit(f"it ended with {child.returncode}")
        return child.returncode == 0


for file in (f for out in (whole, killed_in) if out.exists() for f in out.iterdir()):
    file.unlink()
subprocess.run([*common, "--every", "10", "--out", str(whole)], check=True)
killed = sum(not run(draw.randint(1, 4)) for _ in range(int(kills)))
while not run():
    pass
if killed < int(kills) // 2:
    sys.exit(f"only {killed} runs were killed before they came to their end")
for name in ("checkpoint.safetensors", "loss.csv", "loss.svg"):
    if (whole / name).read_bytes() != (killed_in / name).read_bytes():
        sys.exit(f"{name} of the run that was killed is another one")
print(f"{killed} runs of {kills} were killed before they came to their end, and left the files of one that was not")
