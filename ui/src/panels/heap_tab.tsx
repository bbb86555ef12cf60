// Heap: what lives, what was allocated, and what leaks, by the line of the program that wanted the memory.

import { useMemo, useState } from "preact/hooks";
import type { Table } from "../data/columns.ts";
import type { HeapAmount, HeapReport, HeapSite } from "../data/report.ts";
import { Weights } from "../data/weights.ts";
import { mergedFrames, type Frame } from "../flame/frames.ts";
import { amount, count, duration, percent } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import { DataTable, type Column } from "./data_table.tsx";
import { FlameView } from "./flame_panel.tsx";
import { mainModule } from "./flame_tab.tsx";
import { reportStack, StackList } from "./stack_list.tsx";

const bytes = (value: number): string => amount(Math.max(0, value), "bytes");
const withError = (value: HeapAmount, heap: HeapReport): string =>
  heap.timed === false && !heap.rate_bytes ? bytes(value.bytes) : `${bytes(value.bytes)} ± ${bytes(value.bytes_error)}`;
const fileOf = (site: HeapSite): string =>
  site.file ? `${site.file.slice(site.file.lastIndexOf("/") + 1)}${site.line ? `:${site.line}` : ""}` : site.module;

// The live heap over the window, as one line under its peak.
function LiveLine({ heap }: { heap: HeapReport }) {
  const width = 600, height = 60, most = Math.max(1, heap.peak_bytes);
  const points = heap.timeline.map((point) =>
    `${(point.time_ns / Math.max(1, heap.window_ns)) * width},${height - (point.live_bytes / most) * (height - 4)}`);
  if (points.length < 2 || heap.timeline.every((point) => point.live_bytes <= 0)) return null;
  return (
    <svg class="heap-line" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img"
         aria-label={`Live heap over ${duration(heap.window_ns)}, at most ${bytes(heap.peak_bytes)}`}>
      <polyline points={`0,${height} ${points.join(" ")} ${width},${height}`} />
    </svg>
  );
}

const kAmounts: [id: string, name: string, help: string][] = [
  ["live", "Live", "memory that was not freed by the end of the window"],
  ["allocated", "Allocated", "all memory allocated in the window, freed or not"],
];

// Width is bytes, of which samples stand for all.
function HeapFlame({ table, live: isLive, heap }: { table: Table; live: boolean; heap: HeapReport }) {
  const view = useView();
  const { state, store, tree, dark } = view;
  const root = useMemo(() => {
    const { node, live, live_objects, allocated, objects } = table.numbers;
    const weights = Weights.ofSorted(Uint32Array.from(node), isLive ? live : allocated, isLive ? live_objects : objects);
    return mergedFrames(tree, { sides: [weights], scale: [1] }, false);
  }, [table, tree, isLive]);
  const style = useMemo(() => {
    const palette = new FrameColours(tree.functions, dark, mainModule(view));
    return { fill: (frame: Frame) => palette.fill(frame), text: () => palette.text(), hatched: () => false };
  }, [tree, dark]);
  if (root.total <= 0) return <div class="empty">{emptyWords(heap, isLive)}</div>;
  return (
    <FlameView root={root} tree={tree} style={style} zoom={state.zoom} label="Flame graph of the heap" rootName="all allocations" amount={bytes}
               describe={(frame, all) => [bytes(frame.total), percent(frame.total / all.total), `self ${bytes(frame.self)}`, `${count(frame.count)} objects`]}
               onZoom={(zoom) => store.set({ zoom })} onPivot={() => {}} />
  );
}

