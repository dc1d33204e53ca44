"""installed.py <build folder>: all that `cmake --install` copies out of the build is made by the target tessera_installed, which is what the
front door builds before it installs. Exit 77 where the build is not ninja's."""
import re
import subprocess
import sys
from pathlib import Path

build = Path(sys.argv[1]).resolve()
if not (build / "build.ninja").exists():
    sys.exit(77)
installed = re.findall(r'TYPE (?:STATIC_LIBRARY|SHARED_LIBRARY|EXECUTABLE)[^"]* FILES "([^"]+)"', (build / "cmake_install.cmake").read_text())
wanted = sorted({str(Path(file).relative_to(build)) for file in installed if Path(file).is_relative_to(build)})
made = set(subprocess.run(["ninja", "-C", str(build), "-t", "query", "tessera_installed"], check=True, capture_output=True,
                          text=True).stdout.split())
missing = [file for file in wanted if file not in made]
if not wanted or missing:
    sys.exit(f"{len(wanted)} files are installed; the target tessera_installed does not make {', '.join(missing) or 'any'}. "
             "Name their targets in cmake/TesseraInstall.cmake.")
print(f"tessera_installed makes all {len(wanted)} files")
