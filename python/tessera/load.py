"""Libraries that `generate` wrote, called from Python without a C compiler."""
from __future__ import annotations

import os

from tessera import _core


def load(file: str | os.PathLike[str], name: str) -> _core.Function:
    """The kernel `name` of the library `file` (lib<name>.a) as a function: of its inputs and states, then its parameters. Results whose
    extents no argument tells have to be given with out=."""
    kernel = _core.Kernel(os.fspath(file), name)
    function = _core.Function(name, kernel.inputs, kernel.outputs, None, None, {})
    function.add_kernel(kernel)
    return function
