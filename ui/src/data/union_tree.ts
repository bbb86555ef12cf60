// One tree for two runs: a path of functions that both have is one node. Functions are the same when
// name and module are.

import { layTree, type Functions, type Tree } from "./tree.ts";
import { Weights } from "./weights.ts";

export interface UnionTree {
  tree: Tree;
  fromA: Uint32Array; // node of A → node of the union
  fromB: Uint32Array;
}

function unionFunctions(a: Functions, b: Functions): { functions: Functions; ofB: Int32Array } {
  const key = (f: Functions, fn: number): string => `${f.module[fn]}\n${f.name[fn]}`;
  const known = new Map<string, number>();
  for (let fn = 0; fn < a.count; ++fn) known.set(key(a, fn), fn);
  const pick = { name: [...a.name], short: [...a.short], module: [...a.module], file: [...a.file], line: [...a.line], kind: [...a.kind], named: [...a.named] };
  const ofB = new Int32Array(b.count);
  for (let fn = 0; fn < b.count; ++fn) {
    let at = known.get(key(b, fn));
    if (at === undefined) {
      at = pick.name.length;
      known.set(key(b, fn), at);
      pick.name.push(b.name[fn]);
      pick.short.push(b.short[fn]);
      pick.module.push(b.module[fn]);
      pick.file.push(b.file[fn]);
      pick.line.push(b.line[fn]);
      pick.kind.push(b.kind[fn]);
      pick.named.push(b.named[fn]);
    }
    ofB[fn] = at;
  }
  const functions = { ...pick, count: pick.name.length, line: Float64Array.from(pick.line), kind: Uint8Array.from(pick.kind), named: Uint8Array.from(pick.named) };
  return { functions, ofB };
}

export function uniteTrees(a: Tree, b: Tree): UnionTree {
  const { functions, ofB } = unionFunctions(a.functions, b.functions);
  const width = functions.count + 1;
  const ids = new Map<number, number>(); // parent * width + function → node, in order of first sight
  const parent: number[] = [-1];
  const fns: number[] = [-1];
  const add = (tree: Tree, fnOf: (fn: number) => number): Uint32Array => {
    const map = new Uint32Array(tree.count);
    for (let node = 1; node < tree.count; ++node) {
      const above = map[tree.parent[node]];
      const fn = fnOf(tree.fn[node]);
      const key = above * width + fn;
      let at = ids.get(key);
      if (at === undefined) {
        at = parent.length;
        ids.set(key, at);
        parent.push(above);
        fns.push(fn);
      }
      map[node] = at;
    }
    return map;
  };
  const first = add(a, (fn) => fn);
  const second = add(b, (fn) => ofB[fn]);
  // Into preorder: parents have smaller numbers than their children.
  const count = parent.length;
  const size = new Int32Array(count).fill(1);
  for (let node = count - 1; node > 0; --node) size[parent[node]] += size[node];
  const place = new Int32Array(count);
  const next = new Int32Array(count);
  const depth = new Int32Array(count);
  const fn = new Int32Array(count);
  next[0] = 1;
  for (let node = 1; node < count; ++node) {
    const above = parent[node];
    place[node] = next[above];
    next[above] += size[node];
    next[node] = place[node] + 1;
    depth[place[node]] = depth[place[above]] + 1;
    fn[place[node]] = fns[node];
  }
  const inlined = new Set<number>();
  const finish = (map: Uint32Array, tree: Tree): Uint32Array => {
    for (let node = 0; node < map.length; ++node) {
      map[node] = place[map[node]];
      if (tree.inlined.has(node)) inlined.add(map[node]);
    }
    return map;
  };
  const fromA = finish(first, a);
  const fromB = finish(second, b);
  return { tree: layTree(depth, fn, functions, inlined), fromA, fromB };
}

export function moveWeights(weights: Weights, map: Uint32Array): Weights {
  const rows: [number, number, number][] = [];
  weights.nodes.forEach((node, i) => rows.push([map[node], weights.nsAt(i), weights.countAt(i)]));
  return Weights.of(rows);
}
