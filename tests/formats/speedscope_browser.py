#!/usr/bin/env python3
"""speedscope's own build loads our files in a headless browser; its schema accepts them. Run by hand.

usage: tests/formats/speedscope_browser.py RUN.assay [--assay build/dev/src/assay]

Needs npm (to fetch the package speedscope into a temporary directory, nothing of it is kept), chromium, and
for the schema python3-jsonschema. Exits 77 (skipped), saying why, when something is missing. Opens the
exported file with #profileURL= over loopback, waits for the page to draw, and checks that no error is shown.
"""

import functools
import glob
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def main():
    run = sys.argv[1]
    assay = sys.argv[3] if len(sys.argv) > 3 else "build/dev/src/assay"
    for tool in ("npm", "chromium"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    directory = tempfile.mkdtemp(prefix="assay-speedscope-")
    fetched = subprocess.run(["npm", "install", "--silent", "--no-save", "--ignore-scripts", "speedscope"],
                             cwd=directory, capture_output=True, text=True)
    release = os.path.join(directory, "node_modules/speedscope/dist/release")
    if fetched.returncode != 0 or not os.path.isdir(release):
        skip("npm cannot fetch speedscope")
    target = os.path.join(release, "run.json")
    subprocess.run([assay, "export", run, "--format", "speedscope", "-o", target], check=True)
    check_schema(release, target)
    check_browser(release, directory)
    shutil.rmtree(directory)
    print("ok")


def check_schema(release, target):
    try:
        import jsonschema
    except ImportError:
        print("left out: python3-jsonschema is not installed")
        return
    schemas = glob.glob(os.path.join(release, "file-format-schema.json"))
    jsonschema.validate(json.load(open(target)), json.load(open(schemas[0])))
    print("the schema accepts it")


def check_browser(release, directory):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=release)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = f"http://127.0.0.1:{server.server_port}"
    picture = os.path.join(tempfile.gettempdir(), "assay-speedscope.png")
    shown = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--enable-unsafe-swiftshader", "--window-size=1200,800",
         "--virtual-time-budget=20000", f"--user-data-dir={directory}/profile", "--dump-dom",
         f"--screenshot={picture}", f"{page}/#profileURL={page}/run.json"],
        capture_output=True, text=True, timeout=240)
    server.shutdown()
    text = shown.stdout
    assert "Something went wrong" not in text, "speedscope shows an error"
    assert "Left Heavy" in text and "Sandwich" in text, "speedscope did not load the profile"
    print("speedscope shows it:", picture)


main()
