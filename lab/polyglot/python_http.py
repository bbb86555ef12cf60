#!/usr/bin/env python3
"""python_http: an HTTP server in Python, a thread per connection, for stacks and categories. Every
request does some arithmetic, and, with the fault lock, sleeps while it holds a lock."""
import argparse
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TABLE_LOCK = threading.Lock()


def burn_cpu(steps):
    x = 88172645463325252
    for i in range(steps):
        x = (x * 31 + i) & 0xFFFFFFFFFFFFFFFF
    return x


def wait_holding_lock(micros):
    with TABLE_LOCK:
        time.sleep(micros / 1e6)


def main():
    parser = argparse.ArgumentParser(prog="python_http", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--work", type=int, default=200, help="steps of honest work per request")
    parser.add_argument("--fault", action="append", default=[], metavar="cpu=STEPS|lock=MICROSECONDS")
    options = parser.parse_args()
    faults = {"cpu": 0, "lock": 0}
    for text in options.fault:
        name, _, value = text.partition("=")
        if name not in faults or not value.isdigit():
            parser.error(f"unknown fault '{text}'; there are: cpu, lock")
        faults[name] = int(value)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 4096

        def do_GET(self):
            body = f"{burn_cpu(options.work + faults['cpu'])}\n".encode()
            if faults["lock"]:
                wait_holding_lock(faults["lock"])
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    except OSError as error:
        print(f"python_http: cannot listen on 127.0.0.1:{options.port}: {error.strerror}",
              file=sys.stderr)
        return 1
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"listening 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
