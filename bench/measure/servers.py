"""Servers of many kinds under load, as targets whose stacks are to be walked.

Each is a context manager with `pid` (the process to profile, with its children) and `what`. Ports are free
ones on loopback, files lie in a temporary directory, and everything started is ended at the exit.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from .workloads import Unavailable, free_port, stop

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

GO_SOURCE = r"""
package main

import ("fmt"; "net"; "net/http"; "os"; "sort"; "strings"; "sync")

var (mu sync.Mutex; words = map[string]int{})

func count(text string) string {
	mu.Lock()
	defer mu.Unlock()
	for _, w := range strings.Fields(text) { words[w]++ }
	keys := []string{}
	for k := range words { keys = append(keys, k) }
	sort.Strings(keys)
	return strings.Join(keys, " ")
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil { panic(err) }
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, count(strings.Repeat("the quick brown fox jumps over it ", 20)))
	}))
}
"""

RUST_SOURCE = r"""
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Words = Arc<Mutex<BTreeMap<String, usize>>>;

#[inline(never)]
fn count(words: &Words, text: &str) -> usize {
    let mut map = words.lock().unwrap();
    for word in text.split_whitespace() { *map.entry(word.to_string()).or_insert(0) += 1; }
    map.values().sum()
}

fn serve(stream: TcpStream, words: Words) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let text = "the quick brown fox jumps over it ".repeat(20);
    for line in BufReader::new(stream).lines() {
        if line?.is_empty() {
            let body = format!("{}\n", count(&words, &text));
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
            out.write_all(reply.as_bytes())?;
        }
    }
    Ok(())
}

