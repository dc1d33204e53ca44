"""Trains with examples/encoder2 until it has made all steps, and kills it without notice on the way, each time after another few steps and at
a random moment of the next one, which may be while it writes.

    encoder2_kills.py PROGRAM TEXT FOLDER STEPS KILLS
"""
import random
import subprocess
import sys
import time

program, text, folder, steps, kills = sys.argv[1:]
command = [program, "train", "--steps", steps, "--every", "1", "--text", text, "--out", folder, "--resume"]
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


killed = sum(not run(draw.randint(1, 4)) for _ in range(int(kills)))
while not run():
    pass
if killed < int(kills) // 2:
    sys.exit(f"only {killed} runs were killed before they came to their end")
print(f"{killed} runs of {kills} were killed before they came to their end")
