#!/usr/bin/env python3
"""Opens hostile files and attaches to hostile programs, many times, and counts by a tracer (strace) what Assay did to files.

  hostile_loop.py --assay ASSAY --opens 10000
  hostile_loop.py --assay ASSAY --target SECURITY_HOSTILE_TARGET --attaches 1000

Counted are: files outside the output folder that were opened for writing, made, cut, renamed, linked or deleted; files
that are not regular (pipes, devices, sockets) and were opened; deaths of Assay by a signal, and commands that did not end.
All must be 0. The seed is printed; an input is made of the seed and its number alone. Ends with 77 where it cannot run.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
CALLS = ("open,openat,openat2,creat,truncate,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,"
         "link,linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown")
MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
NOBODY = 65534
SKIPPED = 77
# What any program opens, besides files.
HARMLESS = {"/dev/null", "/dev/urandom", "/dev/random", "/dev/tty"}


class Tally:
    """What was seen, with some examples of what should not have been."""

    def __init__(self):
        self.counts = Counter()
        self.examples = []

    def bad(self, kind, what):
        self.counts[kind] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{kind}: {what}")
            print(self.examples[-1], flush=True)


class Trace:
    """Reads the calls that strace wrote. Paths are those that the kernel found (strace -y)."""

    LINE = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (\d+)(?:<(.*)>)?(?: .*)?$")

    def __init__(self, allowed, tally):
        self.allowed = tuple(str(a) + "/" for a in allowed)
        self.tally = tally

    def is_allowed(self, path):
        return path.startswith(self.allowed) or path.startswith(("/memfd:", "/dev/shm/sem."))

    def read(self, path):
        for line in open(path, errors="replace"):
            if found := self.LINE.match(line):
                self.tally.counts["calls"] += 1
                self.look(*found.groups())

    def look(self, call, arguments, _, result):
        if call in ("open", "openat", "openat2", "creat"):
            return self.look_at_open(arguments, result or "")
        named = [self.place(arguments, name) for name in re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)]
        if call in ("ftruncate", "fchmod", "fchown"):
            named = re.findall(r"^\d+<([^>]*)>", arguments)
        for name in named:
            if not self.is_allowed(name):
                self.tally.bad(call, f"{name} ({call}({arguments[:200]}))")

    @staticmethod
    def place(arguments, name):
        folder = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", arguments)
        return os.path.normpath(os.path.join(folder.group(1), name)) if folder else name

    def look_at_open(self, arguments, result):
        path = re.sub(r"<(char|block) [\d:]+>$", "", result)
        if "O_PATH" in arguments:
            return
        if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", arguments) and path not in HARMLESS:
            self.tally.counts["written"] += 1
            if not self.is_allowed(path):
                self.tally.bad("opened for writing", f"{path} ({arguments[:200]})")
        self.tally.counts["opened"] += 1
        if path in HARMLESS or path.startswith(("/proc/", "/sys/", "/memfd:")):
            return
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            self.tally.bad("not a regular file", path)


# --- hostile files ---------------------------------------------------------------------------------------------------


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 16, 64))):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at + 4] = struct.pack(rng.choice("<>") + "I", rng.choice((0, 1, 0x7fffffff, 0xffffffff, len(data))))
        elif kind == 2:
            del data[at:]
            data += b"\0" * rng.choice((0, 1, 512))
        elif kind == 3:
            data[at:at] = data[at:at + rng.randrange(200)]
        else:
            data[at:at + 8] = rng.randbytes(8)
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def journal_header(page, pages):
    return (MAGIC + struct.pack(">IIIII", 0, 1, pages, 512, page)).ljust(512, b"\0")


def super_journal(name):
    name = os.fsencode(str(name))
    total = sum(struct.unpack(f"{len(name)}b", name)) & 0xffffffff
    return struct.pack(">I", 0xffffffff) + name + struct.pack(">II", len(name), total) + MAGIC


class Maker:
    """Hostile files, in a folder for each."""

    BESIDE = ("none", "super", "super-mutated", "cut", "killed", "killed-mutated", "link", "hard", "pipe", "device",
              "folder", "foreign", "wal")
    SELF = ("file",) * 8 + ("link", "pipe", "device", "folder", "link-to-device")

    def __init__(self, runs, killed, inputs, victims):
        self.runs, self.killed, self.inputs, self.victims = runs, killed, inputs, victims

    def run(self, folder, rng):
        """A run file and what stands beside it; out: its path."""
        path = folder / "run.assay"
        beside = rng.choice(self.BESIDE)
        data, journal = self.killed if beside.startswith("killed") else (rng.choice(self.runs), b"")
        self.put(path, mutate(data, rng) if rng.random() < 0.7 else data, rng)
        self.put_beside(Path(f"{path}-journal"), beside, data, journal, rng)
        if beside == "wal":
            Path(f"{path}-wal").write_bytes(rng.randbytes(4096))
            os.symlink(self.victims[0], f"{path}-shm")
        return path

    def put(self, path, data, rng):
        kind = rng.choice(self.SELF)
        if kind == "file":
            path.write_bytes(data)
        elif kind == "link":
            (path.parent / "elsewhere").write_bytes(data)
            path.symlink_to(path.parent / "elsewhere")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "link-to-device":
            path.symlink_to(rng.choice(("/dev/zero", "/dev/full", "/dev/stdin", "/dev/mem")))
        else:
            self.put_device(path)

    @staticmethod
    def put_device(path):
        if os.geteuid() == 0:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        else:
            path.symlink_to("/dev/zero")

    def put_beside(self, path, kind, data, journal, rng):
        page = struct.unpack(">H", data[16:18])[0] or 4096
        pages = len(data) // page
        victim = rng.choice(self.victims)
        names = journal_header(page, pages) + super_journal(victim)
        if kind in ("super", "foreign"):
            path.write_bytes(names)
            if kind == "foreign" and os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
        elif kind == "super-mutated":
            path.write_bytes(mutate(names, rng))
        elif kind == "cut":
            path.write_bytes(journal_header(page, rng.choice((0, 1, pages // 2, pages + 9, 0xffffffff))))
        elif kind == "killed":
            path.write_bytes(journal)
        elif kind == "killed-mutated":
            path.write_bytes(mutate(journal, rng))
        elif kind == "link":
            path.symlink_to(victim)
        elif kind == "hard":
            os.link(victim, path)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            self.put_device(path)
        elif kind == "folder":
            path.mkdir()

    def foreign(self, folder, rng):
        """A profile of another program; out: its path. No pipe: one that the user names is read, as he asked."""
        path = folder / ("input" + rng.choice(("", ".pb.gz", ".folded", ".data", ".json")))
        path.write_bytes(mutate(rng.choice(self.inputs), rng))
        return path


def commands_for(assay, maker, folder, out, number, rng):
    path, good = maker.run(folder, rng), maker.good
    kind = rng.randrange(8)
    if kind == 0:
        return [assay, "import", "--overwrite", "-o", f"{out}/{number}.assay", str(maker.foreign(folder, rng))]
    if kind == 4 and path.is_fifo():
        kind = 1  # export reads a pipe that the user names: it may be another program's profile
    return [[assay, "report", str(path)],
            [assay, "report", str(path), "--format", "json"],
            [assay, "sql", str(path), "SELECT * FROM waits LIMIT 9"],
            [assay, "export", str(path), "--format", "folded"],
            [assay, "diff", str(path), str(good)],
            [assay, "rules", "test", str(path)],
            [assay, "report", str(path), "--format", "html", "-o", f"{out}/{number}.html"]][kind - 1]


# One process that starts all commands of a batch, so that one tracer sees them; it says how each ended.
STARTER = """
import os, signal, sys, json
for command in json.load(sys.stdin):
    pid = os.spawnv(os.P_NOWAIT, command[0], command)
    signal.signal(signal.SIGALRM, lambda *a: os.kill(pid, signal.SIGKILL))
    signal.alarm(60)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm(0)
    print(code, " ".join(command), flush=True)
