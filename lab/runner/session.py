"""A running server of the lab with its load, and the check that nothing of it is left afterwards.

Every process that a session starts, and every child of one, carries LAB_SESSION=<id> in its
environment; by this mark, processes that are left behind are found even when they have another parent by then. Sessions end
their own processes by pid and nothing else.
"""
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

LAB = pathlib.Path(__file__).resolve().parent.parent
START_SECONDS = 20
STOP_SECONDS = 10


class SessionError(Exception):
    pass


class Unavailable(SessionError):
    """The machine lacks something that the scenario needs; it is skipped."""


def processes_of(session_id):
    """Pids whose environment carries the session's mark (zombies have none)."""
    mark = f"LAB_SESSION={session_id}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = pathlib.Path("/proc", entry, "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            found.append(int(entry))
    return found


def is_listening(port):
    """Whether a process listens on 127.0.0.1:port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def keep_niceness():
    """Where the kernel schedules by session (autogroup), `nice lab/run` would have no effect on the
    sessions it starts: they get the same niceness as a group."""
    try:
        pathlib.Path("/proc/self/autogroup").write_text(str(os.nice(0)))
    except OSError:
        pass  # no such scheduling, or not allowed


class CpuQuota:
    """A control group that may use so much of one CPU; version 2, or version 1 where that is it."""

    PERIOD_US = 100_000

    def __init__(self, name, percent):
        self.path = None
        if not percent:
            return
        quota_us = self.PERIOD_US * percent // 100
        old, new = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
        try:
            if (old / "cpu.cfs_quota_us").exists():
                self.path = old / f"lab-{name}"
                self.path.mkdir()
                (self.path / "cpu.cfs_period_us").write_text(str(self.PERIOD_US))
                (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                self.path = new / f"lab-{name}"
                self.path.mkdir()
                (self.path / "cpu.max").write_text(f"{quota_us} {self.PERIOD_US}")
        except OSError as error:
            self.remove()
            raise Unavailable(f"no control group with a CPU quota: {error.strerror}") from error

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        try:
            if self.path:
                self.path.rmdir()
        except OSError:
            pass  # never made, or gone


class Session:
    """Use as a context manager; leaving it stops everything. `leftovers` then lists what stayed."""

    def __init__(self, build, scenario, variant="faulty"):
        self.build = pathlib.Path(build).resolve()
        self.scenario = scenario
        self.variant = variant
        self.id = uuid.uuid4().hex
        self.port = 0
        self.server = self.load = None
        self.beside = []
        self.leftovers = []
        self.shared_memory_before = set(os.listdir("/dev/shm"))
        self.directory = self.quota = self.exit_status = None

    # What the words in a scenario's commands stand for.
    def expand(self, text, seconds=4):
        known = {"port": self.port, "dir": self.directory, "lab": LAB, "build": self.build,
                 "bin": self.build / "lab", "assay": self.build / "src/assay", "seconds": seconds,
                 "pid": self.server.pid if self.server else 0}
        for word, value in known.items():
            text = text.replace("{" + word + "}", str(value))
        return shlex.split(text)

    def environment(self):
        """What the recording finds in its environment beside our own."""
        return {name: self.expand(text)[0]
                for name, text in self.scenario.data.get("environment", {}).items()}

    def start_process(self, words, before_exec=None, **streams):
        environment = dict(os.environ, LAB_SESSION=self.id)

        def prepare():
            keep_niceness()
            if before_exec:
                before_exec()

        try:
            return subprocess.Popen(words, env=environment, start_new_session=True,
                                    stdin=subprocess.DEVNULL, preexec_fn=prepare, **streams)
        except OSError as error:
            raise SessionError(f"cannot start {words[0]}: {error.strerror}") from error

    def __enter__(self):
        # Beside the build, not in /tmp: disk faults need a disk, and /tmp may be memory.
        parent = self.build / "lab-sessions"
        parent.mkdir(exist_ok=True)
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=parent))
        try:
            self.start_server()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def server_command(self):
        server = self.scenario.server
        words = self.expand(self.scenario.of("flags", self.variant))
        if "/" in server or "{" in server:
            return [*self.expand(server), *words]
        program = self.build / "lab" / server
        if not program.exists():
            raise Unavailable(f"{program} is not built (make; the servers in other languages: "
                              f"cmake --build {self.build} --target lab_polyglot)")
        return [str(program), *words]

    def start_server(self):
        for tool in self.scenario.data.get("needs", []):
            if not shutil.which(tool):
                raise Unavailable(f"{tool} is not there")
        setup = self.scenario.of("setup", self.variant)
        if setup:
            done = subprocess.run(self.expand(setup), capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                raise SessionError(f"setup failed: {done.stderr.strip()}")
        self.stdout_path = self.directory / "server.out"
        self.stderr_path = self.directory / "server.err"
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.quota = CpuQuota(self.id, self.scenario.of("cpu_percent", self.variant, 0))
            self.server = self.start_process(self.server_command(), self.quota.enter, stdout=out,
                                             stderr=err)
        deadline = time.monotonic() + START_SECONDS
        while not self.port:
            for line in self.stdout_path.read_text(errors="replace").splitlines():
                if line.startswith("listening 127.0.0.1:"):
                    self.port = int(line.rsplit(":", 1)[1])
            if self.port:
                break
            if self.server.poll() is not None:
                raise SessionError(f"{self.scenario.server} ended with {self.server.returncode}: "
                                   + self.stderr_path.read_text(errors="replace").strip())
            if time.monotonic() > deadline:
                raise SessionError(f"{self.scenario.server} said no port in {START_SECONDS} s")
            time.sleep(0.02)
        beside = self.scenario.of("beside", self.variant)
        if beside:
            self.beside.append(self.start_process(self.expand(beside), stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL))

    def server_processes(self):
        """Pids of the server and its children."""
        found = []
        for pid in processes_of(self.id):
            try:
                if os.getsid(pid) == self.server.pid:
                    found.append(pid)
            except ProcessLookupError:
                continue
        return sorted(found)

    def load_words(self, seconds):
        """The load as a command that ends after so many seconds with a JSON object."""
        words = self.expand(self.scenario.of("load", self.variant), seconds)
        if not self.scenario.loaded_by_assay:
            return words
        return [self.build / "src/assay", "load", *words, "--for", f"{seconds}s", "--json"]

    def load_for_record(self, seconds):
        """The load as `assay record --load` takes it."""
        return shlex.join(self.expand(self.scenario.of("load", self.variant), seconds))

    def start_load(self, seconds):
        self.load_path = self.directory / "load.out"
        with open(self.load_path, "wb") as out, open(self.directory / "load.err", "wb") as err:
            self.load = self.start_process(self.load_words(seconds), stdout=out, stderr=err)

    def finish_load(self, timeout):
        """Waits for the load to end by itself; returns what it measured."""
        try:
            status = self.load.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise SessionError("the load did not end in time") from error
        text = self.load_path.read_text(errors="replace")
        try:
            result = json.loads(text[text.index("{"):])
        except ValueError as error:
            complaint = (self.directory / "load.err").read_text(errors="replace").strip()
            raise SessionError(f"the load (exit {status}) gave no JSON: {complaint}") from error
        return result

    def stop(self):
        for process in [self.load, *self.beside]:
            end(process, os.killpg)  # a shell or script among them may have children
        if self.server:
            self.exit_status = end(self.server, os.kill)
        self.collect_leftovers()
        if self.quota:
            self.quota.remove()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def collect_leftovers(self):
        """What is still there a moment after the end; it is named, and then removed."""
        deadline = time.monotonic() + 2
        while (pids := processes_of(self.id)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in pids:
            try:
                name = pathlib.Path("/proc", str(pid), "comm").read_text().strip()
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
            self.leftovers.append(f"process {pid} ({name})")
        # A dying process loses its environment before its sockets.
        while self.port and is_listening(self.port) and time.monotonic() < deadline:
            time.sleep(0.05)
        if self.port and is_listening(self.port):
            self.leftovers.append(f"port {self.port}")
        for name in set(os.listdir("/dev/shm")) - self.shared_memory_before:
            if "lab" in name:
                self.leftovers.append(f"shared memory /dev/shm/{name}")


def end(process, kill):
    """SIGTERM, then SIGKILL, to the process or to its group; returns the exit status."""
    if process is None:
        return None
    if process.poll() is None:
        kill(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill(process.pid, signal.SIGKILL)
    return process.wait()
