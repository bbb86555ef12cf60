// Heap: what lives, what was allocated, and what leaks, by the line of the program that wanted the memory.

import { useState } from "preact/hooks";
import type { HeapAmount, HeapReport, HeapSite } from "../data/report.ts";
import { amount, count, duration, percent } from "../format.ts";
import { useView } from "../hooks.ts";
import { DataTable } from "./data_table.tsx";
import { reportStack, StackList } from "./stack_list.tsx";

const bytes = (value: number): string => amount(Math.max(0, value), "bytes");
const withError = (value: HeapAmount): string => `${bytes(value.bytes)} ± ${bytes(value.bytes_error)}`;
const fileOf = (site: HeapSite): string =>
  site.file ? `${site.file.slice(site.file.lastIndexOf("/") + 1)}${site.line ? `:${site.line}` : ""}` : site.module;

// The live heap over the window, as one line under its peak.
function LiveLine({ heap }: { heap: HeapReport }) {
  const width = 600, height = 60, most = Math.max(1, heap.peak_bytes);
  const points = heap.timeline.map((point) =>
    `${(point.time_ns / Math.max(1, heap.window_ns)) * width},${height - (point.live_bytes / most) * (height - 4)}`);
  if (points.length < 2) return null;
  return (
    <svg class="heap-line" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img"
         aria-label={`Live heap over ${duration(heap.window_ns)}, at most ${bytes(heap.peak_bytes)}`}>
      <polyline points={`0,${height} ${points.join(" ")} ${width},${height}`} />
    </svg>
  );
}

export function HeapTab() {
  const { report, judged, store } = useView();
  const [picked, setPicked] = useState<number | null>(null);
  if (!judged) return <p class="loading">Adding up allocations …</p>;
  const heap = report.heap;
  if (!heap) return <div class="empty">This run holds no allocations. Take them with <code>assay heap</code> or <code>assay record --heap</code>.</div>;
  const rows = heap.sites.map((site, id) => ({ id, site }));
  const chosen = picked === null ? null : rows[picked] ?? null;
  return (
    <div class="tab-body">
      <div class="tools">
        <span class="tools-note">live {withError(heap.live)} · peak {bytes(heap.peak_bytes)} after {duration(heap.peak_ns)} · allocated {withError(heap.allocated)} in {count(heap.allocated.objects)} objects · {count(heap.allocated.samples)} samples</span>
      </div>
      <LiveLine heap={heap} />
      <div class={"split" + (chosen ? " two" : "")}>
        <DataTable label="Call sites" rows={rows} sort="live" rowKey={(row) => row.id} onRow={(row) => setPicked(row.id)} chosen={(row) => row === chosen}
          empty="Nothing was sampled."
          columns={[
            { id: "live", title: "live", value: (r) => r.site.live.bytes, show: (r) => bytes(r.site.live.bytes), bar: (r) => r.site.live.bytes / Math.max(1, heap.live.bytes) },
            { id: "growth", title: "growth/s", value: (r) => r.site.growth_bytes_per_s, show: (r) => (r.site.growth_bytes_per_s < 0 ? "−" : "") + bytes(Math.abs(r.site.growth_bytes_per_s)) },
            { id: "allocated", title: "allocated", value: (r) => r.site.allocated.bytes, show: (r) => bytes(r.site.allocated.bytes) },
            { id: "objects", title: "objects", value: (r) => r.site.allocated.objects, show: (r) => count(r.site.allocated.objects) },
            { id: "lifetime", title: "median life", value: (r) => (r.site.freed_share > 0 ? r.site.median_lifetime_ns : Infinity), show: (r) => (r.site.freed_share > 0 ? duration(r.site.median_lifetime_ns) : "held") },
            { id: "leaks", title: "", value: (r) => (r.site.leaks ? 1 : 0), show: (r) => (r.site.leaks ? <b>leaks</b> : "") },
            { id: "name", title: "function", value: (r) => r.site.function, show: (r) => <bdi>{r.site.function}</bdi> },
            { id: "where", title: "where", value: (r) => fileOf(r.site), show: (r) => <bdi class="muted">{fileOf(r.site)}</bdi> },
          ]} />
        {chosen && (
          <aside class="side" aria-label="The call site">
            <div class="tools"><b><bdi>{chosen.site.function}</bdi></b><button class="toggle" onClick={() => setPicked(null)}>Close</button></div>
            <p>live {withError(chosen.site.live)}, older than {duration(heap.young_ns)}: {bytes(chosen.site.old.bytes)}</p>
            <p>allocated {withError(chosen.site.allocated)}, {percent(chosen.site.freed_share)} of it freed</p>
            {chosen.site.file && <button class="toggle" onClick={() => store.set({ file: chosen.site.file!, tab: "source" })}>Source</button>}
            <StackList lines={reportStack(chosen.site.frames)} />
          </aside>
        )}
      </div>
    </div>
  );
}
