"""From measurements to medians, the table, and whether Assay's promises about overhead are kept."""

from statistics import median, quantiles


def summary(measurements):
    """Median and quartiles of ratios, medians of the costs, over the rounds of one profiler."""
    ratios = sorted(m["ratio"] for m in measurements)
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3

    def middle(key):
        values = [m[key] for m in measurements if m.get(key) is not None]
        return median(values) if values else None

    per_event = [m["bytes"] / m["events"] for m in measurements if m.get("bytes") and m.get("events")]
    return {
        "rounds": len(ratios),
        "ratio": median(ratios),
        "ratio_low": low,
        "ratio_high": high,
        "per_cpu_ratio": middle("per_cpu_ratio"),
        "added_ns": middle("added_ns"),
        "throughput": middle("throughput"),
        "switches": middle("switches"),
        "cpu_share": middle("cpu_share"),
        "rss_bytes": max(m["rss_bytes"] for m in measurements),
        "bytes": middle("bytes"),
        "events": middle("events"),
        "bytes_per_event": median(per_event) if per_event else None,
    }


def human(value, unit=""):
    if value is None:
        return "-"
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.1f} {suffix}{unit}"
    return f"{value:.0f} {unit}".rstrip()


HEAD = ("", "throughput / nothing", "quartiles", "cost", "per CPU s", "added ns", "own CPU", "peak RSS", "file", "events", "bytes/event")


def row(name, s):
    attached = name != "nothing"
    return (
        name,
        f"{s['ratio']:.3f}",
        f"{s['ratio_low']:.3f}-{s['ratio_high']:.3f}" if attached else "",
        f"{(1 - s['ratio']) * 100:+.1f} %" if attached else "",
        f"{s['per_cpu_ratio']:.3f}" if attached else "",
        f"{s['added_ns']:.0f}" if attached else "",
        f"{s['cpu_share'] * 100:.1f} %" if attached else "",
        human(s["rss_bytes"], "B") if attached else "",
        human(s["bytes"], "B") if attached else "",
        human(s["events"]) if attached else "",
        f"{s['bytes_per_event']:.1f}" if s["bytes_per_event"] else "-" if attached else "",
    )


SWITCH_PEERS = ("perf record -e cs -c 1 -g", "bpftrace off-CPU")


def print_table(workload, what, unit, summaries):
    base = summaries["nothing"]
    print(f"\n{workload}: {what}")
    print(f"  nothing attached: {human(base['throughput'])} {unit}/s, {human(base['switches'])} switches/s; "
          f"medians of {base['rounds']} interleaved rounds")
    rows = [HEAD] + [row(name, s) for name, s in summaries.items()]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    for r in rows:
        cells = [r[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(r[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())


def promises(results, assay, perf_switches):
    """(sentence, kept) for every promise that these results can decide."""
    for workload, summaries in results.items():
        ours, theirs = summaries.get(assay), summaries.get(perf_switches)
        if not ours:
            continue
        cost = 1 - ours["ratio"]
        if theirs:
            yield (f"{workload}: both views cost {cost * 100:.1f} %, no more than perf's off-CPU view alone "
                   f"({(1 - theirs['ratio']) * 100:.1f} %)", ours["ratio"] >= theirs["ratio"])
        peers = {n: s["added_ns"] for n, s in summaries.items() if n in SWITCH_PEERS}
        if workload.startswith("switch-heavy") and peers:
            cheapest = min(peers, key=peers.get)
            yield (f"{workload}: {ours['added_ns']:.0f} ns added per switch, at most half of {cheapest}'s "
                   f"{peers[cheapest]:.0f}", ours["added_ns"] * 2 <= peers[cheapest])
        if workload == "moderate":
            yield f"{workload}: costs {cost * 100:.1f} %, under 2 % at ≤ 10k switches/s", cost < 0.02
        yield f"{workload}: peak RSS {human(ours['rss_bytes'], 'B')}, under 150 MB", ours["rss_bytes"] < 150e6
        if theirs and ours["bytes_per_event"] and theirs["bytes_per_event"]:
            yield (f"{workload}: {ours['bytes_per_event']:.1f} bytes per event, at most a tenth of perf.data's "
                   f"{theirs['bytes_per_event']:.1f}", ours["bytes_per_event"] * 10 <= theirs["bytes_per_event"])
