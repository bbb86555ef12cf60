// The time panel: load and latency, the heat map and the lanes, on one axis. Dragging selects a
// range, dragging with Ctrl a baseline.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, seconds } from "../format.ts";
import { hasTimes } from "../data/report.ts";
import { isHeapOnly } from "../data/run_source.ts";
import { useAnswer, useSize, useView } from "../hooks.ts";
import { heatShape, heatTime, laneBins, spread, ticks } from "../time/scale.ts";
import { LoadChart } from "./load_chart.tsx";
import { HeatMap, heatValues } from "./heat_map.tsx";
import { Lanes } from "./lanes_view.tsx";

export const kGutter = 158;

function Axis({ width, from, to }: { width: number; from: number; to: number }) {
  const { step, at } = ticks(from, to, Math.max(2, width / 90));
  return (
    <div class="axis" aria-hidden="true">
      {at.map((t) => {
        const share = (t - from) / (to - from);
        return share > 0.98 ? null : <span key={t} style={{ left: `${share * 100}%` }}>{seconds(t, step)}</span>;
      })}
    </div>
  );
}

function Band({ from, to, window, kind }: { from: number; to: number; window: number; kind: string }) {
  if (to <= from) return null;
  return <div class={`band ${kind}`} style={{ left: `${(from / window) * 100}%`, width: `${((to - from) / window) * 100}%` }} />;
}

interface Drag {
  begin: number;
  end: number;
  base: boolean;
}

