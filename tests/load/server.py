"""A small HTTP/1.1 server for load tests: answers /; /error is 503; /slow takes 20 ms.

usage: server.py PORT   (0: a free one; the port is printed)
"""

import socketserver
import sys
import time


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while True:
            line = self.rfile.readline(65537)
            if not line:
                return
            while self.rfile.readline(65537) not in (b"\r\n", b"\n", b""):
                pass
            path = line.split()[1].decode() if len(line.split()) > 1 else "/"
            if path.startswith("/slow"):
                time.sleep(0.02)
            status = b"503 Busy" if path.startswith("/error") else b"200 OK"
            if path.startswith("/missing"):
                status = b"404 Not Found"
            self.wfile.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that ends mid-request is nothing to report


with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
