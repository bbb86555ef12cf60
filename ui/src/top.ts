// Self and total time by function, file or module: each moment counts once in a total, however often
// the thing stands in a stack.

import type { Tree } from "./data/tree.ts";
import type { Weights } from "./data/weights.ts";

export interface TopRow {
  key: number; // function, or the number of the group
  name: string;
  where: string;
  module: string;
  self: number;
  total: number;
  count: number;
  found: boolean;
}

// By node: the time of its subtree.
export function totals(tree: Tree, weights: Weights): Float64Array {
  const sums = new Float64Array(tree.count);
  weights.nodes.forEach((node, i) => {
    sums[node] = weights.nsAt(i);
  });
  for (let node = tree.count - 1; node > 0; --node) sums[tree.parent[node]] += sums[node];
  return sums;
}

export function topRows(tree: Tree, weights: Weights, group: string, found: Uint8Array | null): TopRow[] {
  const { functions } = tree;
  const names = new Map<string, number>();
  const rows: TopRow[] = [];
  const groupOf = new Int32Array(functions.count);
  for (let fn = 0; fn < functions.count; ++fn) {
    const file = functions.file[fn];
    const key = group === "file" ? file || "(no file known)" : group === "module" ? functions.module[fn] : `${fn}`;
    let at = names.get(key);
    if (at === undefined) {
      at = rows.length;
      names.set(key, at);
      rows.push({
        key: group === "function" ? fn : at, name: group === "function" ? functions.name[fn] : key,
        where: group === "function" && file ? `${file}:${functions.line[fn]}` : "",
        module: group === "module" ? "" : functions.module[fn], self: 0, total: 0, count: 0, found: false,
      });
    }
    groupOf[fn] = at;
    if (found?.[fn]) rows[at].found = true;
  }
  const sums = totals(tree, weights);
  const openUntil = new Int32Array(rows.length); // end of the outermost subtree of the group
  for (let node = 1; node < tree.count; ++node) {
    if (sums[node] <= 0) continue;
    const row = groupOf[tree.fn[node]];
    if (node < openUntil[row]) continue;
    openUntil[row] = tree.end[node];
    rows[row].total += sums[node];
  }
  weights.nodes.forEach((node, i) => {
    if (node === 0) return;
    const row = rows[groupOf[tree.fn[node]]];
    row.self += weights.nsAt(i);
    row.count += weights.countAt(i);
  });
  return rows.filter((row) => row.total > 0);
}
