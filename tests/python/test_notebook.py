"""examples/notebook.py over small notebooks: what it writes, compares, leaves out and refuses."""
import subprocess
import sys
from pathlib import Path

import pytest

_runner = Path(__file__).resolve().parents[2] / "examples" / "notebook.py"


@pytest.fixture
def notebook(tmp_path):
    """Runs a text: the exit status, what it says, and the file after that."""
    def run(text, *arguments):
        file = tmp_path / "page.md"
        file.write_text(text)
        done = subprocess.run([sys.executable, str(_runner), str(file), *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, file.read_text()
    return run


def cell(code, printed=None, info="text", needs=""):
    below = "" if printed is None else f"```{info}\n{printed}```\n"
    return f"{needs}```python\n{code}```\n{below}"


def test_outputs_are_written_below_their_cells(notebook):
    page = "# Page\n\n{}\nWords.\n\n{}\n{}".format(cell("x = 2\n", "old\n"), cell("print(x)\n"), cell("print('a')\n", "old\n", "text varies"))
    status, said, written = notebook(page)
    assert status == 0, said
    wanted = "# Page\n\n{}\nWords.\n\n{}\n{}".format(cell("x = 2\n"), cell("print(x)\n", "2\n"), cell("print('a')\n", "a\n", "text varies"))
    assert written == wanted
    assert notebook(written)[2] == written and notebook(written, "--check")[0] == 0


@pytest.mark.parametrize("printed, stated, info, same", [
    ("8 heads,   1.52 ms", "8 heads, 10.99 ms", "text", True), ("error 1.5e-07", "error 2.25", "text", True), ("8 heads", "9 heads", "text", False),
    ("8 heads", "9 heads", "text varies", True), ("-0.5", "0.5", "text", False), ("a", "", "text", False), ("", "a", "text", False)])
def test_what_is_compared(notebook, printed, stated, info, same):
    page = cell(f"print({printed!r})\n" if printed else "pass\n", stated + "\n" if stated else "", info)
    status, said, after = notebook(page, "--check")
    assert after == page and (status == 0) == same, said
    if not same:
        assert "page.md:1: this cell prints\n" in said and "error[notebook.differs]: 1 cells print something else" in said


def test_cells_that_need_what_is_not_here(notebook):
    page = cell("import not_there\n", "1\n", needs="<!-- needs: sys not_there -->\n") + cell("print(2)\n", "2\n", needs="<!-- needs: sys -->\n")
    status, said, _ = notebook(page, "--check")
    assert status == 0 and "skipped: page.md:2: there is no not_there" in said
    status, said, after = notebook(page)
    assert status == 1 and after == page
    assert "error[notebook.needs]: page.md:2: this cell needs not_there, which is not here; ./tessera notebook fetches it" in said


def test_errors_name_the_line_of_the_page(notebook):
    status, said, after = notebook("Words.\n\n" + cell("x = 1\nx.lost\n"))
    assert status == 1 and 'page.md", line 5' in said and "x.lost" in said and "lost" in after


def test_pictures_and_the_minute(notebook, tmp_path):
    page = cell("open('notebook/a.svg', 'w').write('<svg/>')\nprint(minute)\n")
    assert notebook(page, "--minute", "3")[2] == cell("open('notebook/a.svg', 'w').write('<svg/>')\nprint(minute)\n", "3.0\n")
    assert (tmp_path / "notebook" / "a.svg").read_text() == "<svg/>"
