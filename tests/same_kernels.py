#!/usr/bin/env python3
"""Shows that a change leaves every shipped kernel as it is, to the byte.

    tests/same_kernels.py record GENERATOR SCHEDULES FILE     what GENERATOR makes of the schedules in the folder SCHEDULES
    tests/same_kernels.py compare GENERATOR SCHEDULES FILE    whether GENERATOR makes the same as the one that wrote FILE

For every program of SCHEDULES/tuned/tessera-programs.lock it takes the tile program, the static library or the sources for a GPU, and,
for processors, the file of C. A library is the same if all of its bytes are, machine code, tables and constants alike; where one is
not, the functions whose disassembly differs are named. Manifests are not compared: they hold hashes of algorithms and schedules, which
change with names that no code sees; of what they say of the code, the rest of the files is the proof. On two cores it takes some minutes; it ends with 1 where something differs.
"""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

NOT_CODE = (".manifest.json",)


def programs(schedules):
    for line in json.loads((schedules / "tuned" / "tessera-programs.lock").read_text())["programs"]:
        yield line["schedule"], line["task"]


def arguments(schedules, schedule, task):
    words = [task["algorithm"], "--numerics", task["numerics"], "--target", task["target"], "--schedule", schedule, "--quiet"]
    words += ["--schedule-dir", str(schedules)]
    for flag, values in (("--option", task["options"]), ("--shape", task["fixed"])):
        if values:
            words += [flag, *(f"{name}={value}" for name, value in values.items())]
    return words


def disassembly(library):
    """The hash of each function's instructions, by name; empty where objdump does not know the processor."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", library], capture_output=True, text=True).stdout
    functions = {}
    for part in re.split(r"\n(?=[0-9a-f]+ <)", text):
        name = re.match(r"[0-9a-f]+ <([^>]+)>:", part)
        if name:
            body = re.sub(r"^\s*[0-9a-f]+:\s*", "", part.split("\n", 1)[1], flags=re.M)
            functions[name[1]] = hashlib.sha256(body.encode()).hexdigest()
    return functions


def made(generator, schedules, schedule, task):
    words = arguments(schedules, schedule, task)
    facts = {}
    with tempfile.TemporaryDirectory() as folder:
        for emit in ("library", "c") if task["target"].split("-")[0] not in ("opencl", "cuda") else ("library",):
            out = pathlib.Path(folder) / emit
            done = subprocess.run([generator, "generate", *words, "--emit", emit, "--emit-tiles", "--out", out], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{schedule}: generate ended with {done.returncode}: {done.stderr}")
            for file in sorted(out.iterdir()):
                if file.name.endswith(NOT_CODE):
                    continue
                facts[f"{emit}/{file.name}"] = hashlib.sha256(file.read_bytes()).hexdigest()
                if file.suffix == ".a":
                    facts["functions"] = disassembly(file)
    return facts


def differences(name, before, after):
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            for function in sorted(old.keys() | new.keys()):
                if old.get(function) != new.get(function):
                    yield f"{name}: function {function} differs"
        else:
            yield f"{name}: {key} differs"


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("record", "compare"):
        sys.exit(__doc__)
    command, generator, schedules, file = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve(), pathlib.Path(sys.argv[4])
    todo = list(programs(schedules))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = pool.map(lambda one: made(generator, schedules, *one), todo)
        now = {f"{schedule} {json.dumps(task, sort_keys=True)}": facts for (schedule, task), facts in zip(todo, results)}
    if command == "record":
        file.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        print(f"{len(now)} programs recorded")
        return
    then = json.loads(file.read_text())
    lines = [line for name in sorted(then.keys() | now.keys()) for line in differences(name, then.get(name, {}), now.get(name, {}))]
    print("\n".join(lines + [f"{len(now)} programs, {len(lines)} differences"]))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
