#!/usr/bin/env python3
"""Campaigns whose processes are killed: kills.py <generator> [kills] [seed]

Kills, at random moments, the tuner or any process that it started, and goes on with --resume. After every kill: what was recorded
stays as it was, no trial is lost or there twice, the database is whole, and of a killed tuner no process remains. When a campaign is
through: another --resume finds the same winner and measures nothing, and a campaign of which only the tuner was killed is, trial
by trial, the one that nobody disturbed. Times are made up from the hash of each program, so that they are the same again."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

RUNNER = r'''
import hashlib, subprocess, sys
pace = 1 + int(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()[:8], 16) % 4096 / 4096
program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ask, answer = sys.stdin.buffer, sys.stdout.buffer
while line := ask.readline():
    words = line.split()
    if words[0] == b"time":
        answer.write(b"took %.9g %.9g\n" % (int(words[1]) * 1e-4 / pace, int(words[2]) * 1e-4))
        answer.flush()
        continue
    program.stdin.write(line)
    if words[0] == b"tensor": program.stdin.write(ask.read(int(words[2])))
    program.stdin.flush()
    if words[0] not in (b"protocol", b"run", b"place", b"read", b"packed"): continue
    head = program.stdout.readline()
    said = head.split()
    if words[0] == b"run": head = b"ran %s 1e-4 %s\n" % (said[1], said[3])
    answer.write(head)
    if said[0] == b"part": answer.write(program.stdout.read(int(said[1])))
    answer.flush()
'''
TRIALS = 40 if len(sys.argv) > 2 else 10


def processes(mark):
    """The numbers of all processes that have the mark in their environment."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in open(f"/proc/{name}/environ", "rb").read():
                found.append(int(name))
        except OSError:
            pass
    return found


class Tuner:
    def __init__(self, generator, folder, seed):
        self.mark = f"TESSERA_KILLS={os.path.basename(folder)}"
        self.database = os.path.join(folder, "tune.db")
        runner = os.path.join(folder, "runner.py")
        open(runner, "w").write(RUNNER)
        # Two decisions are given, so that candidates are small.
        self.command = [generator, "tune", "matmul", "--target", "x86-64", "--shape", "M=24", "N=32", "K=16", "--schedule", "none",
                        "--trials", str(TRIALS), "--batch", "4", "--population", "24", "--model", "none", "--measure-s", "0.01", "--jobs", "2",
                        "--runner", f"{sys.executable} {runner}", "--records", self.database, "--out", os.path.join(folder, "out"),
                        "--resume", "--json", "--quiet", "--seed", str(seed)]
        self.environment = dict(os.environ, **dict([self.mark.split("=")]), TMPDIR=folder)

    def start(self):
        return subprocess.Popen(self.command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def finish(self):
        run = self.start()
        out, err = run.communicate()
        assert run.returncode == 0, err
        return json.loads(out)

    def rows(self):
        if not os.path.exists(self.database): return {}
        with sqlite3.connect(self.database) as db:
            assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            if not db.execute("select 1 from sqlite_schema where name = 'trial'").fetchone(): return {}
            assert db.execute("select count(*) from campaign").fetchone()[0] <= 1, "one campaign goes on"
            return {row[1]: row for row in db.execute("select * from trial")}


def disturbed(generator, folder, seed, chance, only_tuner, kills):
    """One campaign to its end, with at most so many kills: how many there were, and what came of it."""
    tuner, before, done, refusals = Tuner(generator, folder, seed), {}, 0, 0
    while True:
        run = tuner.start()
        try:
            out, err = run.communicate(timeout=chance.uniform(0, 3) if done < kills else None)
            assert run.returncode == 0 or (not only_tuner and done), err
            if run.returncode == 0: return done, tuner, json.loads(out)
            victim, refusals = run.pid, refusals + 1  # what it started was killed under it before it could begin
            assert refusals <= done, err
        except subprocess.TimeoutExpired:
            others = [p for p in processes(tuner.mark) if p != run.pid]
            victim = run.pid if only_tuner or not others or chance.random() < 0.5 else chance.choice(others)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            done += 1
            if victim != run.pid:
                time.sleep(chance.uniform(0, 1))
                if run.poll() is None: run.kill()
            run.communicate()
        for _ in range(100):
            left = processes(tuner.mark)
            if not left: break
            time.sleep(0.1)
        assert not left or victim != run.pid, f"of a killed tuner these remain: {left}"
        for process in left: os.kill(process, signal.SIGKILL)
        after = tuner.rows()
        for number, row in before.items(): assert after.get(number) == row, f"trial {number} was lost or changed"
        before = after


def main():
    generator, kills, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    chance = random.Random(seed)
    done = campaigns = 0
    while done < kills:
        only_tuner = campaigns % 2 == 0
        with tempfile.TemporaryDirectory() as folder:
            n, tuner, result = disturbed(generator, folder, campaigns + 1, chance, only_tuner, min(25, kills - done))
            done += n
            rows = tuner.rows()
            assert sorted(rows) == list(range(len(result["trials"]))), "every trial is there once"
            again = tuner.finish()
            assert tuner.rows() == rows, "a finished campaign measures nothing"
            best = lambda r: max(r["trials"], key=lambda t: (t["ratio"], -t["number"]))["number"]
            assert again["trials"] == result["trials"] and best(again) == best(result) and again["ratio"] == result["ratio"], "the same winner"
        if only_tuner:
            with tempfile.TemporaryDirectory() as folder:
                calm = Tuner(generator, folder, campaigns + 1).finish()
                assert calm["trials"] == result["trials"] and calm["ratio"] == result["ratio"], "as if nobody had disturbed it"
        campaigns += 1
        print(f"{done} of {kills} kills, {campaigns} campaigns", flush=True)


main()
