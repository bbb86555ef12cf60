#!/usr/bin/env python3
"""`assay load` over TLS, HTTP/2 by ALPN, IPv6 and thousands of connections, against nginx.

usage: tls_test.py ASSAY
Exits 77 (skipped) without nginx or openssl. Only counts and messages are checked, never times.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ASSAY = sys.argv[1]
failures = []

CONFIG = """
daemon off; master_process off; worker_rlimit_nofile 8192; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format version '$server_protocol $ssl_protocol'; access_log {dir}/access.log version;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
  server {{ listen 127.0.0.1:{tls} ssl http2; location / {{ return 200 "hello over tls\\n"; }} }}
  server {{ listen 127.0.0.1:{plain} backlog=4096; location / {{ return 200 "hello\\n"; }} }}
  {ipv6}
}}
"""


def check(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def load(*words):
    result = subprocess.run([ASSAY, "load", *words, "--quiet"], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout, result.stderr


def expect_all_answered(what, requests, *words):
    code, out, err = load(*words, "--json")
    check(code == 0, f"{what}: exit {code}: {err}")
    if code != 0:
        return
    answer = json.loads(out)
    check(answer["requests"] == requests, f"{what}: {answer['requests']} of {requests} requests")
    check(answer["errors"] == 0, f"{what}: {answer['errors']} errors")


def free_port(family=socket.AF_INET, host="127.0.0.1"):
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def ipv6_port():
    try:
        return free_port(socket.AF_INET6, "::1")
    except OSError:
        return None


def wait_for(port, server):
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError("nginx ended")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("nginx does not answer")


def make_certificate(directory):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{directory}/key.pem",
                    "-out", f"{directory}/cert.pem"], check=True, capture_output=True)


def check_certificates(tls, cert):
    url = f"https://127.0.0.1:{tls}/"
    expect_all_answered("trusted certificate", 40, url, "--cacert", cert, "-c", "4", "-n", "10")
    expect_all_answered("any certificate", 40, url, "--insecure", "-c", "4", "-n", "10")
    code, out, _ = load(url, "-c", "1", "-n", "1")
    check(code == 1, f"a certificate that nobody vouches for: exit {code}")
    check("certificate not trusted" in out and "--cacert" in out, f"it says why and what helps: {out!r}")
    code, out, _ = load(f"https://localhost:{tls}/", "--cacert", cert, "-c", "1", "-n", "1")
    check(code == 1 and "hostname mismatch" in out, f"a certificate of another name: exit {code}: {out!r}")
    check("--cacert" not in out.split("first fault")[-1], f"no other certificate would help: {out!r}")


def check_protocols(tls, cert, directory):
    url = f"https://127.0.0.1:{tls}/"
    expect_all_answered("HTTP/2 by ALPN", 80, url, "--cacert", cert, "--http2", "-c", "2", "-m", "4", "-n", "10")
    time.sleep(0.2)
    versions = set(open(f"{directory}/access.log").read().split("\n"))
    check(any(v.startswith("HTTP/2.0 TLS") for v in versions), f"nginx saw HTTP/2 over TLS: {versions}")
    check(any(v.startswith("HTTP/1.1 TLS") for v in versions), f"nginx saw HTTP/1.1 over TLS: {versions}")


def main():
    for tool in ("nginx", "openssl"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin"):
            print(f"skipped: {tool} is missing")
            return 77
    with tempfile.TemporaryDirectory(prefix="assay-tls-") as directory:
        make_certificate(directory)
        tls, plain, v6 = free_port(), free_port(), ipv6_port()
        ipv6 = f'server {{ listen [::1]:{v6}; location / {{ return 200 "six\\n"; }} }}' if v6 else ""
        with open(f"{directory}/nginx.conf", "w") as config:
            config.write(CONFIG.format(dir=directory, tls=tls, plain=plain, ipv6=ipv6))
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        server = subprocess.Popen([nginx, "-c", f"{directory}/nginx.conf", "-p", directory],
                                  stderr=subprocess.DEVNULL)
        try:
            wait_for(tls, server)
            check_certificates(tls, f"{directory}/cert.pem")
            check_protocols(tls, f"{directory}/cert.pem", directory)
            if v6:
                expect_all_answered("IPv6", 20, f"http://[::1]:{v6}/", "-c", "2", "-n", "10")
            expect_all_answered("2,000 connections", 4000, f"http://127.0.0.1:{plain}/", "-c", "2000", "-n", "2")
        finally:
            server.terminate()
            server.wait(10)
    print(f"{'failed' if failures else 'passed'}: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
