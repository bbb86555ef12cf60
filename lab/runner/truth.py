"""The causal truth of a scenario: the same load on the server with and without its fault, ABBA."""
import datetime
import math
import platform
import statistics
import time

from . import session as sessions

ORDER = ("faulty", "healthy", "healthy", "faulty")


def figures(result):
    """Throughput and latency from `assay load --json` or the replica client, which has the same format."""
    latency = result.get("latency") or result.get("latency_ns") or {}

    def nanoseconds(name):
        for key in (f"{name}_ns", name):
            if isinstance(latency.get(key), (int, float)):
                return latency[key]
        return math.nan

    throughput = result.get("throughput_per_s", result.get("throughput", math.nan))
    errors = result.get("errors", 0)
    if isinstance(errors, dict):
        errors = errors.get("total", sum(v for v in errors.values() if isinstance(v, int)))
    return {"throughput": float(throughput), "p50_us": nanoseconds("p50") / 1000,
            "p99_us": nanoseconds("p99") / 1000, "errors": errors}


def measure_once(build, scenario, variant, seconds):
    with sessions.Session(build, scenario, variant) as session:
        session.start_load(seconds)
        time.sleep(min(1.0, seconds / 2))
        resident_kb = resident(session)
        result = session.finish_load(seconds + 30)
        grown_kb = resident(session) - resident_kb
    if session.leftovers:
        raise sessions.SessionError("left behind: " + ", ".join(session.leftovers))
    return dict(figures(result), rss_mb=(resident_kb + grown_kb) / 1024)


def resident(session):
    """RSS of the server's processes, in kB."""
    total = 0
    for pid in session.server_processes():
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                total += next((int(line.split()[1]) for line in status
                               if line.startswith("VmRSS")), 0)
        except OSError:
            continue
    return total


def measure(build, scenario, seconds, rounds):
    """Median figures per variant. A scenario without a fault has only itself to measure."""
    order = ORDER if scenario.has_fault else ("faulty", "faulty")
    runs = {"faulty": [], "healthy": []}
    for _ in range(rounds):
        for variant in order:
            runs[variant].append(measure_once(build, scenario, variant, seconds))
    return {variant: {key: statistics.median(run[key] for run in results) for key in results[0]}
            for variant, results in runs.items() if results}


def to_toml(medians, seconds, rounds, has_fault):
    lines = [f'measured = "{datetime.date.today()}, {platform.machine()}, '
             f'{sessions.os.cpu_count()} CPUs, medians of {2 * rounds} runs of {seconds} s '
             f'per side{", ABBA" if has_fault else ""}"']
    for variant, values in medians.items():
        name = variant if has_fault else "fault_free"
        for key in ("throughput", "p50_us", "p99_us", "rss_mb", "errors"):
            if math.isfinite(values[key]):
                number = f"{values[key]:.4g}" if values[key] < 1000 else f"{values[key]:.0f}"
                lines.append(f"{name}_{key} = {number}")
    if has_fault and medians["faulty"]["throughput"] > 0:
        ratio = medians["healthy"]["throughput"] / medians["faulty"]["throughput"]
        lines.append(f"gain = {ratio:.2f}  # throughput without the fault / with it")
    return lines
