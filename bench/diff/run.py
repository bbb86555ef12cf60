#!/usr/bin/env python3
"""Checks that `assay diff` finds planted changes, and finds none where nothing changed.

A small server (planted_server.cpp) is recorded many times as it is and with one change planted: a function 10 % or
30 % dearer, one lock split into sixteen, allocations removed, code merely moved. Runs of all variants alternate.
Comparisons of ten runs a side are drawn from this pool. No run stands on both sides of one comparison, and no two
comparisons have the same sides; but they share runs, so that their share of alarms is right on average while the
interval printed with it (which counts them as independent) is too narrow. How many comparisons of wholly different
runs the pool has is printed, and those are counted by themselves as well.

A change counts as found when the comparison shows it at the right place: the function, the lock, the allocator,
or that code only moved. A comparison of equal sides counts as an alarm when anything at all is shown, a function
or a measure. Loopback only; every server is stopped. The defaults take about 15 minutes.
"""

import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

VARIANTS = {
    "as it is": [],
    "10 % dearer": ["dearer=1.1"],
    "30 % dearer": ["dearer=1.3"],
    "lock split": ["split"],
    "no allocation": ["keep"],
    "code moved": ["move"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="runs a side of each comparison (default 10)")
    parser.add_argument("--base-pool", type=int, default=40, help="runs recorded of the server as it is (default 40)")
    parser.add_argument("--pool", type=int, default=20, help="runs recorded of each change (default 20)")
    parser.add_argument("--seconds", type=float, default=2, help="length of one run (default 2)")
    parser.add_argument("--repeats", type=int, default=60, help="comparisons drawn of each kind (default 60)")
    parser.add_argument("--freq", type=int, default=2999, help="samples per second (default 2999)")
    parser.add_argument("--connections", type=int, default=4, help="of the load (default 4)")
    parser.add_argument("--port", type=int, default=18743)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build", "release"),
                        help="build directory with assay and planted_server (default build/release)")
    parser.add_argument("--keep", metavar="DIR", help="keep the runs here, and use those that are there")
    parser.add_argument("--record-for", type=float, metavar="SECONDS",
                        help="with --keep: record for so long, compare nothing, go on at the next start")
    parser.add_argument("--only", action="append", default=[], help="only changes whose name contains this")
    parser.add_argument("--json", metavar="FILE", help="also write the counts to FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 when a promise is not kept")
    arguments = parser.parse_args()
    if arguments.runs < 2 or arguments.pool < arguments.runs or arguments.base_pool < 2 * arguments.runs:
        parser.error("--pool must be at least --runs (2 or more), --base-pool at least twice that")
    return arguments


