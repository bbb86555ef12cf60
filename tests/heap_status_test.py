#!/usr/bin/env python3
"""assay heap and record of a command: what is on standard output, and what the exit status says.

usage: heap_status_test.py ASSAY
Exits 77 (skipped), saying why, where the heap sampler cannot be loaded into a command.
"""

import json
import os
import subprocess
import sys
import tempfile

from outside import check, outcome, run

# Leaks or not; small enough to be fast, long enough to measure growth.
PROGRAM = """
import os, sys, time
print("words of the command", flush=True)
kept, end = [], time.monotonic() + 1.5
while time.monotonic() < end:
    block = bytearray(100_000)
    if sys.argv[1] == "leak":
        kept.append(block)
    time.sleep(0.002)
os._exit(int(sys.argv[2]))  # nothing is freed at the end
"""


def heap(directory, *words, kind="steady", status=0):
    return run("heap", "--rate", "16k", "--overwrite", "-o", os.path.join(directory, "heap.assay"), *words, "--",
               sys.executable, "-c", PROGRAM, kind, str(status))


def leaks(directory, kind, status, *more):
    """A machine that stands still for a quarter of the second and a half hides growth: that is tried again."""
    for _ in range(3):
        done = heap(directory, "--leaks", *more, kind=kind, status=status)
        if kind != "leak" or done.returncode == 3:
            break
    return done


def attached_to_one_that_ends(directory):
    """A program that lives for two seconds more, attached to for ten."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM.replace("1.5", "2"), "steady", "0"],
                          stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        path = os.path.join(directory, "ended.assay")
        done = run("heap", "--leaks", "--json", "--rate", "16k", "--pid", str(target.pid), "--for", "10s", "-o", path)
    if not os.path.exists(path):
        print("not tried, attaching: ", done.stderr)
        return
    check("--leaks of a target that ended cannot be told",
          done.returncode == 1 and "the target ended" in done.stderr, f"{done.returncode}\n{done.stderr}")
    window = json.loads(done.stdout)["heap"]["window_ns"] / 1e9
    check("the window ends with the target", window < 2.2, window)


def json_alone(done):
    try:
        return isinstance(json.loads(done.stdout), dict) and "words of the command" in done.stderr
    except ValueError:
        return False


def main():
    with tempfile.TemporaryDirectory() as directory:
        done = heap(directory, "--json", status=7)
        if "without having loaded the heap sampler" in done.stderr or "cannot find" in done.stderr:
            print("skipped:", done.stderr)
            return 77
        check("JSON alone is on standard output", json_alone(done), done.stdout[:200] + done.stderr)
        check("the command's status is passed on", done.returncode == 7, done.returncode)
        done = heap(directory)
        check("without --json the command prints where it likes", "words of the command" in done.stdout, done.stdout)
        for kind, status, want in (("leak", 0, 3), ("leak", 7, 3), ("steady", 0, 0), ("steady", 7, 4), ("steady", 3, 4)):
            done = leaks(directory, kind, status)
            check(f"--leaks of a {kind} command with status {status}", done.returncode == want,
                  f"{done.returncode}\n{done.stdout}{done.stderr}")
            check("the command's own status is said", status == 0 or f"exit status {status}" in done.stderr, done.stderr)
        done = leaks(directory, "leak", 0, "--quiet")
        check("--quiet keeps the answer", done.returncode == 3 and done.stderr == "", done.stderr)
        attached_to_one_that_ends(directory)
        done = run("stat", "--json", "--no-syscalls", "--", "echo", "words of the command")
        check("stat: JSON alone", json_alone(done), done.stdout + done.stderr)
    return outcome()


if __name__ == "__main__":
    sys.exit(main())
