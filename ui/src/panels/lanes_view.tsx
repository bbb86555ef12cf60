// Lanes: what every thread did, by process and pool. A lane is a stack of states in each moment.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Timeline } from "../data/run_source.ts";
import { kStateNames, kStateOrder, stateColour } from "../data/states.ts";
import { showDetails } from "../details.ts";
import { percent, seconds } from "../format.ts";
import { useView } from "../hooks.ts";
import { laneRows, LaneTimes, type LaneRow } from "../time/lanes.ts";

const kLaneHeight = 17;

function Lane({ row, times, width }: { row: LaneRow; times: LaneTimes; width: number }) {
  const { dark, run } = useView();
  const canvas = useRef<HTMLCanvasElement>(null);
  const sums = useMemo(() => times.sum(row.threads), [times, row.threads.join(".")]);
  const { bins } = times.timeline;
  const binNs = run.meta.window_ns / bins;
  const states = kStateOrder.length;
  useLayoutEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    const ratio = window.devicePixelRatio || 1;
    canvas.current!.width = Math.round(width * ratio);
    canvas.current!.height = Math.round((kLaneHeight - 3) * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, kLaneHeight);
    const full = binNs * row.threads.length;
    const height = kLaneHeight - 3;
    for (let bin = 0; bin < bins; ++bin) {
      const x = (bin / bins) * width;
      const w = width / bins + 0.6;
      let y = height;
      for (let rank = 0; rank < states; ++rank) {
        const ns = sums[bin * states + rank];
        if (ns <= 0) continue;
        const h = Math.min(y, (ns / full) * height);
        context.fillStyle = stateColour(kStateOrder[rank], dark);
        context.fillRect(x, y - h, w, h);
        y -= h;
      }
    }
  }, [sums, width, dark]);
  const onMove = (event: MouseEvent): void => {
    const box = canvas.current!.getBoundingClientRect();
    const bin = Math.max(0, Math.min(bins - 1, Math.floor(((event.clientX - box.left) / box.width) * bins)));
    const parts = kStateOrder.map((id, rank) => [id, sums[bin * states + rank]] as const).filter(([, ns]) => ns > 0);
    const all = parts.reduce((sum, [, ns]) => sum + ns, 0);
    showDetails({
      name: row.label, where: "", module: `${seconds(bin * binNs, 1e7)} – ${seconds((bin + 1) * binNs, 1e7)}`,
      figures: parts.sort((a, b) => b[1] - a[1]).slice(0, 6).map(([id, ns]) => `${kStateNames[id]} ${percent(ns / all)}`),
    });
  };
  return <canvas ref={canvas} style={{ width: `${width}px`, height: `${kLaneHeight - 3}px` }} aria-hidden="true" onMouseMove={onMove} onMouseLeave={() => showDetails(null)} />;
}

export function Lanes({ width, timeline, error }: { width: number; timeline: Timeline | null; error: string }) {
  const { run, state, store } = useView();
  const [toggled, setToggled] = useState(new Set<string>());
  const [shown, setShown] = useState(40);
  const times = useMemo(() => timeline && new LaneTimes(timeline), [timeline]);
  const rows = useMemo(() => laneRows(run.meta, toggled), [run, toggled]);
  if (error) return <p class="muted pad">{error}</p>;
  if (run.meta.threads.length === 0) return <div class="time-row"><div class="gutter muted">threads</div><p class="muted pad">This run names no threads.</p></div>;
  const fold = (row: LaneRow): void => {
    const next = new Set(toggled);
    if (!next.delete(row.key)) next.add(row.key);
    setToggled(next);
  };
  const choose = (row: LaneRow, add: boolean): void => {
    const before = state.threads ?? [];
    const same = before.length === row.threads.length && row.threads.every((id) => before.includes(id));
    const union = [...new Set([...before, ...row.threads])].sort((a, b) => a - b);
    store.set({ threads: same ? null : add ? union : row.threads });
  };
  return (
    <div class="lanes scroll" role="table" aria-label="Threads by state">
      {rows.slice(0, shown).map((row) => {
        const on = !!state.threads && row.threads.every((id) => state.threads!.includes(id));
        return (
          <div key={row.key} class={"time-row lane" + (on ? " on" : "")} role="row">
            <div class="gutter" role="rowheader" style={{ paddingLeft: `${4 + row.level * 10}px` }}>
              {row.parent && <button class="twist" aria-label={row.open ? "Fold" : "Unfold"} aria-expanded={row.open} onClick={() => fold(row)}>{row.open ? "▾" : "▸"}</button>}
              <button class="lane-name" aria-pressed={on} title={`Only ${row.label} (Ctrl adds)`} onClick={(event) => choose(row, event.ctrlKey || event.metaKey)}><bdi>{row.label}</bdi></button>
            </div>
            <div role="cell" class="lane-box">{times && <Lane row={row} times={times} width={width} />}</div>
          </div>
        );
      })}
      {rows.length > shown && <button class="toggle more" onClick={() => setShown(shown + 100)}>{rows.length - shown} more lanes</button>}
    </div>
  );
}
