#!/usr/bin/env python3
"""Every test case in a process of its own, under the sanitizers: sanitized.py <build folder> [--limit SECONDS] [--resume] [PATTERN...]

The folder is one of the debug preset. Prints a row for each case: seconds, what became of it, its binary, its name. It is `clean`, or

  finding  a sanitizer said something in it or in a process that it started; what it said is in <build folder>/sanitized/<binary>.<number>.*
  failed   a check failed, with no word from a sanitizer; its output is in <binary>.<number>.out there
  cut      it ran longer than the limit (default 900 s)
  skipped  it needs a package that is not installed

PATTERNs (of fnmatch) choose cases by `<binary>: <name>`. --resume leaves out what the table of the last run, sanitized/table, has as clean
or skipped. The exit status is 1 where a case is neither.
"""
import argparse
import concurrent.futures
import contextlib
import fnmatch
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ORDER = ["runtime", "state", "support", "algorithms", "schedules", "bench", "costmodel", "compiler", "autotune", "generators"]

parser = argparse.ArgumentParser()
parser.add_argument("build", type=Path)
parser.add_argument("patterns", nargs="*", metavar="PATTERN")
parser.add_argument("--limit", type=float, default=900, metavar="SECONDS")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--jobs", type=int, default=2, metavar="N")
options = parser.parse_intermixed_args()
build = options.build.resolve()
folder = build / "sanitized"
folder.mkdir(exist_ok=True)
table = folder / "table"
suppressions = folder / "suppressions"
suppressions.write_text("leak:libpocl\nleak:libLLVM\n")  # PoCL, and the LLVM of Debian that it uses; Halide has its own inside
running = set()


def stop(number, _):
    for process in set(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    os._exit(128 + number)


def cases():
    for label in ORDER:
        if options.patterns and not any(fnmatch.fnmatchcase(label, p.partition(":")[0]) for p in options.patterns):
            continue
        binary = build / "tests" / label / f"test_{label}"
        names = []
        for hidden in ([], ["[arm64],[wasm32],[gpu]"]):  # those that need packages of their own are hidden
            # Catch2's exit status is the number of cases.
            said = subprocess.run([binary, "--list-test-names-only", *hidden], capture_output=True, text=True)
            if said.stderr:
                sys.exit(f"{binary} --list-test-names-only: {said.stderr}")
            names += said.stdout.splitlines()
        for number, name in enumerate(names):
            yield f"{label}.{number:03}", label, name


def run(number, label, name):
    log = folder / number
    for old in folder.glob(f"{number}.*"):
        old.unlink()
    environment = dict(os.environ, POCL_DEVICES="basic", TESSERA_PYTHON=str(build.parent / ".tessera/python/bin/python3"))
    # In files, what is said in processes that a test starts is found too. GCC's UBSan says it on stderr though, and then an exit code that no
    # test expects gives a child away.
    for variable, settings in (("ASAN_OPTIONS", f"detect_leaks=1:log_path='{log}.asan'"), ("UBSAN_OPTIONS", "print_stacktrace=1:exitcode=99"),
                               ("LSAN_OPTIONS", f"suppressions='{suppressions}':print_suppressions=0")):
        environment[variable] = f"{settings}:{os.environ.get(variable, '')}"
    binary = build / "tests" / label / f"test_{label}"
    start = time.monotonic()
    with open(f"{log}.out", "w") as out:
        process = subprocess.Popen([binary, "--use-colour", "no", re.sub(r"([\\,\[])", r"\\\1", name)], stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=environment, cwd=binary.parent, start_new_session=True)
        running.add(process)
        try:
            status = process.wait(options.limit)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        running.discard(process)
    said = Path(f"{log}.out").read_text(errors="replace")
    reports = list(folder.glob(f"{number}.asan.*"))
    for report in reports:
        if "ERROR: " not in report.read_text(errors="replace"):  # a warning: Halide's compiler has a stack of its own, by swapcontext
            report.unlink()
    if any(report.exists() for report in reports) or ": runtime error: " in said:
        became = "finding"
    elif status is None:
        became = "cut"
    elif status or not re.search(r"in 1 test case\)|^test cases: 1 \||^No tests ran", said, re.M):
        became = "failed"
    elif "skipped: not installed:" in said:
        became = "skipped"
    else:
        became = "clean"
        Path(f"{log}.out").unlink()
    return time.monotonic() - start, became


def main():
    done = {}
    if options.resume and table.exists():
        rows = [line.split(maxsplit=3) for line in table.read_text().splitlines()]
        done = {(label, name): became for _, became, label, name in rows if became in ("clean", "skipped")}
    chosen = [(number, label, name) for number, label, name in cases()
              if (label, name) not in done and (not options.patterns or any(fnmatch.fnmatchcase(f"{label}: {name}", p) for p in options.patterns))]
    counts, lock, begun = {}, threading.Lock(), time.monotonic()
    with open(table, "a" if options.resume else "w") as rows, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(case):
            seconds, became = run(*case)
            row = f"{seconds:8.1f}  {became:8}  {case[1]:10}  {case[2]}"
            with lock:
                counts.setdefault(case[1], {}).setdefault(became, []).append(seconds)
                print(row, flush=True)
                print(row, file=rows, flush=True)
        for finished in concurrent.futures.as_completed([pool.submit(one, case) for case in chosen]):
            finished.result()
    for label, by in counts.items():
        print(f"{label}: " + ", ".join(f"{len(seconds)} {became} ({sum(seconds):.0f} s)" for became, seconds in by.items()))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(chosen)} cases in {time.monotonic() - begun:.0f} s, of which processors worked {used.ru_utime + used.ru_stime:.0f} s")
    return int(any(became not in ("clean", "skipped") for by in counts.values() for became in by))


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, stop)
sys.exit(main())
