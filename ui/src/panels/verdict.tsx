// The strip at the top: the verdict in a sentence, the bar of thread time, the causes, and how far
// all of it can be trusted.

import { hasTimes, type HeapReport, type Limit, type Split } from "../data/report.ts";
import { isHeapOnly } from "../data/run_source.ts";
import { kStateNames, kStateOrder, stateColour } from "../data/states.ts";
import { amount, count, duration, percent } from "../format.ts";
import { useView } from "../hooks.ts";

export function splitStates(split: Split): [id: string, ns: number][] {
  const all: Record<string, number> = {
    user: split.user_ns, kernel: split.kernel_ns, runqueue: split.runqueue_ns, idle: split.idle_ns,
    ...split.blocked_ns,
  };
  return kStateOrder.filter((id) => all[id] > 0).map((id) => [id, all[id]]);
}

function ThreadTimeBar() {
  const { report, dark, run, state, store } = useView();
  const split = report.thread_time;
  const states = splitStates(split);
  const wall = states.reduce((sum, [, ns]) => sum + ns, 0);
  if (isHeapOnly(run.meta)) return <p class="muted">This run has only allocations, and no CPU time or waits. <code>assay record --heap</code> records both.</p>;
  if (wall <= 0) return <p class="muted">No thread time: no thread ran or waited in this run.</p>;
  const choose = (id: string): void => {
    const running = id === "user" || id === "kernel";
    const again = state.only === id;
    store.set({
      only: again ? "" : id, metric: running ? "cpu" : "wall", heat: again ? "running" : running ? "running" : id,
      tab: state.tab === "top" || state.tab === "order" ? state.tab : "flame", zoom: "",
    });
  };
  return (
    <div class="threadtime">
      <div class="bar" role="img" aria-label={"Thread time: " + states.map(([id, ns]) => `${kStateNames[id]} ${percent(ns / wall)}`).join(", ")}>
        {states.map(([id, ns]) => (
          <span key={id} class="bar-part" title={`${kStateNames[id]}: ${duration(ns)}, ${percent(ns / wall)}`}
                style={{ flexGrow: ns / wall, background: stateColour(id, dark) }}
                onClick={() => choose(id)} />
        ))}
      </div>
      <div class="legend">
        {states.filter(([, ns]) => ns / wall >= 0.0005).map(([id, ns]) => (
          <button key={id} class={"chip" + (state.only === id ? " on" : "")} aria-pressed={state.only === id}
                  title={`Show only ${kStateNames[id]} (${duration(ns)} of ${duration(wall)} thread time)`}
                  onClick={() => choose(id)}>
            <i style={{ background: stateColour(id, dark) }} />{kStateNames[id]} <b>{percent(ns / wall)}</b>
          </button>
        ))}
      </div>
    </div>
  );
}

function Causes() {
  const { report, store } = useView();
  const findings = (report.findings ?? []).slice(0, 3);
  if (!findings.length) return null;
  return (
    <ol class="causes" aria-label="Top causes">
      {findings.map((finding) => (
        <li key={finding.id}>
          <a href="#" onClick={(event) => {
            event.preventDefault();
            store.set({ tab: "findings", finding: finding.id });
          }} title={finding.title}>{finding.title}</a>
          {finding.share !== undefined && <b> {percent(finding.share)}</b>}
        </li>
      ))}
    </ol>
  );
}

