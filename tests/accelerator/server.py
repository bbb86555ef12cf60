#!/usr/bin/env python3
"""A small inference server: one matrix multiplication chain per request on the first CUDA device.

  server.py PORT_FILE [--sync spin|block] [--size 8192] [--rounds 8]

Each request launches the work and waits until the device is done (torch.cuda.synchronize). With
--sync block the wait sleeps (cudaDeviceScheduleBlockingSync), else it spins, as is the default on
machines with many CPUs. Writes its port to PORT_FILE when it is ready; SIGTERM ends it.
"""
import argparse
import ctypes
import http.server
import os
import signal
import socketserver
import sys

parser = argparse.ArgumentParser()
parser.add_argument("port_file")
parser.add_argument("--sync", choices=["spin", "block"], default="spin")
parser.add_argument("--size", type=int, default=8192)
parser.add_argument("--rounds", type=int, default=8)
options = parser.parse_args()


def choose_schedule(flags):
    """cudaSetDeviceFlags of the runtime that torch has loaded, before its context is made."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcudart" in line}
    for path in paths:
        status = ctypes.CDLL(path).cudaSetDeviceFlags(flags)
        print(f"cudaSetDeviceFlags({flags}) in {path}: {status}", file=sys.stderr)
        return
    print("no libcudart is loaded: the schedule stays as it is", file=sys.stderr)


import torch  # noqa: E402

choose_schedule(4 if options.sync == "block" else 1)
device = torch.device("cuda:0")
left = torch.randn(options.size, options.size, device=device, dtype=torch.bfloat16)
right = torch.randn(options.size, options.size, device=device, dtype=torch.bfloat16)


def infer_one_request():
    result = left
    for _ in range(options.rounds):
        result = (result @ right) * 0.01
    torch.cuda.synchronize()
    return result


infer_one_request()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536  # an answer is one write

    def do_GET(self):
        infer_one_request()
        body = b"done\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
with open(options.port_file + ".part", "w") as out:
    out.write(str(server.server_port))
os.rename(options.port_file + ".part", options.port_file)
server.serve_forever()
