"""Profilers: started on a pid, stopped with SIGINT as a user would, and measured."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from .workloads import Unavailable

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Profiler:
    """One way of profiling. start() returns once it is attached; finish() returns its costs."""

    name = ""
    settle = 1.0  # seconds from start to attached, where it does not say so itself
    output = None  # name of its file
    process = None

    def check(self):
        """Raises Unavailable where it cannot run."""

    def command(self, pid, path):
        raise NotImplementedError

    def events(self, path):
        """How many samples and waits its file holds; None when it has none."""
        return None

    def start(self, pid, directory):
        self.path = os.path.join(directory, self.output) if self.output else None
        self.log = open(os.path.join(directory, "log"), "w+")
        self.process = subprocess.Popen(self.command(pid, self.path), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, cwd=directory)
        self.wait_until_attached()
        if not self.alive():
            raise RuntimeError(self.failure())

    def wait_until_attached(self):
        time.sleep(self.settle)

    def alive(self):
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def failure(self):
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        return f"{self.name} ended early: {lines[-1] if lines else 'it said nothing'}"

    def peak_rss(self):
        """VmHWM in bytes, of the profiler's own image only (rusage would include ours before exec)."""
        try:
            with open(f"/proc/{self.process.pid}/status") as status:
                match = re.search(r"VmHWM:\s+(\d+) kB", status.read())
                return int(match.group(1)) * 1024 if match else 0
        except OSError:
            return 0

    def finish(self, patience=60):
        """Stops it; gives CPU seconds, peak RSS, bytes and events."""
        if not self.alive():
            raise RuntimeError(self.failure())
        self.process.send_signal(signal.SIGINT)
        rss, deadline = 0, time.monotonic() + patience
        while self.alive():
            rss = max(rss, self.peak_rss())
            if time.monotonic() > deadline:
                self.process.kill()
            time.sleep(0.01)
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0  # reaped above; nothing for Popen to wait for
        self.process = None
        self.log.close()
        has_file = self.path and os.path.exists(self.path)
        return {
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "rss_bytes": rss,
            "bytes": os.path.getsize(self.path) if has_file else None,
            "events": self.events(self.path) if has_file else None,
        }

    def abandon(self):
        """Ends it without ceremony if finish() did not come to it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Nothing(Profiler):
    """The base line: the same pauses, without a profiler."""

    name = "nothing"

    def start(self, pid, directory):
        time.sleep(self.settle)

    def finish(self, patience=0):
        return {"cpu_seconds": 0.0, "rss_bytes": 0, "bytes": None, "events": None}


class Assay(Profiler):
    output = "run.assay"

    def __init__(self, build, backend):
        self.program = os.path.abspath(f"{build}/src/assay")
        self.backend = backend
        self.name = f"assay record, {backend}"

    def check(self):
        if not os.access(self.program, os.X_OK):
            raise Unavailable(f"{self.program} is not built; try: make")
        help_text = subprocess.run([self.program, "record", "--help"], capture_output=True, text=True)
        if "--backend" not in help_text.stdout:
            raise Unavailable("this build of assay has no choice of backends")
        with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
            tried = subprocess.run([self.program, "record", "--backend", self.backend, "--quiet", "-o",
                                    os.path.join(directory, "probe.assay"), "--", "true"],
                                   capture_output=True, text=True)
        if tried.returncode != 0:
            raise Unavailable(tried.stderr.strip().splitlines()[0])

    def command(self, pid, path):
        return [self.program, "record", "--backend", self.backend, "--pid", str(pid), "--for", "1h", "-o", path,
                "--quiet"]

    def events(self, path):
        report = subprocess.run([self.program, "report", path, "--format", "json"], capture_output=True, text=True)
        if report.returncode != 0:
            raise RuntimeError(f"assay report failed: {report.stderr.strip()}")
        try:
            quality = json.loads(report.stdout)["quality"]
            return quality["samples"] + quality["waits"]
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"assay report's JSON lacks quality.samples or quality.waits: {error}") from None


class Perf(Profiler):
    output = "perf.data"

    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments

    def check(self):
        if not shutil.which("perf"):
            raise Unavailable("perf is missing; try: scripts/install-deps")

    def command(self, pid, path):
        return ["perf", "record", "-q", *self.arguments, "-p", str(pid), "-o", path]

    def events(self, path):
        stats = subprocess.run(["perf", "report", "--stats", "-i", path], capture_output=True, text=True)
        match = re.search(r"SAMPLE events:\s+(\d+)", stats.stdout)
        return int(match.group(1)) if match else None


class Bpftrace(Profiler):
    name = "bpftrace off-CPU"

    def check(self):
        if not shutil.which("bpftrace"):
            raise Unavailable("bpftrace is missing; try: scripts/install-deps")
        if os.geteuid() != 0:
            raise Unavailable("bpftrace needs root; try: sudo bench/overhead")
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            raise Unavailable("this kernel has no BTF (/sys/kernel/btf/vmlinux)")
        if not os.path.exists("/sys/kernel/tracing/events/sched"):
            raise Unavailable("tracefs is not mounted; try: mount -t tracefs tracefs /sys/kernel/tracing")

    def command(self, pid, path):
        return ["bpftrace", "--no-warnings", os.path.join(BENCH, "offcpu.bt"), str(pid)]

    def wait_until_attached(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.alive():
            if "ready" in open(self.log.name).read():
                time.sleep(0.3)  # BEGIN runs just before the tracepoints are enabled
                return
            time.sleep(0.05)


def all_profilers(build):
    return [
        Nothing(),
        Assay(build, "bpf"),
        Assay(build, "perf"),
        Perf("perf record -F 99 -g", ["-F", "99", "-g"]),
        Perf("perf record -e cs -c 1 -g", ["-e", "cs", "-c", "1", "-g"]),
        Bpftrace(),
    ]


class Tracefs:
    """Mounts tracefs while the benchmark runs, where root may and it is not mounted."""

    point = "/sys/kernel/tracing"

    def __enter__(self):
        self.mounted = False
        if os.geteuid() == 0 and os.path.isdir(self.point) and not os.listdir(self.point):
            done = subprocess.run(["mount", "-t", "tracefs", "tracefs", self.point], capture_output=True)
            self.mounted = done.returncode == 0
            if self.mounted:
                print(f"mounted tracefs on {self.point} for bpftrace; it is unmounted at the end")
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", self.point], capture_output=True)
