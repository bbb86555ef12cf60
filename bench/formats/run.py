#!/usr/bin/env python3
"""Formats beside their peers, in one run: importing a large perf.data and drawing it, exporting to pprof.

usage: bench/formats/run.py [--assay build/release/src/assay] [--megabytes 100] [--rounds 3] [--keep DIR]

Records two perf.data of at least that size: of a busy Python program with copies of the stack (perf record
--call-graph dwarf), and of a busy C++ program on every CPU (documents.cpp) with frame pointers. Of each it times
`perf script` alone; `perf script` through a Perl pipeline, folding and drawing, as people make flame graphs
(collapse.pl and flame.pl here: our own, as small as the job allows; left out where Perl is missing); `assay import`
+ `assay export -o x.svg`, and `assay export perf.data -o x.svg` in one step. Then `assay export -o x.pb.gz` of a run
of about a million samples. Needs perf, g++ and the right to record. Prints a Markdown table of medians: all take
turns, and each has read the file and filled its caches once before.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUSY = ("import hashlib, json\nx = list(range(2000))\n"
        "while True: hashlib.sha256(json.dumps(x).encode()).hexdigest()")


class Cost:
    """Wall and CPU seconds of a command: the second says more on a busy machine."""

    def __init__(self, wall, cpu):
        self.wall, self.cpu = wall, cpu

    def __add__(self, other):
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


def cost_of(command):
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(time.monotonic() - begin,
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def median(costs):
    return sorted(costs, key=lambda cost: cost.wall)[len(costs) // 2]


def record(path, megabytes, frequency, graph, command):
    """A perf.data of at least so many megabytes, of a command that has no end of its own."""
    duration = 4
    while True:
        # Build ids with the mappings: some versions of perf die at the end while they collect them themselves.
        subprocess.run(["perf", "record", "-q", "--buildid-mmap", "-F", str(frequency), "--call-graph", graph,
                        "-o", path, "--", "timeout", str(duration), *command],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.getsize(path) >= megabytes * 1e6 or duration > 60:
            return
        duration *= 2


def documents(directory):
    """The busy program with frame pointers, as a command."""
    program = os.path.join(directory, "documents")
    subprocess.run(["g++", "-std=c++20", "-O1", "-fno-inline", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
                    os.path.join(HERE, "documents.cpp"), "-o", program], check=True)
    return [program, str(os.cpu_count())]


def million_samples(path):
    """Folded stacks that count a million samples: many distinct, as servers have."""
    with open(path, "w") as file:
        for i in range(20000):
            file.write(f"main;serve;handler_{i % 97};parse_{i % 1009};leaf_{i} 50\n")


def perl_pipeline(data, svg):
    return ["sh", "-c", f"perf script -i '{data}' | perl '{HERE}/collapse.pl' | perl '{HERE}/flame.pl' > '{svg}'"]


def compare(options, data):
    """perf script, Perl and Assay over one perf.data, by turns: rows of name and cost."""
    run, svg = data + ".assay", data + ".svg"
    quick = 3  # turns of Assay in each of perf's, which takes as long as all of them
    script, ours, drawn = ["perf", "script", "-i", data], "`assay import`", "`export -o x.svg`"
    commands = {"`perf script` alone": (1, script)}
    if shutil.which("perl"):
        commands["`perf script` \\| Perl collapse \\| Perl flame graph"] = (1, perl_pipeline(data, svg))
    commands[ours] = (quick, [options.assay, "import", data, "-o", run, "--overwrite", "-q"])
    commands[drawn] = (quick, [options.assay, "export", run, "-o", svg])
    commands["`assay export perf.data -o x.svg`"] = (quick, [options.assay, "export", data, "-o", svg])
    costs = {name: [] for name in commands}
    for turn in range(options.rounds + 1):
        for name, (times, command) in commands.items():
            turn_costs = [cost_of(command) for _ in range(times)]
            costs[name] += turn_costs if turn > 0 else []
    rows = {name: median(each) for name, each in costs.items()}
    rows[f"{ours} + {drawn}"] = rows[ours] + rows.pop(drawn)
    return rows


def print_rows(rows):
    peer = rows["`perf script` alone"]
    for name, cost in rows.items():
        print(f"| {name} | {cost.wall:.3f} | {cost.cpu:.3f} | {peer.wall / cost.wall:.1f} | {peer.cpu / cost.cpu:.1f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", default="build/release/src/assay")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a directory that is left behind")
    options = parser.parse_args()
    directory = options.keep or tempfile.mkdtemp(prefix="assay-formats-")
    os.makedirs(directory, exist_ok=True)
    dwarf, frames = os.path.join(directory, "dwarf.data"), os.path.join(directory, "fp.data")
    record(dwarf, options.megabytes, 4999, "dwarf,8192", [sys.executable, "-c", BUSY])
    record(frames, options.megabytes, 19999, "fp", documents(directory))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; ratios to `perf script` alone")
    for name, data in {"copies of the stack": dwarf, "frame pointers": frames}.items():
        print(f"\n| perf.data with {name}, {os.path.getsize(data) / 1e6:.0f} MB | wall s | CPU s | wall ratio | CPU ratio |")
        print("|---|--:|--:|--:|--:|")
        print_rows(compare(options, data))
    if not shutil.which("perl"):
        print("\nleft out: perl is not installed")
    folded, big = os.path.join(directory, "million.folded"), os.path.join(directory, "million.assay")
    million_samples(folded)
    subprocess.run([options.assay, "import", folded, "-o", big, "--overwrite", "-q"], check=True)
    pprof = median([cost_of([options.assay, "export", big, "-o", os.path.join(directory, "x.pb.gz")]) for _ in range(5)])
    print(f"\n`assay export -o x.pb.gz` of a million samples: {pprof.wall:.3f} s, {pprof.cpu:.3f} s CPU")
    if not options.keep:
        shutil.rmtree(directory)


main()