// What the run says of the whole heap, and what an imported profile cannot say.
function wholeHeap(heap: HeapReport): string {
  if (heap.timed === false) return `${count(Math.max(heap.allocated.objects, heap.live.objects))} objects · imported profile: growth, peak, lifetimes and leaks are unknown`;
  return `peak ${bytes(heap.peak_bytes)} after ${duration(heap.peak_ns)} · ${count(heap.allocated.objects)} objects · ${count(heap.allocated.samples)} samples · of the whole window`;
}
function amounts(heap: HeapReport): string {
  const parts = [
    heap.live_known === false ? "" : `live ${withError(heap.live, heap)}`,
    heap.freed_known === false ? "" : `allocated ${withError(heap.allocated, heap)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function emptyWords(heap: HeapReport, isLive: boolean): string {
  if (isLive && heap.live_known === false) return "The imported profile has no live memory. Press “Allocated” to see what it has.";
  if (!isLive && heap.freed_known === false) return "The imported profile has no allocated and freed memory. Press “Live” to see what it has.";
  return isLive ? "All sampled memory was freed by the end of the window. Press “Allocated” to see it." : "No allocation was sampled.";
}

function SiteDetails({ site, heap, onClose }: { site: HeapSite; heap: HeapReport; onClose: () => void }) {
  const { store } = useView();
  return (
    <aside class="side" aria-label="The call site">
      <div class="tools">
        <b class="ellipsis"><bdi>{site.function}</bdi></b>
        {site.file && <button class="toggle" onClick={() => store.set({ file: site.file!, line: site.line ?? 0, tab: "source" })}>Source</button>}
        <button class="toggle" onClick={onClose}>Close</button>
      </div>
      {heap.live_known !== false && <p class="inset">live {withError(site.live, heap)}{heap.timed === false ? "" : `, older than ${duration(heap.young_ns)}: ${bytes(site.old.bytes)}`}</p>}
      {heap.freed_known !== false && <p class="inset">allocated {withError(site.allocated, heap)}{heap.live_known === false ? "" : `, ${percent(site.freed_share)} of it freed`}</p>}
      <StackList lines={reportStack(site.frames)} />
    </aside>
  );
}

interface SiteRow { id: number; site: HeapSite }

// What is about time is left out where the run says nothing of it.
function siteColumns(heap: HeapReport): Column<SiteRow>[] {
  const objects = (row: SiteRow): number => (heap.freed_known === false ? row.site.live : row.site.allocated).objects;
  const columns: Column<SiteRow>[] = [
    { id: "live", title: "live", value: (r) => r.site.live.bytes, show: (r) => bytes(r.site.live.bytes), bar: (r) => r.site.live.bytes / Math.max(1, heap.live.bytes) },
    { id: "allocated", title: "allocated", value: (r) => r.site.allocated.bytes, show: (r) => bytes(r.site.allocated.bytes), bar: (r) => r.site.allocated.bytes / Math.max(1, heap.allocated.bytes) },
    { id: "leaks", title: "", value: (r) => (r.site.leaks ? 1 : 0), show: (r) => (r.site.leaks ? <b class="rise">leaks</b> : "") },
    { id: "name", title: "function", value: (r) => r.site.function, show: (r) => <bdi>{r.site.function}</bdi> },
    { id: "growth", title: "growth/s", value: (r) => r.site.growth_bytes_per_s, show: (r) => (r.site.growth_bytes_per_s < 0 ? "−" : "") + bytes(Math.abs(r.site.growth_bytes_per_s)) },
    { id: "objects", title: "objects", value: objects, show: (r) => count(objects(r)) },
    { id: "lifetime", title: "median life", value: (r) => (r.site.freed_share > 0 ? r.site.median_lifetime_ns : Infinity), show: (r) => (r.site.freed_share > 0 ? duration(r.site.median_lifetime_ns) : "held") },
    { id: "where", title: "where", value: (r) => fileOf(r.site), show: (r) => <bdi class="muted">{fileOf(r.site)}</bdi> },
  ];
  const absent = [
    ...(heap.timed === false ? ["growth", "lifetime", "leaks"] : []),
    ...(heap.live_known === false ? ["live"] : []),
    ...(heap.freed_known === false ? ["allocated"] : []),
  ];
  return columns.filter((column) => !absent.includes(column.id));
}

export function HeapTab() {
  const { report, judged, run, selection, selectionKey, state, store } = useView();
  const [picked, setPicked] = useState<number | null>(null);
  const paths = useAnswer(`heap ${selectionKey}`, (signal) => run.heap(selection, signal));
  if (!judged) return <p class="loading">Loading allocations …</p>;
  const heap = report.heap;
  if (!heap) return <div class="empty">This run has no allocations. To record them: <code>assay heap</code> or <code>assay record --heap</code>.</div>;
  const rows = heap.sites.map((site, id) => ({ id, site }));
  const chosen = picked === null ? null : rows[picked] ?? null;
  const shown = state.heapOf || (heap.live.bytes > 0 ? "live" : "allocated");
  return (
    <div class="tab-body">
      <div class="tools">
        <div class="switch" role="radiogroup" aria-label="Width shows">
          {kAmounts.map(([id, name, help]) => (
            <button key={id} role="radio" aria-checked={shown === id} title={help} class={shown === id ? "on" : ""}
                    onClick={() => store.set({ heapOf: id, zoom: "" })}>{name}</button>
          ))}
        </div>
        {state.zoom && <button class="toggle" onClick={() => store.set({ zoom: "" })}>Whole width</button>}
        <span class="tools-note">{amounts(heap)}</span>
        <span class="muted">{wholeHeap(heap)}</span>
      </div>
      <LiveLine heap={heap} />
      <div class="split two heap">
        {paths.error ? <div class="empty">{paths.error}</div> : paths.value ? <HeapFlame table={paths.value} live={shown !== "allocated"} heap={heap} /> : <p class="loading">Loading call paths …</p>}
        {chosen
          ? <SiteDetails site={chosen.site} heap={heap} onClose={() => setPicked(null)} />
          : <DataTable key={shown} label="Call sites" rows={rows} sort={shown} rowKey={(row) => row.id} onRow={(row) => setPicked(row.id)}
              empty="No allocation was sampled."
              columns={siteColumns(heap)} />}
      </div>
    </div>
  );
}
