// Weights: time and counts on nodes of a tree, sparse. Nodes ascend, so the sum over a subtree is a
// difference of two prefix sums. Where every node's place among them is known, it is looked up, else
// searched for.

import type { Tree } from "./tree.ts";

export interface Cells {
  from: number;
  to: number;
  bins: number;
  state: Uint8Array;
  node: Uint32Array;
  ns: Float64Array;
  count: Float64Array;
  bin: Uint32Array | null;
  thread: Uint32Array | null;
}

export class Weights {
  private constructor(
    readonly nodes: Uint32Array,
    private readonly ns: Float64Array, // prefix sums, one longer than nodes
    private readonly counts: Float64Array,
    private readonly places: Uint32Array | null, // by node: how many of `nodes` are smaller
  ) {}

  static of(rows: Iterable<[node: number, ns: number, count: number]>): Weights {
    const sums = new Map<number, [number, number]>();
    for (const [node, ns, count] of rows) {
      const sum = sums.get(node);
      if (sum) {
        sum[0] += ns;
        sum[1] += count;
      } else {
        sums.set(node, [ns, count]);
      }
    }
    const nodes = Uint32Array.from(sums.keys()).sort();
    return Weights.ofSorted(
      nodes,
      Float64Array.from(nodes, (node) => sums.get(node)![0]),
      Float64Array.from(nodes, (node) => sums.get(node)![1]),
    );
  }

  // Cells of the wanted states (and thread), summed by node.
  static ofCells(cells: Cells, size: number, wants: (state: number) => boolean,
                 thread = -1): Weights {
    const wanted = new Uint8Array(256);
    for (let state = 0; state < 256; ++state) wanted[state] = wants(state) ? 1 : 0;
    const ns = new Float64Array(size);
    const counts = new Float64Array(size);
    const { state, node, thread: threads } = cells;
    let used = 0;
    for (let i = 0; i < node.length; ++i) {
      if (!wanted[state[i]] || (thread >= 0 && threads && threads[i] !== thread)) continue;
      if (node[i] >= size) continue;
      ns[node[i]] += cells.ns[i];
      counts[node[i]] += cells.count[i];
      ++used;
    }
    const most = Math.min(used, size);
    const nodes = new Uint32Array(most);
    const places = new Uint32Array(size + 1);
    const nsSums = new Float64Array(most + 1);
    const countSums = new Float64Array(most + 1);
    let n = 0;
    for (let v = 0; v < size; ++v) {
      places[v] = n;
      if (ns[v] <= 0 && counts[v] <= 0) continue;
      nodes[n] = v;
      nsSums[n + 1] = nsSums[n] + ns[v];
      countSums[n + 1] = countSums[n] + counts[v];
      ++n;
    }
    places[size] = n;
    return new Weights(nodes.subarray(0, n), nsSums.subarray(0, n + 1), countSums.subarray(0, n + 1), places);
  }

  static ofSorted(nodes: Uint32Array, ns: Float64Array, counts: Float64Array): Weights {
    const prefix = (values: Float64Array): Float64Array => {
      const sums = new Float64Array(values.length + 1);
      for (let i = 0; i < values.length; ++i) sums[i + 1] = sums[i] + values[i];
      return sums;
    };
    return new Weights(nodes, prefix(ns), prefix(counts), null);
  }

  get sum(): number {
    return this.ns[this.nodes.length];
  }
  get countSum(): number {
    return this.counts[this.nodes.length];
  }

  private firstAtLeast(node: number): number {
    if (this.places) return this.places[Math.min(node, this.places.length - 1)];
    const nodes = this.nodes;
    let low = 0;
    let high = nodes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (nodes[middle] < node) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  total(tree: Tree, node: number): number {
    return this.ns[this.firstAtLeast(tree.end[node])] - this.ns[this.firstAtLeast(node)];
  }
  totalCount(tree: Tree, node: number): number {
    return this.counts[this.firstAtLeast(tree.end[node])] - this.counts[this.firstAtLeast(node)];
  }
  self(node: number): number {
    const i = this.firstAtLeast(node);
    return this.nodes[i] === node ? this.ns[i + 1] - this.ns[i] : 0;
  }
  selfCount(node: number): number {
    const i = this.firstAtLeast(node);
    return this.nodes[i] === node ? this.counts[i + 1] - this.counts[i] : 0;
  }
  // Time at the i-th of `nodes`.
  nsAt(i: number): number {
    return this.ns[i + 1] - this.ns[i];
  }
  countAt(i: number): number {
    return this.counts[i + 1] - this.counts[i];
  }
}
