// Search: part of a name in any case, or /a regular expression/.

import type { Functions, Tree } from "./data/tree.ts";
import type { Weights } from "./data/weights.ts";

const kLongestMatched = 2000; // of a name: a pattern must not hang on 100 kB of text

export function matcher(search: string): ((text: string) => boolean) | null {
  const text = search.trim();
  if (!text) return null;
  const pattern = /^\/(.+)\/(i?)$/.exec(text);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], pattern[2]);
      return (name) => expression.test(name.slice(0, kLongestMatched));
    } catch {
      return () => false;
    }
  }
  const lower = text.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

// By function; the module and file count as well as the name.
export function findFunctions(functions: Functions, search: string): Uint8Array | null {
  const matches = matcher(search);
  if (!matches) return null;
  const found = new Uint8Array(functions.count);
  for (let fn = 0; fn < functions.count; ++fn) {
    if (matches(functions.name[fn]) || matches(functions.module[fn]) || matches(functions.file[fn])) {
      found[fn] = 1;
    }
  }
  return found;
}

// Time under any found function, each moment once.
export function foundTime(tree: Tree, weights: Weights, found: Uint8Array): number {
  let sum = 0;
  for (let node = 1; node < tree.count;) {
    if (found[tree.fn[node]]) {
      sum += weights.total(tree, node);
      node = tree.end[node];
    } else {
      ++node;
    }
  }
  return sum;
}
