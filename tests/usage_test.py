#!/usr/bin/env python3
"""Error messages for wrong command lines, and the width of tables.

usage: usage_test.py ASSAY
"""

import os
import sys
import tempfile

from outside import check, outcome, run


def refused(what, words, *wanted):
    done = run(*words)
    check(what, done.returncode == 2 and all(text in done.stderr for text in wanted), done.stderr)


def tables(directory):
    folded = os.path.join(directory, "wide.folded")
    name = "ns::function<" + "x" * 5000 + ">"
    with open(folded, "w") as file:
        file.write(f"main;{name} 100\n")
    path = os.path.join(directory, "wide.assay")
    check("import", run("import", folded, "-o", path).returncode == 0)
    query = "SELECT leaf, count(*) FROM samples GROUP BY 1"
    table = run("sql", path, query)
    check("a table is not as wide as its widest name",
          table.returncode == 0 and max(map(len, table.stdout.splitlines())) < 120, table.stdout[:300])
    for form in ("tsv", "json"):
        check(f"{form} is whole", name in run("sql", path, query, "--format", form).stdout)


def main():
    refused("a pid that is no number", ["record", "--pid", "abc"], "--pid", "'abc' is not a whole number")
    refused("a port that is too large", ["stat", "--port", "70000"], "--port", "70000 is not between 1 and 65535")
    refused("no time to count in", ["stat", "--pid", "1", "--for", "0s"], "--for 0 would count nothing")
    refused("a health check without load", ["stat", "--pid", "1", "--ready", "http://127.0.0.1/"], "goes with --load")
    refused("a misspelt command", ["recrod", "--pid", "1"], "no command recrod", "assay record")
    refused("a command that is none", ["frobnicate"], "no command frobnicate", "assay --help")
    with tempfile.TemporaryDirectory() as directory:
        tables(directory)
    return outcome()


if __name__ == "__main__":
    sys.exit(main())
