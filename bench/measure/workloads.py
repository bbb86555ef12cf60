"""Workloads: servers that run while profilers are attached and detached, and that report their throughput.

Each is a context manager. done() is a count that grows with the work, read from outside (the server's
own counter or the kernel's), so throughput can be taken over exactly the window that is wanted.
"""

import mmap
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time


class Unavailable(Exception):
    """The workload or profiler cannot run here; the message says why."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stop(process):
    """Ends a process that we started: SIGTERM, then SIGKILL."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def switches_of(task):
    """Context switches of one thread, of either kind, from its /proc directory."""
    with open(f"{task}/status") as status:
        return sum(int(line.split()[1]) for line in status if "voluntary_ctxt_switches" in line)


def tasks_of(pid):
    return [f"/proc/{pid}/task/{tid}" for tid in os.listdir(f"/proc/{pid}/task")]


class Workload:
    name = ""
    what = ""
    unit = ""
    pid = None

    def __exit__(self, *_):
        for process in self.processes:
            stop(process)

    def switches(self):
        """Context switches of the whole process so far."""
        return sum(switches_of(task) for task in tasks_of(self.pid))

    def cpu_ns(self):
        """CPU time of the whole process so far, exact (schedstat)."""
        return sum(int(open(f"{task}/schedstat").read().split()[0]) for task in tasks_of(self.pid))

    def check_alive(self):
        for process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"{self.name}: {process.args[0]} ended by itself with {process.returncode}")


class Redis(Workload):
    """redis-server, in memory only, under redis-benchmark's GET and SET without pipelining."""

    name = "redis"
    what = "redis-server, GET and SET, 16 connections, no pipelining"
    unit = "commands"

    def __enter__(self):
        for program in ("redis-server", "redis-benchmark"):
            if not shutil.which(program):
                raise Unavailable(f"{program} is missing; try: scripts/install-deps")
        self.directory = tempfile.TemporaryDirectory(prefix="assay-bench-")
        self.port = free_port()
        self.processes = [self.start_server()]
        self.pid = self.processes[0].pid
        self.connect()
        self.processes.append(self.start_load())
        time.sleep(1)
        return self

    def __exit__(self, *details):
        self.processes.reverse()  # the load first: it dislikes losing its server
        super().__exit__(*details)
        self.client.close()
        self.directory.cleanup()

    def start_server(self):
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no", "--daemonize", "no", "--dir", self.directory.name]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_load(self):
        command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.port), "-t", "get,set", "-c", "16",
                   "-n", "100000", "-l", "-q"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def connect(self):
        for _ in range(50):
            try:
                self.client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("redis-server did not answer within 5 s")

    def done(self):
        self.client.sendall(b"INFO stats\r\n")
        reply = b""
        while b"total_commands_processed" not in reply or not reply.endswith(b"\r\n"):
            reply += self.client.recv(65536)
        line = next(part for part in reply.split(b"\r\n") if part.startswith(b"total_commands_processed"))
        return int(line.split(b":")[1])


class PingPong(Workload):
    """Two threads on one CPU that pass a byte back and forth: nothing but context switches."""

    name = "switch-heavy"
    what = "lab/pingpong_server --pin: two threads on one CPU hand a byte to and fro"
    unit = "round trips"
    work_us = 0
    depth = 0

    def __init__(self, build):
        self.program = f"{build}/lab/pingpong_server"

    def __enter__(self):
        self.start(self.work_us)
        return self

    def start(self, work_us):
        self.directory = tempfile.TemporaryDirectory(prefix="assay-bench-")
        counter = os.path.join(self.directory.name, "round_trips")
        command = [self.program, "--pin", "--for", "100000", "--work-us", str(work_us), "--counter", counter,
                   "--depth", str(self.depth)]
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except FileNotFoundError:
            raise Unavailable(f"{self.program} is not built; try: make") from None
        self.processes = [process]
        process.stdout.readline()  # "ready PID"
        self.pid = process.pid
        with open(counter, "rb") as file:
            self.counter = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)

    def done(self):
        return struct.unpack("Q", self.counter[:])[0]


class DeepPingPong(PingPong):
    """The same 32 calls deeper in the stack."""

    name = "switch-heavy, deep"
    what = "lab/pingpong_server --pin --depth 32: the same with 32 more frames on each stack"
    depth = 32


class Memcached(Workload):
    """memcached with four threads under a load of small gets and sets from sockets of ours."""

    name = "memcached"
    what = "memcached -t 4, gets and sets over 16 connections"
    unit = "commands"

    def __enter__(self):
        if not shutil.which("memcached"):
            raise Unavailable("memcached is missing; try: scripts/install-deps")
        self.port = free_port()
        server = subprocess.Popen(["memcached", "-t", "4", "-l", "127.0.0.1", "-p", str(self.port), "-u", "nobody",
                                   "-U", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes = [server]
        self.pid = server.pid
        self.connect()
        load = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memcached_load.py")
        self.processes.append(subprocess.Popen([sys.executable, load, str(self.port)]))
        time.sleep(1)
        return self

    def __exit__(self, *details):
        self.processes.reverse()
        super().__exit__(*details)
        self.client.close()

    def connect(self):
        for _ in range(50):
            try:
                self.client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("memcached did not answer within 5 s")

    def done(self):
        self.client.sendall(b"stats\r\n")
        reply = b""
        while not reply.endswith(b"END\r\n"):
            reply += self.client.recv(65536)
        values = dict(line.split()[1:3] for line in reply.splitlines() if line.startswith(b"STAT"))
        return int(values[b"cmd_get"]) + int(values[b"cmd_set"])


class ModerateSwitching(PingPong):
    """The same with work between the hand-offs, so much that it switches about 7,000 times a second."""

    name = "moderate"
    what = "lab/pingpong_server --pin with work between hand-offs, at most 10k switches/s"
    wanted_switches = 7000

    def __enter__(self):
        work = 100
        for _ in range(3):  # the machine's speed is not known: approach the rate
            self.start(work)
            rate = self.rate()
            stop(self.processes[0])
            work = max(1, round(work * rate / self.wanted_switches))
        self.start(work)
        return self

    def rate(self):
        """Switches per CPU second: what it would do with a CPU of its own, however busy the machine is."""
        before, begin = self.switches(), self.cpu_ns()
        time.sleep(0.5)
        return (self.switches() - before) / (self.cpu_ns() - begin) * 1e9


def all_workloads(build):
    return [Redis(), Memcached(), PingPong(build), DeepPingPong(build), ModerateSwitching(build)]
