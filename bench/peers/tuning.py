#!/usr/bin/env python3
"""How far tuning comes, and how soon: ./tessera tuning [task...]

Each task has a shape that no shipped model was trained on, and campaigns of its own: 8 and 16 trials with the shipped cost
model; 16 and 64 without any; 64 by random search; from nothing, that is without the shipped schedule, 16 with the model, 256 without any
and 64 by random search. Each ends with its winner timed again beside the base, interleaved, and that ratio is what counts. `best` is the
best that any of them, or the shipped schedule, reached; the columns are shares of it, and `shipped` is the share of the shipped schedule.
`long` is a search of 1,000 trials with the model, for the best known. The last three tasks have no shipped schedule: their base is the
space's most likely one.
A second table has the trials after which the longer campaigns had measured 97 % of what 16 trials with the model reached, and a third one
the same from nothing.

--trials changes 256, --long changes 1,000. --out FILE keeps every campaign and --from FILE prints the tables of such files again, together
(of one campaign in several files, the last one counts); --keep FOLDER keeps their records and artifacts. --rate says how fast the search
itself is: candidates a second from their decisions to their scores, scores alone, and the search's share of a campaign of 32 trials."""
import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile

MATMUL, CONV = "2*M*N*K", "2*N*(H-R+1)*(W-S+1)*C*R*S"
TASKS = {  # arguments, shape, work of a call, its unit
    "matmul 512x768x3072": (["matmul"], dict(M=512, N=768, K=3072), MATMUL, "GFLOP/s"),
    "matmul 128x768x768": (["matmul"], dict(M=128, N=768, K=768), MATMUL, "GFLOP/s"),
    "matmul bf16 512x768x1536": (["matmul", "--numerics", "bf16"], dict(M=512, N=768, K=1536), MATMUL, "GFLOP/s"),
    "matmul u8 by i8 512x768x1536": (["matmul_u8s8"], dict(M=512, N=768, K=1536), MATMUL, "Gop/s"),
    "linear_gelu 192x768x768": (["linear_gelu"], dict(M=192, N=768, K=768), MATMUL, "GFLOP/s"),
    "conv 3x3, 64 to 64": (["conv2d_nhwc"], dict(N=1, H=58, W=58, C=64, R=3, S=3, O=64), CONV + "*O", "GFLOP/s"),
    "conv 1x1, 64 to 256": (["conv2d_nhwc"], dict(N=1, H=28, W=28, C=64, R=1, S=1, O=256), CONV + "*O", "GFLOP/s"),
    "depthwise 3x3, 384": (["depthwise_conv2d_nhwc"], dict(N=1, H=16, W=16, C=384, R=3, S=3), CONV, "GFLOP/s"),
    "softmax 1024x4096": (["softmax"], dict(M=1024, N=4096), "8*M*N", "GB/s"),
    "layernorm 2048x768": (["layernorm"], dict(M=2048, N=768), "8*M*N", "GB/s"),
    "attention 4x320x64": (["attention"], dict(H=4, S=320, T=320, D=64, E=64), "4*H*S*T*D", "GFLOP/s"),
    "gemv 1024x4096": (["gemv"], dict(M=1024, K=4096), "4*M*K", "GB/s"),
    "city_block 256x512x256": (["city_block"], dict(M=256, N=512, K=256), "3*M*N*K", "GFLOP/s"),
    "swiglu 192x1024x512": (["swiglu"], dict(M=192, F=1024, K=512), "4*M*F*K", "GFLOP/s"),
    "log_partition 256x1024x128": (["log_partition"], dict(M=256, N=1024, K=128), "2*M*N*K", "GFLOP/s"),
}
UNSEEN = {"city_block", "swiglu", "log_partition"}
CAMPAIGNS = {"8, model": ["--trials", "8"], "16, model": ["--trials", "16"], "16": ["--trials", "16", "--model", "none"],
             "64": ["--trials", "64", "--model", "none"], "random": ["--trials", "64", "--model", "roofline", "--exploration", "1"],
             "long": [], "nothing": ["--model", "none", "--unseeded"], "nothing, 16, model": ["--trials", "16", "--unseeded"],
             "nothing, random": ["--trials", "64", "--model", "roofline", "--exploration", "1", "--unseeded"]}
WIDTHS = {c: max(11, len(c) + 2) for c in CAMPAIGNS}
ENOUGH = 0.97  # of what 16 trials with the model reach