"""


def trace_batch(commands, log, tally):
    traced = ["strace", "-f", "--seccomp-bpf", "-qq", "-yy", "-s", "400", "-e", "trace=" + CALLS, "-e", "signal=none",
              "-e", "status=successful", "-o", str(log), sys.executable, "-S", "-c", STARTER]
    done = subprocess.run(traced, input=json.dumps(commands), text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    ends = 0
    for line in done.stdout.splitlines():
        code, _, command = line.partition(" ")
        if not re.fullmatch(r"-?\d+", code) or not command.startswith(commands[0][0]):
            continue
        ends += 1
        tally.counts["accepted" if code == "0" else "refused"] += 1
        if int(code) < 0:
            kind = "did not end in a minute" if int(code) == -signal.SIGKILL else f"died of signal {-int(code)}"
            tally.bad(kind, command)
    if ends != len(commands):
        tally.bad("commands without an end", f"{len(commands) - ends} of a batch")


def killed_run(assay, folder):
    """A capture that was killed in the middle of a transaction: a run and its journal; where none can be had, a plain one."""
    path = folder / "killed.assay"
    journal = Path(f"{path}-journal")
    for _ in range(10):
        for left in (path, journal):
            left.unlink(missing_ok=True)
        capture = subprocess.Popen([assay, "record", "-q", "-o", str(path), "--for", "9s", "--", "sh", "-c",
                                    "i=0; while [ $i -lt 300 ]; do ls / >/dev/null; i=$((i+1)); done"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline and capture.poll() is None:
            if journal.exists() and journal.stat().st_size > 600:
                break
        os.killpg(capture.pid, signal.SIGKILL)
        capture.wait()
        if journal.exists() and journal.stat().st_size > 600:
            return path.read_bytes(), journal.read_bytes()
    return None


def contents(folder):
    return {str(p): (p.read_bytes(), p.stat().st_mode) for p in sorted(folder.rglob("*")) if p.is_file()}


def hostile_opens(args, base, tally):
    safe, out, work = base / "safe", base / "out", base / "work"
    victims = [safe / "victim", safe / "victim.assay"]
    for name, victim in enumerate(victims):
        victim.write_bytes(b"precious %d" % name)
    inputs = [p.read_bytes() for p in sorted(GOLDEN.iterdir()) if p.suffix != ".md" and p.stat().st_size < 400_000]
    good, runs = safe / "good.assay", []
    for golden in ("stacks.folded", "go_heap.pb.gz", "perf_fp.data", "gperftools.cpu"):
        subprocess.run([args.assay, "import", "-q", "--overwrite", "-o", str(good), str(GOLDEN / golden)],
                       check=False, capture_output=True)
        if good.exists():
            runs.append(good.read_bytes())
    killed = killed_run(args.assay, safe) or (runs[0], journal_header(1024, len(runs[0]) // 1024))
    maker = Maker(runs, killed, inputs, victims)
    maker.good = good
    before = contents(safe)
    trace = Trace([out], tally)
    for begin in range(0, args.opens, args.batch):
        commands = []
        for number in range(begin, min(args.opens, begin + args.batch)):
            folder = work / str(number)
            folder.mkdir(parents=True)
            rng = random.Random(f"{args.seed} open {number}")
            commands.append(commands_for(args.assay, maker, folder, out, number, rng))
        log = base / "log"
        trace_batch(commands, log, tally)
        trace.read(log)
        tally.counts["opens"] += len(commands)
        if contents(safe) != before:
            tally.bad("a victim changed", f"batch {begin}")
            before = contents(safe)
        shutil.rmtree(work)
        for made in out.glob("*.*"):
            made.unlink()
        tell(args, tally)


# --- hostile targets -------------------------------------------------------------------------------------------------


def as_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def start_target(args, base, number, rng, stranger):
    victim = base / "safe" / "readable"
    mode = rng.choice(("swap", "claim", "storm", "exec", "swap"))
    argument = {"swap": str(victim), "claim": str(stranger)}.get(mode, "1")
    target = subprocess.Popen([str(base / "program" / "hostile_target"), mode, argument], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, preexec_fn=as_nobody, start_new_session=True)
    target.stdout.readline()
    return mode, target


def end_target(target):
    """The target and all that it forked: they are of its session."""
    for _ in range(100):
        try:
            os.killpg(target.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
        if target.poll() is not None:
            break
        time.sleep(0.01)
    target.wait()
    target.stdout.close()


def hostile_attaches(args, base, tally):
    program = base / "program"
    program.mkdir()
    program.chmod(0o755)
    shutil.copy(args.target, program / "hostile_target")
    (program / "hostile_target").chmod(0o755)
    victim = base / "safe" / "readable"
    victim.write_bytes(b"p" * (1 << 20))
    victim.chmod(0o644)
    stranger = subprocess.Popen(["sleep", "100000"])
    before = contents(base / "safe")
    trace = Trace([base / "out", "/dev/shm/assay"], tally)
    try:
        for number in range(args.attaches):
            rng = random.Random(f"{args.seed} attach {number}")
            mode, target = start_target(args, base, number, rng, stranger.pid)
            alive = target.poll() is None
            command = rng.choice((["heap"], ["heap"], ["record"], ["record", "--heap"]))
            commands = [[args.assay, *command, "-q", "--overwrite", "-o", f"{base}/out/run.assay", "--for", "100ms",
                         "--pid", str(target.pid)]]
            try:
                trace_batch(commands, base / "log", tally)
            except BaseException:
                end_target(target)
                raise
            trace.read(base / "log")
            tally.counts["attaches"] += 1
            tally.counts[f"attaches to {mode}"] += 1
            if alive and mode in ("swap", "claim") and target.poll() is not None:
                tally.bad("the target died", f"{mode} {number}: {target.returncode}")
            end_target(target)
            if "assay" in Path(f"/proc/{stranger.pid}/maps").read_text():
                tally.bad("a stranger was injected", f"{mode} {number}")
            if contents(base / "safe") != before:
                tally.bad("a victim changed", f"{mode} {number}")
                before = contents(base / "safe")
            if number % 10 == 9:
                tell(args, tally)
    finally:
        stranger.kill()
        stranger.wait()


def tell(args, tally):
    if not args.quiet:
        print(dict(tally.counts), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", required=True)
    parser.add_argument("--target", help="security_hostile_target, for attaches")
    parser.add_argument("--opens", type=int, default=0)
    parser.add_argument("--attaches", type=int, default=0)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    if shutil.which("strace") is None:
        print("skipped: strace is not installed")
        return SKIPPED
    if args.attaches and os.geteuid() != 0:
        print("skipped: needs root, and targets of another user")
        return SKIPPED
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="assay-hostile-") as name:
        base = Path(os.path.realpath(name))
        base.chmod(0o755)
        for folder in ("safe", "out", "work"):
            (base / folder).mkdir()
        # Caches and temporary files belong to the output.
        os.environ.update(XDG_CACHE_HOME=f"{base}/out", HOME=f"{base}/out", TMPDIR=f"{base}/out")
        (base / "out").chmod(0o700)
        print(f"seed {args.seed}: {args.opens} opens, {args.attaches} attaches", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            if args.opens:
                hostile_opens(args, base, tally)
            if args.attaches:
                hostile_attaches(args, base, tally)
        except KeyboardInterrupt:
            print("ended early")
    print(dict(tally.counts))
    if not tally.examples:
        print("nothing outside the output path was changed, and no pipe or device was opened")
    return 1 if tally.examples else 0


if __name__ == "__main__":
    sys.exit(main())
