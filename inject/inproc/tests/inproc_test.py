"""libassay in running programs: every endpoint, switch and refusal, against the readers people use.

inproc_test.py CASE BUILD_DIR: CASE is one of the functions case_* below. Exit 77: cannot run here.
Times: servers answer in milliseconds; waits below are polls with a generous end, so that a loaded machine is
slow and not wrong. Sampled numbers are compared by what must dominate, never by exact shares.
"""
import concurrent.futures
import contextlib
import glob
import gzip
import http.client
import json
import os
import shutil
import signal
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


def case_go_tool_pprof():
    with workload() as (_, port):
        root = f"http://127.0.0.1:{port}/debug/pprof/"
        time.sleep(0.5)
        top = go_pprof("-top", root + "profile?seconds=1")
        check("burn_cpu(long)" in top and "compute(int)" in top and "Type: cpu" in top, top)
        check("Build ID: " in top, top)
        tags = go_pprof("-tags", root + "profile?seconds=1")
        check("worker:" in tags and "method:" in tags and "burn" in tags, tags)
        expected = {"heap": "keep_memory", "allocs": "Type: alloc_space", "mutex": "hold_hot_mutex",
                    "block": "wait_for_bell", "threadcreate": "main", "goroutine": "start_thread"}
        for name, function in expected.items():
            poll_for(function, lambda: go_pprof("-top", root + name))
        # Who wanted the memory is charged, not the wrapper it came through, which the stacks do have.
        check("xmalloc" not in go_pprof("-top", root + "heap"))
        check(b"xmalloc" in get(port, "/debug/pprof/heap?debug=1")[2])
        poll_for("worker:", lambda: go_pprof("-tags", root + "mutex"))  # labels reach lock waits
        poll_for("worker:", lambda: go_pprof("-tags", root + "allocs"))  # and allocations
        delta = go_pprof("-top", root + "mutex?seconds=1")
        check("hold_hot_mutex" in delta and "Duration: 1" in delta, delta)


def case_google_pprof():
    with workload() as (_, port):
        root = f"http://127.0.0.1:{port}/pprof/"
        time.sleep(0.5)
        check("burn_cpu" in google_pprof("--seconds=1", root + "profile"))
        poll_for("keep_memory", lambda: google_pprof(root + "heap"))
        check("wait_for_bell" in google_pprof(root + "contention"))


def case_semantics():
    with workload() as (process, port):
        def error(path, status, text, **more):
            got, headers, body = get(port, path, **more)
            check(got == status and headers.get("X-Go-Pprof") == "1" and text in body.decode(), path, got,
                  headers, body)

        error("/debug/pprof/nonsense", 404, "Unknown profile")
        for value in ("-1", "x", "0", "1.5"):
            error(f"/debug/pprof/heap?seconds={value}", 400, 'invalid value for "seconds"')
        error("/debug/pprof/mutex?seconds=1&debug=1", 400, "incompatible")
        error("/debug/pprof/profile?seconds=99999", 400, "duration")
        error("/elsewhere", 404, "not found")
        status, headers, _ = get(port, "/debug/pprof")
        check(status == 301 and headers["Location"] == "/debug/pprof/", status, headers)
        status, headers, body = get(port, "/debug/pprof/")
        check(status == 200 and headers["Content-Type"].startswith("text/html"), headers)
        check(b"goroutine?debug=2" in body and headers["X-Content-Type-Options"] == "nosniff", body)
        status, _, body = get(port, "/debug/pprof/cmdline")
        check(body.split(b"\0")[1] == b"--serve" and not body.endswith(b"\0"), body)
        status, headers, body = get(port, "/debug/pprof/heap")
        check(headers["Content-Disposition"] == 'attachment; filename="heap"', headers)
        check(headers["Content-Type"] == "application/octet-stream" and gzip.decompress(body), headers)
        status, headers, _ = get(port, "/debug/pprof/heap?seconds=1&gc=1")
        check(headers["Content-Disposition"] == 'attachment; filename="heap-delta"', headers)
        status, headers, body = get(port, "/debug/pprof/heap?debug=1")
        check(body.startswith(b"heap profile: "), body[:300])
        poll_for("keep_memory", lambda: get(port, "/debug/pprof/heap?debug=1")[2].decode())
        check(headers["Content-Type"] == "text/plain; charset=utf-8" and "Content-Disposition" not in headers)
        check(get(port, "/debug/pprof/mutex?debug=1")[2].startswith(b"--- mutex:\ncycles/second="))
        check(get(port, "/debug/pprof/block?debug=1")[2].startswith(b"--- contention:\ncycles/second="))
        check(get(port, "/debug/pprof/goroutine?debug=1")[2].startswith(b"goroutine profile: total "))
        threads = get(port, "/debug/pprof/goroutine?debug=2")[2].decode()
        check(threads.count("thread ") >= 5 and "wait_for_bell" in threads and "main" in threads, threads)
        status, headers, body = get(port, "/debug/pprof/heap", method="HEAD")
        check(status == 200 and body == b"" and int(headers["Content-Length"]) > 100, headers)
        symbols(port)
        timeline(port)
        one_at_a_time(port)
        process.send_signal(signal.SIGCONT)


