"""libassay in programs that know nothing of it: the environment's switches, and who serves. See support.py for how to
run one.
"""
import contextlib
import glob
import gzip
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from support import (BUILD, LIBRARY, PLAIN, SCRATCH, WORKLOAD, skip, check, free_port, get, google_pprof, until,
                     children, thread_names, wait_for_handler, run_plain, preloaded, run_case)


def case_cpu_switches():
    base = os.path.join(SCRATCH, "cpu.prof")
    run_plain({"CPUPROFILE": base, "CPUPROFILE_FREQUENCY": "200"}, "--seconds", "0.8", "--fork")
    children = glob.glob(base + "_*")
    check(os.path.exists(base) and len(children) == 1, "a forked child writes its own file", children)
    with open(base, "rb") as file:
        words = memoryview(file.read(40)).cast("N")
        check(list(words) == [0, 3, 0, 5000, 0], list(words))
    check("burn_cpu" in google_pprof(PLAIN, children[0]))
    toggled(os.path.join(SCRATCH, "toggled"))
    zipped = os.path.join(SCRATCH, "zipped")
    run_plain({"CPUPROFILE": zipped, "ASSAY_PROFILE_FORMAT": "pprof"}, "--seconds", "0.5")
    with gzip.open(zipped) as file:
        check(b"burn_cpu" in file.read())
    wall = os.path.join(SCRATCH, "wall")
    run_plain({"CPUPROFILE": wall, "CPUPROFILE_REALTIME": "1", "CPUPROFILE_TIMER_SIGNAL": "40"}, "--seconds", "0.6")
    check("wait_for_bell" in google_pprof(PLAIN, wall), "by the clock on the wall, waits are seen")
    done = run_plain({"CPUPROFILE": "/nonexistent/x", "CPUPROFILE_FREQUENCY": "many"}, "--seconds", "0.2")
    check("libassay: " in done.stderr and "/nonexistent/x" in done.stderr, done.stderr)
    set_user_id(os.path.join(SCRATCH, "never"))


def toggled(base):
    process = subprocess.Popen([PLAIN, "--seconds", "60"], stdout=subprocess.DEVNULL,
                               env={**os.environ, "LD_PRELOAD": LIBRARY, "CPUPROFILE": base, "CPUPROFILESIGNAL": "12"})
    try:
        wait_for_handler(process.pid, 12)
        for number in range(2):
            process.send_signal(12)
            time.sleep(0.5)
            process.send_signal(12)
            end = time.time() + 10
            while not os.path.exists(f"{base}.{number}") and time.time() < end:
                time.sleep(0.02)
        check("burn_cpu" in google_pprof(PLAIN, base + ".1"))
        check(process.poll() is None)
    finally:
        process.kill()
        process.wait()
    check(not os.path.exists(base) and not os.path.exists(base + ".2"))