def schedule(arguments, names):
    """Every variant spread evenly over the time, in a random order inside each round."""
    left = {name: arguments.base_pool if not VARIANTS[name] else arguments.pool for name in names}
    rounds = max(left.values())
    order = []
    draw = random.Random(1)
    for i in range(rounds):
        now = [name for name in names
               if left[name] * (i + 1) // rounds > left[name] * i // rounds]
        draw.shuffle(now)
        order += now
    return order


def record(arguments, name, path):
    server = os.path.join(arguments.build, "bench", "diff", "planted_server")
    url = f"http://127.0.0.1:{arguments.port}/ -c {arguments.connections}"
    command = [assay(arguments), "record", "--quiet", "--overwrite", "-o", path, "--freq", str(arguments.freq), "--no-source",
               "--for", f"{arguments.seconds}s", "--warmup", "300ms", "--load", url,
               "--", server, str(arguments.port), *VARIANTS[name]]
    for attempt in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode == 0:
            return
        time.sleep(1)
    raise SystemExit(f"{' '.join(command)}: {done.stderr}")


def assay(arguments):
    return os.path.join(arguments.build, "src", "assay")


def record_pool(arguments, names, directory):
    pool = {name: [] for name in names}
    order = schedule(arguments, names)
    begun = time.time()
    for i, name in enumerate(order):
        path = os.path.join(directory, f"{name.replace(' ', '-').replace('%', 'pc')}-{len(pool[name]):02}.assay")
        if arguments.record_for and time.time() - begun > arguments.record_for:
            print(f"\n{i} of {len(order)} runs are there: start again to go on", file=sys.stderr)
            sys.exit(0)
        if not os.path.exists(path):
            record(arguments, name, path)
        pool[name].append(path)
        print(f"\r{i + 1} of {len(order)} runs, {time.time() - begun:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return pool


def drop_starved(arguments, pool):
    """Runs with less than half of the usual samples, which on a shared machine measured other programs."""
    every = [path for paths in pool.values() for path in paths]
    done = subprocess.run([assay(arguments), "diff", *every, "--vs", every[0], "--per", "second", "--format", "json"],
                          capture_output=True, text=True, timeout=600)
    samples = {run["path"]: run["samples"] for run in json.loads(done.stdout)["base"]}
    usual = sorted(samples.values())[len(samples) // 2]
    for name, paths in pool.items():
        kept = [path for path in paths if samples[path] >= usual / 2]
        if len(kept) < len(paths):
            print(f"{name}: {len(paths) - len(kept)} of {len(paths)} runs were starved of CPU and are left out")
        if len(kept) < arguments.runs * (1 if VARIANTS[name] else 2):
            raise SystemExit(f"too few runs of '{name}' are left: the machine is too busy")
        pool[name] = kept


def compare(arguments, base, new):
    done = subprocess.run([assay(arguments), "diff", *base, "--vs", *new, "--format", "json"],
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def shown(comparison):
    """Everything that a comparison shows: functions, and measures."""
    functions = [c["function"] + (f" ({c['kind']})" if c["kind"] != "changed" else "") for c in comparison["changes"]]
    measures = [m["id"] for m in comparison["measures"] if m["finding"] in ("higher", "lower")]
    return functions, measures


def named(comparison, word, kinds=("changed", "new", "vanished")):
    """The function itself, or a helper that was inlined into it and has it as its caller."""
    return any(c["kind"] in kinds and any(word in name for name in [c["function"], *c["callers"][:1]])
               for c in comparison["changes"])


def lower(comparison, words):
    return any(m["finding"] == "lower" and any(word in m["id"] for word in words) for m in comparison["measures"])


def found(name, comparison):
    if name in ("10 % dearer", "30 % dearer"):
        return named(comparison, "::score")
    if name == "lock split":
        return lower(comparison, ["lock[", "blocked_lock"])
    if name == "no allocation":
        return (lower(comparison, ["category[malloc"]) or named(comparison, "fill_buffers") or
                named(comparison, "malloc") or named(comparison, "free"))
    if name == "code moved":
        return named(comparison, "escape", ("moved",))
    return False


def wilson(hits, n):
    """95 % interval of a share."""
    if n == 0:
        return 0, 1
    z, p = 1.96, hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return max(0, middle - reach), min(1, middle + reach)


def shuffled(source, paths):
    paths = list(paths)
    source.shuffle(paths)
    return paths


def draw(arguments, pool, name):
    """Pairs of sides: equal ones for the server as it is, else base against the change.

    The first ones have no run in common; they come as (base, new, True). The rest is drawn from all runs.
    """
    source, runs, seen = random.Random(name), arguments.runs, set()
    base, new = shuffled(source, pool["as it is"]), shuffled(source, pool[name])
    step = runs if VARIANTS[name] else 2 * runs
    apart = min(len(base), len(new)) // step
    for i in range(arguments.repeats):
        if i < apart:
            first = base[i * step:i * step + runs]
            second = new[i * runs:(i + 1) * runs] if VARIANTS[name] else base[i * step + runs:(i + 1) * step]
        elif VARIANTS[name]:
            first, second = source.sample(base, runs), source.sample(new, runs)
        else:
            both = source.sample(base, 2 * runs)
            first, second = both[:runs], both[runs:]
        key = (tuple(sorted(first)), tuple(sorted(second)))
        if key in seen:
            continue
        seen.add(key)
        yield first, second, i < apart


def promises_kept(results):
    """Prints for each requested promise whether it is kept."""
    alarms, power = results["as it is"], results.get("10 % dearer")
    promises = [("alarms in at most 5 %", alarms["hits"] <= 0.05 * alarms["of"])]
    if power:
        promises.append(("10 % dearer found in 90 %", power["hits"] >= 0.9 * power["of"]))
    for promise, kept in promises:
        print(f"\npromise ({promise}): {'kept' if kept else 'NOT kept'}")
    return all(kept for _, kept in promises)


def main():
    arguments = parse_arguments()
    names = [name for name in VARIANTS
             if not VARIANTS[name] or not arguments.only or any(o in name for o in arguments.only)]
    results = {}
    with tempfile.TemporaryDirectory(prefix="assay-diff-") as temporary:
        directory = arguments.keep or temporary
        os.makedirs(directory, exist_ok=True)
        pool = record_pool(arguments, names, directory)
        drop_starved(arguments, pool)
        print(f"{arguments.runs} runs of {arguments.seconds:g} s a side, drawn from {arguments.base_pool} as it is and "
              f"{arguments.pool} of each change; {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}")
        for name in names:
            hits, compared, apart, apart_hits, others, example = 0, 0, 0, 0, {}, None
            for base, new, disjoint in draw(arguments, pool, name):
                comparison = compare(arguments, base, new)
                functions, measures = shown(comparison)
                hit = found(name, comparison) if VARIANTS[name] else bool(functions or measures)
                hits, compared = hits + hit, compared + 1
                apart, apart_hits = apart + disjoint, apart_hits + (hit and disjoint)
                for thing in functions + measures:
                    others[thing] = others.get(thing, 0) + 1
                if example is None:
                    example = comparison["sentence"]
            low, high = wilson(hits, compared)
            results[name] = {"hits": hits, "of": compared, "low": low, "high": high, "apart": apart,
                             "apart_hits": apart_hits, "shown": others}
            what = "found" if VARIANTS[name] else "any alarm"
            print(f"\n{name}: {what} in {hits} of {compared} ({low:.0%} to {high:.0%}); of {apart} without a common "
                  f"run in {apart_hits}\n  e.g. {example}")
            for thing, count in sorted(others.items(), key=lambda item: -item[1])[:8]:
                print(f"    {count:4}  {thing}")
            sys.stdout.flush()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    kept = promises_kept(results)
    return 1 if arguments.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
