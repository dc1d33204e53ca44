"""Checks that the READMEs say what is there.

    check.py <root of the checkout> <generator>

- A block after `<!-- verbatim: <file> -->` stands in that file as it is.
- Every line of a block after `<!-- printed by: <command> -->` is printed by that command of the generator, in this order;
  a line `…` stands for any lines.
- Links lead to files, and so do the names in the first column of a table under "Files in reading order".
"""
import re
import subprocess
import sys
from pathlib import Path

root, generator = Path(sys.argv[1]), sys.argv[2]
problems = []


def check_verbatim(readme, source, block):
    if block not in (root / source).read_text():
        problems.append(f"{readme}: this block is not in {source} as it stands here:\n{block}")


def check_printed(readme, command, block):
    printed = iter(subprocess.run([generator, *command.split()], capture_output=True, text=True, check=True).stdout.splitlines())
    for line in block.splitlines():
        if line != "…" and line not in printed:  # takes lines from `printed` up to this one
            problems.append(f"{readme}: '{command}' does not print this line, or not in this order:\n{line}")
            return


def check_names(readme, folder, text):
    table = re.search(r"^## Files in reading order\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    for row in re.findall(r"^\| (`.*?) \|", table.group(1), re.M) if table else []:
        for name in re.findall(r"`([^`]+)`", row):
            if not (any(folder.glob(name)) or (folder / f"{name}.h").exists()):
                problems.append(f"{readme}: there is no {name}")


blocks = 0
for path in sorted(p for p in root.glob("**/README.md") if not {".tessera", ".git"} & set(p.parts) and not p.relative_to(root).parts[0].startswith("build")):
    readme, text = path.relative_to(root), path.read_text()
    for kind, what, block in re.findall(r"<!-- (verbatim|printed by): (.+?) -->\n```\w*\n(.*?)```\n", text, re.S):
        (check_verbatim if kind == "verbatim" else check_printed)(readme, what, block)
        blocks += 1
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        if not (path.parent / link).exists():
            problems.append(f"{readme}: the link {link} leads nowhere")
    check_names(readme, path.parent, text)

if blocks == 0:
    problems.append("no README has a block that is checked")
sys.exit("\n".join(problems) or None)