def case_forked_requests():
    """A forked child that is asked by signals, in the middle of malloc and of everything else."""
    for switch, ask, files in (("CPUPROFILE", "CPUPROFILESIGNAL", "{}_{}.*"),
                               ("HEAPPROFILE", "HEAPPROFILESIGNAL", "{}_{}.*.heap")):
        base = os.path.join(SCRATCH, switch)
        process = subprocess.Popen([PLAIN, "--seconds", "4", "--fork"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   env={**os.environ, "LD_PRELOAD": LIBRARY, switch: base, ask: "12",
                                        "ASSAY_HEAP_RATE": "65536"})
        try:
            wait_for_handler(process.pid, 12)
            child = int(until("a forked child", lambda: children(process.pid))[0])
            until("the child's keeper", lambda: "assay-keeper" in thread_names(child))
            with contextlib.suppress(ProcessLookupError):  # it has worked its seconds off: the parent says how it ended
                for _ in range(100):
                    os.kill(child, 12)
                    time.sleep(0.01)
            until("its profiles", lambda: glob.glob(files.format(base, child)))
            check(process.wait(timeout=60) == 0, "it ended with", process.returncode)
        finally:
            process.kill()
            process.wait()


def set_user_id(path):
    if os.geteuid() != 0:
        return
    program = os.path.join(SCRATCH, "set_user_id")
    shutil.copy(WORKLOAD, program)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    os.chmod(SCRATCH, 0o777)
    if os.statvfs(SCRATCH).f_flag & os.ST_NOSUID:
        return
    subprocess.run([program, "--seconds", "0.3"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CPUPROFILE": path, "LD_LIBRARY_PATH": BUILD})
    check(not glob.glob(path + "*"), "a setuid program wrote a profile")


def case_heap_switches():
    base = os.path.join(SCRATCH, "heap")
    environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HEAPPROFILE": base, "HEAPPROFILESIGNAL": "10",
                   "ASSAY_HEAP_RATE": "65536", "HEAP_PROFILE_ALLOCATION_INTERVAL": "0",
                   "HEAP_PROFILE_INUSE_INTERVAL": "0"}
    process = subprocess.Popen([PLAIN, "--seconds", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=environment)
    wait_for_handler(process.pid, 10)
    time.sleep(1)
    process.send_signal(10)
    said = process.communicate(timeout=60)[1]
    check(process.returncode == 0 and said.count("heap profile in") == 2, said)
    check("keep_memory" in google_pprof(PLAIN, base + ".0001.heap"))
    with open(base + ".0001.heap") as file:
        check(file.readline().startswith("heap profile: "))
    # The document's commands: CPUPROFILESIGNAL with HEAPPROFILE asks for a heap profile.
    base = os.path.join(SCRATCH, "document")
    done = run_plain({"HEAPPROFILE": base, "CPUPROFILESIGNAL": "12", "HEAP_PROFILE_INUSE_INTERVAL": "2000000",
                      "HEAP_PROFILE_TIME_INTERVAL": "1", "ASSAY_PROFILE_FORMAT": "pprof"}, "--seconds", "1.8")
    files = sorted(glob.glob(base + ".*.heap"))
    check(len(files) >= 3, files, done.stderr)
    with gzip.open(files[1]) as file:
        check(b"keep_memory" in file.read())


def look_at(port):
    for path in ("heap", "goroutine", "mutex", "block", "threadcreate"):
        status, _, body = get(port, "/debug/pprof/" + path)
        check(status == 200 and gzip.decompress(body), path, status, body[:100])
    return gzip.decompress(get(port, "/debug/pprof/profile?seconds=1")[2])


def serving(port):
    """The program that answers, and its arguments."""
    with contextlib.suppress(OSError):
        return get(port, "/debug/pprof/cmdline", timeout=5)[2].decode().split("\0")
    return [""]


def case_wrappers():
    """The server serves, whichever wrapper started it; a program with work of its own keeps the address."""
    server = f"{PLAIN} --seconds 90"
    for words in (["env", "A=1", *server.split()], ["sh", "-c", server], ["sh", "-c", server + "; true"],
                  ["timeout", "80", *server.split()],
                  ["timeout", "80", "env", "B=2", "sh", "-c", f"mkdir {SCRATCH}/made; env C=3 {server}; true"]):
        process, port = preloaded(words, start_new_session=True)
        try:
            until(f"the server behind {words}", lambda: serving(port)[0] == PLAIN)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    beside_others(server)
    # Taken back when the child has ended, and released again.
    process, port = preloaded(["sh", "-c", f"{PLAIN} --seconds 0.2; read line; {server}; true"], start_new_session=True)
    try:
        until("the shell", lambda: serving(port)[0] == "sh")
        process.stdin.write("go on\n")
        process.stdin.flush()
        until("the server", lambda: serving(port)[0] == PLAIN)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    script = f"import subprocess\nhelper = subprocess.Popen('{server}'.split())\nwhile True: pass"
    process, port = preloaded([sys.executable, "-c", script], start_new_session=True)
    try:
        until("its helper", lambda: children(process.pid))
        for _ in range(20):
            check(serving(port)[0] != PLAIN, "a helper took the address of a program that works")
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # A profile of the whole run is of the server, too.
    base = os.path.join(SCRATCH, "executed.prof")
    subprocess.run(["env", "A=1", PLAIN, "--seconds", "0.8"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "LD_PRELOAD": LIBRARY, "CPUPROFILE": base})
    check(glob.glob(base + "*") == [base], glob.glob(base + "*"))
    check("burn_cpu" in google_pprof(PLAIN, base))


def beside_others(server):
    """In a pipe, or beside programs that sleep, the program that works serves, independent of the order."""
    alone = f"{sys.executable} -c 'while True: pass'"  # with one thread, as filters have
    for command, name in ((f"{server} | cat", PLAIN), (f"{server} | tee {SCRATCH}/log", PLAIN),
                          (f"cat | {server} | cat | cat", PLAIN), (f"sleep 80 & {server}", PLAIN),
                          (f"sleep 80 & sleep 0.3; {server}", PLAIN), (f"(sleep 0.3; {alone}) | cat", sys.executable)):
        process, port = preloaded(["sh", "-c", command], start_new_session=True)
        try:
            until(f"the program that works of {command}", lambda: serving(port)[0] == name)
            time.sleep(0.5)
            check(serving(port)[0] == name, "and it keeps the address")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def case_preload_redis():
    if not shutil.which("redis-server"):
        skip("redis-server is not installed")
    redis_port = free_port()
    words = ["redis-server", "--port", str(redis_port), "--save", "", "--daemonize", "yes", "--dir", SCRATCH]
    process, port = preloaded(words)
    check(process.wait(20) == 0, "it became a daemon")
    load = subprocess.Popen(["redis-benchmark", "-p", str(redis_port), "-q", "-l", "-t", "set,get"],
                            stdout=subprocess.DEVNULL)
    try:
        check(b"aeMain" in look_at(port))
        allocations = gzip.decompress(get(port, "/debug/pprof/allocs")[2])
        check(b"zmalloc" in allocations)
    finally:
        load.kill()
        load.wait()
        with socket.create_connection(("127.0.0.1", redis_port)) as connection:
            connection.sendall(b"SHUTDOWN NOSAVE\r\n")
            connection.recv(64)


def case_preload_python():
    script = """
import subprocess, sys, threading
done = False
def work():
    while not done: sorted(str(i) for i in range(2000))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
assert subprocess.run(['/bin/echo', 'x'], capture_output=True, check=True).stderr == b''
sys.stdin.read()
done = True
for thread in threads: thread.join()
"""
    process, port = preloaded([sys.executable, "-c", script])
    check(b"PyEval" in look_at(port))
    said = process.communicate(timeout=60)[1]
    check(process.returncode == 0 and said == "", process.returncode, said)


def case_preload_node():
    node = shutil.which("node")
    if not node:
        skip("node is not installed")
    script = """
let done = false;
process.stdin.on('data', () => {}).on('end', () => { done = true });
function hot() { let s = ''; for (let i = 0; i < 20000; i++) s += i; return s.length }
(function loop() { hot(); if (!done) setImmediate(loop) })()
"""
    process, port = preloaded([node, "-e", script])
    check(b"node" in look_at(port))
    said = process.communicate(timeout=60)[1]
    check(process.returncode == 0 and said == "", process.returncode, said)


def case_needs_only_libc():
    done = subprocess.run(["readelf", "-dW", LIBRARY], capture_output=True, text=True)
    needed = {line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line}
    check(needed <= {"libc.so.6", "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed)


run_case(globals())
