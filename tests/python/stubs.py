"""The checked-in stubs of tessera._core beside those of the module as it is built: stubs.py [--accept]. --accept writes them."""
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

import tessera

checked_in = Path(__file__).parents[2] / "python" / "tessera" / "_core"
patterns = checked_in.parents[1] / "core" / "stubs.txt"
command = [sys.executable, "-m", "nanobind.stubgen", "--quiet", "--recursive", "--pattern-file", str(patterns), "--module", tessera._core.__name__, "--output-dir"]
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([*command, folder], check=True)
    made = {f.name: f.read_text(encoding="utf-8") for f in Path(folder).rglob("*.pyi")}
if sys.argv[1:] == ["--accept"]:
    checked_in.mkdir(exist_ok=True)
    for name, text in made.items():
        (checked_in / name).write_text(text, encoding="utf-8")
kept = {f.name: f.read_text(encoding="utf-8") for f in checked_in.glob("*.pyi")}
differences = [line for name in sorted({*made, *kept})
               for line in difflib.unified_diff(kept.get(name, "").splitlines(), made.get(name, "").splitlines(), f"kept/{name}", f"made/{name}", lineterm="")]
if differences:
    sys.exit("\n".join([*differences, "error: these are not the module's; write them with tests/python/stubs.py --accept"]))