function TrustLine() {
  const { report, run } = useView();
  const quality = report.quality;
  const own = quality.own_cost.cpu_ns;
  const heap = report.heap;
  const parts = heap && isHeapOnly(run.meta) ? [
    heap.timed === false ? "totals of an imported profile, without times" : `${count(heap.allocated.samples)} sampled allocations`,
    heap.rate_bytes ? `one in about ${amount(heap.rate_bytes, "bytes")}` : "",
    heap.timed === false ? "" : `lost ${percent(quality.lost_share)}`,
  ].filter(Boolean) : [
    `${count(quality.samples)} ${quality.samples === 1 ? "sample" : "samples"}${hasTimes(report) ? ` at ${quality.hz.toFixed(0)} Hz` : ", without times"}`,
    run.meta.has_waits ? `${count(quality.waits)} waits` : "no waits recorded, only CPU time",
    `lost ${percent(quality.lost_share)}`,
    `complete stacks ${percent(quality.complete_share)}`,
    `without names ${percent(quality.unresolved_share)}`,
  ];
  if (run.meta.has_waits) parts.push(`clock error ${percent(quality.accounting.error_share)}`);
  if (own !== null && report.workload.window_ns > 0) {
    parts.push(`Assay's own cost ${percent(own / report.workload.window_ns)} of a CPU`);
  }
  if (!quality.finished) parts.push("incomplete: the capture did not end normally");
  return (
    <div class="trust">
      <span><b>Trust</b> {parts.join(" · ")}</span>
      {quality.limits.length > 0 && (
        <details class="limits">
          <summary>{quality.limits.length} {quality.limits.length === 1 ? "limit" : "limits"}</summary>
          <ul>{quality.limits.map((limit: Limit) => (
            <li key={limit.topic + limit.text}><b>{limit.topic}</b>: {limit.text}{limit.remedy && <code>{limit.remedy}</code>}</li>
          ))}</ul>
        </details>
      )}
    </div>
  );
}

function plainSentence(split: Split, cpus: number, window: number): string {
  const running = split.user_ns + split.kernel_ns;
  const states = splitStates(split).filter(([id]) => id !== "user" && id !== "kernel");
  states.sort((a, b) => b[1] - a[1]);
  if (split.wall_ns <= 0) return "This run has no thread time.";
  const used = window > 0 ? `${(running / window).toFixed(2)}${cpus ? ` of ${cpus}` : ""} CPUs in use` : "";
  const most = states[0] ? `; ${percent(states[0][1] / split.wall_ns)} of thread time is ${kStateNames[states[0][0]]}` : "";
  return used + most + ".";
}

// A run of allocations says nothing of what holds the server back.
function HeapSentence({ heap }: { heap: HeapReport }) {
  if (heap.timed === false) {
    const parts = [
      heap.live_known === false ? "" : `${amount(heap.live.bytes, "bytes")} live when the profile was taken`,
      heap.freed_known === false ? "" : `${amount(heap.allocated.bytes, "bytes")} allocated, freed or not`,
    ];
    return <h1><span class="kind">Heap</span>{parts.filter(Boolean).join(", ")}; leaks cannot be found in an imported profile.</h1>;
  }
  const leaks = heap.sites.filter((site) => site.leaks).length;
  const suspects = leaks === 0 ? "no line looks like a leak" : leaks === 1 ? "one line looks like a leak" : `${leaks} lines look like leaks`;
  return <h1><span class="kind">Heap</span>{amount(heap.live.bytes, "bytes")} live at the end, {amount(heap.allocated.bytes, "bytes")} allocated in {duration(heap.window_ns)}; {suspects}.</h1>;
}

export function VerdictStrip() {
  const { report, judged, run } = useView();
  const heap = isHeapOnly(run.meta) ? report.heap : null;
  const verdict = report.verdict;
  if (!judged) return <section class="verdict pending" aria-label="Verdict"><h1>Computing the verdict …</h1></section>;
  const withheld = verdict?.kind === "withheld";
  const confidence = verdict?.confidence;
  return (
    <section class="verdict" aria-label="Verdict">
      <div class="verdict-words">
        {heap ? <HeapSentence heap={heap} /> : verdict
          ? <h1 class={withheld ? "withheld" : ""}><span class="kind">{verdict.kind.replaceAll("-", " ")}</span>{verdict.sentence}
              {confidence !== undefined && !withheld && <small>confidence {typeof confidence === "number" ? percent(confidence) : confidence}</small>}</h1>
          : <h1>{plainSentence(report.thread_time, report.workload.cpus, report.workload.window_ns)}
              <small>This run's report has no verdict.</small></h1>}
        <div class="verdict-next">
          <Causes />
          {!heap && verdict?.next_step && <span class="next" title={verdict.next_step}><b>Next</b> {verdict.next_step}{verdict.next_command && <code>{verdict.next_command}</code>}</span>}
        </div>
      </div>
      <ThreadTimeBar />
      <TrustLine />
    </section>
  );
}
