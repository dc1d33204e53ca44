"""python -m tessera: the generator with all its commands, which take kernels.py:linear_silu where they take an algorithm's name or file. Of the
package's own are `cache list`, `cache prune`, `algorithm` and --cmake-dir."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tessera import cache, compiler, files
from tessera.errors import TesseraError


def main(arguments: list[str]) -> int:
    if arguments == ["--cmake-dir"]:
        print(Path(__file__).parent / "lib" / "cmake" / "Tessera")
        return 0
    if arguments[:1] == ["cache"]:
        if arguments[1:] == ["list"]:
            for e in cache.entries():
                shape = ",".join(f"{d}={n}" for d, n in e.fixed.items()) or "-"
                print(f"{e.key[:12]}  {e.kernel}  {e.target}  {shape}  {e.bytes} bytes  {e.age_s / 86400:.1f} days")
            return 0
        days = arguments[2] if len(arguments) == 3 else "0"
        if arguments[1:2] == ["prune"] and len(arguments) <= 3 and days.isdecimal():
            print(f"{cache.prune(int(days) * 86400)} entries deleted")
            return 0
        print("usage: python -m tessera cache list | cache prune [DAYS]", file=sys.stderr)
        return 2
    try:
        if arguments[:1] == ["algorithm"]:
            return write_algorithm(arguments[1:])
        return run_generator(arguments)
    except TesseraError as error:
        print(error, file=sys.stderr)
        return 2


def write_algorithm(arguments: list[str]) -> int:
    """The JSON of a function of a file, as tessera_add_kernel(... PYTHON ...) asks for it. <output>.d says, to Make and Ninja, which files of
    Python it was made from."""
    function = files.function_named(arguments[0]) if len(arguments) == 2 else None
    if function is None:
        print("usage: python -m tessera algorithm FILE.py:FUNCTION OUTPUT.json", file=sys.stderr)
        return 2
    output = Path(arguments[1])
    output.write_text(function.json, encoding="utf-8")
    folder = Path(arguments[0].rpartition(":")[0]).resolve().parent
    output_word, *sources = [str(path).replace(" ", "\\ ") for path in (output, *files.sources_below(folder))]
    Path(f"{output}.d").write_text(f"{output_word}: {' '.join(sources)}\n", encoding="utf-8")
    return 0


def run_generator(arguments: list[str]) -> int:
    program = compiler.generator()
    functions = [files.function_named(argument) for argument in arguments]
    if not any(functions):
        os.execv(program, [program, *arguments])
    with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        for i, function in enumerate(functions):
            if function is not None:
                file = Path(folder) / f"{function.algorithm.name}.json"
                file.write_text(function.json, encoding="utf-8")
                arguments[i] = str(file)
        return subprocess.run([program, *arguments]).returncode


sys.exit(main(sys.argv[1:]))
