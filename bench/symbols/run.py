#!/usr/bin/env python3
"""What naming addresses costs, beside perf script, on the same recorded data.

    bench/symbols/run.py [--build build/release] [--frequency 3999] [--large 45] [--perf-limit 900]

1. A C++ program with debug information and inlined calls is recorded by perf with DWARF stacks; then
   perf script, with inlines, and Assay name every user frame of that file. perf unwinds in the same step, so
   its time without inlines is shown too.
2. With --large N, a library of N copies of one large unit (about 11 MB of debug information each: 45 make
   500 MB) is made, and 5,000 of its addresses are named: first without, then with Assay's cache.
Times include starting the program and reading its input. perf leaves the naming to an addr2line process whose
CPU time it never collects: compare wall times, on a quiet machine. Memory is the peak of the process. Needs perf
and g++; prints what it skips and why.
"""
import argparse, os, random, re, resource, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))


def measure(command, stdin=None, limit=None, stdout=subprocess.DEVNULL):
    """(CPU seconds, wall seconds, peak MB of the process itself, finished?)"""
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, start_new_session=True)
    finished = True
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 15)
        process.wait()
        finished = False
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - begin, finished


def peak_mb(text):
    match = re.search(r"([\d.]+) s, ([\d.]+) MB peak", text)
    return float(match.group(2)) if match else float("nan")


def assay(symbolize, binary, addresses, cache=None):
    command = [symbolize, "--quiet"] + (["--cache", cache] if cache else []) + ([binary] if binary else [])
    with open(addresses) as text:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        out = subprocess.run(command, stdin=text, capture_output=True, text=True)
        wall = time.monotonic() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, peak_mb(out.stderr)


def row(name, cpu, wall, memory, frames, note=""):
    print(f"  {name:38} {wall:9.3f} {cpu:9.3f} {memory:>9} {wall / frames * 1e6:12.1f}   {note}")


def head(what):
    print(f"\n{what}\n  {'':38} {'wall s':>9} {'CPU s':>9} {'peak MB':>9} {'µs/frame':>12}")


def recorded(args, folder):
    binary, data = os.path.join(folder, "workload"), os.path.join(folder, "perf.data")
    subprocess.run(["g++", "-O2", "-g", "-o", binary, os.path.join(HERE, "workload.cpp")], check=True)
    # While another capture asks for build ids, some kernels mark perf's records as if they had them, and perf
    # aborts: it asks for them too where it can.
    usage = subprocess.run(["perf", "record", "-h"], capture_output=True, text=True)
    build_ids = ["--buildid-mmap"] if "buildid-mmap" in usage.stdout + usage.stderr else []
    # perf expands inlined functions only in stacks that it unwound itself.
    subprocess.run(["perf", "record", "-q", *build_ids, "-e", "cpu-clock:u", "-F", str(args.frequency), "--call-graph", "dwarf", "-o",
                    data, binary, str(args.rounds)], check=True, stdout=subprocess.DEVNULL)
    text = subprocess.run(["perf", "script", "--no-inline", "-i", data, "-F", "ip,dso"], capture_output=True,
                          text=True).stdout
    # perf prints offsets in the file.
    frames = re.findall(r"^\s+([0-9a-f]+) \((/[^)]+)\)$", text, re.M)
    files = {}
    for name, chosen in (("every.txt", frames), ("distinct.txt", sorted(set(frames)))):
        files[name] = os.path.join(folder, name)
        with open(files[name], "w") as out:
            out.writelines(f"{offset} {path}\n" for offset, path in chosen)
    head(f"recorded: {len(frames)} frames, {len(set(frames))} distinct, "
         f"{len(set(path for _, path in frames))} files")
    cpu, plain, _ = measure(["perf", "script", "--no-inline", "-i", data])
    row("perf script --no-inline", cpu, plain, "-", len(frames), "unwinding and symbols, no inlines")
    cpu, theirs, finished = measure(["perf", "script", "--inline", "-i", data], limit=args.perf_limit)
    row("perf script --inline", cpu, theirs, "-", len(frames), "" if finished else f"stopped after {args.perf_limit} s")
    row("  its inlines alone", cpu, theirs - plain, "-", len(frames), "the difference; CPU is perf's, without addr2line's")
    cpu, wall, memory = assay(args.symbolize, None, files["distinct.txt"])
    ratio = theirs / wall
    row("assay, distinct frames (as a run does)", cpu, wall, f"{memory:.0f}", len(frames),
        f"{ratio:.0f} times faster; than its inlines alone {(theirs - plain) / wall:.0f} times")
    cpu, wall, memory = assay(args.symbolize, None, files["every.txt"])
    row("assay, every frame anew", cpu, wall, f"{memory:.0f}", len(frames), f"{theirs / wall:.0f} times faster")
    cache = os.path.join(folder, "cache")
    assay(args.symbolize, None, files["distinct.txt"], cache)
    cpu, wall, memory = assay(args.symbolize, None, files["distinct.txt"], cache)
    row("assay, second time (cache)", cpu, wall, f"{memory:.0f}", len(frames), f"{theirs / wall:.0f} times faster")
    return ratio