def symbols(port):
    text = get(port, "/debug/pprof/goroutine?debug=2")[2].decode()
    line = next(line for line in text.splitlines() if "compute(int)+" in line)
    address = line.split("\t")[1]
    for answer in (get(port, "/debug/pprof/symbol?" + address + "+0x1"),
                   get(port, "/debug/pprof/symbol", method="POST", body="0x1+" + address)):
        lines = answer[2].decode().splitlines()
        check(lines[0] == "num_symbols: 1" and lines[1].split() == [address, "compute(int)"], lines)


def timeline(port):
    status, _, body = get(port, "/debug/pprof/trace?seconds=0.5")
    events = json.loads(body)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    check(any(event["name"] == "burn_cpu(long)" for event in spans), events[:5])
    check(all(event["dur"] > 0 for event in spans))
    check(any(event["name"] == "thread_name" for event in events))


def one_at_a_time(port):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(get, port, "/debug/pprof/profile?seconds=2")
        end = time.time() + 10
        while time.time() < end:  # until the first one runs
            if b"one is running" in get(port, "/debug/pprof/")[2]:
                break
        status, headers, body = get(port, "/debug/pprof/profile?seconds=1")
        check(status == 500 and b"cpu profiling already in use" in body, status, body)
        check("Content-Disposition" not in headers and headers["X-Go-Pprof"] == "1", headers)
        status, _, body = get(port, "/debug/pprof/trace?seconds=1")
        check(status == 500 and b"Could not enable tracing" in body, status, body)
        check(first.result()[0] == 200)
    # Who hangs up ends its profile: the next one need not wait for it.
    with socket.create_connection(("127.0.0.1", port)) as gone:
        gone.sendall(b"GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
    end = time.time() + 10
    while (status := get(port, "/debug/pprof/profile?seconds=1")[0]) == 500 and time.time() < end:
        time.sleep(0.1)
    check(status == 200, "the profile of a client that left still runs")


def raw(port, data, timeout=10):
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
        received = b""
        with contextlib.suppress(OSError):
            while chunk := connection.recv(65536):
                received += chunk
        return received


def case_hostile():
    with workload() as (_, port):
        wanted = {b"\x16\x03\x01\x02\x00\x01\x00": b"400", b"GET / HTTP/9.9\r\n\r\n": b"505",
                  b"NONSENSE\r\n\r\n": b"400", b"DELETE /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\n\r\n": b"405",
                  b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n": b"431",
                  b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n": b"413",
                  b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n": b"501",
                  b"GET /a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n": b"400",
                  b"GET /debug/pprof/ HTTP/1.1\r\nHost: evil.example\r\n\r\n": b"403"}
        for data, status in wanted.items():
            answer = raw(port, data)
            check(answer.split(b" ")[1:2] == [status], data[:60], answer[:80])
        status, _, body = get(port, "/debug/pprof/symbol", method="POST", body="+" * 100000)
        check(status == 400, status, body[:80])
        check(get(port, "/debug/pprof/symbol", method="POST", body="zz+0x+-1+" * 3000)[0] == 200)
        slow_clients(port)
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            def ask(number):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    path = ("goroutine?debug=2", "heap", "mutex?debug=1", "")[number % 4]
                    return get(port, "/debug/pprof/" + path)[0]
                return 503
            answers = list(pool.map(ask, range(200)))
        check(set(answers) <= {200, 503} and answers.count(200) >= 40, sorted(answers))
        check(get(port, "/debug/pprof/cmdline")[0] == 200)


def slow_clients(port):
    """More half requests than there are places: the server answers others, and the slow are sent away."""
    slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(50)]
    for connection in slow:
        connection.sendall(b"GET /debug/pprof/he")
    check(get(port, "/debug/pprof/cmdline")[0] == 200, "slow clients keep others out")
    answers = []
    for connection in slow:
        with contextlib.suppress(OSError):
            answers.append(connection.recv(4096)[:12])
        connection.close()
    check(answers.count(b"HTTP/1.1 408") >= 45, answers)