export function TimePanel() {
  const view = useView();
  const { run, state, store, selection } = view;
  const window_ns = run.meta.window_ns;
  const [folded, setFolded] = useState(false);
  const [attach, fullWidth, , holder] = useSize<HTMLDivElement>();
  const width = Math.max(100, fullWidth - kGutter);
  const [drag, setDrag] = useState<Drag | null>(null);
  const dragging = useRef<Drag | null>(null);
  const shape = useMemo(() => heatShape(window_ns), [window_ns]);
  const whole = { ...selection, from: 0, to: window_ns };
  const filter = `${run.id} ${selection.threads?.join(".") ?? "*"} ${state.search}`;
  const heat = useAnswer(`heat ${filter}`, (signal) => run.heat(whole, shape.columns * shape.rows, signal));
  const lanes = useAnswer(`lanes ${run.id}`, (signal) => run.lanes({ ...whole, threads: null, functions: null }, laneBins(shape, run.meta.threads.length), signal));
  const series = useAnswer(`series ${run.id}`, () => run.series());
  const values = useMemo(() => heat.value && spread(heatValues(heat.value, state.heat), shape.columns * shape.rows), [heat.value, state.heat]);

  const timeAt = (event: MouseEvent, end: boolean): number => {
    const area = holder.current!.querySelector(".time-area")!.getBoundingClientRect();
    const map = holder.current!.querySelector(".heat canvas")?.getBoundingClientRect();
    const x = event.clientX - area.left;
    if (map && event.clientY >= map.top && event.clientY < map.bottom) {
      return heatTime(shape, x, event.clientY - map.top, area.width, map.height, end);
    }
    return Math.max(0, Math.min(1, x / area.width)) * window_ns;
  };
  const onDown = (event: MouseEvent): void => {
    const area = holder.current!.querySelector(".time-area")!.getBoundingClientRect();
    if (event.button !== 0 || event.clientX < area.left || (event.target as HTMLElement).closest("button, select, summary")) return;
    event.preventDefault();
    const begin = timeAt(event, false);
    const start: Drag = { begin, end: begin, base: event.ctrlKey || event.metaKey };
    dragging.current = start;
    const from = event.clientX;
    let moved = false;
    const onMove = (move: MouseEvent): void => {
      moved ||= Math.abs(move.clientX - from) > 3 || Math.abs(move.clientY - event.clientY) > 6;
      if (!moved) return;
      start.end = timeAt(move, true);
      setDrag({ ...start });
    };
    const onUp = (): void => {
      window.removeEventListener("mousemove", onMove);
      window.removeEventListener("mouseup", onUp);
      setDrag(null);
      dragging.current = null;
      const low = Math.round(Math.min(start.begin, start.end));
      const high = Math.round(Math.max(start.begin, start.end));
      if (!moved || high - low < window_ns / 100_000) return;
      if (start.base) store.set({ baseFrom: low, baseTo: high, tab: "diff", versus: -1 });
      else store.set({ from: low, to: high });
    };
    window.addEventListener("mousemove", onMove);
    window.addEventListener("mouseup", onUp);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = window_ns / 40;
    const [from, to] = state.to > state.from ? [state.from, state.to] : [0, window_ns];
    const move = event.key === "ArrowRight" ? step : event.key === "ArrowLeft" ? -step : 0;
    if (event.key === "b") store.set({ baseFrom: from, baseTo: to, tab: "diff", versus: -1 });
    else if (event.key === "Escape") store.set({ from: 0, to: 0, baseFrom: 0, baseTo: 0 });
    else if (!move) return;
    else if (event.shiftKey) store.set({ from, to: Math.max(from + step, Math.min(window_ns, to + move)) });
    else if (to - from >= window_ns) store.set(move > 0 ? { from: step, to: window_ns } : { from: 0, to: window_ns - step });
    else {
      const by = Math.max(-from, Math.min(window_ns - to, move));
      store.set({ from: from + by, to: to + by });
    }
    event.preventDefault();
    event.stopPropagation();
  };
  // The whole width of the area is one control for a screen reader: a range of time.
  useLayoutEffect(() => {
    document.documentElement.style.setProperty("--gutter", `${kGutter}px`);
  }, []);
  const shown = drag ? { from: Math.min(drag.begin, drag.end), to: Math.max(drag.begin, drag.end) } : null;
  const now = state.to > state.from ? `${seconds(state.from, 1e6)} to ${seconds(state.to, 1e6)}` : "the whole run";
  if (isHeapOnly(run.meta)) return null;
  const imported = run.meta.backend.startsWith("import");
  if (window_ns <= 0 || !hasTimes(view.report)) {
    return <section class="time"><p class="muted pad">{imported ? "This run has no time axis: an imported profile without times." : "This run has no length: nothing was recorded."}</p></section>;
  }
  return (
    <section class={"time" + (folded ? " folded" : "")} aria-label="Time">
      <button id="fold-time" class="fold" aria-expanded={!folded} title="Hide or show the time panel (l)" onClick={() => setFolded(!folded)}>{folded ? "▸ Time" : "▾ Time"}</button>
      {!folded && (
        <div class="time-body" ref={attach} tabIndex={0} role="group" aria-label={`Range: ${now}. Arrow keys move it, shift with arrow keys its end, b makes it the baseline, Escape clears it.`}
             onMouseDown={onDown} onKeyDown={onKey} onDblClick={() => store.set({ from: 0, to: 0, baseFrom: 0, baseTo: 0 })}>
          <LoadChart width={width} series={series.value} heat={heat.value} />
          <HeatMap width={width} shape={shape} values={values} bins={heat.value?.bins ?? 0} error={heat.error} />
          <Lanes width={width} timeline={lanes.value} error={lanes.error} />
          <div class="time-row axis-row"><div class="gutter" /><Axis width={width} from={0} to={window_ns} /></div>
          <div class="time-area">
            {state.to > state.from && <>
              <div class="shade" style={{ left: 0, width: `${(state.from / window_ns) * 100}%` }} />
              <div class="shade" style={{ left: `${(state.to / window_ns) * 100}%`, right: 0 }} />
            </>}
            <Band from={state.from} to={state.to} window={window_ns} kind="range" />
            <Band from={state.baseFrom} to={state.baseTo} window={window_ns} kind="base" />
            {shown && <Band {...shown} window={window_ns} kind={drag!.base ? "base" : "range"} />}
            {shown && <div class="drag-label" style={{ left: `${(shown.from / window_ns) * 100}%` }}>{duration(shown.to - shown.from)} from {seconds(shown.from, 1e6)}</div>}
          </div>
        </div>
      )}
    </section>
  );
}
