#!/usr/bin/env python3
"""Formats beside their peers, in one run: importing a large perf.data and drawing it, exporting to pprof.

usage: bench/formats/run.py [--assay build/release/src/assay] [--megabytes 100] [--keep DIR]

Records a perf.data of at least that size (perf record --call-graph dwarf over a busy program, several
times, until one is large enough), then times `perf script` alone against `assay import` + `assay export
-o x.svg`, and `assay export -o x.pb.gz` of a run of about a million samples. Needs perf and the right to
record. Prints a Markdown table of the times and their ratios; the medians of three.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds(command, out=subprocess.DEVNULL, times=3):
    taken = []
    for _ in range(times):
        begin = time.monotonic()
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True)
        taken.append(time.monotonic() - begin)
    return statistics.median(taken)


def record(path, megabytes):
    """A perf.data of at least so many megabytes: the copy of the stack makes it grow."""
    duration = 4
    while True:
        subprocess.run(["perf", "record", "-q", "-F", "4999", "--call-graph", "dwarf,8192", "-o", path, "--",
                        "timeout", str(duration), sys.executable, "-c",
                        "import hashlib, json\nx = list(range(2000))\n"
                        "while True: hashlib.sha256(json.dumps(x).encode()).hexdigest()"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.getsize(path) >= megabytes * 1e6 or duration > 120:
            return
        duration *= 2


def million_samples(path):
    """Folded stacks that count a million samples: many distinct, as servers have."""
    with open(path, "w") as file:
        for i in range(20000):
            file.write(f"main;serve;handler_{i % 97};parse_{i % 1009};leaf_{i} 50\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", default="build/release/src/assay")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--keep")
    options = parser.parse_args()
    directory = options.keep or tempfile.mkdtemp(prefix="assay-formats-")
    data, run = os.path.join(directory, "perf.data"), os.path.join(directory, "run.assay")
    record(data, options.megabytes)
    size = os.path.getsize(data) / 1e6
    peer = seconds(["perf", "script", "-i", data], times=1)
    ours_import = seconds([options.assay, "import", data, "-o", run, "--overwrite", "-q"])
    ours_svg = seconds([options.assay, "export", run, "-o", os.path.join(directory, "x.svg")])
    folded = os.path.join(directory, "million.folded")
    big = os.path.join(directory, "million.assay")
    million_samples(folded)
    subprocess.run([options.assay, "import", folded, "-o", big, "--overwrite", "-q"], check=True)
    pprof = seconds([options.assay, "export", big, "-o", os.path.join(directory, "x.pb.gz")])
    ours = ours_import + ours_svg
    print(f"perf.data of {size:.0f} MB; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n")
    print("| | seconds | beside perf script |\n|---|--:|--:|")
    print(f"| `perf script` alone | {peer:.2f} | 1 |")
    print(f"| `assay import` | {ours_import:.2f} | {peer / ours_import:.1f} times faster |")
    print(f"| `assay import` + `export -o x.svg` | {ours:.2f} | {peer / ours:.1f} times faster |")
    print(f"| `assay export -o x.pb.gz`, 1M samples | {pprof:.2f} | |")


main()
