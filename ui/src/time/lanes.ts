// Lanes: which rows there are (process, pool, thread) and what each thread did in each bin.

import type { Meta, Timeline } from "../data/run_source.ts";
import { kStateIds, kStateOrder } from "../data/states.ts";

export interface LaneRow {
  key: string;
  label: string;
  level: number;
  threads: number[];
  open: boolean; // children are shown
  parent: boolean; // has children
}

const kOpenAtMost = 10; // threads: more than that begin folded

export function laneRows(meta: Meta, toggled: Set<string>): LaneRow[] {
  const rows: LaneRow[] = [];
  const processes = meta.processes.filter((p) => meta.threads.some((t) => t.process === p.id));
  const openByDefault = meta.threads.length <= kOpenAtMost;
  for (const process of processes) {
    const threads = meta.threads.filter((t) => t.process === process.id);
    const role = process.role && process.role !== process.comm ? ` · ${process.role}` : "";
    const key = `p${process.id}`;
    const closed = toggled.has(key);
    if (processes.length > 1) {
      rows.push({ key, label: `${process.comm} ${process.pid}${role}`, level: 0, threads: threads.map((t) => t.id), open: !closed, parent: true });
      if (closed) continue;
    }
    const level = processes.length > 1 ? 1 : 0;
    const pools = new Map<string, number[]>();
    for (const thread of threads) pools.set(thread.pool, [...(pools.get(thread.pool) ?? []), thread.id]);
    for (const [pool, ids] of pools) {
      const poolKey = `${key}/${pool}`;
      if (ids.length > 1) {
        const open = openByDefault !== toggled.has(poolKey);
        rows.push({ key: poolKey, label: `${pool} × ${ids.length}`, level, threads: ids, open, parent: true });
        if (!open) continue;
      }
      for (const id of ids) {
        const thread = meta.threads[id];
        rows.push({ key: `t${id}`, label: ids.length > 1 ? `${thread.name} ${thread.tid}` : `${thread.name}`, level: level + (ids.length > 1 ? 1 : 0), threads: [id], open: false, parent: false });
      }
    }
  }
  return rows;
}

// State id → place in the order of drawing.
const kRank = new Map(kStateOrder.map((id, i) => [id, i]));
const kUnranked = kStateOrder.length;

export class LaneTimes {
  private rowsOf = new Map<number, number[]>();
  constructor(readonly timeline: Timeline) {
    timeline.thread?.forEach((thread, i) => {
      const rows = this.rowsOf.get(thread);
      if (rows) rows.push(i);
      else this.rowsOf.set(thread, [i]);
    });
  }

  // [bin * states + rank] → ns, of all these threads together.
  sum(threads: number[]): Float64Array {
    const { bin, state, ns, bins } = this.timeline;
    const width = kStateOrder.length;
    const out = new Float64Array(bins * width);
    for (const thread of threads) {
      for (const i of this.rowsOf.get(thread) ?? []) {
        const rank = kRank.get(kStateIds[state[i]]) ?? kUnranked;
        if (rank < width) out[bin[i] * width + rank] += ns[i];
      }
    }
    return out;
  }
}
