"""libassay's pages: every endpoint and refusal, against the readers people use. See support.py for how to run one.

Sampled numbers are compared by what must dominate, never by exact shares.
"""
import concurrent.futures
import contextlib
import gzip
import html
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.parse

from support import (PLAIN, SCRATCH, TESTS, WORKLOAD, check, workload, get, go_pprof, google_pprof, poll_for,
                     thread_names, preloaded, run_case)


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
        # The memory is charged to the caller, not to the wrapper, which is in the stacks, too.
        check("xmalloc" not in go_pprof("-top", root + "heap"))
        check(b"xmalloc" in get(port, "/debug/pprof/heap?debug=1")[2])
        labels = {"profile?seconds=1": "method:", "mutex": "worker:", "block": "waits:", "allocs": "worker:",
                  "heap": "keeps:", "goroutine": "waits:"}
        for page, label in labels.items():  # labels reach samples of every kind
            poll_for(label, lambda: go_pprof("-tags", root + page))
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
    # A client that closes the connection ends its profile: the next one need not wait.
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
        for secret in ("", "0123456789abcdef"):  # the address is not handed to strangers
            check(get(port, "/assay/handover", method="POST", body=secret)[0] == 404, secret)
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
        check(get(port, "/debug/pprof/cmdline", headers={"Authorization": "bearer s3cret"})[0] == 200)
        check(get(port, "/debug/pprof/cmdline?token=s3cret")[0] == 200)
    token_goes_along()
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


def token_goes_along():
    """A page opened with a token has links and redirects that work."""
    token = "a&b \"<'%é+"
    asked = "token=" + urllib.parse.quote(token)
    with workload(environment={"ASSAY_TOKEN": token}) as (_, port):
        for path in ("/", "/debug/pprof", "/debug/", "/pprof/"):
            status, headers, _ = get(port, f"{path}?{asked}")
            check(status == 301 and headers["Location"] == "/debug/pprof/?" + asked, path, status, headers)
        status, _, body = get(port, "/debug/pprof/?" + asked)
        links = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', body.decode())]
        check(status == 200 and len(links) == 17, status, links)
        for link in links:
            check(get(port, "/debug/pprof/" + link)[0] == 200, link)
        commands = re.findall(r"'http://[^/']*(/[^']*)'", html.unescape(body.decode()))
        check(len(commands) == 4, commands)
        check(get(port, commands[2])[0] == 200, commands)
        # A line end in a query is in no answer's head.
        answer = raw(port, b"GET /?" + asked.encode() + b"&a\rb\nX-Mine:1 HTTP/1.1\r\n\r\n")
        check(b"301" in answer and b"abX-Mine:1\r\n" in answer, answer)


def case_waits_are_left_alone():
    """A program in pause() until it shall exit must not be woken by a profile."""
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
        # What one of them uses is in no sample, and the profile says how much that is.
        profile = gzip.decompress(get(port, "/debug/pprof/profile?seconds=2")[2])
        lost = re.search(rb"assay: (\d+) samples lost", profile)
        check(b"burn_unreachably" not in profile and lost and 20 <= int(lost[1]) <= 220, lost)
    finally:
        process.kill()
        process.wait()


def case_static():
    with workload(program=os.path.join(TESTS, "inproc_static_workload")) as (_, port):
        time.sleep(0.2)
        profile = gzip.decompress(get(port, "/debug/pprof/profile?seconds=1")[2])
        check(b"burn_cpu" in profile and b"worker" in profile)
        check(b"wait_for_bell" in get(port, "/debug/pprof/goroutine?debug=1")[2])
        check(get(port, "/debug/pprof/heap")[0] == 500)


run_case(globals())
