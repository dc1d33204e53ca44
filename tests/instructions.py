"""Machine instructions of shipped kernels beside a record of them: a guard that no time of a busy machine disturbs.

For each kernel of instructions.json, on each of its targets that this processor has: the instructions of one call, counted one by one
(`bench --instructions`), and the vectors that the worst innermost loop puts on the stack and takes back (`show --what assembly`). More
instructions than recorded by over 3 percent, or more spills, is a failure; so is a kernel without a record. `--accept` records what is.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "peers"))
from generated import host_features, targets_for  # noqa: E402

TOLERANCE = 1.03
FILE = pathlib.Path(__file__).with_name("instructions.json")


def run(generator, *arguments):
    done = subprocess.run([generator, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def innermost_loops(assembly):
    """Runs of lines from a label to the last jump back to it that have no such run inside."""
    lines = assembly.splitlines()
    labels, loops = {}, {}
    for at, line in enumerate(lines):
        if label := re.match(r"(\.LBB\w+):", line):
            labels[label[1]] = at
        elif (jump := re.match(r"\s+j\w+\s+(\.LBB\w+)", line)) and jump[1] in labels:
            loops[labels[jump[1]]] = at
    return [lines[a:b] for a, b in loops.items() if not any(a < c and d <= b for c, d in loops.items())]


def spills(assembly):
    moved = re.compile(r"(16|32|64)-byte (Folded )?(Spill|Reload)")
    return max((sum(bool(moved.search(line)) for line in loop) for loop in innermost_loops(assembly)), default=0)


def measured(generator, kernel, target):
    line = [kernel["algorithm"], "--target", target, "--quiet", "--numerics", kernel.get("numerics", "f32")]
    for option, key in (("--option", "options"), ("--shape", "shape")):
        if key in kernel:
            line += [option, *(f"{k}={v}" for k, v in kernel[key].items())]
    extents = ["--extents", *(f"{k}={v}" for k, v in kernel["extents"].items())] if kernel.get("extents") else []
    counted = json.loads(run(generator, "bench", *line, *extents, "--seconds", "0.001", "--instructions", "--json"))
    return {"instructions": counted["instructions"], "spills": spills(run(generator, "show", *line, "--what", "assembly"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--accept", action="store_true", help="record what is")
    options = parser.parse_args()
    record = json.loads(FILE.read_text())
    targets = targets_for(host_features())
    cases = [(k, t) for k in record["kernels"] for t in k["targets"]]
    here = [(k, t) for k, t in cases if t in targets]
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda case: measured(options.generator, *case), here))
    worse = 0
    for (kernel, target), now in zip(here, counts):
        before = kernel["targets"][target]
        is_worse = not before or now["instructions"] > TOLERANCE * before["instructions"] or now["spills"] > before["spills"]
        worse += is_worse
        was = f"{before['instructions']}, {before['spills']} spills" if before else "no record"
        print(f"{'WORSE ' if is_worse else '      '}{kernel['algorithm']} {target}: {now['instructions']} instructions, {now['spills']} spills ({was})")
        kernel["targets"][target] = now
    if options.accept:
        FILE.write_text(json.dumps(record, indent=1) + "\n")
        return 0
    print(f"{len(here) - worse} passed, {worse} failed, {len(cases) - len(here)} skipped")
    if worse:
        print("If that is meant: ./tessera instructions --accept, and say in the commit why.")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
