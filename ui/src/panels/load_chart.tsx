// Load and latency over time; without a load, CPUs in use and the run queue.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Table } from "../data/columns.ts";
import type { Timeline } from "../data/run_source.ts";
import { stateColour } from "../data/states.ts";
import { showDetails } from "../details.ts";
import { amount, seconds } from "../format.ts";
import { useView } from "../hooks.ts";
import { asRate, kLoadScope, readLines, type Line } from "../time/load_series.ts";
import { heatValues } from "./heat_map.tsx";

const kHeight = 42;

interface Curve {
  name: string;
  colour: string;
  dash: number[];
  line: Line;
  axis: 0 | 1;
}

function ofHeat(heat: Timeline, id: string, name: string): Line {
  const values = heatValues(heat, id);
  const groups = Math.min(200, heat.bins);
  const per = heat.bins / groups;
  const binNs = (heat.to - heat.from) / heat.bins;
  const value = new Float64Array(groups);
  const time = new Float64Array(groups);
  for (let i = 0; i < heat.bins; ++i) value[Math.min(groups - 1, Math.floor(i / per))] += values[i] / (per * binNs);
  for (let g = 0; g < groups; ++g) time[g] = heat.from + (g + 0.5) * per * binNs;
  return { name, label: "", unit: "", scope: 0, owner: 0, kind: 0, time, value };
}

function curvesOf(series: Table | null, heat: Timeline | null, dark: boolean): { curves: Curve[]; load: boolean } {
  const lines = series ? readLines(series).filter((line) => line.scope === kLoadScope) : [];
  const named = (name: string): Line | undefined => lines.find((line) => line.name === name);
  const curves: Curve[] = [];
  const blue = dark ? "#5b9bf5" : "#2f6fd0";
  const orange = dark ? "#f2b13c" : "#c77700";
  const red = dark ? "#ff8a65" : "#c0391b";
  const add = (name: string, line: Line | undefined, colour: string, dash: number[], axis: 0 | 1): void => {
    if (line && line.time.length > 1) curves.push({ name, line, colour, dash, axis });
  };
  const requests = named("requests");
  add("requests", requests && asRate(requests), blue, [], 0);
  add("p50", named("latency_p50"), orange, [], 1);
  add("p99", named("latency_p99"), orange, [4, 3], 1);
  const errors = named("errors");
  const rate = errors && asRate(errors);
  if (rate && rate.value.some((v) => v > 0)) add("errors", rate, red, [], 0);
  if (curves.length || !heat) return { curves, load: curves.length > 0 };
  add("CPUs in use", ofHeat(heat, "running", "running"), stateColour("running", dark), [], 0);
  const queue = ofHeat(heat, "runqueue", "run queue");
  if (queue.value.some((v) => v > 0)) add("in run queue", queue, stateColour("runqueue", dark), [4, 3], 0);
  return { curves, load: false };
}

export function LoadChart({ width, series, heat }: { width: number; series: Table | null; heat: Timeline | null }) {
  const { dark, run } = useView();
  const canvas = useRef<HTMLCanvasElement>(null);
  const { curves, load } = useMemo(() => curvesOf(series, heat, dark), [series, heat, dark]);
  const most = [0, 1].map((axis) => Math.max(0, ...curves.filter((c) => c.axis === axis).map((c) => c.line.value.reduce((a, b) => Math.max(a, b), 0))));
  useLayoutEffect(() => {
    const ratio = window.devicePixelRatio || 1;
    canvas.current!.width = Math.round(width * ratio);
    canvas.current!.height = Math.round(kHeight * ratio);
    const context = canvas.current!.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const { line, colour, dash, axis } of curves) {
      const x = (i: number): number => (line.time[i] / run.meta.window_ns) * width;
      const y = (i: number): number => kHeight - 2 - (most[axis] > 0 ? (line.value[i] / most[axis]) * (kHeight - 8) : 0);
      context.beginPath();
      for (let i = 0; i < line.time.length; ++i) context.lineTo(x(i), y(i));
      context.setLineDash(dash);
      context.lineWidth = 1.5;
      context.strokeStyle = colour;
      context.stroke();
      if (axis !== 0 || dash.length) continue;
      context.lineTo(x(line.time.length - 1), kHeight);
      context.lineTo(x(0), kHeight);
      context.globalAlpha = 0.16;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = 1;
    }
  }, [curves, width]);
  const valueAt = (line: Line, t: number): number => {
    let i = line.time.findIndex((at) => at >= t);
    if (i < 0) i = line.time.length - 1;
    return line.value[i];
  };
  const onMove = (event: MouseEvent): void => {
    const box = canvas.current!.getBoundingClientRect();
    const t = ((event.clientX - box.left) / box.width) * run.meta.window_ns;
    showDetails({ name: seconds(t, 1e7), module: "", where: "", figures: curves.map((c) => `${c.name} ${amount(valueAt(c.line, t), c.line.unit)}`) });
  };
  return (
    <div class="time-row load">
      <div class="gutter">
        {curves.map((c) => <small key={c.name} class="key"><svg width="18" height="6" aria-hidden="true"><line x1="0" y1="3" x2="18" y2="3" stroke={c.colour} stroke-width="2" stroke-dasharray={c.dash.join(" ")} /></svg>{c.name} <span class="muted">≤ {amount(most[c.axis], c.line.unit)}</span></small>)}
        {!load && <small class="muted">no load was recorded</small>}
      </div>
      <div class="lane-box"><canvas ref={canvas} style={{ width: `${width}px`, height: `${kHeight}px` }} role="img"
              aria-label={curves.map((c) => `${c.name}, at most ${amount(most[c.axis], c.line.unit)}`).join("; ")}
              onMouseMove={onMove} onMouseLeave={() => showDetails(null)} /></div>
    </div>
  );
}
