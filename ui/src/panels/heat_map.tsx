// The heat map: time runs in columns, and within each column from top to bottom, so that a moment
// of a few milliseconds is one cell.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Timeline } from "../data/run_source.ts";
import { kStateIds, kStateNames, State } from "../data/states.ts";
import { showDetails } from "../details.ts";
import { digits, duration, seconds } from "../format.ts";
import { useView } from "../hooks.ts";
import type { HeatShape } from "../time/scale.ts";

// Low windows leave more room to what is below.
export function heatHeight(): number {
  return window.innerHeight < 820 ? 58 : 84;
}

// By bin: ns in the state. "blocked": all kinds of it.
export function heatValues(timeline: Timeline, wanted: string): Float64Array {
  const values = new Float64Array(timeline.bins);
  const { bin, state, ns } = timeline;
  for (let i = 0; i < ns.length; ++i) {
    const id = kStateIds[state[i]];
    const counts = wanted === "blocked" ? state[i] >= State.FirstBlocked && id !== "poll"
      : wanted === "running" ? state[i] <= State.Kernel || id === "running" : id === wanted;
    if (counts) values[bin[i]] += ns[i];
  }
  return values;
}

const kLightRamp = [[246, 248, 251], [190, 213, 238], [107, 163, 219], [38, 104, 178], [10, 48, 104]];
const kDarkRamp = [[24, 29, 36], [29, 56, 92], [43, 98, 163], [93, 158, 226], [214, 235, 255]];

function rampColour(ramp: number[][], share: number): [number, number, number] {
  const at = Math.min(0.9999, Math.max(0, share)) * (ramp.length - 1);
  const low = Math.floor(at);
  const rest = at - low;
  const mix = (k: number): number => Math.round(ramp[low][k] + (ramp[low + 1][k] - ramp[low][k]) * rest);
  return [mix(0), mix(1), mix(2)];
}

interface Props {
  width: number;
  shape: HeatShape;
  values: Float64Array | null;
  bins: number; // as they came: fewer than cells where a large run was searched
  error: string;
}

export function HeatMap({ width, shape, values, bins, error }: Props) {
  const { dark, state, store, run, found } = useView();
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = heatHeight();
  const most = values ? values.reduce((a, b) => Math.max(a, b), 0) : 0;
  useLayoutEffect(() => {
    if (!canvas.current || !values) return;
    const context = canvas.current.getContext("2d")!;
    const image = context.createImageData(shape.columns, shape.rows);
    const ramp = dark ? kDarkRamp : kLightRamp;
    for (let bin = 0; bin < shape.columns * shape.rows; ++bin) {
      const [r, g, b] = rampColour(ramp, most > 0 ? Math.sqrt(values[bin] / most) : 0);
      const at = ((bin % shape.rows) * shape.columns + Math.floor(bin / shape.rows)) * 4;
      image.data.set([r, g, b, 255], at);
    }
    context.putImageData(image, 0, 0);
  }, [values, dark, shape]);
  const states = ["running", "runqueue", "blocked", ...kStateIds.slice(State.FirstBlocked), "idle"];
  const onMove = (event: MouseEvent): void => {
    const box = canvas.current!.getBoundingClientRect();
    const column = Math.min(shape.columns - 1, Math.floor(((event.clientX - box.left) / box.width) * shape.columns));
    const row = Math.min(shape.rows - 1, Math.floor(((event.clientY - box.top) / box.height) * shape.rows));
    const from = column * shape.columnNs + row * shape.rowNs;
    showDetails({
      name: `${seconds(from, 1e6)} – ${seconds(from + shape.rowNs, 1e6)}`, module: "", where: "",
      figures: [`${digits((values?.[column * shape.rows + row] ?? 0) / shape.rowNs)} threads ${kStateNames[state.heat] ?? state.heat}`, found ? "in functions that match the search" : ""].filter(Boolean),
    });
  };
  return (
    <div class="time-row heat">
      <div class="gutter">
        <select aria-label="What the heat map counts" value={state.heat} onChange={(event) => store.set({ heat: event.currentTarget.value })}>
          {states.filter((id) => id).map((id) => <option key={id} value={id}>{id === "blocked" ? "blocked, not poll" : kStateNames[id] ?? id}</option>)}
        </select>
        <small class="muted">{bins && bins < shape.columns * shape.rows ? `slices of ${duration(run.meta.window_ns / bins)}` : `${duration(shape.columnNs)} × ${duration(shape.rowNs)}`}{found ? ", found" : ""}<br />0 – {digits(most / shape.rowNs)} threads</small>
        <i class={"ramp" + (dark ? " dark" : "")} aria-hidden="true" />
      </div>
      <div class="lane-box" style={{ height: `${height}px` }}>
        {error ? <p class="muted pad">{error}</p> : <canvas ref={canvas} width={shape.columns} height={shape.rows} style={{ width: `${width}px`, height: `${height}px` }}
                role="img" aria-label={`Heat map of threads ${kStateNames[state.heat] ?? state.heat} over ${duration(run.meta.window_ns)}`}
                onMouseMove={onMove} onMouseLeave={() => showDetails(null)} />}
        {values && most === 0 && <p class="over muted">no thread was {kStateNames[state.heat] ?? state.heat} in this run or selection</p>}
      </div>
    </div>
  );
}
