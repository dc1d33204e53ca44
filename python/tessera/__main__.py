"""python -m tessera: the generator with all its commands; and `cache list`, `cache prune`, --cmake-dir of the package's own."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from tessera import cache, compiler
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
        program = compiler.generator()
    except TesseraError as error:
        print(error, file=sys.stderr)
        return 2
    os.execv(program, [program, *arguments])


sys.exit(main(sys.argv[1:]))
