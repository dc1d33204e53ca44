#!/bin/sh
# run.sh <python> <onnx_nodes> <folder> [<script>]: writes the tests of a script of this folder, ONNX's own by collect.py, into the folder where they
# are not there yet, and runs them. Those that onnxruntime makes pass without exception.
set -eu
here=$(dirname "$0")
made="$3/made-by"
script=${4:-collect.py}
expected=$here/expected.txt
[ "$script" = collect.py ] || expected=/dev/null
if [ ! -x "$1" ] && ! command -v "$1" >/dev/null; then
    echo "skipped: not installed: $1, ./tessera test fetches it"
    exit 0
fi
if ! cmp -s "$here/$script" "$made"; then
    rm -rf "$3"
    mkdir -p "$3"
    "$1" "$here/$script" "$3"
    cp "$here/$script" "$made"
fi
exec "$2" "$3" "$expected"
