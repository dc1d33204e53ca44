#!/usr/bin/env python3
"""How far tuning comes in few trials: ./tessera tuning [task...]

For each task, whose shapes no shipped model was trained on, the speed over that of the shipped schedule, confirmed and
interleaved, after: 16 trials with the shipped cost model; 16 with none; 128 from nothing, without model or shipped
schedule. `best` is the best of the three; `--trials N` changes 128."""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

TASKS = {
    "matmul": ["matmul", "--shape", "M=512", "N=768", "K=1536"],
    "linear_gelu": ["linear_gelu", "--shape", "M=192", "N=768", "K=768"],
    "softmax": ["softmax", "--shape", "M=1024", "N=2048"],
    "layernorm": ["layernorm", "--shape", "M=2048", "N=768"],
    "attention": ["attention", "--shape", "H=4", "S=320", "T=320", "D=64", "E=64"],
    "conv3x3": ["conv2d_nhwc", "--shape", "N=1", "H=16", "W=16", "C=128", "R=3", "S=3", "O=128"],
    "conv1x1": ["conv2d_nhwc", "--shape", "N=1", "H=28", "W=28", "C=64", "R=1", "S=1", "O=256"],
    "depthwise": ["depthwise_conv2d_nhwc", "--shape", "N=1", "H=16", "W=16", "C=384", "R=3", "S=3"],
    "gemv": ["gemv", "--shape", "M=1024", "K=4096"],
    "cumulative_sum": ["cumulative_sum", "--shape", "M=1024", "N=768"],
}


def tune(generator, target, task, trials, more, folder):
    command = [generator, "tune", *task, "--target", target, "--trials", str(trials), "--quiet", "--json",
               "--records", os.path.join(folder, "tune.db"), "--out", os.path.join(folder, "out"), *more]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    result = json.loads(run.stdout)
    seconds = result["search_s"] + result["measure_s"]
    return (result["ratio"][1] if result["improved"] else 1.0 if "--unseeded" not in more else max(
        [t["ratio"] for t in result["trials"][1:] if t["verdict"] == "measured"], default=0)), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="default: all")
    parser.add_argument("--generator", required=True)
    parser.add_argument("--target", default="host")
    parser.add_argument("--trials", type=int, default=128)
    options = parser.parse_args()
    print(f"{'task':16} {'16, model':>10} {'16, none':>10} {str(options.trials) + ', nothing':>13}   seconds", flush=True)
    columns = [[], [], []]
    for name in options.tasks or TASKS:
        with tempfile.TemporaryDirectory() as folder:
            runs = [tune(options.generator, options.target, TASKS[name], 16, [], folder),
                    tune(options.generator, options.target, TASKS[name], 16, ["--model", "none"], folder),
                    tune(options.generator, options.target, TASKS[name], options.trials, ["--model", "none", "--unseeded"], folder)]
        for column, (ratio, _) in zip(columns, runs):
            column.append(ratio)
        print(f"{name:16} {runs[0][0]:10.3f} {runs[1][0]:10.3f} {runs[2][0]:13.3f}   {' '.join(f'{s:.0f}' for _, s in runs)}", flush=True)
    mean = [math.exp(sum(math.log(max(r, 1e-3)) for r in c) / len(c)) for c in columns]
    print(f"{'geometric mean':16} {mean[0]:10.3f} {mean[1]:10.3f} {mean[2]:13.3f}")


if __name__ == "__main__":
    main()
