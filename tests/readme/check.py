"""Checks that the documents say what is there.

    check.py <root of the checkout> <generator>

- A block after `<!-- verbatim: <file> -->` stands in that file as it is.
- Every line of a block after `<!-- printed by: <command> -->` is printed by that command of the generator, in this order;
  a line `…` stands for any lines.
- Of each row of a table after `<!-- knobs -->`, the loop nest of the algorithm in its second cell has the lines of its fourth cell in this
  order, and with the knobs of its third cell those of its fifth.
- Links lead to files, and so do the names in the first column of a table under "Files in reading order". Where a folder has such a
  table, all of its headers are in it.
- In docs/, every `function` (`file`) is there.
- "It may include" and "Included by" in the README of a room are what CMake says.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

root, generator = Path(sys.argv[1]), str(Path(sys.argv[2]).resolve())
problems = []


def check_verbatim(readme, source, block):
    if block not in (root / source).read_text():
        problems.append(f"{readme}: this block is not in {source} as it stands here:\n{block}")


def check_printed(readme, command, block):
    printed = iter(subprocess.run([generator, *command.split()], capture_output=True, text=True, check=True, cwd=root).stdout.splitlines())
    for line in block.splitlines():
        if line != "…" and line not in printed:  # takes lines from `printed` up to this one
            problems.append(f"{readme}: '{command}' does not print this line, or not in this order:\n{line}")
            return


def nest(algorithm, stages, folder):
    """The lines of an algorithm's loop nest under these knobs, or under none."""
    schedule = Path(folder) / "schedule.json"
    schedule.write_text(json.dumps({"format": "tessera-schedule", "version": 1, "name": "row", "stages": json.loads("{" + stages + "}")}))
    command = [generator, "show", algorithm, "--target", "avx2", "--what", "tiles", "--quiet", "--schedule", schedule if stages else "none"]
    done = subprocess.run(command, capture_output=True, text=True)
    return [line.strip() for line in done.stdout.splitlines()] or [done.stderr.strip()]


def check_knobs(document, text):
    for row in re.findall(r"^\| `.*$", text, re.M):
        _, algorithm, stages, before, after = (re.findall(r"`([^`]+)`", cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\) *\|(?!\|) *", row)[1:6])
        with tempfile.TemporaryDirectory() as folder:
            for stated, lines in (("", before), (stages[0], after)):
                printed = nest(algorithm[0], stated, folder)
                left = iter(printed)
                for line in lines:
                    if line not in left:  # takes lines from `left` up to this one
                        problems.append(f"{document}: {algorithm[0]} with {stated or 'no knobs'} has no line, or not in this order:\n{line}\nIt has:\n"
                                        + "\n".join(printed))
                        break


def check_names(readme, folder, text):
    table = re.search(r"^## Files in reading order\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    for row in re.findall(r"^\| (`.*?) \|", table.group(1), re.M) if table else []:
        for name in re.findall(r"`([^`]+)`", row):
            if not (any(folder.glob(name)) or (folder / f"{name}.h").exists()):
                problems.append(f"{readme}: there is no {name}")
    if table:
        for header in sorted(folder.glob("*.h")):
            if not re.search(rf"`{header.stem}(\.h)?`", table.group(1)):
                problems.append(f"{readme}: it does not name {header.name}")


def check_functions(document, text):
    for name, file in re.findall(r"`([A-Za-z_]\w*)`\s+\(`([^`]+)`\)", text):
        if not (root / file).is_file() or not re.search(rf"\b{name}\b", (root / file).read_text()):
            problems.append(f"{document}: there is no {name} in {file}")


# The rooms that each room links, by path.
rooms = {}
for lists in sorted(root.glob("*/CMakeLists.txt")):
    for room, libs in re.findall(r"tessera_room\(([\w/]+)(?:[^)]*?LIBS ([^)]*?))?(?:\s*PRIVATE_LIBS[^)]*)?\)", lists.read_text()):
        rooms[room] = [lib for lib in libs.split() if (root / lib).is_dir()]


def check_arrows(readme, folder, text):
    room = folder.relative_to(root).as_posix()
    said = re.search(r"^It may include.*?\n\n", text, re.M | re.S)
    if room not in rooms or not said:
        return
    quoted = [", ".join(f"`{r}`" for r in sorted(some)) for some in (rooms[room], [r for r in rooms if room in rooms[r]])]
    words = f"It may include {quoted[0] or 'no other room'}{' and what these may' if quoted[0] else ''}. Included by {quoted[1] or 'no room'}."
    if " ".join(said.group(0).split()) != words:
        problems.append(f"{readme}: CMake says: {words}")


blocks = 0
for path in sorted(p for p in root.glob("**/*.md") if not {".tessera", ".git"} & set(p.parts) and not p.relative_to(root).parts[0].startswith("build")):
    readme, text = path.relative_to(root), path.read_text()
    for kind, what, block in re.findall(r"<!-- (verbatim|printed by): (.+?) -->\n```\w*\n(.*?)```\n", text, re.S):
        (check_verbatim if kind == "verbatim" else check_printed)(readme, what, block)
        blocks += 1
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (path.parent / link).exists():
            problems.append(f"{readme}: the link {link} leads nowhere")
    for table in re.findall(r"<!-- knobs -->\n(.*?)\n\n", text, re.S):
        check_knobs(readme, table)
        blocks += 1
    check_names(readme, path.parent, text)
    check_arrows(readme, path.parent, text)
    if readme.parts[0] == "docs":
        check_functions(readme, text)

if blocks == 0:
    problems.append("no README has a block that is checked")
sys.exit("\n".join(problems) or None)
