#!/usr/bin/env python3
"""What profiling from inside costs: CPU time of a fixed amount of work, as ratios to the bare program.

bench/inproc/run.py BUILD_DIR [--rounds N] [--work N] [--pairs N]: every round runs every variant once, in an order that
changes from round to round, so that what the machine does otherwise hits all alike. The ratio is that of the
medians; the interval is a 95 % bootstrap of it. Peers that are not installed are left out and said so.
Whole programs differ by more than a profile costs. So the second table is of pairs: one process does the same work
with and without a profile, moments apart; the ratio is the median over pairs, with a 95 % bootstrap.
"""
import argparse
import os
import random
import statistics
import subprocess
import tempfile

GPERFTOOLS = ["/usr/lib/x86_64-linux-gnu/libprofiler.so", "/usr/lib/libprofiler.so"]


def variants(build, scratch):
    assay = os.path.join(build, "inject/inproc/libassay.so")
    profiler = next((path for path in GPERFTOOLS if os.path.exists(path)), None)
    made = {
        "nothing": {},
        "libassay loaded, off": {"LD_PRELOAD": assay},
        "libassay CPU 99 Hz": {"LD_PRELOAD": assay, "CPUPROFILE": f"{scratch}/a", "CPUPROFILE_FREQUENCY": "99"},
        "libassay CPU 999 Hz": {"LD_PRELOAD": assay, "CPUPROFILE": f"{scratch}/b", "CPUPROFILE_FREQUENCY": "999"},
        "libassay serving (heap, locks on)": {"LD_PRELOAD": assay, "ASSAY_HTTP": f"unix:{scratch}/socket.%p"},
    }
    if profiler:
        made["gperftools CPU 99 Hz"] = {"LD_PRELOAD": profiler, "CPUPROFILE": f"{scratch}/c",
                                        "CPUPROFILE_FREQUENCY": "99"}
    else:
        print("gperftools' libprofiler.so is not installed: left out")
    return made


def measure(program, work, environment):
    done = subprocess.run([program, str(work)], env={**os.environ, **environment}, capture_output=True, text=True,
                          check=True)
    return int(done.stdout)


def interval(times, base, draws=2000):
    ratios = sorted(statistics.median(random.choices(times, k=len(times))) /
                    statistics.median(random.choices(base, k=len(base))) for _ in range(draws))
    return ratios[int(draws * 0.025)], ratios[int(draws * 0.975)]


def paired(program, build, work, pairs, hz):
    """The ratios, with a profile over without, of each pair."""
    environment = {"LD_PRELOAD": os.path.join(build, "inject/inproc/libassay.so")}
    done = subprocess.run([program, str(work), str(pairs), str(hz)], env={**os.environ, **environment},
                          capture_output=True, text=True, check=True)
    return [int(on) / int(off) for off, on in (line.split() for line in done.stdout.splitlines())]


def print_pairs(program, options):
    print(f"\n{options.pairs} pairs in one process, each half {options.work // 8} rounds of work\n")
    print("| CPU profile | CPU time | 95 % interval |\n|---|--:|---|")
    for hz in (99, 999):
        ratios = paired(program, options.build, options.work // 8, options.pairs, hz)
        medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
        print(f"| {hz} Hz | {statistics.median(ratios):.4f}× | {medians[50]:.4f}–{medians[1949]:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--work", type=int, default=400_000)
    parser.add_argument("--pairs", type=int, default=300)
    options = parser.parse_args()
    program = os.path.join(options.build, "bench/inproc/inproc_bench_workload")
    with tempfile.TemporaryDirectory() as scratch:
        todo = variants(options.build, scratch)
        times = {name: [] for name in todo}
        for _ in range(options.rounds):
            for name in random.sample(list(todo), len(todo)):
                times[name].append(measure(program, options.work, todo[name]))
    base = times["nothing"]
    print(f"{options.rounds} rounds, {statistics.median(base) / 1e9:.2f} s of CPU each\n")
    print("| variant | CPU time | 95 % interval |\n|---|--:|---|")
    for name, values in times.items():
        low, high = interval(values, base)
        print(f"| {name} | {statistics.median(values) / statistics.median(base):.3f}× | {low:.3f}–{high:.3f} |")
    if options.pairs:
        print_pairs(program, options)


if __name__ == "__main__":
    main()
