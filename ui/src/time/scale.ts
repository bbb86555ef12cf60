// How a window of time is divided for the heat map and the axis.

export interface HeatShape {
  columns: number;
  rows: number;
  columnNs: number;
  rowNs: number;
}

const kSteps = [1, 2, 5];
const kMostColumns = 130;
const kRows = 20;

// The smallest of 1, 2, 5 × 10^n ns that is at least `ns`.
export function roundStep(ns: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, ns)));
  for (const step of kSteps) if (step * power >= ns * 0.999) return step * power;
  return 10 * power;
}

export function heatShape(windowNs: number): HeatShape {
  const about = roundStep(windowNs / kMostColumns);
  const columns = Math.max(1, Math.round(windowNs / about));
  const columnNs = windowNs / columns;
  return { columns, rows: kRows, columnNs, rowNs: columnNs / kRows };
}

// Bins of the lanes: whole groups of the heat map's cells, so that a large run has them added up
// (src/view/run_index.cpp), and few enough to be drawn.
export function laneBins(shape: HeatShape, threads: number): number {
  const most = Math.min(650, 2_000_000 / Math.max(1, threads));
  const groups = [10, 5, 4, 2].find((group) => shape.columns * group <= most) ?? 1;
  return shape.columns * groups;
}

// Values of fewer, longer bins as so many of equal length that add up to the same.
export function spread(values: Float64Array, bins: number): Float64Array {
  if (values.length === bins) return values;
  const share = values.length / bins;
  return Float64Array.from({ length: bins }, (_, i) => values[Math.floor(i * share)] * share);
}

export function ticks(from: number, to: number, most: number): { step: number; at: number[] } {
  const step = roundStep((to - from) / Math.max(1, most));
  const at: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
  return { step, at };
}

// From a cell of the heat map to time and back: columns run along x, the time within one down y.
export function heatTime(shape: HeatShape, x: number, y: number, width: number, height: number,
                         end: boolean): number {
  const clamp = (value: number, most: number): number => Math.max(0, Math.min(most, value));
  const column = clamp(Math.floor((x / width) * shape.columns), shape.columns - 1);
  const row = clamp(Math.floor((y / height) * shape.rows), shape.rows - 1);
  return column * shape.columnNs + (row + (end ? 1 : 0)) * shape.rowNs;
}
