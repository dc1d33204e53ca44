#!/usr/bin/env python3
"""What the generator writes of every algorithm that ships is a document by the schema, and is read as what it was; what is broken is not.
Usage: algorithm_schema.py <generator> <schema>. Ends with 77 where the package jsonschema is missing."""
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("skipped: the package jsonschema is not installed")
    sys.exit(77)

generator, schema = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)


def output(*words):
    return subprocess.run([generator, *words], check=True, capture_output=True, text=True).stdout


def broken(document):
    """The document with one mistake each."""
    for field in list(document):
        if field in ("format", "version", "name", "steps", "outputs"):
            yield {name: value for name, value in document.items() if name != field}
        yield {**document, field: 1.5}
    yield {**document, "setps": []}
    for i, step in enumerate(document["steps"]):
        for change in ({"map": ["nosuch", 1]}, {"dims": "M", "call": None}, {"axis": 1}):
            wrong = copy.deepcopy(document)
            wrong["steps"][i] = {**step, **change}
            yield wrong


failures = []
names = [a["name"] for a in json.loads(output("list", "--json"))["algorithms"]]
with tempfile.TemporaryDirectory() as folder:
    for name in names:
        text = output("show", name, "--json")
        document = json.loads(text)
        failures += [f"{name}: {list(e.path)}: {e.message[:200]}" for e in validator.iter_errors(document)]
        file = Path(folder) / f"{name}.json"
        file.write_text(text)
        if json.loads(output("show", str(file), "--json")) != document:
            failures.append(f"{name}: it is read as something else")
        failures += [f"{name}: the schema accepts {json.dumps(wrong)[:200]}" for wrong in broken(document) if validator.is_valid(wrong)]
if len(names) < 50:
    failures.append(f"expected all algorithms that ship, got {len(names)}")
print("\n".join(failures) or f"{len(names)} algorithms")
sys.exit(bool(failures))
