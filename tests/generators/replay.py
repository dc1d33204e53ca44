"""Bundles from beginning to end: generate, bundle make, replay, and a C program that loads one.

    replay.py <generator> <bundle_app> <C compiler> <checkout> <scratch folder> <libtessera_runtime.a> [-- <emulator> <replay_bundle for arm64>]

A kernel of a bundle and the same one linked give equal bytes; a record is equal for every target that runs here, and for arm64 under the
emulator; a record or code that was changed is not.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

words, _, foreign = " ".join(sys.argv[1:]).partition(" -- ")
generator, bundle_app, compiler, checkout, scratch, runtime = words.split(" ")
emulator = foreign.split(" ") if foreign else []
K, N, ROWS = 32, 48, 19
scratch = Path(scratch)
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
os.chdir(scratch)


def run(*arguments, code=0, binary=False):
    done = subprocess.run([str(a) for a in arguments], capture_output=True)
    said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    assert done.returncode == code, f"{' '.join(map(str, arguments))}: exit {done.returncode}, expected {code}\n{said}"
    return done.stdout if binary else said


def says(text, *parts):
    for part in parts:
        assert part in text, f"expected {part!r} in\n{text}"


def safetensors(path, tensors):
    header, data, at = {}, b"", 0
    for name, (shape, values) in tensors.items():
        bytes_ = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(bytes_)]}
        data, at = data + bytes_, at + len(bytes_)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


targets = "avx2,avx512" if "avx2" in Path("/proc/cpuinfo").read_text() else "arm64"
for target in (targets, *(["arm64"] if emulator and targets != "arm64" else [])):
    run(generator, "generate", "--kernel", f"up=linear:N={N},K={K}", "--kernel", "plain=softmax:N=33", "--name", "layer", "--target", target, "--quiet",
        "--out", f"made/{target}")
weights = {"w": ([K, N], [(i % 23) / 22 - 0.5 for i in range(K * N)]), "b": ([N], [float(i % 5) for i in range(N)])}
safetensors(scratch / "weights.safetensors", weights)
folders = [word for folder in sorted(Path("made").iterdir()) for word in ("--from", folder)]
make = [generator, "bundle", "make"]
run(*make, "plain.tess", *folders, "--weights", "weights.safetensors")

# Nothing is recorded; then it is, and is equal.
says(run(generator, "replay", "plain.tess", code=2), "error[bundle.replay]: file 'plain.tess': expected a record of runs in it, got none.")
says(run(generator, "replay", "plain.tess", "--record", "record", code=2), "error[record.extent]: kernel 'up': expected extents of its dims that are not fixed",
     "Add --extents M=…")
says(run(generator, "replay", "plain.tess", "--record", "record", "--extents", "M=5", "--kernel", "none", code=2),
     "error[record.kernel]: --kernel none: the bundle has no such kernel; it has up, plain")
says(run(generator, "replay", "plain.tess", "--record", "record", "--extents", f"M={ROWS}", "Q=1", code=2), "error[record.extent]: --extents Q: no kernel")
says(run(generator, "replay", "plain.tess", "--record", "record", "--extents", f"M={ROWS}", "--seed", "7"), "recorded 2 runs for ")
again = run(generator, "replay", "plain.tess", "--record", "again", "--extents", f"M={ROWS}", "--seed", "7", "--threads", "3")
assert Path("record/expected.json").read_bytes() == Path("again/expected.json").read_bytes(), "a record depends on threads"
run(*make, "layer.tess", *folders, "--weights", "weights.safetensors", "--replay", "record")
run(generator, "bundle", "check", "layer.tess")
said = run(generator, "replay", "layer.tess")
says(said, "outputs equal, 0 different\n")
result = json.loads(run(generator, "replay", "layer.tess", "--json"))
assert result["outputs"] and all(o["outcome"] == "equal" for o in result["outputs"]), result
if emulator and targets != "arm64":
    says(said, "arm64: not run, as this processor cannot\n")
    says(run(generator, "replay", "layer.tess", "--target", "arm64", code=2), "error[replay.target]: --target arm64: this processor does not run it.")
    # Bits of x86's order of operations may be arm64's or not; what is recorded of the same is equal.
    there = run(*emulator, "plain.tess", code=2)
    says(there, "no-such: bundle 'plain': expected a record of runs, got none")
    done = subprocess.run([*emulator, "layer.tess"], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "different" not in done.stdout and "arm64: run 0, up." in done.stdout, done.stdout
says(run(generator, "replay", "layer.tess", "--target", "nothing", code=2), "error[replay.target]: --target nothing: the bundle has no such target")

# Seeds have 64 bits; those that JSON's readers may not have as numbers are texts.
for seed, stored in ((2**62, 2**62), (2**62 + 1, str(2**62 + 1)), (2**64 - 1, str(2**64 - 1))):
    run(generator, "replay", "plain.tess", "--record", "seeded", "--extents", f"M={ROWS}", "--seed", str(seed))
    text = Path("seeded/expected.json").read_text()
    assert {i["seed"] for r in json.loads(text)["runs"] for i in r["inputs"]} == {stored}, text
    run(*make, "seeded.tess", *folders, "--weights", "weights.safetensors", "--replay", "seeded")
    says(run(generator, "replay", "seeded.tess"), "outputs equal, 0 different\n")
run(generator, "replay", "plain.tess", "--record", "seeded", "--extents", f"M={ROWS}", "--seed", str(2**64), code=2)
for seed in ("", "x", "-1", str(2**64), " 7"):
    Path("seeded/expected.json").write_text(text.replace(f'"{2**64 - 1}"', json.dumps(seed)))
    says(run(*make, "wrong.tess", *folders, "--weights", "weights.safetensors", "--replay", "seeded", code=2), "error[replay.run]", "an integer of 64 bits")

# A signature may be demanded.
subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "a.key"], check=True)
subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "b.key"], check=True)
for key in "ab":
    subprocess.run(["openssl", "pkey", "-in", f"{key}.key", "-pubout", "-out", f"{key}.pub"], check=True)
run(*make, "signed.tess", *folders, "--weights", "weights.safetensors", "--replay", "record", "--key", "a.key")
says(run(generator, "replay", "signed.tess", "--public-key", "a.pub"), "outputs equal, 0 different\n")
run(generator, "replay", "signed.tess", "--public-key", "a.pub", "--record", "again", "--extents", f"M={ROWS}")
for words in (["signed.tess", "--public-key", "b.pub"], ["layer.tess", "--public-key", "a.pub"],
              ["signed.tess", "--public-key", "b.pub", "--record", "again", "--extents", f"M={ROWS}"]):
    says(run(generator, "replay", *words, code=2), "error[bundle.signature]")

# Another hash is another result.
record = json.loads(Path("record/expected.json").read_text())
for output in record["runs"][0]["outputs"]:
    output["sha256"] = "sha256:" + "0" * 64
Path("again/expected.json").write_text(json.dumps(record))
run(*make, "wrong.tess", *folders, "--weights", "weights.safetensors", "--replay", "again")
says(run(generator, "replay", "wrong.tess", code=1), "run 0, up.", "expected sha256:" + "0" * 64 + ", got sha256:")
# A bundle that was changed is refused, and nothing of it runs.
damaged = bytearray(Path("layer.tess").read_bytes())
at = damaged.rfind(b"!<arch>")  # the one that runs here
damaged[at + 3000] ^= 1
Path("damaged.tess").write_bytes(damaged)
says(run(generator, "replay", "damaged.tess", code=2), "error[bundle.hash]: member 'code/", "expected the bytes that the manifest hashed, got others")

# By the bundle and by linking: equal bytes.
flags = ["-std=gnu11", "-O1", f"-I{checkout}/runtime/abi"]
folder = Path("made") / targets
Path("linked.c").write_text(f"""
#include "{folder.absolute()}/layer.h"
#include <stdio.h>
#include <stdlib.h>
static float x[{ROWS * K}], w[{K * N}], b[{N}], y[{ROWS * N}];
static _Alignas(64) char workspace[1 << 20];
int main(void) {{
    const int64_t xs[] = {{{ROWS}, {K}}}, ws[] = {{{K}, {N}}}, bs[] = {{{N}}}, ys[] = {{{ROWS}, {N}}};
    const TessTensor xt = tess_dense(x, TESS_F32, 2, xs), wt = tess_dense(w, TESS_F32, 2, ws), bt = tess_dense(b, TESS_F32, 1, bs), yt = tess_dense(y, TESS_F32, 2, ys);
    TessContext context = tess_context();
    context.workspace = workspace;
    context.workspace_bytes = sizeof workspace;
    for (int i = 0; i < {ROWS * K}; i++) x[i] = (float)(i % 17) / 16 - 0.5f;
    for (int i = 0; i < {K * N}; i++) w[i] = (float)((i % 23) / 22.0 - 0.5);
    for (int i = 0; i < {N}; i++) b[i] = (float)(i % 5);
    if (up(&xt, &wt, &bt, &yt, &context)) return 1;
    return fwrite(y, sizeof y, 1, stdout) != 1;
}}
""")
run(compiler, *flags, "linked.c", folder / "liblayer.a", runtime, "-lpthread", "-lm", "-o", "linked")
by_bundle, by_linking = run(bundle_app, "plain.tess", "up", ROWS, binary=True), run("./linked", binary=True)
assert len(by_bundle) == 4 * ROWS * N and by_bundle == by_linking, "a kernel of a bundle gives other bytes than a linked one"
says(run(bundle_app, "damaged.tess", "up", ROWS, code=1), "bundle-hash: member 'code/")
print(said, end="")
