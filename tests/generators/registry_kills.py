"""Processes that add to one registry are killed at random moments, then several add at once. Run with the generator; a second argument is how
many are killed. Whenever one was killed the folder verifies; afterwards it has what was added, and prunes to what is named."""
import os
import random
import subprocess
import sys
import tempfile
import time

GENERATOR = sys.argv[1]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20


def run(*words, code=0):
    done = subprocess.run([GENERATOR, *words], capture_output=True, text=True)
    assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def main():
    random.seed(20261127)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number in range(6):
            file = os.path.join(folder, f"records{number}.db")
            with open(file, "wb") as stream:
                stream.write(random.randbytes(3_000_000))
            files.append(file)
        registry = os.path.join(folder, "registry")

        begin = time.monotonic()
        run("registry", "add", os.path.join(folder, "whole"), files[0])
        whole = time.monotonic() - begin
        killed = 0
        for number in range(KILLS):
            child = subprocess.Popen([GENERATOR, "registry", "add", registry, files[number % len(files)], "--name", f"killed:{number}"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, whole))
            child.kill()
            killed += child.wait() != 0
            if os.path.exists(os.path.join(registry, "oci-layout")):
                run("registry", "verify", registry)
        assert killed > 0, "no process was killed before it ended"

        children = [subprocess.Popen([GENERATOR, "registry", "add", registry, file, "--name", f"kept:{number}"], stdout=subprocess.DEVNULL)
                    for number, file in enumerate(files)]
        assert all(child.wait() == 0 for child in children), "an add failed beside others"
        run("registry", "prune", registry)
        run("registry", "verify", registry)
        listed = run("registry", "list", registry)
        for number, file in enumerate(files):
            assert f"kept:{number} " in listed, listed
            out = os.path.join(folder, "out")
            run("registry", "get", registry, f"kept:{number}", "--out", out)
            assert open(out, "rb").read() == open(file, "rb").read(), f"kept:{number} comes out with other bytes"
        names = [line.split()[0] for line in listed.splitlines()]
        run("registry", "prune", registry, *names)
        left = os.listdir(os.path.join(registry, "blobs/sha256"))
        assert not left, f"blobs that nothing names are left: {left}"
        print(f"{killed} of {KILLS} processes were killed; {len(names)} names were kept and pruned")


main()
