"""The lab's own server in three builds: without frame pointers, with them, and stripped."""

import os
import shutil
import subprocess

from .servers import Server
from .workloads import Unavailable


class LabServer(Server):
    """The demo server; `flags` are what it is compiled with here."""

    def __init__(self, build, name, what, flags, strip=False):
        self.name, self.what, self.flags, self.strip = name, what, flags, strip
        self.source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(build))), "lab")

    def start(self):
        program = self.path("server")
        sources = [os.path.join(self.source, "demo", f) for f in ("server.cpp", "catalogue.cpp", "http.cpp")]
        if not all(os.path.exists(source) for source in sources) or not shutil.which("g++"):
            raise Unavailable("the lab's demo server or g++ is missing")
        subprocess.run(["g++", "-std=c++23", "-O2", "-g", *self.flags, f"-I{os.path.dirname(self.source)}", "-o",
                        program, *sources, "-pthread"], check=True)
        if self.strip:
            subprocess.run(["strip", program], check=True)
        self.launch([program, "--port", str(self.port)])


def lab_servers(build):
    return [LabServer(build, "lab", "C++, no frame pointers", ["-fomit-frame-pointer"]),
            LabServer(build, "lab-fp", "C++, frame pointers", ["-fno-omit-frame-pointer"]),
            LabServer(build, "lab-stripped", "C++, no frame pointers, stripped", ["-fomit-frame-pointer"], strip=True)]
