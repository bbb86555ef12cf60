"""The lab's servers as targets: media and grpc_work as they are built, media stripped, and replica built
with frame pointers (target replica_fp)."""

import os
import re
import shutil
import subprocess

from .servers import QUIET, Server
from .workloads import Unavailable

CHAT = ('{"model": "llm", "messages": [{"role": "user", "content": "{{letters:64}}"}], "max_tokens": 16, '
        '"stream": false}')


class LabServer(Server):
    """Says where it listens: "listening 127.0.0.1:PORT"."""

    def __init__(self, build, name, what):
        self.build, self.name, self.what = os.path.abspath(build), name, what

    def program(self):
        path = os.path.join(self.build, "lab", self.name)
        if not os.access(path, os.X_OK):
            raise Unavailable(f"{path} is not built; try: make")
        return path

    def launch_and_listen(self, command):
        process = subprocess.Popen(command, **{**QUIET, "stdout": subprocess.PIPE, "text": True})
        self.processes.append(process)
        self.pid = process.pid
        for line in process.stdout:
            match = re.match(r"listening 127\.0\.0\.1:(\d+)", line)
            if match:
                self.port = int(match.group(1))
                return
        raise RuntimeError(f"{command[0]} did not say where it listens")

    def assay_load(self, *arguments):
        return [os.path.join(self.build, "src/assay"), "load", *arguments, "--for", "600s", "--quiet"]


class Media(LabServer):
    def start(self):
        self.launch_and_listen([self.program(), "--token-work", "20000"])

    def load(self):
        return self.assay_load(f"http://127.0.0.1:{self.port}/v1/chat/completions", "--connections", "16", "-H",
                               "Authorization: Bearer your-secret-key", "-d", CHAT)


class StrippedMedia(Media):
    def program(self):
        copy = self.path("media")
        shutil.copy(os.path.join(self.build, "lab/media"), copy)
        subprocess.run(["strip", copy], check=True)
        return copy


class GrpcWork(LabServer):
    def start(self):
        self.launch_and_listen([self.program()])

    def load(self):
        return self.assay_load(f"grpc://127.0.0.1:{self.port}/lab.Greeter/SayHello", "--connections", "8", "-d",
                               '{"name": "you"}')


class ReplicaWithFramePointers(LabServer):
    def start(self):
        done = subprocess.run(["cmake", "--build", self.build, "--target", "replica_fp"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"replica_fp cannot be built: {(done.stderr or done.stdout)[-300:]}")
        os.mkdir(self.path("data"))
        self.launch_and_listen([os.path.join(self.build, "lab/replica_fp"), "--dir", self.path("data")])

    def load(self):
        return [os.path.join(self.build, "lab/replica_client"), "--port", str(self.port), "--for", "600", "--streams", "8",
                "--window", "16"]


def lab_servers(build):
    return [Media(build, "media", "C++, no frame pointers, main and workers"),
            StrippedMedia(build, "media-stripped", "C++, no frame pointers, stripped"),
            ReplicaWithFramePointers(build, "replica-fp", "C++, frame pointers, three processes"),
            GrpcWork(build, "grpc_work", "gRPC C++, no frame pointers")]
