#!/usr/bin/env python3
"""The lab's servers as processes: they start, answer, end, and leave nothing behind.

usage: lab_test.py BUILD_DIRECTORY TEST
Exit status 77: what the test needs is not built here.
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab.runner import scenario as scenarios  # noqa: E402
from lab.runner import session as sessions    # noqa: E402

TOKEN = {"Authorization": "Bearer your-secret-key"}
GRPC = {"grpc_async": ("lab.Table/Lookup", '{"key": 7}'),
        "grpc_work": ("lab.Greeter/SayHello", '{"name": "you"}'),
        "kv": ("lab.KeyValue/Get", '{"keys": ["key1"]}')}
ALL = ["media", "replica", "infer", *GRPC]


class Skip(Exception):
    pass


class Plain:
    """A scenario without a file."""

    def __init__(self, server, flags=""):
        self.server, self.flags, self.data = server, flags, {}

    def of(self, field, _variant, default=None):
        return self.flags if field == "flags" else default


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def session(build, server, flags=""):
    if not (build / "lab" / server).exists():
        raise Skip(f"{server} is not built")
    return sessions.Session(build, Plain(server, flags))


def expect_clean(ended, status=0):
    expect(not ended.leftovers, f"{ended.scenario.server} left behind: {ended.leftovers}")
    expect(ended.exit_status == status,
           f"{ended.scenario.server} ended with {ended.exit_status}, not {status}")


def built(build):
    return [server for server in ALL if (build / "lab" / server).exists()]


def chat(port, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v1/chat/completions", body, TOKEN if headers is None else headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def wait_for_model(port):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/tt-liveness")
        answer = json.loads(connection.getresponse().read())
        if answer["model_ready"]:
            return
        time.sleep(0.05)
    raise AssertionError("model_ready never became true")


def put(port, count=1):
    """Puts over replica's own protocol; returns when all are acknowledged."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        for number in range(count):
            body = b"P" + struct.pack("<QH", number, 3) + b"keyvalue"
            stream.sendall(struct.pack("<I", len(body)) + body)
        expected = count * (4 + 1 + 8 + 1)
        got = b""
        while len(got) < expected:
            piece = stream.recv(65536)
            expect(piece, "replica closed the connection")
            got += piece


def use(build, server, port):
    """Some requests, in the protocol of the server."""
    if server == "media":
        wait_for_model(port)
        status, text = chat(port, '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}')
        expect(status == 200 and json.loads(text)["usage"]["completion_tokens"] == 3, text)
    elif server == "replica":
        put(port, 10)
    elif server == "infer":
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(10):
            connection.request("GET", "/")
            answer = connection.getresponse()
            expect(answer.status == 200 and answer.read() == b"done\n", f"infer: {answer.status}")
    else:
        method, message = GRPC[server]
        done = subprocess.run(
            [build / "src/assay", "load", f"grpc://127.0.0.1:{port}/{method}", "-d", message,
             "--connections", "2", "--requests", "20", "--json"],
            capture_output=True, text=True, timeout=60)
        expect(done.returncode == 0, f"{server}: {done.stderr} {done.stdout}")
        result = json.loads(done.stdout)
        expect(result["errors"] == 0, f"{server}: {done.stdout}")


def test_start_serve_end(build):
    for server in built(build):
        with session(build, server) as running:
            use(build, server, running.port)
        expect_clean(running)


def test_chat(build):
    body = '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "stream": %s}'
    with session(build, "media") as running:
        wait_for_model(running.port)
        status, text = chat(running.port, body % "true")
        events = [line for line in text.splitlines() if line.startswith("data: ")]
        expect(status == 200 and len(events) == 6 and events[-1] == "data: [DONE]", text)
        streamed = "".join(json.loads(e[6:])["choices"][0]["delta"]["content"] for e in events[:-1])
        status, text = chat(running.port, body % "false")
        whole = json.loads(text)["choices"][0]["message"]["content"]
        expect(streamed == whole, f"streamed '{streamed}', whole '{whole}'")
        expect(chat(running.port, body % "false", {})[0] == 401, "no token must be 401")
        expect(chat(running.port, "{")[0] == 400, "bad JSON must be 400")
        expect(chat(running.port, '{"messages": [], "max_tokens": 5}')[0] == 400, "no message: 400")
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as stream:
            stream.sendall(b"\x00garbage\r\n\r\n")
            expect(b" 400 " in stream.recv(4096), "garbage must be answered with 400")
    expect_clean(running)