def large(args, folder):
    one = os.path.join(folder, "one.o")
    subprocess.run(["g++", "-std=c++20", "-g", "-O2", "-fPIC", "-c", os.path.join(HERE, "large.cpp"), "-o", one], check=True)
    handle = os.path.join(folder, "handle.c")
    with open(handle, "w") as out:
        out.write('void* __dso_handle __attribute__((visibility("hidden")));\n')
    subprocess.run(["gcc", "-fPIC", "-c", handle, "-o", handle + ".o"], check=True)
    objects = []
    for i in range(args.large):
        for source in (one, handle + ".o"):
            copy = f"{source}.{i}.o"
            subprocess.run(["objcopy", f"--prefix-symbols=c{i}_", source, copy], check=True)
            objects.append(copy)
    binary = os.path.join(folder, "liblarge.so")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,--build-id", "-o", binary,
                    *objects], check=True)
    for name in objects:
        os.unlink(name)
    functions = []
    for line in subprocess.run(["nm", "-S", binary], capture_output=True, text=True).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW" and int(words[1], 16) > 0:
            functions.append((int(words[0], 16), int(words[1], 16)))
    rng = random.Random(1)
    addresses = os.path.join(folder, "large.txt")
    with open(addresses, "w") as out:
        for _ in range(5000):
            start, size = rng.choice(functions)
            out.write(f"{start + rng.randrange(size):x}\n")
    head(f"large: {os.path.getsize(binary) / 1e6:.0f} MB, 5000 addresses over all {args.large} units")
    cache = os.path.join(folder, "large-cache")
    for name, where in (("assay, no cache", None), ("assay, first time (writes the cache)", cache),
                        ("assay, second time", cache)):
        cpu, wall, memory = assay(args.symbolize, binary, addresses, where)
        row(name, cpu, wall, f"{memory:.0f}", 5000)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(cache) for f in names)
    print(f"  the cache is {size / 1e6:.1f} MB")
    few = os.path.join(folder, "few.txt")
    with open(addresses) as text, open(few, "w") as out:
        out.writelines(text.readlines()[:20])
    cpu, wall, finished = measure(["addr2line", "-i", "-f", "-e", binary], stdin=open(few), limit=args.perf_limit)
    row("addr2line -i, 20 of the addresses", cpu, wall, "-", 20, "" if finished else "stopped")
    cpu, wall, finished = measure(["eu-addr2line", "-i", "-f", "-e", binary], stdin=open(few), limit=args.perf_limit)
    row("eu-addr2line -i, 20 of the addresses", cpu, wall, "-", 20, "" if finished else "stopped")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build", "release"))
    parser.add_argument("--frequency", type=int, default=3999)
    parser.add_argument("--rounds", type=int, default=5000, help="length of the recorded program")
    parser.add_argument("--large", type=int, default=0, metavar="N")
    parser.add_argument("--perf-limit", type=float, default=900, metavar="SECONDS")
    args = parser.parse_args()
    args.symbolize = os.path.join(args.build, "bench", "symbols", "symbolize")
    if not os.access(args.symbolize, os.X_OK):
        sys.exit("symbolize is missing; build it with: cmake --build --preset release --target symbolize")
    for tool in ("g++", "perf"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is missing")
            return 0
    with tempfile.TemporaryDirectory(prefix="assay-symbols-") as folder:
        ratio = recorded(args, folder)
        if args.large:
            large(args, folder)
    print(f"\nat least 20 times faster than perf script: {'yes' if ratio >= 20 else 'no'} ({ratio:.0f})")
    return 0 if ratio >= 20 else 1


sys.exit(main())
