"""One emulated machine: a kernel, a root of a dozen files in memory, and what it sends back on a serial line."""
import base64
import gzip
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def libraries_of(program):
    """What the dynamic loader loads for it, the loader included."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    words = [word for line in listed.splitlines() for word in line.split()]
    return sorted({word for word in words if word.startswith("/")})


def put(root, source, target):
    path = os.path.join(root, target.lstrip("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(os.path.realpath(source), path)
    os.chmod(path, 0o755)


def make_root(assay, program, folder):
    """An initrd with busybox, the two programs and their libraries."""
    root = os.path.join(folder, "root")
    for name in ("proc", "sys", "dev", "tmp", "bin"):
        os.makedirs(os.path.join(root, name))
    put(root, shutil.which("busybox"), "/bin/busybox")
    put(root, os.path.join(HERE, "guest/init"), "/init")
    stripped = os.path.join(folder, "assay")
    subprocess.run(["strip", "-o", stripped, assay], check=True)
    put(root, stripped, "/bin/assay")
    put(root, program, "/program")
    for library in libraries_of(assay) + libraries_of(program):
        put(root, library, library)
    image = os.path.join(folder, "initrd")
    subprocess.run(f"find . | cpio -o -H newc --quiet | gzip -1 > {image}", shell=True, cwd=root, check=True)
    return image


def boot(kernel, initrd, folder, seconds):
    """Runs the machine to its end; returns what it sent, by name, and its console log."""
    # One thread for both CPUs: with a thread each, the emulator can run an instruction that the kernel is just patching.
    sent_path, console_path = os.path.join(folder, "sent"), os.path.join(folder, "console")
    command = ["qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "2G", "-accel", "tcg,thread=single",
               "-display", "none", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", initrd,
               "-append", "console=ttyS0 quiet oops=panic panic=-1 nokaslr",
               "-serial", f"file:{console_path}", "-serial", f"file:{sent_path}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _, complaint = process.communicate()
        complaint += f"the machine did not end within {seconds} s".encode()
    console = open(console_path, errors="replace").read() if os.path.exists(console_path) else ""
    return received(sent_path), console + complaint.decode(errors="replace")


def received(path):
    answers = {}
    lines = open(path, "rb").read().split(b"\n") if os.path.exists(path) else []
    for line in lines:
        name, _, body = line.strip().partition(b" ")
        try:
            answers[name.decode()] = gzip.decompress(base64.b64decode(body)).decode(errors="replace")
        except (ValueError, OSError, EOFError):
            continue  # cut off: the missing name tells
    return answers


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="assay-matrix-")