def tune_json(generator, arguments, shape, target, more, folder):
    """What `tune` says of a campaign, whose records and artifacts are in `folder`."""
    records = [] if "--deterministic" in more else ["--records", os.path.join(folder, "tune.db")]
    run = subprocess.run([generator, "tune", *arguments, "--shape", *(f"{d}={n}" for d, n in shape.items()), "--target", target,
                          *more, "--quiet", "--json", *records, "--out", os.path.join(folder, "out")],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return json.loads(run.stdout)


def campaign(options, name, more, keep=None):
    arguments, shape, _, _ = TASKS[name]
    generator = options.unseen if arguments[0] in UNSEEN else options.generator
    with contextlib.nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        return tune_json(generator, arguments, shape, options.target, more, folder)


def tune(options, name, column):
    more = CAMPAIGNS[column]
    if "--trials" not in more:
        more = [*more, "--trials", str(options.long if column == "long" else options.trials)]
    keep = options.keep and os.path.join(options.keep, f"{name}, {column}")
    if keep:
        os.makedirs(keep)
    result = campaign(options, name, more, keep)
    measured = [t["ratio"] for t in result["trials"][1:] if t["verdict"] == "measured"]
    # Where nothing beat the base there is no artifact, and a campaign that may not begin from the base has what it measured.
    speed = result["ratio"][1] if result["improved"] else max(measured, default=0) if "--unseeded" in more else 1.0
    return {"task": name, "speed": speed, "base_s": result["base_s"], "search_s": result["search_s"], "measure_s": result["measure_s"],
            "trials": len(result["trials"]), "curve": curve_of(result, "--unseeded" not in more)}


def curve_of(result, with_base):
    """The best ratio to the base that each trial and those before it measured; the first one is the base itself, which counts where the
    campaign began from it."""
    best, curve = 0, []
    for number, trial in enumerate(result["trials"]):
        if trial["verdict"] == "measured" and (number > 0 or with_base):
            best = max(best, trial["ratio"])
        curve.append(best)
    return curve


def rates(options, tasks):
    print(f"{'task':30}{'candidates/s':>14}{'scores/s':>12}{'of a campaign':>15}", flush=True)
    for name in tasks:
        alone, whole = campaign(options, name, ["--deterministic", "--trials", "64"]), campaign(options, name, ["--trials", "32"])
        print(f"{name:30}{alone['made'] / alone['search_s']:14.0f}{alone['scored'] / alone['score_s']:12.0f}"
              f"{100 * whole['search_s'] / whole['elapsed_s']:13.1f} %", flush=True)


def geometric_mean(values):
    return math.exp(sum(math.log(max(v, 1e-3)) for v in values) / len(values))


def table(results):
    """`results`: lists of what `tune` returns with its campaign's name, one list or more a task."""
    tasks = list(dict.fromkeys(r["task"] for r in results))
    columns = list(CAMPAIGNS)
    print(f"{'task':30}{'best':>8} {'':8}{'shipped':>8}" + "".join(f"{c:>{WIDTHS[c]}}" for c in columns) + "   seconds, of which search")
    shares = {c: [] for c in ["shipped", *columns]}
    for task in tasks:
        runs = {r["campaign"]: r for r in results if r["task"] == task}
        arguments, shape, work, unit = TASKS[task]
        best = max([1.0] + [r["speed"] for r in runs.values()])
        rate = best * eval(work, {}, shape) / min(r["base_s"] for r in runs.values()) * 1e-9
        line = f"{task:30}{rate:8.1f} {unit:8}{1 / best:8.3f}"
        if arguments[0] not in UNSEEN:
            shares["shipped"].append(1 / best)
        for c in columns:
            if c in runs:
                shares[c].append(runs[c]["speed"] / best)
            line += f"{runs[c]['speed'] / best:{WIDTHS[c]}.3f}" if c in runs else f"{'':{WIDTHS[c]}}"
        searched, all_s = sum(r["search_s"] for r in runs.values()), [r["search_s"] + r["measure_s"] for r in runs.values()]
        print(line + "   " + " ".join(f"{s:.0f}" for s in all_s) + f", {100 * searched / sum(all_s):.0f} %", flush=True)
    for what, of in [("geometric mean", geometric_mean), ("least", min)]:
        print(f"{what:47}" + "".join(f"{of(s):{WIDTHS.get(c, 8)}.3f}" if s else f"{'':{WIDTHS.get(c, 8)}}" for c, s in shares.items()))


def reaching(results, few, columns):
    """How many trials the longer campaigns take to what few trials with the model reach."""
    print(f"{'trials to ' + format(ENOUGH, '.0%') + ' of':30}{few:>20}" + "".join(f"{c:>{WIDTHS[c]}}" for c in columns))
    for task in dict.fromkeys(r["task"] for r in results):
        runs = {r["campaign"]: r for r in results if r["task"] == task}
        if few not in runs:
            continue
        line = f"{task:30}"
        for c in [few, *columns]:
            curve = runs[c]["curve"] if c in runs else []
            found = next((i for i, ratio in enumerate(curve) if ratio >= ENOUGH * max(runs[few]["curve"])), None)
            line += f"{'' if c not in runs else f'over {len(curve) - 1}' if found is None else found:>{20 if c == few else WIDTHS[c]}}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="those whose name begins so; default: all")
    parser.add_argument("--generator")
    parser.add_argument("--unseen", help="the generator of what has no schedule")
    parser.add_argument("--target", default="host")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--long", type=int, default=1000)
    parser.add_argument("--campaigns", nargs="+", choices=CAMPAIGNS, default=list(CAMPAIGNS))
    parser.add_argument("--rate", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="files", nargs="+", default=[])
    options = parser.parse_args()
    tasks = [name for name in TASKS if not options.tasks or any(name.startswith(t) for t in options.tasks)]
    if not tasks:
        sys.exit(f"no task begins with any of {options.tasks}; there are: {', '.join(TASKS)}")
    if not options.files and not (options.generator and options.unseen):
        sys.exit("--generator and --unseen are needed unless --from names files; ./tessera tuning passes them")
    if options.rate:
        return rates(options, tasks)
    results = [json.loads(line) for file in options.files for line in open(file)]
    if not options.files:
        for name in tasks:
            for column in options.campaigns:
                try:
                    result = tune(options, name, column)
                except RuntimeError as error:
                    print(f"{name}, {column}: {error}", file=sys.stderr, flush=True)
                    continue
                results.append({"campaign": column, **result})
                print(f"{name}, {column}: {results[-1]['speed']:.3f} of the base's speed", file=sys.stderr, flush=True)
                if options.out:
                    with open(options.out, "a") as out:
                        out.write(json.dumps(results[-1]) + "\n")
    table(results)
    reaching(results, "16, model", ["16", "64", "random", "long"])
    reaching(results, "nothing, 16, model", ["nothing", "nothing, random"])


if __name__ == "__main__":
    main()
