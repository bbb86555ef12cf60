"""Kernels of Debian's releases, taken from the package archive that this machine already uses.

Nothing of the machine's own package state changes: lists and downloads live in the folder that the caller names, and a
kernel that was unpacked there once is used again.
"""
import glob
import os
import subprocess

SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie"}
PACKAGE = "linux-image-cloud-amd64"


class Unavailable(Exception):
    """The kernel is not available here; the text says why."""


def archive():
    """The address of the archive that apt is set up with."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"],
                            capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        address, _, release = line.partition(" ")
        if "-" not in release and address.rstrip("/").endswith("/debian"):
            return address
    raise Unavailable("apt is not set up with a Debian archive")


def apt_options(folder):
    for part in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    settings = {
        "Dir::Etc::sourcelist": f"{folder}/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": f"{folder}/lists",
        "Dir::Cache": f"{folder}/cache",
        "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Retries": "2",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def call(command, folder, what):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{what}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def image(series, cache):
    """The path of vmlinuz for a series such as "6.1"; fetched when it is not in the cache yet."""
    folder = os.path.join(os.path.abspath(cache), series)
    found = glob.glob(f"{folder}/root/boot/vmlinuz-*")
    if found:
        return found[0]
    os.makedirs(folder, exist_ok=True)
    suite = SUITES[series]
    with open(f"{folder}/sources.list", "w") as out:
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        out.write(f"deb [signed-by={keys}] {archive()} {suite} main\n")
    options = apt_options(folder)
    call(["apt-get", *options, "update", "-qq"], folder, f"no package list of {suite}")
    depends = call(["apt-cache", *options, "depends", PACKAGE], folder, f"{suite} has no {PACKAGE}")
    name = depends.split("Depends:")[1].split()[0]
    call(["apt-get", *options, "download", "-qq", name], folder, f"{name} cannot be fetched")
    package = glob.glob(f"{folder}/{name}_*.deb")[0]
    call(["dpkg-deb", "-x", package, "root"], folder, f"{package} cannot be unpacked")
    os.unlink(package)
    return glob.glob(f"{folder}/root/boot/vmlinuz-*")[0]
