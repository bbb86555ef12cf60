#!/usr/bin/env python3
"""Names of code in the documents and in header comments exist in the tree.

usage: names_test.py ROOT

Documents (README.md, CONTRIBUTING.md, docs/*.md): names in backticks and the assay commands of code blocks.
Headers (src/**/*.h, inject/**/*.h): names in comments, with or without backticks. Checked are

- paths below a folder of the repository, and file names with the suffix of a source or document;
- options (--name) against the sources of the command line, or of the scripts for their own options;
- functions written with parentheses, name() or name(arguments), and in backticks any snake_case name;
- types of two or more humps, CamelCase.

A function or type exists when code uses it as a word: comments do not count, so that a comment cannot prove
itself. Names of other projects are in FOREIGN, with the reason. The test first checks that it finds invented
names (self_check), so that it cannot pass by finding nothing.
"""

import fnmatch
import pathlib
import re
import sys

FOREIGN = {
    "CamelCase": "a way to write names",
    "snake_case": "a way to write names",
    "src/NAME/": "a placeholder",
    "--countname": "an option of FlameGraph's flamegraph.pl",
    "ParseInt": "a function of Go",
    "AddressSanitizer": "of GCC and clang",
    "TypeScript": "a language",
    "FileDescriptorProto": "of protobuf",
    "ServerReflectionResponse": "of gRPC",
    "linux/types.h": "of the kernel",
    "linux/capability.h": "of the kernel",
    "asm/perf_regs.h": "of the kernel",
    "docs-developer/CHANGELOG-formats.md": "of the Firefox Profiler",
    "design.md": "a comment of src/analysis/report.h, to be rewritten with the kinds of verdict",
    "selected_wall_ns": "a comment of src/analysis/time/handoffs.h, to be rewritten with the accounted run",
}

FOLDERS = {"src", "inject", "docs", "lab", "bench", "tests", "rules", "scripts", "ui", "cmake", ".ci"}
NOT_OURS = {"node_modules", "__pycache__"}
CODE = (".h", ".hpp", ".cpp", ".c", ".cmake", ".py", ".ts", ".tsx", ".mjs", ".toml", ".map", ".in", ".go", ".rs",
        ".proto", ".pl")
FILE = r"[\w.*/-]*[\w*]\.(?:bpf\.c|bpf\.h|h|hpp|cpp|py|md|toml|mjs|tsx?|cmake)"
FUNCTION = r"(?:\w+::)*[a-z]\w*"
TYPE = r"(?:[A-Z][a-z0-9]+){2,}"
OPTION = r"--[a-z][\w-]*"
COMMANDS = ("ab", "diff", "doctor", "export", "heap", "import", "load", "record", "report", "rules", "sql", "stat",
            "sweep", "view")


def without_comments(text, suffix):
    if suffix in (".py", ".cmake", ".toml", ".pl", ".in", ".txt", ""):
        return re.sub(r"(?m)(^|\s)#.*$", "", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
                  lambda found: found.group() if found.group().startswith('"') else " ", text, flags=re.S)


class Tree:
    """What exists: the files, the words of the code, the options."""

    def __init__(self, root):
        self.root = root
        tops = [root / folder for folder in sorted(FOLDERS)]
        found = [*root.glob("*"), *(path for top in tops for path in top.rglob("*"))]
        self.files = sorted(path.relative_to(root).as_posix() for path in found
                            if path.is_file() and not NOT_OURS & set(path.relative_to(root).parts))
        self.folders = {str(parent) for name in self.files for parent in pathlib.PurePosixPath(name).parents}
        self.words, self.options, self.own_options = set(), set(), set()
        for name in self.files:
            path = pathlib.PurePosixPath(name)
            if not (path.suffix in CODE or path.name in ("CMakeLists.txt", "Makefile") or path.suffix == ""):
                continue
            if name == "tests/names_test.py" or "fuzz/" in name and path.suffix == "":
                continue
            try:
                code = without_comments((root / name).read_text(), path.suffix)
            except (UnicodeDecodeError, FileNotFoundError):
                continue
            self.words.update(re.findall(r"\w+", code))
            self.words.add(path.stem)
            options = set(re.findall(OPTION, code))
            if path.parts[0] == "lab":  # its servers declare an option by its bare name
                options.update("--" + option for option in re.findall(r'options\.\w+\("([\w-]+)"', code))
            (self.options if name.startswith("src/cli/") else self.own_options).update(options)

    def has_file(self, name, beside):
        if name.startswith("./"):
            name = name[2:]
        at = str((beside / name.rstrip("/")).as_posix())
        for candidate in (name.rstrip("/"), at):
            if fnmatch.filter(self.files, candidate) or candidate in self.folders:
                return True
        return bool(fnmatch.filter(self.files, "*/" + name))

    def has_word(self, name):
        return all({part, part.removesuffix("s")} & self.words for part in name.split("::"))

    def has_option(self, name, of_assay):
        return name in self.options or not of_assay and name in self.own_options


