// Functions and the tree of call paths: nodes in preorder, node 0 the root, so that the subtree of v
// is [v, end[v]) and the children of v are v+1, end[v+1], …

import type { Table } from "./columns.ts";

export const enum CodeKind {
  User = 0,
  Kernel = 1,
  Marker = 2,
}

export interface Functions {
  count: number;
  name: string[];
  short: string[];
  module: string[];
  file: string[];
  line: Float64Array;
  kind: Uint8Array; // CodeKind
  named: Uint8Array;
}

export interface Tree {
  count: number;
  fn: Int32Array; // -1 for the root
  parent: Int32Array;
  end: Int32Array;
  depth: Uint16Array;
  inlined: Set<number>;
  functions: Functions;
  category: Uint16Array | null; // by node: index into categoryNames
  categoryNames: string[];
}

export function layTree(depths: ArrayLike<number>, fns: ArrayLike<number>, functions: Functions,
                        inlined: Set<number>): Tree {
  const count = Math.max(1, depths.length);
  const tree: Tree = {
    count,
    fn: new Int32Array(count),
    parent: new Int32Array(count),
    end: new Int32Array(count),
    depth: new Uint16Array(count),
    inlined,
    functions,
    category: null,
    categoryNames: [],
  };
  tree.fn[0] = -1;
  tree.parent[0] = -1;
  let deepest = 0;
  const open: number[] = [0]; // by depth: the node whose subtree we are in
  for (let node = 1; node < count; ++node) {
    const depth = depths[node];
    if (depth < 1 || depth > deepest + 1) throw new Error("the tree is not in preorder");
    for (let d = depth; d <= deepest; ++d) tree.end[open[d]] = node;
    deepest = depth;
    open[depth] = node;
    tree.depth[node] = depth;
    tree.parent[node] = open[depth - 1];
    tree.fn[node] = fns[node];
  }
  for (let d = 0; d <= deepest; ++d) tree.end[open[d]] = count;
  return tree;
}

export function readTree(table: Table): Tree {
  const { numbers, texts } = table;
  const count = texts.name.length;
  const kinds = numbers.kind;
  const functions: Functions = {
    count,
    name: texts.name,
    short: texts.short.map((text, i) => text || texts.name[i]),
    module: Array.from(numbers.module, (i) => texts.modules[i] ?? ""),
    file: Array.from(numbers.file, (i) => texts.files[i] ?? ""),
    line: numbers.line,
    kind: Uint8Array.from(kinds, (k) => k & 3),
    named: Uint8Array.from(kinds, (k) => (k & 4 ? 0 : 1)),
  };
  const tree = layTree(numbers.depth, numbers.function, functions, new Set(numbers.inlined));
  if (numbers.category) tree.category = new Uint16Array(numbers.category);
  tree.categoryNames = texts.categories ?? [];
  return tree;
}

// Root first, without the root itself.
export function pathOf(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}
