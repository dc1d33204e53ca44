"""Runs tessera-paths (bench/google/compiler_paths.cpp) as briefly as it goes: every path of every kernel is there, none fails, and each row has
what Google Benchmark's compare.py reads. No time is looked at."""
import json
import subprocess
import sys

PATHS = ("lowering", "verifying", "features", "scoring", "loading", "call", "plan_run")
KERNELS = ("matmul", "softmax", "attention")
READ_BY_COMPARE = {"name", "run_type", "iterations", "real_time", "cpu_time", "time_unit"}


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def main(program):
    done = run(program, "--benchmark_min_time=0.0001", "--benchmark_format=json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["context"]["tessera_target"], document["context"]
    rows = {row["name"]: row for row in document["benchmarks"]}
    assert set(rows) == {f"{path}/{kernel}" for path in PATHS for kernel in KERNELS}, sorted(rows)
    for name, row in rows.items():
        assert "error_occurred" not in row, row
        assert READ_BY_COMPARE <= set(row), (name, row)
        assert row["iterations"] > 0, row
        assert ("items_per_second" in row) == name.startswith("scoring/"), row
        assert ("bytes_per_second" in row) == name.startswith("loading/"), row
    listed = run(program, "--benchmark_filter=^call/", "--benchmark_list_tests").stdout.split()
    assert sorted(listed) == sorted(f"call/{kernel}" for kernel in KERNELS), listed
    wrong = run(program, "--benchmark_wrong=1")
    assert wrong.returncode == 2 and "unrecognized command-line flag: --benchmark_wrong=1" in wrong.stderr, wrong


main(sys.argv[1])
