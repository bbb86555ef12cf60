"""Gets and sets against a memcached on loopback, over 16 connections, until it is ended."""

import selectors
import socket
import sys

CONNECTIONS = 16
SET = b"set key%d 0 0 100\r\n" + b"x" * 100 + b"\r\n"
GET = b"get key%d\r\n"


def main():
    port = int(sys.argv[1])
    selector = selectors.DefaultSelector()
    for number in range(CONNECTIONS):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(SET % number)
        selector.register(connection, selectors.EVENT_READ, [number, 0])
    while True:
        for key, _ in selector.select():
            state = key.data
            if not key.fileobj.recv(65536):
                return
            state[1] += 1
            key.fileobj.sendall((SET if state[1] % 10 == 0 else GET) % state[0])


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, OSError):
        pass
