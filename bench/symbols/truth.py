#!/usr/bin/env python3
"""Checks Assay's names against addr2line's, eu-addr2line's and llvm-addr2line's, address by address.

    bench/symbols/truth.py SYMBOLIZE FILE... [--per-file N] [--seed S] [--show K]

For each FILE, N addresses are drawn from its code; Assay's chain of (function, file, line) is compared with
that of each tool that is installed. The tools differ among themselves (docs/symbols.md says where and why), so a
chain is right when it equals at least one's; what equals none is put into classes and shown. Exit 1 when
more than 0.5 % of all chains equal none.
"""
import argparse, collections, os, random, re, shutil, subprocess, sys


def code_addresses(path, count, rng):
    """Random addresses inside executable sections, weighted by size; of instructions, not of padding."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
    found = []
    for line in text.splitlines():
        match = re.match(r"^\s+([0-9a-f]+):\s+(\S.*)", line)
        if match and not match.group(2).startswith(("nop", "data16", "cs nop", "xchg   %ax,%ax", "int3")):
            found.append(int(match.group(1), 16))
    return sorted(rng.sample(found, min(count, len(found))))


def clean_file(text):
    text = re.sub(r" \(discriminator \d+\)$", "", text)
    name, _, line = text.rpartition(":")
    if line in ("?", "0", "") or name in ("??", "?", ""):
        line = "0"
    if name in ("??", "?"):
        name = ""
    return (os.path.normpath(name) if name else "", int(line) if line.isdigit() else 0)


def run(command, addresses):
    text = "".join(f"{a:#x}\n" for a in addresses)
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace").stdout.splitlines()


def binutils(path, addresses, tool="addr2line"):
    out, chain = {}, None
    lines = iter(run([tool, "-a", "-f", "-i", "-e", path], addresses))
    for line in lines:
        if re.match(r"^0x[0-9a-f]+$", line):
            chain = out.setdefault(int(line, 16), [])
        else:
            chain.append((line, *clean_file(next(lines, ""))))
    return out


def elfutils(path, addresses):
    # eu-addr2line writes columns after lines and "(inlined by)" on lines of their own.
    out, chain = {}, None
    lines = iter(run(["eu-addr2line", "-a", "-f", "-i", "-e", path], addresses))
    for line in lines:
        if re.match(r"^0x[0-9a-f]+$", line):
            chain = out.setdefault(int(line, 16), [])
        else:
            line = re.sub(r" inlined at .*$", "", line)
            where = re.sub(r"^(.*:\d+):\d+$", r"\1", next(lines, ""))
            chain.append((line, *clean_file(where)))
    return out


def assay(tool, path, addresses):
    out, chain = {}, None
    lines = iter(run([tool, path], addresses))
    for line in lines:
        if re.match(r"^0x[0-9a-f]+$", line):
            chain = out.setdefault(int(line, 16), [])
        else:
            linker = next(lines, "")
            chain.append((line, linker, *clean_file(next(lines, ""))))
    return out


ALIASES = collections.defaultdict(set)  # symbol -> the addresses it is defined at


def read_aliases(path):
    ALIASES.clear()
    for flags in ([], ["-D"]):
        for line in subprocess.run(["nm", *flags, path], capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            if len(words) == 3:
                ALIASES[words[2].split("@")[0]].add(words[0])


def same_name(ours, linker, theirs):
    theirs = theirs.split("@")[0]
    if theirs in (ours, linker):
        return True
    # Two symbols of one address: which is shown is a matter of taste.
    if ALIASES.get(linker or ours, set()) & ALIASES.get(theirs, set()):
        return True
    if theirs == "??":
        return "!fn_" in ours or "+0x" in ours or ours.endswith("@plt")
    if re.sub(r"(\.(part|cold|constprop|isra|lto_priv)(\.\d+)*)+$", "", theirs) == ours:
        return True
    # Without a linker's name the tools print the bare name; Assay adds the scope.
    return not linker and ours.endswith("::" + theirs)


def compare(ours, theirs):
    """'' when equal, else the first difference's class."""
    if len(ours) != len(theirs):
        return "depth"
    for (name, linker, file, line), (tname, tfile, tline) in zip(ours, theirs):
        if not same_name(name, linker, tname):
            return "unnamed by the tool" if tname == "??" else "name"
        if file and tfile and file != tfile:
            return "file"
        if line != tline:
            return "line"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("symbolize")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--per-file", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=2)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    total = bad = 0
    tools = {"eu": lambda p, a: elfutils(p, a), "bu": lambda p, a: binutils(p, a),
             "llvm": lambda p, a: binutils(p, a, "llvm-addr2line")}
    programs = {"eu": "eu-addr2line", "bu": "addr2line", "llvm": "llvm-addr2line"}
    tools = {key: f for key, f in tools.items() if shutil.which(programs[key])}
    print(f"{'file':24} {'addresses':>9} {'inlined':>8} {'= all':>7} " +
          " ".join(f"{'= ' + programs[k]:>16}" for k in tools) + f" {'= none':>7}")
    shown = []
    for path in args.files:
        addresses = code_addresses(path, args.per_file, rng)
        read_aliases(path)
        ours = assay(args.symbolize, path, addresses)
        theirs = {key: f(path, addresses) for key, f in tools.items()}
        counts = collections.Counter()
        classes = collections.defaultdict(list)
        for a in addresses:
            results = {key: compare(ours[a], chains.get(a, [])) for key, chains in theirs.items()}
            equal = [key for key, difference in results.items() if not difference]
            counts.update(equal)
            counts["all"] += len(equal) == len(tools)
            counts["none"] += not equal
            counts["inlined"] += len(ours[a]) > 1
            if len(equal) < len(tools):
                classes[tuple(results.items())].append(a)
        total += len(addresses)
        bad += counts["none"]
        print(f"{os.path.basename(path)[:24]:24} {len(addresses):9} {counts['inlined']:8} {counts['all']:7} " +
              " ".join(f"{counts[k]:16}" for k in tools) + f" {counts['none']:7}")
        for results, where in sorted(classes.items(), key=lambda item: -len(item[1])):
            shown.append(f"\n{os.path.basename(path)}: {len(where)}: " +
                         ", ".join(f"{programs[key]}: {difference or 'equal'}" for key, difference in results))
            for a in where[:args.show]:
                shown += [f"  {a:#x}", f"    {'assay':6}{ours[a]}"]
                shown += [f"    {key:6}{chains.get(a)}" for key, chains in theirs.items()]
    print("\n".join(shown))
    print(f"\n{total} addresses, {bad} equal no tool ({100 * bad / max(total, 1):.2f} %)")
    return 1 if bad > 0.005 * total else 0


sys.exit(main())
