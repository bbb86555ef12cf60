#!/usr/bin/env python3
"""Another tool's capture goes through assay export as it does through import and export, and leaves nothing behind.

usage: export_capture_test.py ASSAY GOLDEN_DIR
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from outside import ASSAY, check, outcome, run  # noqa: E402

GOLDEN = sys.argv[2]


def same_as_in_two_steps(directory, name, *words):
    source = os.path.join(GOLDEN, name)
    path = os.path.join(directory, "run.assay")
    run("import", source, "-o", path, "--overwrite")
    want = run("export", path, *words)
    got = run("export", source, *words)
    check(f"{name} {' '.join(words)}", got.returncode == want.returncode == 0 and got.stdout == want.stdout != "",
          got.stderr + want.stderr)
    return got


def refused(what, source, *wanted):
    done = run("export", source, "--format", "folded")
    check(what, done.returncode == 1 and done.stdout == "" and all(text in done.stderr for text in wanted), done.stderr)


def main():
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as temporary:
        os.environ["TMPDIR"] = temporary
        for name in ("perf_fp.data", "perf_dwarf.data", "perf_script.txt", "go_cpu.pb.gz", "gperftools.cpu"):
            same_as_in_two_steps(directory, name, "--format", "folded")
        waits = same_as_in_two_steps(directory, "go_block.pb.gz", "--format", "folded", "--metric", "off")
        check("what a format cannot show is not said to be missing", waits.stderr == "", waits.stderr)
        noted = same_as_in_two_steps(directory, "stacks.folded", "--format", "speedscope")
        for text in ("counts samples", "--as off", "sums without times"):
            check(f"the import's notes are shown: {text}", text in noted.stderr, noted.stderr)
        with open(os.path.join(GOLDEN, "perf_fp.data"), "rb") as file:
            piped = subprocess.run([ASSAY, "export", "-", "--format", "csv"], stdin=file, capture_output=True, timeout=60)
        check("from standard input", piped.returncode == 0 and piped.stdout.count(b"\n") > 3, piped.stderr)
        svg = os.path.join(directory, "x.svg")
        check("a flame graph", run("export", os.path.join(GOLDEN, "perf_fp.data"), "-o", svg).returncode == 0)
        check("it is one", open(svg).read().startswith("<?xml") or "<svg" in open(svg).read(2000))
        refused("what is not there", os.path.join(directory, "none"), "cannot open")
        refused("what is no profile", os.path.join(GOLDEN, "README.md"), "no format that Assay reads", "offset 0")
        broken = os.path.join(directory, "broken.folded")
        open(broken, "w").write("a;b 1\nnonsense\n")
        refused("what is malformed", broken, "broken.folded", "at offset 6")
        check("nothing is left behind", os.listdir(temporary) == [], os.listdir(temporary))
    return outcome()


if __name__ == "__main__":
    sys.exit(main())
