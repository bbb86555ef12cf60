#!/usr/bin/env python3
"""Reference readers agree with Assay, on the golden files and on what Assay exports of them.

usage: agreement_test.py ASSAY GOLDEN_DIR
go tool pprof, google-pprof and perf are each left out, saying so, when they are not installed; exits 77
(skipped) when none is. Top 20 and totals must be equal within rounding of the printed figures.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile

ASSAY, GOLDEN = sys.argv[1], sys.argv[2]
failures = []


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def run_of(directory, name, *more):
    path = os.path.join(directory, name + ".assay")
    result = output_of(ASSAY, "import", os.path.join(GOLDEN, name), "-o", path, "-q", "--overwrite", *more)
    assert result.returncode == 0, result.stderr
    return path


def functions_of(run):
    """Function → self CPU ns, by Assay's own table."""
    text = output_of(ASSAY, "export", run, "--format", "csv").stdout
    sums = {}
    for row in csv.DictReader(text.splitlines()):
        sums[row["function"]] = sums.get(row["function"], 0) + int(row["self_cpu_ns"])
    return sums


def expect(what, got, want, tolerance):
    if abs(got - want) > tolerance:
        failures.append(f"{what}: {got}, Assay says {want}")


def check_go_pprof(directory):
    """Totals and top 20 of what Assay exports, as Go's pprof reads them."""
    for name in ("perf_fp.data", "perf_dwarf.data", "go_cpu.pb.gz", "gperftools.cpu"):
        run = run_of(directory, name)
        profile = os.path.join(directory, name + ".pb.gz")
        assert output_of(ASSAY, "export", run, "-o", profile).returncode == 0
        ours = functions_of(run)
        text = output_of("go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=20", "-nodefraction=0",
                         "-sample_index=cpu", profile)
        assert text.returncode == 0, text.stderr
        total = re.search(r"of (\d+)ns total", text.stdout)
        expect(f"go pprof, total of {name}", int(total.group(1)), sum(ours.values()), 0)
        rows = re.findall(r"^\s*(\d+)(?:ns)?\s+[\d.]+%\s+[\d.]+%\s+\d+(?:ns)?\s+[\d.]+%\s+(.*?)(?: \(inline\))?$",
                          text.stdout, re.M)
        assert rows, text.stdout
        for flat, function in rows:
            if function in ours:
                expect(f"go pprof, {function} in {name}", int(flat), ours[function], 0)
        for command in ("-raw", "-traces", "-tags"):
            assert output_of("go", "tool", "pprof", command, profile).returncode == 0, command
        same = output_of("go", "tool", "pprof", "-top", f"-diff_base={profile}", profile)
        if "of 0 total" not in same.stdout and " 0 of " not in same.stdout:
            if re.search(r"^\s*-?[1-9]\S*\s+[\d.]+%", same.stdout, re.M):
                failures.append(f"go pprof: {name} differs from itself")
    check_go_pprof_waits(directory)


HEAP_TYPES = ("inuse_space", "inuse_objects", "alloc_space", "alloc_objects")


def heap_top(profile, kind):
    """Function → flat value, and the total, as Go's pprof has them; None where it has no such values."""
    text = output_of("go", "tool", "pprof", "-top", "-unit=B", "-nodecount=1000", "-nodefraction=0",
                     f"-sample_index={kind}", profile)
    total = re.search(r"of (\d+)B total", text.stdout)
    if not total:
        return None
    rows = re.findall(r"^\s*(\d+)B?\s+[\d.]+%\s+[\d.]+%\s+\d+B?\s+[\d.]+%\s+(.*?)(?: \(inline\))?$",
                      text.stdout, re.M)
    return int(total.group(1)), {function: int(flat) for flat, function in rows}