fn main() {
    let listener = TcpListener::bind(format!("127.0.0.1:{}", std::env::args().nth(1).unwrap())).unwrap();
    let words: Words = Arc::new(Mutex::new(BTreeMap::new()));
    for stream in listener.incoming() {
        let words = words.clone();
        std::thread::spawn(move || { let _ = serve(stream.unwrap(), words); });
    }
}
"""

PYTHON_SOURCE = r"""
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    def do_GET(self):
        body = json.dumps(sorted(str(i * 7919 % 1000) for i in range(500))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

NODE_SOURCE = r"""
require("http").createServer((request, response) => {
  const words = Array.from({length: 500}, (_, i) => String(i * 7919 % 1000)).sort();
  response.end(JSON.stringify(words));
}).listen(Number(process.argv[2]), "127.0.0.1");
"""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Unavailable(f"{program} is missing")


def wait_for_port(port, process, seconds=15):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended by itself with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{process.args[0]} did not listen on port {port}")


class Server:
    """start() starts the server and sets `pid`; load() gives the command that keeps it busy."""

    name = what = ""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="assay-bench-")
        self.port = free_port()
        self.processes = []
        try:
            self.start()
            wait_for_port(self.port, self.processes[0])
            self.processes.append(subprocess.Popen(self.load(), **QUIET))
            time.sleep(1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            stop(process)
        self.directory.cleanup()

    def launch(self, command, **options):
        self.processes.append(subprocess.Popen(command, **{**QUIET, **options}))
        self.pid = self.processes[-1].pid

    def path(self, name, text=None):
        path = os.path.join(self.directory.name, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def load(self):
        need("wrk")
        return ["wrk", "-t1", "-c4", "-d600s", f"http://127.0.0.1:{self.port}/"]


class RedisServer(Server):
    name, what = "redis", "Debian's redis-server, stripped, no frame pointers"

    def start(self):
        need("redis-server", "redis-benchmark")
        self.launch(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                     "--appendonly", "no", "--dir", self.directory.name])

    def load(self):
        return ["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.port), "-t", "get,set,lpush,lrange_100",
                "-c", "8", "-n", "20000", "-l", "-q"]


MEMCACHED_LOAD = r"""
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
value = b"x" * 100
while True:
    for i in range(50):
        s.sendall(b"set k%d 0 0 100\r\n%s\r\nget k%d\r\n" % (i, value, i))
        got = b""
        while b"END\r\n" not in got: got += s.recv(65536)
"""


class Memcached(Server):
    name, what = "memcached", "Debian's memcached, 4 threads, stripped"

    def start(self):
        need("memcached")
        self.launch(["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-u", "nobody", "-t", "4"])

    def load(self):
        return [sys.executable, "-c", MEMCACHED_LOAD, str(self.port)]


class Nginx(Server):
    name, what = "nginx", "Debian's nginx, 2 workers, a small file"

    def start(self):
        need("nginx")
        os.chmod(self.directory.name, 0o755)
        self.path("index.html", "<html>" + "hello " * 200 + "</html>")
        config = self.path("nginx.conf", f"""
            daemon off; worker_processes 2; pid {self.path("pid")}; error_log /dev/null;
            events {{ worker_connections 64; }}
            http {{ access_log off; gzip on; gzip_types text/html; client_body_temp_path {self.path("body")};
              proxy_temp_path {self.path("proxy")}; fastcgi_temp_path {self.path("fcgi")};
              uwsgi_temp_path {self.path("uwsgi")}; scgi_temp_path {self.path("scgi")};
              server {{ listen 127.0.0.1:{self.port}; root {self.directory.name}; }} }}""")
        self.launch(["nginx", "-c", config, "-p", self.directory.name])


class Postgres(Server):
    name, what = "postgres", "Debian's PostgreSQL under pgbench"

    def start(self):
        root = "/usr/lib/postgresql"
        versions = sorted(os.listdir(root)) if os.path.isdir(root) else []
        if not versions:
            raise Unavailable("postgresql is missing")
        need("runuser", "pgbench")
        self.bin = f"{root}/{versions[-1]}/bin"
        shutil.chown(self.directory.name, "postgres")
        data = self.path("data")
        as_postgres = ["runuser", "-u", "postgres", "--"]
        done = subprocess.run([*as_postgres, f"{self.bin}/initdb", "-D", data, "-A", "trust"], capture_output=True)
        if done.returncode != 0:
            raise Unavailable(f"initdb failed: {done.stderr.decode()[-200:]}")
        command = [f"{self.bin}/postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k",
                   self.directory.name, "-c", "fsync=off"]
        self.launch(command, user="postgres", group="postgres", extra_groups=[], cwd=self.directory.name)
        wait_for_port(self.port, self.processes[0])
        for _ in range(50):
            done = subprocess.run([*self.pgbench(), "-i", "-s", "1"], capture_output=True)
            if done.returncode == 0:
                return
            time.sleep(0.2)
        raise RuntimeError(f"pgbench -i failed: {done.stderr.decode()[-200:]}")

    def pgbench(self):
        return ["pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-n", "postgres"]

    def load(self):
        return [*self.pgbench(), "-c", "4", "-T", "600"]


class Compiled(Server):
    """A server compiled here from a source above."""

    source = suffix = ""

    def start(self):
        source = self.path("server" + self.suffix, self.source)
        program = self.path("server")
        done = subprocess.run(self.compiler(source, program), capture_output=True, text=True, cwd=self.directory.name)
        if done.returncode != 0:
            raise Unavailable(f"{self.compiler(source, program)[0]} failed: {done.stderr.strip()[-200:]}")
        self.launch([program, str(self.port)])


class GoServer(Compiled):
    name, what, source, suffix = "go", "a Go HTTP server", GO_SOURCE, ".go"

    def compiler(self, source, program):
        need("go")
        return ["go", "build", "-o", program, source]


class RustServer(Compiled):
    name, what, source, suffix = "rust", "a Rust HTTP server, -O, threads and a mutex", RUST_SOURCE, ".rs"

    def compiler(self, source, program):
        need("rustc")
        return ["rustc", "-O", "-g", "-o", program, source]


class PythonServer(Server):
    name, what = "python3", "python3's threading HTTP server"

    def start(self):
        self.launch([sys.executable, self.path("server.py", PYTHON_SOURCE), str(self.port)])


class NodeServer(Server):
    name, what = "node", "a Node HTTP server, --perf-basic-prof"

    def start(self):
        need("node")
        self.launch(["node", "--perf-basic-prof", self.path("server.js", NODE_SOURCE), str(self.port)],
                    cwd=self.directory.name)


def all_servers():
    return [RedisServer(), Memcached(), Nginx(), Postgres(), GoServer(), RustServer(), PythonServer(), NodeServer()]
