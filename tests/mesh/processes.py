"""Ranks in processes of their own, over an engine: equal bits for 1, 2, 4 and 8 ranks, and what the others do when one is killed, stopped,
slow, closed or runs another program. Run with the engine's name, the program test_mesh_rank_<engine>, and mpirun for MPI."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT = 400  # ms
OPERATIONS = 12
FEW = {"gloo": (0, 1, 2, 5, 9), "mpi": (0, 3)}


class World:
    """The processes of one run."""

    def __init__(self, engine, program, mpirun, ranks, culprit, at, way, timeout=TIMEOUT):
        self.folder = tempfile.mkdtemp(prefix="mesh")
        self.ranks = ranks

        def words(rank):
            return [program, engine, self.folder, str(rank), str(ranks), str(OPERATIONS), str(culprit), str(at), way, str(timeout)]
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        if engine == "mpi":
            command = [mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--enable-recovery", "-n", str(ranks)]
            self.processes = [subprocess.Popen(command + words(0), **quiet)]
        else:
            self.processes = [subprocess.Popen(words(r), **quiet) for r in range(ranks)]

    def lines(self, wanted, limit):
        """What these ranks left, once they all have; None for one that did not within `limit` seconds."""
        end = time.monotonic() + limit
        left = {}
        while len(left) < len(wanted) and time.monotonic() < end:
            for rank in wanted:
                path = os.path.join(self.folder, f"out.{rank}")
                if rank not in left and os.path.exists(path):
                    left[rank] = open(path).read().split()
            time.sleep(0.005)
        return [left.get(rank) for rank in wanted]

    def end(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def exits(self, which, limit):
        """Whether these processes end by themselves."""
        for i in which:
            try:
                self.processes[i].wait(limit)
            except subprocess.TimeoutExpired:
                return False
        return True


def failures(engine, program, mpirun, ranks, at, way):
    culprit = ranks - 1
    world = World(engine, program, mpirun, ranks, culprit, at, way)
    problems = []
    try:
        others = list(range(ranks - 1))
        for rank, line in zip(others, world.lines(others, 20)):
            if line is None:
                problems.append(f"rank {rank} did not return; exit codes {[process.poll() for process in world.processes]}")
                continue
            kind, operation, got, took, again = line[0], int(line[1]), int(line[2]), float(line[3]), line[4]
            if way == "slow":
                if kind != "ok":
                    problems.append(f"rank {rank}: {line}")
                continue
            # Over MPI nobody hears of a death; Gloo closes connections.
            allowed = {"other": ("mesh-order", "mesh-lost"), "stop": ("mesh-late", "mesh-lost")}.get(way, ("mesh-lost", "mesh-late"))
            if kind not in allowed or again != "mesh-broken" or (ranks == 2 and got != culprit):
                problems.append(f"rank {rank}: {line}")
            if engine == "gloo" and way in ("kill", "close") and ranks == 2 and kind != "mesh-lost":
                problems.append(f"rank {rank} was not told: {line}")
            if ranks == 2 and way == "other" and kind != "mesh-order":
                problems.append(f"rank {rank}: {line}")
            if way != "other" and not at <= operation <= at + 1:
                problems.append(f"rank {rank} failed in another operation: {line}")
            if took > TIMEOUT + 100:
                problems.append(f"rank {rank} took {took} ms")
        if engine == "gloo" and not problems and not world.exits(others, 10):
            problems.append("a process did not end")
    finally:
        world.end()
    return problems


def hashes(engine, program, mpirun, ranks):
    world = World(engine, program, mpirun, ranks, -1, -1, "none", 20000)
    try:
        lines = world.lines(list(range(ranks)), 30)
        if not world.exits(range(len(world.processes)), 20):
            return {"a process that does not end"}
        return {line[5] if line and line[0] == "ok" else str(line) for line in lines}
    finally:
        world.end()


def main(engine, program, mpirun=None):
    problems = []
    bits = [hashes(engine, program, mpirun, ranks) for ranks in (1, 2, 4, 8)]
    if len(set.union(*bits)) != 1:
        problems.append(f"bits differ between numbers of ranks: {bits}")
    cases = [(2, at, way) for at in FEW[engine] for way in ("kill", "stop", "slow", "close")] + [(2, 0, "other"), (4, 3, "kill"), (4, 3, "stop")]
    for ranks, at, way in cases:
        found = failures(engine, program, mpirun, ranks, at, way)
        if found and any("took" in problem for problem in found):  # another program may have had the processor
            found = failures(engine, program, mpirun, ranks, at, way)
        problems += [f"{ranks} ranks, {way} at {at}: {problem}" for problem in found]
    for problem in problems:
        print(problem)
    print(f"{engine}: 4 meshes and {len(cases)} failures: " + ("as it should be" if not problems else f"{len(problems)} problems"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
