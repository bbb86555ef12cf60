"""What tests of the program from the outside share: run assay, check what it did, say how that went.

Such a test is given assay's path as its first argument, calls check() as often as it likes and ends
with sys.exit(outcome()). Nothing stops at the first failure.
"""

import subprocess
import sys

ASSAY = sys.argv[1]
_failed = []


def run(*words):
    return subprocess.run([ASSAY, *words], capture_output=True, text=True, timeout=120)


def check(what, condition, shown=""):
    if not condition:
        _failed.append(what)
        print(f"FAILED: {what}\n{shown}")


def outcome():
    """The exit status: 1 when any check failed."""
    return 1 if _failed else 0