def case_token_and_unix():
    refused = subprocess.run([WORKLOAD, "--serve", "0.0.0.0:0", "--seconds", "1"], capture_output=True, text=True)
    check(refused.returncode == 1 and "token" in refused.stdout, refused.stdout)
    with workload(environment={"ASSAY_TOKEN": "s3cret"}, address="0.0.0.0:0") as (_, port):
        check(get(port, "/debug/pprof/cmdline")[0] == 401)
        check(get(port, "/debug/pprof/cmdline", headers={"Authorization": "Bearer wrong"})[0] == 401)
        check(get(port, "/debug/pprof/cmdline", headers={"Authorization": "Bearer s3cret"})[0] == 200)
        check(get(port, "/debug/pprof/cmdline?token=s3cret")[0] == 200)
    path = os.path.join(SCRATCH, "socket")
    with workload(address="unix:" + path):
        check(os.stat(path).st_mode & 0o777 == 0o600)
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(b"GET /debug/pprof/cmdline HTTP/1.1\r\n\r\n")
                check(connection.recv(12) == b"HTTP/1.1 200")
    with workload(address="unix:" + path):  # left behind by the killed one, and taken over
        pass


def run_plain(environment, *words, expect=0):
    done = subprocess.run([PLAIN, *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": LIBRARY, **environment})
    check(done.returncode == expect, done.returncode, done.stderr)
    return done


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


def wait_for_handler(pid, number):
    end = time.time() + 10
    while time.time() < end:
        with open(f"/proc/{pid}/status") as status:
            mask = next(line for line in status if line.startswith("SigCgt"))
        if int(mask.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.02)
    check(False, "no handler for signal", number)


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


def preloaded(words, environment=None, **more):
    port = free_port()
    process = subprocess.Popen(words, env={**os.environ, "LD_PRELOAD": LIBRARY, "ASSAY_HTTP": f"127.0.0.1:{port}",
                                           **(environment or {})}, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
    check(wait_for_port(port), words[0], "does not answer")
    return process, port


def look_at(port):
    for path in ("heap", "goroutine", "mutex", "block", "threadcreate"):
        status, _, body = get(port, "/debug/pprof/" + path)
        check(status == 200 and gzip.decompress(body), path, status, body[:100])
    return gzip.decompress(get(port, "/debug/pprof/profile?seconds=1")[2])


def case_waits_are_left_alone():
    """A program that pauses until it is told to leave must not be told so by being looked at."""
    process, port = preloaded([PLAIN, "--pause"])
    try:
        threads = get(port, "/debug/pprof/goroutine?debug=2")[2].decode()
        check("waits in a call that a signal would end" in threads and "pause" in threads, threads)
        check("main+" in threads, "its whole stack, all the same", threads)
        check(get(port, "/debug/pprof/goroutine")[0] == 200)
        time.sleep(0.3)
        check(process.poll() is None, "its pause was ended")
    finally:
        process.terminate()
        check(process.wait(20) == 0, "and ends when it is told to")


def case_blocked_threads():
    """Threads that block every signal count like others; where they sleep is read from their stacks."""
    process, port = preloaded([PLAIN, "--blocked", "--seconds", "90"])
    try:
        poll_for("sleep_unreachably", lambda: get(port, "/debug/pprof/goroutine?debug=1")[2].decode())
        text = get(port, "/debug/pprof/goroutine?debug=1")[2].decode()
        tasks = [name for name in thread_names(process.pid) if not name.startswith("assay-")]
        check(text.startswith(f"goroutine profile: total {len(tasks)}\n"), len(tasks), text)
        check("3 @" in text and "[runs, and blocks the signal]" in text, text)
        threads = get(port, "/debug/pprof/goroutine?debug=2")[2].decode()
        check(threads.count("seen from outside: it blocks the signal") == 4, threads)
        check(b"sleep_unreachably" in gzip.decompress(get(port, "/debug/pprof/goroutine")[2]))
    finally:
        process.kill()
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


def case_static():
    with workload(program=os.path.join(TESTS, "inproc_static_workload")) as (_, port):
        time.sleep(0.2)
        profile = gzip.decompress(get(port, "/debug/pprof/profile?seconds=1")[2])
        check(b"burn_cpu" in profile and b"worker" in profile)
        check(b"wait_for_bell" in get(port, "/debug/pprof/goroutine?debug=1")[2])
        check(get(port, "/debug/pprof/heap")[0] == 500)


def case_needs_only_libc():
    done = subprocess.run(["readelf", "-dW", LIBRARY], capture_output=True, text=True)
    needed = {line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line}
    check(needed <= {"libc.so.6", "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed)


with tempfile.TemporaryDirectory(prefix="inproc-") as SCRATCH:
    globals()["case_" + CASE]()
