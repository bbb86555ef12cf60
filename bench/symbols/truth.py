#!/usr/bin/env python3
"""Checks Assay's names against addr2line's and eu-addr2line's, address by address.

    bench/symbols/truth.py SYMBOLIZE FILE... [--per-file N] [--seed S] [--show K]

For each FILE, N addresses are drawn from its code; Assay's chain of (function, file, line) is compared with
that of both tools. A chain agrees when it equals either tool's; what agrees with neither is put into
classes and shown. Exit 1 when more than 0.5 % of all chains agree with neither.
"""
import argparse, collections, os, random, re, subprocess, sys


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


def binutils(path, addresses):
    out, chain = {}, None
    lines = iter(run(["addr2line", "-a", "-f", "-i", "-e", path], addresses))
    for line in lines:
        if re.match(r"^0x[0-9a-f]{16}$", line):
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
    print(f"{'file':32} {'addresses':>9} {'inlined':>8} {'= both':>8} {'= eu only':>9} {'= bu only':>9} {'neither':>8}")
    shown = []
    for path in args.files:
        addresses = code_addresses(path, args.per_file, rng)
        ours, eu, bu = assay(args.symbolize, path, addresses), elfutils(path, addresses), binutils(path, addresses)
        read_aliases(path)
        counts = collections.Counter()
        classes = collections.defaultdict(list)
        for a in addresses:
            first, second = compare(ours[a], eu.get(a, [])), compare(ours[a], bu.get(a, []))
            key = "both" if not first and not second else "eu" if not first else "bu" if not second else "none"
            counts[key] += 1
            counts["inlined"] += len(ours[a]) > 1
            if key != "both":
                classes[key, first, second].append(a)
        total += len(addresses)
        bad += counts["none"]
        print(f"{os.path.basename(path):32} {len(addresses):9} {counts['inlined']:8} {counts['both']:8} "
              f"{counts['eu']:9} {counts['bu']:9} {counts['none']:8}")
        for (key, first, second), where in sorted(classes.items()):
            shown.append(f"\n{os.path.basename(path)}: agrees with {key}: {len(where)} "
                         f"(eu-addr2line: {first or 'equal'}; addr2line: {second or 'equal'})")
            for a in where[:args.show]:
                shown += [f"  {a:#x}", f"    assay {ours[a]}", f"    eu    {eu.get(a)}", f"    bu    {bu.get(a)}"]
    print("\n".join(shown))
    print(f"\n{total} addresses, {bad} agree with neither ({100 * bad / max(total, 1):.2f} %)")
    return 1 if bad > 0.005 * total else 0


sys.exit(main())
