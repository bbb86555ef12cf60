// Time order: intervals with a stack each become, at every depth, runs of the same frame.

import type { Table } from "../data/columns.ts";
import { pathOf, type Tree } from "../data/tree.ts";

export interface Runs {
  count: number;
  begin: Float64Array;
  end: Float64Array;
  depth: Uint16Array; // 0 is the row of states
  node: Int32Array; // 0: no frame (the row of states)
  state: Uint8Array;
  deepest: number;
}

export function runsOf(tree: Tree, table: Table): Runs {
  const { begin, ns, state, node } = table.numbers;
  const out = { begin: [] as number[], end: [] as number[], depth: [] as number[], node: [] as number[], state: [] as number[] };
  const open: { node: number; begin: number; state: number }[] = [];
  let last = Number.NEGATIVE_INFINITY;
  let deepest = 0;
  const close = (from: number): void => {
    while (open.length > from) {
      const run = open.pop()!;
      out.begin.push(run.begin);
      out.end.push(last);
      out.depth.push(open.length);
      out.node.push(run.node);
      out.state.push(run.state);
    }
  };
  for (let i = 0; i < begin.length; ++i) {
    const path = node[i] > 0 && node[i] < tree.count ? pathOf(tree, node[i]) : [];
    let same = 0;
    if (begin[i] === last && open.length && open[0].state === state[i]) {
      same = 1;
      while (same < open.length && same <= path.length && open[same].node === path[same - 1]) ++same;
    }
    close(same);
    if (same === 0) open.push({ node: 0, begin: begin[i], state: state[i] });
    for (let d = Math.max(0, same - 1); d < path.length; ++d) open.push({ node: path[d], begin: begin[i], state: state[i] });
    deepest = Math.max(deepest, path.length);
    last = begin[i] + ns[i];
  }
  close(0);
  return {
    count: out.begin.length, deepest,
    begin: Float64Array.from(out.begin), end: Float64Array.from(out.end), depth: Uint16Array.from(out.depth),
    node: Int32Array.from(out.node), state: Uint8Array.from(out.state),
  };
}
