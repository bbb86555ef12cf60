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
import resource
import subprocess
import sys
import tempfile
import time


class Cost:
    """Wall and CPU seconds of a command: the second says more on a busy machine."""

    def __init__(self, wall, cpu):
        self.wall, self.cpu = wall, cpu

    def __add__(self, other):
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


def cost_of(command, times=3):
    costs = []
    for _ in range(times):
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(Cost(time.monotonic() - begin,
                          after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return sorted(costs, key=lambda cost: cost.wall)[len(costs) // 2]


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
    peer = cost_of(["perf", "script", "-i", data], times=1)
    ours_import = cost_of([options.assay, "import", data, "-o", run, "--overwrite", "-q"])
    ours_svg = cost_of([options.assay, "export", run, "-o", os.path.join(directory, "x.svg")])
    folded = os.path.join(directory, "million.folded")
    big = os.path.join(directory, "million.assay")
    million_samples(folded)
    subprocess.run([options.assay, "import", folded, "-o", big, "--overwrite", "-q"], check=True)
    pprof = cost_of([options.assay, "export", big, "-o", os.path.join(directory, "x.pb.gz")])
    ours = ours_import + ours_svg
    print(f"perf.data of {size:.0f} MB; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n")
    print("| | wall s | CPU s | wall ratio | CPU ratio |\n|---|--:|--:|--:|--:|")
    rows = {"`perf script` alone": peer, "`assay import`": ours_import,
            "`assay import` + `export -o x.svg`": ours}
    for name, cost in rows.items():
        print(f"| {name} | {cost.wall:.2f} | {cost.cpu:.2f} | {peer.wall / cost.wall:.1f} | {peer.cpu / cost.cpu:.1f} |")
    print(f"| `assay export -o x.pb.gz`, 1M samples | {pprof.wall:.2f} | {pprof.cpu:.2f} | | |")


main()
