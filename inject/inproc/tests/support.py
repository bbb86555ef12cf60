"""What the tests of libassay in running programs share: programs to run, requests, and the readers people use.

A test script ends with run_case(globals()): SCRIPT CASE BUILD_DIR runs its function case_CASE. Exit 77: cannot run
here. Times: servers answer in milliseconds; waits are polls with a generous end, so that a loaded machine is slow
and not wrong.
"""
import contextlib
import glob
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

CASE, BUILD = sys.argv[1], sys.argv[2]
TESTS = os.path.join(BUILD, "tests")
LIBRARY = os.path.join(BUILD, "libassay.so")
WORKLOAD = os.path.join(TESTS, "inproc_shared_workload")
PLAIN = os.path.join(TESTS, "inproc_plain_workload")
SCRATCH = tempfile.mkdtemp(prefix="inproc-")


def run_case(cases):
    try:
        cases["case_" + CASE]()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def workload(*words, environment=None, program=WORKLOAD, address="127.0.0.1:0"):
    process = subprocess.Popen([program, "--serve", address, "--seconds", "90", *words], text=True,
                               stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
    try:
        line = process.stdout.readline().split()
        check(line and line[0] == "port", "the workload said", line)
        yield process, int(line[1])
        check(process.poll() is None, "the workload ended with", process.poll())
    finally:
        process.kill()
        process.wait()


def get(port, path, method="GET", body=None, headers=None, timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def wait_for_port(port, seconds=15):
    end = time.time() + seconds
    while time.time() < end:
        with contextlib.suppress(OSError):
            if get(port, "/debug/pprof/cmdline")[0] == 200:
                return True
        time.sleep(0.05)
    return False


def go_pprof(*words):
    if not shutil.which("go"):
        skip("go is not installed")
    environment = {**os.environ, "PPROF_TMPDIR": SCRATCH}
    done = subprocess.run(["go", "tool", "pprof", *words], capture_output=True, text=True, timeout=300,
                          env=environment)
    if done.returncode != 0 and "no such tool" in done.stderr:
        skip("this go has no pprof")
    check(done.returncode == 0, words, done.stderr)
    return done.stdout


def google_pprof(*words):
    if not shutil.which("google-pprof"):
        skip("google-pprof is not installed")
    done = subprocess.run(["google-pprof", "--text", *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "HOME": SCRATCH})
    check(done.returncode == 0, words, done.stderr)
    return done.stdout


def poll_for(text, read):
    """What is sampled shows up sooner or later."""
    end = time.time() + 20
    while text not in (seen := read()):
        check(time.time() < end, text, "is not in", seen)


def until(what, look):
    end = time.time() + 20
    while not (seen := look()):
        check(time.time() < end, "in vain waited for", what)
        time.sleep(0.02)
    return seen


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return file.read().split()


def thread_names(pid):
    names = []
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        with contextlib.suppress(OSError), open(path) as file:
            names.append(file.read().strip())
    return names


def wait_for_handler(pid, number):
    end = time.time() + 10
    while time.time() < end:
        with open(f"/proc/{pid}/status") as status:
            mask = next(line for line in status if line.startswith("SigCgt"))
        if int(mask.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.02)
    check(False, "no handler for signal", number)


def run_plain(environment, *words, expect=0):
    done = subprocess.run([PLAIN, *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": LIBRARY, **environment})
    check(done.returncode == expect, done.returncode, done.stderr)
    return done


def preloaded(words, environment=None, **more):
    port = free_port()
    process = subprocess.Popen(words, env={**os.environ, "LD_PRELOAD": LIBRARY, "ASSAY_HTTP": f"127.0.0.1:{port}",
                                           **(environment or {})}, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
    check(wait_for_port(port), words[0], "does not answer")
    return process, port
