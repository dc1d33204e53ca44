"""compare_output.py <lesson.cpp> <program> <argument>...

Fails unless the program ends with 0 and prints the lines of the comment `// Output:` at the end of the lesson. A printed line that
is too long for the comment is broken at a blank; the rest stands on lines that begin with `//> `. With
TESSERA_UPDATE_GOLDEN=1 in the environment it writes that comment instead.
"""
import os
import subprocess
import sys
from pathlib import Path

max_columns = 140


def commented(line):
    lines = [f"// {line}".rstrip()]
    while len(lines[-1]) > max_columns:
        end = lines[-1].rfind(" ", 4, max_columns + 1)
        if end < 0:
            break
        lines[-1:] = [lines[-1][:end], "//> " + lines[-1][end + 1:]]
    return "".join(f"{line}\n" for line in lines)


source, command = Path(sys.argv[1]), sys.argv[2:]
run = subprocess.run(command, capture_output=True, text=True)
if run.returncode != 0:
    sys.exit(f"{source} ended with {run.returncode}:\n{run.stdout}{run.stderr}")

program, mark, comment = source.read_text().rpartition("\n// Output:\n")
if not mark:
    sys.exit(f"{source} has no comment '// Output:' at its end")
printed = "".join(commented(line) for line in run.stdout.splitlines())
if os.environ.get("TESSERA_UPDATE_GOLDEN") == "1":
    source.write_text(program + mark + printed)
elif printed != comment:
    sys.exit(f"{source} printed these lines, which are not those of the comment at its end:\n{printed}"
             "TESSERA_UPDATE_GOLDEN=1 writes them there.")
