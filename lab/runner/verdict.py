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


# The truth is a ratio of two short measurements; a bound that is broken by less is not called broken.
NOISE = 1.10
# How far a prediction may be off.
FACTOR = 2.0


def culprit(report, names):
    """The first finding that names the fault's function: the one whose gain is compared with the truth."""
    findings = report.get("findings", [])
    for finding in findings:
        if any(name in text for name in names for text in symbols_in(finding, [])):
            return finding
    return None


class GainCheck:
    """What removing the fault was said to bring, beside what its switch brought."""

    def __init__(self, scenario, report):
        self.real = scenario.data.get("truth", {}).get("gain") if scenario.has_fault else None
        finding = culprit(report, scenario.expected_names) if self.real else None
        self.bound = finding.get("gain_upper_bound") if finding else None
        self.predicted = finding.get("gain_predicted") if finding else None
        self.finding = finding.get("id") if finding else None

    @property
    def bound_held(self):
        """None: nothing was bounded."""
        return None if self.bound is None else self.real <= (1 + self.bound) * NOISE

    @property
    def within_factor(self):
        """None: nothing was predicted."""
        if self.predicted is None:
            return None
        ratio = (1 + self.predicted) / self.real
        return 1 / FACTOR <= ratio <= FACTOR

    def line(self):
        if self.real is None:
            return ""
        if self.finding is None:
            return f"x{self.real:.2f}: no finding names the fault"

        def word(value, ok, missing):
            return missing if value is None else f"x{1 + value:.2f} {'ok' if ok else 'NO'}"
        return (f"real x{self.real:.2f}, bound {word(self.bound, self.bound_held, 'none')}, "
                f"predicted {word(self.predicted, self.within_factor, 'none')} ({self.finding})")


def score_gains(outcomes):
    checks = [o.gain for o in outcomes if o.gain.real is not None]
    found = [c for c in checks if c.finding is not None]
    bounded = [c for c in found if c.bound_held is not None]
    predicted = [c for c in found if c.within_factor is not None]
    held = sum(c.bound_held for c in bounded)
    near = sum(c.within_factor for c in predicted)
    return (f"gains of {len(checks)} recordings with a fault, {len(found)} with a finding that names it: "
            f"bound held in {held} of {len(bounded)} ({len(found) - len(bounded)} not bounded), "
            f"predicted within a factor of {FACTOR:.0f} in {near} of {len(predicted)} "
            f"({len(found) - len(predicted)} not predicted)")


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
        self.gain = GainCheck(scenario, report)
        self.confidence = verdict.get("confidence", 0) if isinstance(verdict, dict) else 0
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
                f"got {got:30} {self.state:8} {named}; {self.gain.line()}")


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
    sure = [o for o in judged if o.confidence >= 0.8 and o.kind != "withheld"]
    good = sum(o.state in ("right", "near") for o in sure)
    lines.append(f"said with a confidence of 0.8 or more: {good} of {len(sure)} right or near")
    lines.append(score_gains(judged))
    false = [f"{o.scenario.name}: {', '.join(o.false_alarms)}" for o in judged if o.false_alarms]
    if false:
        lines.append("findings on servers without a fault: " + "; ".join(false))
    return lines