def check_go_pprof_heap(directory):
    """Go's reader finds the same in a heap profile and in what Assay exports of its import."""
    for name, kinds in (("go_heap.pb.gz", HEAP_TYPES), ("go_heap_debug1.txt", HEAP_TYPES),
                        ("libassay_heap_debug1.txt", HEAP_TYPES), ("gperftools.heap", HEAP_TYPES[:2]),
                        ("tcmalloc_sampled.heap", HEAP_TYPES[:2])):
        run = run_of(directory, name, "--no-names")
        profile = os.path.join(directory, name + ".heap.pb.gz")
        assert output_of(ASSAY, "export", run, "-o", profile).returncode == 0
        for kind in kinds:
            theirs, ours = heap_top(os.path.join(GOLDEN, name), kind), heap_top(profile, kind)
            assert theirs and ours, (name, kind)
            expect(f"go pprof, {kind} of {name}", ours[0], theirs[0], 0)
            if name.endswith(".pb.gz"):  # text has no names for Go's reader
                for function, flat in theirs[1].items():
                    expect(f"go pprof, {kind} of {function} in {name}", ours[1].get(function, 0), flat, 0)
        text = os.path.join(directory, name + ".again.heap")
        assert output_of(ASSAY, "export", run, "-o", text).returncode == 0
        again = heap_top(text, "inuse_space")
        expect(f"go pprof, gperftools text of {name}", again[0], heap_top(profile, "inuse_space")[0], 0)


def folded_total(run, metric):
    text = output_of(ASSAY, "export", run, "--format", "folded", "--metric", metric).stdout
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


def check_go_pprof_waits(directory):
    """Wall time: the leaves of waits have what the folded stacks have, and nothing is counted twice."""
    run = run_of(directory, "perf_dwarf.data")
    profile = os.path.join(directory, "wall.pb.gz")
    assert output_of(ASSAY, "export", run, "--metric", "wall", "-o", profile).returncode == 0
    for metric in ("wall", "cpu", "off", "runqueue"):
        text = output_of("go", "tool", "pprof", "-top", "-unit=ns", "-nodefraction=0", f"-sample_index={metric}",
                         profile).stdout
        total = re.search(r"of (\d+)ns total", text)
        expect(f"go pprof, {metric}", int(total.group(1)), folded_total(run, metric), 0)
        waits = sum(int(flat) for flat in re.findall(r"^\s*(\d+)ns\s.*\[(?:blocked: [a-z ]+|run queue)\]$", text, re.M))
        want = sum(folded_total(run, part) for part in ("off", "runqueue") if metric in (part, "wall"))
        expect(f"go pprof, waits in {metric}", waits, want, 0)


def check_google_pprof(directory):
    """gperftools' own reader counts the samples that we import."""
    path = os.path.join(GOLDEN, "gperftools.cpu")
    text = output_of("google-pprof", "--text", "--addresses", "/bin/true", path)
    total = re.search(r"Total: (\d+) samples", text.stdout)
    assert total, text.stdout + text.stderr
    run = run_of(directory, "gperftools.cpu")
    samples = sum(int(line.rsplit(" ", 1)[1])
                  for line in output_of(ASSAY, "export", run, "--format", "folded", "--metric",
                                        "samples").stdout.splitlines())
    expect("google-pprof, samples", int(total.group(1)), samples, 0)


def check_perf(directory):
    """perf report and the import agree on the kernel's functions and the total. User functions of stripped
    programs have no name in perf, and one of their own range in Assay."""
    for name in ("perf_fp.data", "perf_dwarf.data", "perf_pipe.data"):
        run = run_of(directory, name)
        ours = functions_of(run)
        whole = sum(ours.values())
        text = output_of("perf", "report", "-i", os.path.join(GOLDEN, name), "--stdio", "--no-children",
                         "-g", "none", "-F", "overhead,sym").stdout
        total = re.search(r"Event count \(approx\.\): (\d+)", text)
        expect(f"perf report, total of {name}", int(total.group(1)), whole, 0)
        for share, symbol in re.findall(r"^\s*([\d.]+)%\s+\[k\] (\S+)", text, re.M)[:20]:
            if symbol in ours:  # kernel names need the kernel that recorded
                expect(f"perf report, {symbol} in {name}", float(share), 100 * ours[symbol] / whole, 0.011)


def main():
    checks = [("go", check_go_pprof), ("go", check_go_pprof_heap), ("google-pprof", check_google_pprof),
              ("perf", check_perf)]
    done = 0
    with tempfile.TemporaryDirectory() as directory:
        for tool, check in checks:
            if shutil.which(tool):
                check(directory)
                done += 1
            else:
                print(f"left out: {tool} is not installed")
    for failure in failures:
        print(failure)
    if failures:
        return 1
    return 0 if done else 77


sys.exit(main())
