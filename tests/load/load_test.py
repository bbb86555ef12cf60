#!/usr/bin/env python3
"""`assay load`, `record --load`, `stat --load` and `sweep`, through the program itself.

usage: load_test.py ASSAY
Exits 77 (skipped) where this machine does not let Assay capture. Times are only asked to be there and to
be in the right order, never to be short: the machine may be busy.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

ASSAY = sys.argv[1]
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def run(*words, timeout=60):
    result = subprocess.run([ASSAY, *words], capture_output=True, text=True, timeout=timeout)
    return result.returncode, result.stdout, result.stderr


def rows_of(path, query):
    """The rows of a query; sql prints an object a line."""
    code, out, err = run("sql", path, "--json", query)
    check(code == 0, f"sql: {err}")
    return [json.loads(line) for line in out.splitlines()] if code == 0 else []


def load_facts(path):
    return {row["key"]: row["value"] for row in rows_of(path, "SELECT key, value FROM fact WHERE scope = 'load'")}


def processes_with(text):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline").read().replace("\0", " ")
        except OSError:
            continue
        if text in line and int(pid) != os.getpid():
            found.append((pid, line))
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def expect_gone(text, what):
    """Nothing of that name is left, within a few seconds of a busy machine."""
    for _ in range(50):
        if not processes_with(text):
            return
        time.sleep(0.1)
    check(False, f"{what} left processes behind: {processes_with(text)}")


def test_load(url):
    code, out, _ = run("load", url, "-n", "20", "-c", "3", "--json")
    result = json.loads(out)
    check(code == 0 and result["ok"] == 60 and result["errors"] == 0, f"60 requests succeed: {result}")
    check(0 < result["latency"]["p50_ns"] <= result["latency"]["max_ns"], "latency is there")
    code, out, _ = run("load", url + "error", "-n", "5", "-c", "2", "--json")
    result = json.loads(out)
    check(code == 1 and result["error_kinds"]["by_kind"] == {"status_5xx": 10}, f"a 5xx storm is counted: {result}")
    code, out, _ = run("load", url, "--rate", "100", "--for", "1s", "--json")
    result = json.loads(out)
    due = result["ok"] + result["errors"] + result["unanswered"] + result["unsent"]
    check(code == 0 and result["mode"] == "open" and due == 100, f"an open loop sends what is due: {result}")


def test_bad_usage():
    for words in (["load"], ["load", "nonsense"], ["load", "http://h:99999/"], ["load", "http://h/", "--rate", "-1"],
                  ["load", "http://h/", "--for", "x"], ["load", "http://h/", "-d", "{{nope}}"],
                  ["load", "http://h/", "--data-hex", "0"], ["load", "http://h/", "--streams", "4"]):
        code, _, err = run(*words)
        check(code == 2 and err.startswith("assay: "), f"wrong usage is said: {words}: {code} {err}")
    code, _, err = run("load", f"http://127.0.0.1:{free_port()}/")
    check(code == 1 and "Connection refused" in err, f"nobody there: {err}")


def test_record_url(url, pid, directory):
    path = os.path.join(directory, "url.assay")
    code, _, err = run("record", "--pid", str(pid), "--load", url + " -c 2", "--for", "2s", "--warmup", "300ms",
                       "-q", "-o", path)
    check(code == 0, f"record --load URL: {err}")
    facts = load_facts(path)
    check(facts.get("ended") == "covered" and facts.get("kind") == "url", f"the load covered the capture: {facts}")
    check(int(facts.get("requests", 0)) > 0 and facts.get("errors") == "0", f"requests are counted: {facts}")
    check(float(facts.get("throughput_per_s", 0)) > 0 and int(facts.get("p99_ns", 0)) > 0, f"measured: {facts}")
    names = {row["name"]: row["n"] for row in rows_of(
        path, "SELECT s.name AS name, count(*) AS n FROM series s JOIN point p ON p.series = s.id "
        "WHERE s.scope = 5 GROUP BY 1")}
    check(names.get("requests", 0) >= 2 and names.get("latency_p99", 0) >= 1 and names.get("generator_cpu", 0) >= 2,
          f"series are there: {names}")


def test_record_command(url, pid, directory):
    path = os.path.join(directory, "command.assay")
    mark = f"assay-load-test-{os.getpid()}"
    command = f"sleep 300 {mark} 2>/dev/null & {ASSAY} load {url} --for 500ms -q; exit 0 # {mark}"
    code, _, err = run("record", "--pid", str(pid), "--load", command, "--for", "2s", "--warmup", "100ms", "-q",
                       "-o", path)
    check(code == 0, f"record --load COMMAND: {err}")
    facts = load_facts(path)
    check(facts.get("kind") == "command" and int(facts.get("restarts", 0)) >= 1, f"it is started again: {facts}")
    check("requests/s" in facts.get("output", ""), f"its output is kept: {facts}")
    expect_gone(mark, "record --load COMMAND")


def test_record_failures(url, pid, directory):
    path = os.path.join(directory, "none.assay")
    target = ["record", "--pid", str(pid), "--for", "1s", "-q", "-o", path]
    code, _, err = run(*target, "--load", "exit 7")
    check(code == 1 and "exit status 7" in err, f"a command that fails at once: {err}")
    code, _, err = run(*target, "--load", f"http://127.0.0.1:{free_port()}/", "--ready-timeout", "500ms")
    check(code == 1 and "not ready" in err, f"a server that is not there: {err}")
    code, _, err = run(*target, "--load", url + " --nonsense")
    check(code == 1, f"options that assay load does not know: {err}")
    check(not os.path.exists(path), "no run is left of a capture that did not begin")


def test_record_5xx(url, pid, directory):
    path = os.path.join(directory, "storm.assay")
    code, _, err = run("record", "--pid", str(pid), "--load", url + "error", "--ready", url, "--for", "1s",
                       "--warmup", "100ms", "-q", "-o", path)
    check(code == 0 and load_facts(path).get("ended", "").startswith("failed"), f"a storm of 5xx is failed load: {err}")
    _, out, _ = run("report", path)
    check("load" in out and "503" in out, "the report says that the load failed")


def test_record_launched(directory):
    port = free_port()
    path = os.path.join(directory, "launched.assay")
    code, _, err = run("record", "--load", f"http://127.0.0.1:{port}/ -c 2", "--for", "1s", "-q", "-o", path, "--",
                       sys.executable, SERVER, str(port))
    check(code == 0 and load_facts(path).get("ended") == "covered", f"a launched server under load: {err}")
    expect_gone(f"{SERVER} {port}", "record --load -- SERVER")


def test_interrupted(url, pid, directory):
    path = os.path.join(directory, "interrupted.assay")
    process = subprocess.Popen([ASSAY, "record", "--pid", str(pid), "--load", url + "slow?interrupted", "--for", "60s",
                                "--warmup", "0s", "-q", "-o", path])
    for _ in range(200):
        if os.path.exists(path):
            break
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=30) == 0, "Ctrl-C ends a capture under load in good order")
    check(load_facts(path).get("kind") == "url", "what there is of the load is kept")
    expect_gone("slow?interrupted", "Ctrl-C")


def test_killed(url, pid, directory):
    path = os.path.join(directory, "killed.assay")
    process = subprocess.Popen([ASSAY, "record", "--pid", str(pid), "--load", url + "slow?killed", "--for", "60s",
                                "--warmup", "0s", "-q", "-o", path])
    for _ in range(200):
        if os.path.exists(path):
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    expect_gone("slow?killed", "kill -9 of assay record")


def test_sweep(url, pid):
    code, out, err = run("sweep", "--pid", str(pid), "--load", url + "slow", "--concurrency", "1,2,4", "--for", "1s",
                         "--warmup", "200ms", "--json")
    check(code == 0, f"sweep: {err}")
    result = json.loads(out) if code == 0 else {"levels": []}
    levels = result["levels"]
    check([level["clients"] for level in levels] == [1, 2, 4], f"three levels: {levels}")
    # Each answer takes 20 ms or more, so throughput rises with clients on any machine that can sleep.
    rates = [level["throughput_per_s"] for level in levels]
    check(rates == sorted(rates) and rates[0] > 0, f"throughput rises: {rates}")
    check(result.get("fit") is not None and result["thread_time"], "the curve and the thread time are there")
    code, _, err = run("sweep", "--pid", str(pid), "--load", url + " --connections 3")
    check(code == 1 and "--concurrency" in err, f"connections are the sweep's: {err}")


def test_refused(url, pid, directory):
    """A path that is not there ends it early, with that reason, and not after --ready-timeout."""
    for command in (["record", "-o", os.path.join(directory, "refused.assay"), "-q"], ["stat"]):
        begin = time.monotonic()
        code, _, err = run(command[0], *command[1:], "--pid", str(pid), "--for", "1s", "--load", url + "missing")
        took = time.monotonic() - begin
        check(code == 1 and "HTTP 404" in err and "assay load" in err, f"{command[0]} says why: {err}")
        check(took < 15, f"{command[0]} does not wait for what will not come: {took:.1f} s")


def whole_of(*words):
    code, out, err = run("stat", "--json", "--for", "1s", *words)
    check(code == 0, f"stat {words}: {err}")
    return json.loads(out.splitlines()[-1]) if code == 0 else {}


def test_stat(url, pid):
    """Assay waits for the load's last report after the time is over: that wait counts for no measurement."""
    whole = whole_of("--pid", str(pid), "--load", url + " -c 4", "--per-thread")
    clock = [row["counters"]["task-clock"]["value"] for row in [whole, *whole.get("per_thread", [])] if row]
    check(len(clock) >= 2 and clock[0] > 0 and abs(sum(clock[1:]) - clock[0]) < 1e-6 * clock[0],
          f"the threads add up to the whole: {clock}")
    check(whole.get("whole") is True and whole.get("ended") == "time" and whole.get("requests", 0) > 0, f"{whole}")
    begin = time.monotonic()
    code, _, err = run("stat", "--pid", str(pid), "--load", f"http://127.0.0.1:{free_port()}/",
                       "--ready-timeout", "500ms")
    check(code == 1 and "not ready" in err, f"stat, a server that is not there: {err}")
    check(time.monotonic() - begin < 15, "stat waits as long as it is told to")
    port = free_port()
    whole = whole_of("--load", f"http://127.0.0.1:{port}/ -c 2", "--", sys.executable, SERVER, str(port))
    check(whole.get("requests", 0) > 0 and whole.get("ended") == "time", f"a launched server under load: {whole}")
    expect_gone(f"{SERVER} {port}", "stat --load -- SERVER")


def main():
    server = subprocess.Popen([sys.executable, SERVER, "0"], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        test_load(url)
        test_bad_usage()
        with tempfile.TemporaryDirectory() as directory:
            probe = os.path.join(directory, "probe.assay")
            code, _, err = run("record", "--pid", str(server.pid), "--for", "200ms", "-q", "-o", probe)
            if code != 0 and not failures:
                print(f"skipped: no capture on this machine: {err}")
                return 77
            test_record_url(url, server.pid, directory)
            test_record_command(url, server.pid, directory)
            test_record_failures(url, server.pid, directory)
            test_record_5xx(url, server.pid, directory)
            test_refused(url, server.pid, directory)
            test_record_launched(directory)
            test_interrupted(url, server.pid, directory)
            test_killed(url, server.pid, directory)
            test_stat(url, server.pid)
            test_sweep(url, server.pid)
    finally:
        server.kill()
        server.wait()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
