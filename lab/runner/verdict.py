"""What a report says about a scenario, beside what it should say."""


def symbols_in(node, found):
    """Every string in a JSON value."""
    if isinstance(node, dict):
        for value in node.values():
            symbols_in(value, found)
    elif isinstance(node, list):
        for value in node:
            symbols_in(value, found)
    elif isinstance(node, str):
        found.append(node)
    return found


class Outcome:
    """One scenario, one report."""

    def __init__(self, scenario, report):
        self.scenario = scenario
        verdict = report.get("verdict")
        self.kind = verdict.get("kind") if isinstance(verdict, dict) else None
        # What a withheld verdict would have said.
        secondary = verdict.get("secondary", []) if isinstance(verdict, dict) else []
        self.beneath = secondary[0].get("kind") if self.kind == "withheld" and secondary else None
        names = scenario.expected_names
        judged = symbols_in([verdict, report.get("findings", [])], [])
        evidence = symbols_in([report.get(part, []) for part in
                               ("functions", "hot_paths", "waits", "locks")], [])
        self.named = not names or any(name in text for name in names for text in judged)
        self.in_evidence = not names or any(name in text for name in names for text in evidence)
        self.false_alarms = [finding.get("id", "?") for finding in report.get("findings", [])
                             if scenario.data["expect"].get("findings") == []]

    @property
    def state(self):
        if self.kind is None:
            return "not yet"
        if self.kind == self.scenario.expected_kind:
            return "right"
        # Without a fault there is no culprit to miss: every kind that describes the server is right.
        if not self.scenario.has_fault and self.kind in self.scenario.accepted_kinds:
            return "right"
        if self.kind in self.scenario.accepted_kinds:
            return "near"
        return "withheld" if self.kind == "withheld" else "wrong"

    def line(self):
        names = "/".join(self.scenario.expected_names)
        if not names:
            named = "nothing to name"
        elif self.named and self.kind is not None:
            named = f"names {names}"
        elif self.in_evidence:
            named = f"{names} in the evidence"
        else:
            named = f"{names} NOT FOUND"
        got = f"withheld ({self.beneath})" if self.beneath else self.kind or "not yet"
        return (f"{self.scenario.name:24} expected {self.scenario.expected_kind:19} "
                f"got {got:30} {self.state:8} {named}")


def confusion(outcomes):
    """Rows: expected; columns: got."""
    columns = sorted({o.kind or "not yet" for o in outcomes})
    rows = sorted({o.scenario.expected_kind for o in outcomes})
    width = max([len(c) for c in columns] + [4]) + 2
    lines = [" " * 22 + "".join(f"{c:>{width}}" for c in columns)]
    for row in rows:
        counts = [sum(1 for o in outcomes if o.scenario.expected_kind == row
                      and (o.kind or "not yet") == column) for column in columns]
        lines.append(f"{row:22}" + "".join(f"{n if n else '.':>{width}}" for n in counts))
    return lines


def score(outcomes):
    judged = [o for o in outcomes if o.kind is not None]
    lines = ["", "expected (rows) against verdict (columns)", *confusion(outcomes), ""]
    if not judged:
        lines.append(f"no verdict in any of {len(outcomes)} reports: not yet")
        return lines
    right = sum(o.state == "right" for o in judged)
    near = sum(o.state == "near" for o in judged)
    withheld = [o for o in judged if o.state == "withheld"]
    beneath = sum(o.beneath in o.scenario.accepted_kinds for o in withheld)
    named = sum(o.named for o in judged if o.scenario.expected_names)
    to_name = sum(1 for o in judged if o.scenario.expected_names)
    wrong = len(judged) - right - near - len(withheld)
    lines.append(f"right {right} of {len(judged)}, near {near}, wrong {wrong}, withheld "
                 f"{len(withheld)} (right or near beneath: {beneath}); culprit named {named} of {to_name}")
    false = [f"{o.scenario.name}: {', '.join(o.false_alarms)}" for o in judged if o.false_alarms]
    if false:
        lines.append("findings on servers without a fault: " + "; ".join(false))
    return lines
