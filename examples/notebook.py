"""Runs the Python of a Markdown file, as of a notebook: cells in order, in one process and one namespace.

    notebook.py notebook.md             # writes what cells print below them, and their pictures
    notebook.py notebook.md --check     # compares instead, and writes nothing

A cell is a block ```python. What it prints stands right below it in a block ```text; a number with a decimal point is the machine's and is not
compared, and nothing of a block ```text varies is. A cell after a line <!-- needs: torch --> is left out by --check where that module is not
here. Cells run in a folder of their own; what they write to its folder `notebook` is kept beside the file, and `minute` is what --minute says.
"""
import argparse
import contextlib
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

CELL = re.compile(r"^(?:<!-- needs: (?P<needs>[^\n]*) -->\n)?```python\n(?P<code>.*?)^```\n(?:```text(?P<varies> varies)?\n(?P<output>.*?)^```\n)?",
                  re.M | re.S)


def comparable(text):
    """What is the same on every machine: without numbers that have a decimal point, and the spaces that align them."""
    return [re.sub(r" +", " ", re.sub(r"\d+\.\d+(e[-+]?\d+)?", "#", line)) for line in text.splitlines()]


def without(needs):
    return [module for module in (needs or "").split() if importlib.util.find_spec(module) is None]


def run(file, code, line, names):
    """What the cell prints. Errors show the lines of the Markdown file."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, file, "exec"), names)
    text = printed.getvalue()
    return text if text.endswith("\n") or not text else text + "\n"


def run_all(file, check, minute):
    """The text with what was printed, and what differs from the file, a message each."""
    text = file.read_text(encoding="utf-8")
    names, made, differences, end = {"__name__": "__main__", "minute": minute}, "", [], 0
    for cell in CELL.finditer(text):
        line = text.count("\n", 0, cell.start("code"))
        missing = without(cell["needs"])
        if missing and not check:
            sys.exit(f"error[notebook.needs]: {file.name}:{line}: this cell needs {', '.join(missing)}, which is not here; ./tessera notebook fetches it")
        made += text[end:cell.start()]
        end = cell.end()
        if missing:
            print(f"skipped: {file.name}:{line}: there is no {', '.join(missing)}")
            made += cell[0]
            continue
        printed, said = run(str(file), cell["code"], line, names), cell["output"] or ""
        if not cell["varies"] and comparable(printed) != comparable(said):
            differences.append(f"{file.name}:{line}: this cell prints\n{printed}and below it stands\n{said}")
        made += cell[0][:cell.end("code") - cell.start()] + "```\n"
        if printed:
            made += f"```text{cell['varies'] or ''}\n{printed}```\n"
    return made + text[end:], differences


def main():
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("file", type=Path)
    asked.add_argument("--check", action="store_true", help="compare with what stands below the cells, and write nothing")
    asked.add_argument("--minute", type=float, default=60, metavar="SECONDS", help="how long what takes a minute may take (default: 60)")
    options = asked.parse_args()
    file, here = options.file.resolve(), Path.cwd()
    if importlib.util.find_spec("matplotlib"):
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": file.name, "figure.figsize": (6, 3.5), "figure.constrained_layout.use": True})
        os.environ["SOURCE_DATE_EPOCH"] = "0"  # no date in pictures
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        os.chdir(folder)
        pictures = Path("notebook")
        pictures.mkdir()
        text, differences = run_all(file, options.check, options.minute)
        if not options.check:
            file.write_text(text, encoding="utf-8")
            for picture in pictures.iterdir():
                (file.parent / "notebook").mkdir(exist_ok=True)
                shutil.copy(picture, file.parent / "notebook")
        elif differences:
            sys.exit("\n".join(differences) + f"error[notebook.differs]: {len(differences)} cells print something else; run it without --check to take it over")
        os.chdir(here)


if __name__ == "__main__":
    main()
