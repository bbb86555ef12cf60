// Series as lines: counters become rates, gauges stay levels.

import type { Table } from "../data/columns.ts";

export interface Line {
  name: string;
  label: string;
  unit: string;
  scope: number;
  owner: number;
  kind: number; // 0 gauge, 1 cumulative
  time: Float64Array;
  value: Float64Array;
}

export const kScopes = ["host", "process", "thread", "cgroup", "socket", "load", "assay"];
export const kLoadScope = 5;

export function readLines(table: Table): Line[] {
  const { numbers, texts } = table;
  const lines: Line[] = [];
  let at = 0;
  texts.name.forEach((name, i) => {
    const points = numbers.points[i];
    lines.push({
      name, label: texts.label[i], unit: texts.unit[i], scope: numbers.scope[i], owner: numbers.owner[i],
      kind: numbers.kind[i], time: numbers.time.subarray(at, at + points), value: numbers.value.subarray(at, at + points),
    });
    at += points;
  });
  return lines;
}

// A counter's growth per second; a time that grows is then a share of a CPU.
export function asRate(line: Line): Line {
  if (line.kind !== 1) return line;
  const points = Math.max(0, line.time.length - 1);
  const time = new Float64Array(points);
  const value = new Float64Array(points);
  for (let i = 0; i < points; ++i) {
    const span = line.time[i + 1] - line.time[i];
    time[i] = line.time[i + 1];
    value[i] = span > 0 ? ((line.value[i + 1] - line.value[i]) / span) * (line.unit === "ns" ? 1 : 1e9) : 0;
  }
  const unit = line.unit === "ns" ? "share" : line.unit === "bytes" ? "bytes/s" : `${line.unit === "count" ? "" : line.unit}/s`;
  return { ...line, kind: 0, unit, time, value };
}

// Requests that a load's counter saw in a range; null when the run has none.
export function requestsIn(lines: Line[], from: number, to: number): number | null {
  const line = lines.find((l) => l.scope === kLoadScope && l.name === "requests" && l.kind === 1);
  if (!line || line.time.length < 2) return null;
  const at = (t: number): number => {
    if (t <= line.time[0]) return line.value[0];
    for (let i = 1; i < line.time.length; ++i) {
      if (t > line.time[i]) continue;
      const share = (t - line.time[i - 1]) / Math.max(1, line.time[i] - line.time[i - 1]);
      return line.value[i - 1] + share * (line.value[i] - line.value[i - 1]);
    }
    return line.value[line.value.length - 1];
  };
  return at(to) - at(from);
}
