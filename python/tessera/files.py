"""Functions of files, where commands take an algorithm: kernels.py:linear_silu is the function linear_silu of kernels.py."""
from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from tessera.errors import CompilationError
from tessera.jit import Jit, JitFamily

_NAME = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def function_named(text: str) -> Jit | None:
    """The function that kernels.py:linear_silu names; None where the text has another form."""
    said = _NAME.fullmatch(text)
    if said is None:
        return None
    file, name = Path(said[1]), said[2]
    if not file.is_file():
        raise CompilationError("python.file", f"'{text}': there is no file {file}")
    sys.path.insert(0, str(file.resolve().parent))  # as when Python runs the file
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if isinstance(found, Jit):
        return found
    if isinstance(found, JitFamily):
        raise CompilationError("python.file", f"'{text}': {name} is a function for each value of its static arguments; give one of them a name in the "
                                              f"file, such as {name}_1 = {name}.specialised(...), and say that")
    functions = [n for n, value in vars(module).items() if isinstance(value, Jit)]
    raise CompilationError("python.file", f"'{text}': expected a function under @jit; {name} is {'none' if found is not None else 'not there'}, "
                                          f"the file has {', '.join(functions) or 'no such function'}")


def sources_below(folder: Path) -> list[Path]:
    """The files in this folder and below it of which Python has made modules."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return sorted({path for file in files if file for path in [Path(file).resolve()] if path.is_relative_to(folder)})
