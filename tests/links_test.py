#!/usr/bin/env python3
"""Every relative link in the documents leads to something that exists.

usage: links_test.py ROOT
"""

import pathlib
import re
import sys


def broken_links(root):
    documents = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])
    if not documents:
        yield "no documents found"
    for document in documents:
        prose = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in link and not (document.parent / link).exists():
                yield f"{document.relative_to(root)}: {link} does not exist"


def main():
    failures = list(broken_links(pathlib.Path(sys.argv[1])))
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
