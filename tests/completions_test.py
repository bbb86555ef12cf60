#!/usr/bin/env python3
"""The shell completions parse, and offer exactly the options that `assay COMMAND --help` prints.

usage: completions_test.py ASSAY COMPLETIONS_DIR
Exits 77 (skipped) when this build of assay has no commands. Shells that are not installed are left out,
saying so; bash is always there.
"""

import re
import shutil
import subprocess
import sys



def commands_in_help(text):
    """The names below "Subcommands:"."""
    return re.findall(r"^  (\w+) {2,}", text.split("Subcommands:")[1].split("Examples:")[0], re.M)


def output_of(command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **more)


def options_in_help(text):
    """Every option in the left column of a help text: "  -o,--output FILE   what it is"."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"\s+(-.*?)(\s{2,}|$)", line)
        if match:
            found.update(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", match.group(1)))
    return found


def bash_options(directory, command):
    """What bash would offer after `assay COMMAND -`."""
    script = """
      source "$1/assay.bash"
      COMP_WORDS=(assay $2 -); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      _assay
      printf '%s\\n' "${COMPREPLY[@]}"
    """
    result = output_of(["bash", "--norc", "-c", script, "bash", directory, command])
    return set(result.stdout.split())


def zsh_options(directory, command):
    """The options in the command's block of _assay, with the arrays that it names put in."""
    text = open(f"{directory}/_assay").read()
    block = text
    if command:
        block = re.search(rf"^        {command}\)\n(.*?)^          ;;", text, re.S | re.M).group(1)
    found = set(re.findall(r"(?<=['*])--?[A-Za-z][\w-]*(?=\[)", block))
    return found


def fish_options(directory, command):
    """What fish would offer after `assay COMMAND --` and `assay COMMAND -`."""
    line = f"assay {command} ".replace("  ", " ")
    script = f'source {directory}/assay.fish; complete -C "{line}--"; complete -C "{line}-"'
    result = output_of(["fish", "--no-config", "-c", script])
    return {row.split("\t")[0] for row in result.stdout.splitlines() if row.startswith("-")}


def syntax_failures(directory):
    for shell, file in (("bash", "assay.bash"), ("zsh", "_assay"), ("fish", "assay.fish")):
        if not shutil.which(shell):
            print(f"left out: {shell} is not installed, so {file} is not parsed by it")
            continue
        result = output_of([shell, "-n", f"{directory}/{file}"])
        if result.returncode != 0:
            yield f"{shell} -n {file}: {result.stderr.strip()}"


def option_failures(assay, directory):
    readers = {"bash": bash_options, "zsh": zsh_options}
    if shutil.which("fish"):
        readers["fish"] = fish_options
    for command in commands_in_help(output_of([assay, "--help"]).stdout):
        wanted = options_in_help(output_of([assay, command, "--help"]).stdout)
        for shell, options_of in readers.items():
            offered = options_of(directory, command)
            for option in sorted(wanted - offered):
                yield f"{shell}: `assay {command}` has {option}, the completion does not offer it"
            for option in sorted(offered - wanted):
                yield f"{shell}: the completion offers {option}, which `assay {command} --help` does not name"


def main():
    assay, directory = sys.argv[1:3]
    failures = list(syntax_failures(directory))
    has_commands = bool(options_in_help(output_of([assay, "record", "--help"]).stdout))
    if has_commands:
        failures += option_failures(assay, directory)
    for failure in failures:
        print(f"FAILED: {failure}")
    if failures:
        return 1
    if not has_commands:
        print("skipped: this build of assay has no commands to compare with")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