def test_hang_becomes_504(build):
    body = '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}'
    with session(build, "media", "--workers 1 --timeout-ms 200 --fault hang=1") as running:
        wait_for_model(running.port)
        status, text = chat(running.port, body)
        expect(status == 504, f"a hung worker must become a 504, not {status} {text}")
    expect_clean(running)  # SIGTERM ends a hung worker, too


def test_kill9(build):
    """Kills one process of each server, one at a time; then the remaining ones are ended."""
    for server in built(build):
        victim, processes = 0, 1
        while victim < processes:
            with session(build, server) as running:
                if server == "media":
                    wait_for_model(running.port)
                mine = running.server_processes()
                processes = len(mine)
                os.kill(mine[victim], signal.SIGKILL)
                time.sleep(0.1)
            expect(not running.leftovers, f"{server}, process {victim}: {running.leftovers}")
            victim += 1


def test_a_worker_dies(build):
    """The other worker continues; the liveness page says that one is missing."""
    body = '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}'
    with session(build, "media") as running:
        wait_for_model(running.port)
        os.kill(running.server_processes()[1], signal.SIGKILL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
            connection.request("GET", "/tt-liveness")
            if not json.loads(connection.getresponse().read())["model_ready"]:
                break
            time.sleep(0.05)
        else:
            raise AssertionError("model_ready stayed true")
        for _ in range(4):
            expect(chat(running.port, body)[0] == 200, "the other worker must answer")
    expect_clean(running)


def logged_keys(path):
    """Keys in a replica's log, read as its format says, not as its code does."""
    data, at, keys = path.read_bytes(), 0, set()
    while at + 8 <= len(data):
        length, _checksum = struct.unpack_from("<II", data, at)
        (key_length,) = struct.unpack_from("<H", data, at + 8)
        keys.add(data[at + 10:at + 10 + key_length].decode())
        at += 8 + length
    return keys


def test_replica_loses_nothing(build):
    """Followers are killed under load, then everything; what was acknowledged must be there."""
    client = build / "lab/replica_client"
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        acked = directory / "acked"
        with session(build, "replica", f"--dir {directory}") as running:
            load = subprocess.Popen([client, "--port", str(running.port), "--streams", "4", "--window",
                                     "8", "--for", "3", "--acked", acked], stdout=subprocess.PIPE)
            for follower in ("replica 1 ", "replica 2 "):
                time.sleep(0.7)
                lines = running.stdout_path.read_text().splitlines()
                pid = [line.split()[3] for line in lines if line.startswith(follower)][-1]
                os.kill(int(pid), signal.SIGKILL)
            out, _ = load.communicate(timeout=60)
            expect(load.returncode == 0, "the client must not notice that followers die")
            expect(json.loads(out)["requests"] > 100, f"too little was acknowledged: {out}")
            os.kill(running.server.pid, signal.SIGKILL)  # and with it the whole group
        expect(not running.leftovers, str(running.leftovers))
        keys = set(acked.read_text().split())
        logs = [logged_keys(directory / f"replica-{number}.log") for number in range(3)]
        for key in keys:
            expect(sum(key in log for log in logs) >= 2, f"{key} is not in a majority of the logs")
        with session(build, "replica", f"--dir {directory}") as running:
            done = subprocess.run([client, "--port", str(running.port), "--verify", acked],
                                  capture_output=True, text=True, timeout=60)
            expect(done.returncode == 0, f"after a restart: {done.stdout} {done.stderr}")
            expect(json.loads(done.stdout)["verified"] == len(keys), done.stdout)
        expect_clean(running)


def test_kv_follows_files(build):
    """Snapshot, delta, realtime; newer versions win; malformed lines are reported, not fatal."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        (directory / "realtime").mkdir()
        (directory / "SNAPSHOT_1").write_text("UPDATE,a,1,one\nUPDATE,b,1,one\n")
        (directory / "DELTA_2").write_text("UPDATE,b,2,two\nnonsense\nDELETE,c,2\n")
        flags = f"--delta-directory {directory} --realtime-directory {directory}/realtime"
        with session(build, "kv", flags) as running:
            for number in range(3):
                path = directory / "realtime" / f"DELTA_{number}"
                path.write_text(f"UPDATE,d{number},3,three\nUPDATE,d,many,x\n")
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                if running.stderr_path.read_text().count("DELTA_") >= 4:
                    break
                time.sleep(0.05)
            use(build, "kv", running.port)
            out, complaints = running.stdout_path, running.stderr_path.read_text()
            os.kill(running.server.pid, signal.SIGTERM)
            running.server.wait(20)
            last = out.read_text().splitlines()[-1]
        expect("DELTA_2 line 2 is malformed" in complaints, complaints)
        expect("6 keys from 5 files, 4 malformed lines" in last, last)


def test_wrong_usage(build):
    for server in built(build):
        program = build / "lab" / server
        for flags in (["--nonsense", "1"], ["--port"], ["--port", "99999"], ["--port", "http"],
                      ["--fault", "nonsense=1"], ["--fault", "x"], ["stray", "1"]):
            done = subprocess.run([program, *flags], capture_output=True, text=True, timeout=20)
            expect(done.returncode == 2, f"{server} {flags}: exit {done.returncode}")
            expect(done.stderr.startswith(server + ": "), f"{server} {flags}: '{done.stderr}'")
        done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20)
        expect(done.returncode == 0 and "faults" in done.stdout, f"{server} --help")


def test_busy_port(build):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for server in built(build):
            done = subprocess.run([build / "lab" / server, "--port", str(port)], capture_output=True,
                                  text=True, timeout=20)
            expect(done.returncode == 1, f"{server}: exit {done.returncode}")
            expect(f"127.0.0.1:{port}" in done.stderr, f"{server}: '{done.stderr}'")
            expect("listening" not in done.stdout, f"{server} says that it listens")


def test_scenarios(_build):
    chosen = scenarios.find([])
    expect(len(chosen) >= 20, f"only {len(chosen)} scenarios")
    for one in chosen:
        expect(one.data.get("truth", {}).get("measured"), f"{one.name} has no measured truth")
        expect(one.name.startswith(one.server) or "/" in one.server, f"{one.name}: {one.server}")
    faulty = [one for one in chosen if one.has_fault]
    without_gain = [one.name for one in faulty if one.data["truth"]["gain"] < 1.1]
    expect(not without_gain, f"no fault, says their truth: {without_gain}")


def test_runner(build):
    """lab/run itself: one scenario from start to report, and its complaints."""
    run = ROOT / "lab/run"
    done = subprocess.run([run, "--build", build, "--seconds", "1", "replica_few_streams"],
                          capture_output=True, text=True, timeout=120)
    if "perf_event" in done.stdout:
        raise Skip(done.stdout.strip())
    expect(done.returncode == 0 and "expected underloaded" in done.stdout,
           done.stdout + done.stderr)
    for wrong in (["no_such_scenario"], [], ["--seconds", "0", "--all"]):
        done = subprocess.run([run, *wrong], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 2, f"lab/run {wrong}: exit {done.returncode}")


def test_heap_leak(build):
    """assay heap, attached to kv under load, names the line that leaks; the healthy one has none."""
    if os.geteuid() != 0:
        raise Skip("needs root, to attach to another process")
    if not (build / "lab" / "kv").exists() or not (build / "inject/preload/libassay_heap.so").exists():
        raise Skip("kv or the sampler is not built")
    scenario = scenarios.find(["kv_leak"])[0]
    for variant, leaks in (("faulty", True), ("healthy", False)):
        with sessions.Session(build, scenario, variant) as running:
            running.start_load(12)
            time.sleep(1)
            done = subprocess.run([build / "src/assay", "heap", "--pid", str(running.server_processes()[0]), "--for", "5s",
                                   "--json", "--overwrite", "-o", running.directory / "heap.assay"],
                                  capture_output=True, text=True, timeout=90)
            expect(done.returncode == 0, done.stderr)
            found = [f["where"] for f in json.loads(done.stdout)["findings"] if f["id"] == "heap-leak"]
            named = [w for w in found if "remember_request" in w["symbol"] and w["file"].endswith("cache.cpp") and w["line"] > 0]
            expect(bool(named) == leaks, f"{variant}: leaks found: {found}")


def main():
    build, name = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    try:
        globals()[f"test_{name}"](build)
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    except (AssertionError, sessions.SessionError) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
