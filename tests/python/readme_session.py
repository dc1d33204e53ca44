"""Runs the session of python/README.md, which the argument names, with x, w and b in it, and compares its result with NumPy's."""
import sys
import textwrap
from pathlib import Path

import numpy as np

block = Path(sys.argv[1]).read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
rng = np.random.default_rng(7)
names = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (512, 384)), ("w", (384, 1536)), ("b", (1536,)))}
exec(compile(textwrap.dedent(block), sys.argv[1], "exec"), names)

z = names["x"] @ names["w"] + names["b"]
np.testing.assert_allclose(names["y"], z / (1 + np.exp(-z)), rtol=1e-3, atol=1e-3)
np.testing.assert_allclose(names["tuned"](names["x"], names["w"], names["b"]), names["y"], rtol=1e-3, atol=1e-3)
