#!/usr/bin/env python3
"""load.py PORT CONNECTIONS SECONDS: keeps so many requests open, prints how many were answered."""
import http.client
import sys
import threading
import time

port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + seconds
answered = [0] * connections


def client(number):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while time.monotonic() < end:
        connection.request("GET", "/")
        connection.getresponse().read()
        answered[number] += 1


threads = [threading.Thread(target=client, args=(n,)) for n in range(connections)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{sum(answered)} requests in {seconds:.0f} s with {connections} open at once")
