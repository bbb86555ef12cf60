// What differs between two sets of weights, and whether it is more than chance.

import type { Tree } from "./data/tree.ts";
import type { Weights } from "./data/weights.ts";
import { topRows } from "./top.ts";

// How many standard errors apart two sums of samples are. A sum of n samples of about equal weight
// has the relative error 1/√n; a side without samples is uncertain by one sample of the other.
export function zScore(a: number, b: number, countA: number, countB: number): number {
  if (countA + countB === 0) return 0;
  const one = countA > 0 && a > 0 ? a / countA : 0;
  const other = countB > 0 && b > 0 ? b / countB : 0;
  const unitA = one || other;
  const unitB = other || one;
  const error = Math.sqrt(unitA * unitA * Math.max(1, countA) + unitB * unitB * Math.max(1, countB));
  return error > 0 ? (b - a) / error : 0;
}

export interface DiffRow {
  fn: number;
  name: string;
  module: string;
  selfA: number;
  selfB: number;
  a: number; // totals
  b: number;
  z: number;
}

export function diffRows(tree: Tree, a: Weights, b: Weights, scaleA: number, scaleB: number): DiffRow[] {
  const rows = new Map<number, DiffRow>();
  const counts = new Map<number, [number, number]>();
  [a, b].forEach((weights, side) => {
    for (const row of topRows(tree, weights, "function", null)) {
      let known = rows.get(row.key);
      if (!known) rows.set(row.key, (known = { fn: row.key, name: row.name, module: row.module, selfA: 0, selfB: 0, a: 0, b: 0, z: 0 }));
      const count = counts.get(row.key) ?? [0, 0];
      counts.set(row.key, count);
      count[side] = row.count;
      if (side === 0) {
        known.selfA = row.self * scaleA;
        known.a = row.total * scaleA;
      } else {
        known.selfB = row.self * scaleB;
        known.b = row.total * scaleB;
      }
    }
  });
  for (const row of rows.values()) {
    const [countA, countB] = counts.get(row.fn) ?? [0, 0];
    row.z = zScore(row.selfA, row.selfB, countA, countB);
  }
  return [...rows.values()];
}
