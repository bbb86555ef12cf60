"""A scenario file: one server, its flags, its load, what a profiler must find, and the measured truth.

Failures: a file that is not TOML or misses a field is a ScenarioError with the file's name.
"""
import pathlib
import re
import tomllib

from .verdict_kinds import KINDS

LAB = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = LAB / "scenarios"

REQUIRED = {"server": str, "about": str, "flags": str, "load": dict, "expect": dict}
KNOWN = set(REQUIRED) | {"healthy", "setup", "beside", "target", "stderr", "truth", "needs",
                          "cpu_percent", "environment"}


class ScenarioError(Exception):
    pass


class Scenario:
    """One file. `variant` is "faulty" (as the file says) or "healthy" (the same without the fault)."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name = self.path.stem
        try:
            self.data = tomllib.loads(self.path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ScenarioError(f"{self.path}: {error}") from error
        for field, kind in REQUIRED.items():
            if not isinstance(self.data.get(field), kind):
                raise ScenarioError(f"{self.path}: '{field}' is missing or not a {kind.__name__}")
        unknown = set(self.data) - KNOWN
        if unknown:
            raise ScenarioError(f"{self.path}: unknown field {', '.join(sorted(unknown))}")
        expect = self.data["expect"]
        for kind in [expect.get("kind"), *expect.get("also", [])]:
            if kind not in KINDS:
                raise ScenarioError(f"{self.path}: expect.kind '{kind}' is no verdict kind")
        if len({"assay", "command"} & set(self.data["load"])) != 1:
            raise ScenarioError(f"{self.path}: [load] has either 'assay' or 'command'")

    @property
    def server(self):
        return self.data["server"]

    @property
    def has_fault(self):
        """Is there a healthy variant to compare with?"""
        return "healthy" in self.data

    def of(self, field, variant, default=None):
        """A field of [healthy] where the healthy variant changes it, else of the scenario itself."""
        if variant == "healthy" and field in self.data.get("healthy", {}):
            return self.data["healthy"][field]
        if field == "load":
            return next(iter(self.data["load"].values()))
        return self.data.get(field, default)

    @property
    def loaded_by_assay(self):
        """Is the load a URL with options of `assay load`? Otherwise it is a command of its own."""
        return "assay" in self.data["load"]

    @property
    def expected_kind(self):
        return self.data["expect"]["kind"]

    @property
    def accepted_kinds(self):
        return [self.expected_kind, *self.data["expect"].get("also", [])]

    @property
    def expected_names(self):
        return self.data["expect"].get("names", [])

    def write_truth(self, lines):
        """Replaces the [truth] table, which is the last one of the file."""
        text = self.path.read_text()
        head = re.split(r"(?m)^\[truth\]", text)[0].rstrip("\n")
        self.path.write_text(head + "\n\n[truth]\n" + "\n".join(lines) + "\n")


def find(names):
    """Scenarios by name or path; all of them when there are no names."""
    if not names:
        return [Scenario(path) for path in sorted(SCENARIOS.glob("*.toml"))]
    found = []
    for name in names:
        path = pathlib.Path(name)
        if not path.is_file():
            path = SCENARIOS / f"{name.removesuffix('.toml')}.toml"
        if not path.is_file():
            raise ScenarioError(f"no scenario '{name}'; lab/run --list shows them")
        found.append(Scenario(path))
    return found