def is_foreign(name):
    return name in FOREIGN or name.removesuffix("s") in FOREIGN


def names_of_span(span):
    """The names in one span of backticks: (kind, name)."""
    if re.fullmatch(r"[\w.*/-]+/[\w.*/-]*", span) and span.split("/")[0] in FOLDERS or re.fullmatch(FILE, span):
        yield "file", span
    elif found := re.fullmatch(rf"({FUNCTION})\(.*\)", span):
        yield "word", found.group(1)
    elif re.fullmatch(rf"(?:\w+::)*(?:{TYPE}|[a-z]+(?:_[a-z0-9]+)+)", span):
        yield "word", span
    elif span.startswith(("--", "assay ")) or span.split(" ")[0] in COMMANDS:
        for option in re.findall(rf"(?<![\w-]){OPTION}", span.split(" -- ")[0]):
            yield ("option" if span.startswith("--") else "option of assay"), option


def names_of_document(text):
    for block in re.findall(r"```.*?```", text, flags=re.S):
        for line in re.findall(r"^(?:\$ |sudo )?(assay .*)", block, flags=re.M):
            line = re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", line)
            for option in re.findall(rf"(?<![\w-]){OPTION}", line.split(" -- ")[0]):
                yield "option of assay", option
    for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.S)):
        yield from names_of_span(" ".join(span.split()))


def names_of_header(text):
    comments = "\n".join(re.findall(r"//(?![^\n]*NOLINT)([^\n]*)", text))
    for span in re.findall(r"`([^`\n]+)`", comments):
        yield from names_of_span(span)
    comments = re.sub(r"\"[^\"\n]*\"|`[^`\n]+`|https?://\S+", " ", comments)
    for name in re.findall(rf"(?<![\w./-]){FILE}(?![\w/])", comments):
        yield "file", name
    for name in re.findall(rf"(?<![\w.:])({FUNCTION})\(\)", comments):
        yield "word", name
    for name in re.findall(rf"(?<![\w./-])(?:\w+::)*{TYPE}(?!\w|[./-]\w)", comments):
        yield "word", name


def missing(tree, names, beside):
    for kind, name in names:
        if is_foreign(name):
            continue
        if kind == "file":
            exists = tree.has_file(name, beside)
        elif kind == "word":
            exists = tree.has_word(name)
        else:
            exists = tree.has_option(name, kind == "option of assay")
        if not exists:
            yield name


def failures_of(tree):
    for name in tree.files:
        path = pathlib.PurePosixPath(name)
        if name in ("README.md", "CONTRIBUTING.md") or path.parent.as_posix() == "docs" and path.suffix == ".md":
            names_of = names_of_document
        elif path.suffix == ".h" and path.parts[0] in ("src", "inject"):
            names_of = names_of_header
        else:
            continue
        if (tree.root / name).exists():
            for missed in dict.fromkeys(missing(tree, names_of((tree.root / name).read_text()), path.parent)):
                yield f"{name}: `{missed}` does not exist"


def self_check(tree):
    """Invented names are found, each kind of them; real ones pass."""
    docs, src = pathlib.PurePosixPath("docs"), pathlib.PurePosixPath("src/model")
    document = ("`src/model/invented.h` `invented.h` `bench/invented` `invented_call(x)` `InventedType`\n"
                "`--invented` `assay record --invent` `invented_field` `tests/invented_*`\n"
                "```sh\nassay report --inven\n```\n")
    expected = {"src/model/invented.h", "invented.h", "bench/invented", "invented_call", "InventedType", "--invented",
                "--invent", "--inven", "invented_field", "tests/invented_*"}
    found = set(missing(tree, names_of_document(document), docs))
    yield from (f"self check: {name} in a document was not found" for name in sorted(expected - found))
    header = "// InventedType calls invented(), see invented.h and docs/invented.md; `invented_field`.\n"
    expected = {"InventedType", "invented", "invented.h", "docs/invented.md", "invented_field"}
    found = set(missing(tree, names_of_header(header), src))
    yield from (f"self check: {name} in a header was not found" for name in sorted(expected - found))
    real = ("`src/model/sample.h` `sample.h` `rules/idle` `analysis::analyse()` `FrameText` `waker_stack`\n"
            "`--backend auto`\n"
            "```sh\nassay report run.assay --format json -- ./server --invented\n```\n")
    yield from (f"self check: {name} exists, and was not seen" for name in missing(tree, names_of_document(real), docs))


def main():
    tree = Tree(pathlib.Path(sys.argv[1]))
    failures = [*self_check(tree), *failures_of(tree)]
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
