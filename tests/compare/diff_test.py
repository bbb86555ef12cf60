#!/usr/bin/env python3
"""`assay diff` and `assay ab` from the outside: what they refuse, and what they write.

usage: diff_test.py ASSAY
Runs are imported from folded stacks, so that no kernel is needed.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from outside import check, outcome, run  # noqa: E402


def import_run(directory, name, stacks):
    folded = os.path.join(directory, name + ".folded")
    with open(folded, "w") as file:
        file.writelines(f"{stack} {count}\n" for stack, count in stacks.items())
    path = os.path.join(directory, name + ".assay")
    done = run("import", folded, "-o", path)
    check(f"import {name}", done.returncode == 0, done.stderr)
    return path


def refusals(directory, good):
    missing = run("diff", good, "--vs", os.path.join(directory, "missing.assay"))
    check("a missing run is named", missing.returncode == 1 and "missing.assay" in missing.stderr, missing.stderr)
    foreign = os.path.join(directory, "foreign.assay")
    with open(foreign, "wb") as file:
        file.write(os.urandom(5000))
    done = run("diff", good, "--vs", foreign)
    check("a foreign file is named", done.returncode == 1 and "foreign.assay" in done.stderr, done.stderr)
    empty = os.path.join(directory, "empty.assay")
    open(empty, "wb").close()
    done = run("diff", empty, "--vs", good)
    check("an empty file is named", done.returncode == 1 and "empty" in done.stderr, done.stderr)
    cut = os.path.join(directory, "cut.assay")
    with open(good, "rb") as whole, open(cut, "wb") as file:
        file.write(whole.read()[:6000])
    done = run("diff", good, "--vs", cut)
    check("a truncated run is named", done.returncode == 1 and "cut.assay" in done.stderr, done.stderr)
    done = run("diff", good, "--vs", good, "--per", "request")
    check("per request needs load", done.returncode == 1 and "measured no load" in done.stderr, done.stderr)
    done = run("diff", good, "--vs", good, "--fail-on", "nonsense")
    check("a limit that is none", done.returncode == 2 and "MEASURE>+N%" in done.stderr, done.stderr)
    done = run("ab", "--", "true")
    check("ab needs two variants", done.returncode == 2 and "two variants" in done.stderr, done.stderr)
    done = run("ab", "--a", "true")
    check("ab needs both ways alike", done.returncode == 2, done.stderr)


def outputs(directory, before, after):
    text = run("diff", before, "--vs", after)
    check("text", text.returncode == 0 and "one run on a side" in text.stdout, text.stdout + text.stderr)
    check("imported runs are called that", "the runs were imported" in text.stdout, text.stdout)
    out = json.loads(run("diff", before, "--vs", after, "--format", "json").stdout)
    check("json names the function", any(c["function"] == "lookup" for c in out["changes"]), out["changes"])
    check("json has both verdicts", set(out["verdict"]) == {"sentence", "base", "new"}, out)
    svg = run("diff", before, "--vs", after, "--format", "svg").stdout
    check("svg", svg.startswith("<?xml") and "within noise" in svg and "lookup" in svg, svg[:200])
    check("svg shows what is gone", "class=\"f gone\"" in svg, "")
    page = os.path.join(directory, "out.html")
    done = run("diff", before, "--vs", after, "--format", "html", "-o", page)
    html = open(page).read() if done.returncode == 0 else ""
    check("html", "data:image/svg+xml;base64," in html and "lookup" in html, done.stderr)
    check("html escapes names", "<script>alert" not in html and "&lt;script&gt;" in html, "")
    md = run("diff", before, "--vs", after, "--format", "md").stdout
    check("md", "| measure |" in md and "<script>" not in md, md)


def main():
    with tempfile.TemporaryDirectory() as directory:
        hostile = "main;<script>alert(1)</script>"
        before = import_run(directory, "before", {"main;lookup": 4000, "main;parse": 3000, "main;old": 900, hostile: 2000})
        after = import_run(directory, "after", {"main;lookup": 8000, "main;parse": 3000, hostile: 5000})
        refusals(directory, before)
        outputs(directory, before, after)
    return outcome()


if __name__ == "__main__":
    sys.exit(main())
