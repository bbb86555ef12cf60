// Frames: a tree that is worked out only where somebody looks.
//
// A frame stands for a set of nodes of the run's tree; its children are made when first asked for,
// heaviest first. Merged, by thread, inverted, recursion collapsed, callers, callees and differences
// are all ways of making children; none of them builds the whole tree.

import type { Tree } from "../data/tree.ts";
import { Weights } from "../data/weights.ts";

export interface Frame {
  readonly fn: number; // -1: no function but `label`
  readonly label: string;
  readonly depth: number;
  readonly parent: Frame | null;
  readonly node: number; // one node that it stands for
  total: number; // time; in a difference the sum of both sides, each by its own unit
  self: number;
  count: number;
  a: number; // difference: the side before
  b: number; //             the side after
  countA: number;
  countB: number;
  readonly grow: (frame: Frame) => Frame[];
  kids: Frame[] | null;
}

export function childrenOf(frame: Frame): Frame[] {
  if (!frame.kids) {
    frame.kids = frame.grow(frame);
    frame.kids.sort((x, y) => y.total - x.total || x.fn - y.fn);
  }
  return frame.kids;
}

function blank(fn: number, label: string, node: number, parent: Frame | null,
               grow: Frame["grow"]): Frame {
  return {
    fn, label, node, parent, grow, depth: parent ? parent.depth + 1 : 0,
    total: 0, self: 0, count: 0, a: 0, b: 0, countA: 0, countB: 0, kids: null,
  };
}

const noKids = (): Frame[] => [];

// How a set of weights measures a node. A difference has two sides.
export interface Measure {
  sides: Weights[];
  scale: number[]; // by side: from ns to the unit of comparison
}

function addNode(frame: Frame, tree: Tree, measure: Measure, node: number): void {
  for (let i = 0; i < measure.sides.length; ++i) {
    const side = measure.sides[i];
    const total = side.total(tree, node) * measure.scale[i];
    const count = side.totalCount(tree, node);
    frame.total += total;
    frame.self += side.self(node) * measure.scale[i];
    frame.count += count;
    if (i === 0) {
      frame.a += total;
      frame.countA += count;
    } else {
      frame.b += total;
      frame.countB += count;
    }
  }
}

function weighs(tree: Tree, measure: Measure, node: number): boolean {
  for (const side of measure.sides) if (side.total(tree, node) > 0) return true;
  return false;
}

// Children by function of all the nodes. With `collapse`, a child that is the same function as its
// parent is taken into it: its own children stand in its place.
function growDown(tree: Tree, measure: Measure, nodes: number[], collapse: boolean): Frame["grow"] {
  return (frame) => {
    // The children of one node are of different functions: nothing has to be grouped.
    if (nodes.length === 1 && !collapse) {
      const kids: Frame[] = [];
      const end = tree.end[nodes[0]];
      for (let child = nodes[0] + 1; child < end; child = tree.end[child]) {
        if (weighs(tree, measure, child)) kids.push(down(tree, measure, tree.fn[child], [child], frame, false));
      }
      return kids;
    }
    const groups = new Map<number, number[]>();
    const pending = nodes.slice();
    for (let at = 0; at < pending.length; ++at) {
      const node = pending[at];
      for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
        if (!weighs(tree, measure, child)) continue;
        const fn = tree.fn[child];
        if (collapse && fn === frame.fn) {
          pending.push(child);
          continue;
        }
        const group = groups.get(fn);
        if (group) group.push(child);
        else groups.set(fn, [child]);
      }
    }
    return [...groups].map(([fn, members]) => down(tree, measure, fn, members, frame, collapse));
  };
}

function down(tree: Tree, measure: Measure, fn: number, nodes: number[], parent: Frame | null,
              collapse: boolean): Frame {
  const frame = blank(fn, "", nodes[0], parent, growDown(tree, measure, nodes, collapse));
  for (const node of nodes) addNode(frame, tree, measure, node);
  if (collapse) addCollapsedSelf(frame, tree, measure, nodes);
  return frame;
}

// The self time of recursive calls that were taken into the frame.
function addCollapsedSelf(frame: Frame, tree: Tree, measure: Measure, nodes: number[]): void {
  const pending = nodes.slice();
  for (let at = 0; at < pending.length; ++at) {
    const node = pending[at];
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
      if (tree.fn[child] !== frame.fn) continue;
      pending.push(child);
      measure.sides.forEach((side, i) => (frame.self += side.self(child) * measure.scale[i]));
    }
  }
}

export function mergedFrames(tree: Tree, measure: Measure, collapse = false): Frame {
  return down(tree, measure, -1, [0], null, collapse);
}

// One root child per part (thread), each with its own weights.
export function framesByPart(tree: Tree, parts: { label: string; weights: Weights }[],
                               collapse = false): Frame {
  const root: Frame = blank(-1, "", 0, null, () =>
    parts.filter((part) => part.weights.sum > 0).map((part) => {
      const measure = { sides: [part.weights], scale: [1] };
      const frame = blank(-1, part.label, 0, root, growDown(tree, measure, [0], collapse));
      addNode(frame, tree, measure, 0);
      return frame;
    }));
  for (const part of parts) {
    root.total += part.weights.sum;
    root.count += part.weights.countSum;
  }
  return root;
}

// An entry of an inverted frame: time that ended at some leaf, and how far up we have followed it.
interface Carried {
  node: number;
  a: number;
  b: number;
  countA: number;
  countB: number;
}

function up(tree: Tree, fn: number, entries: Carried[], parent: Frame | null, collapse: boolean,
            selfToo: boolean): Frame {
  const frame = blank(fn, "", entries.length ? entries[0].node : 0, parent, (me) => {
    const groups = new Map<number, Carried[]>();
    for (const entry of entries) {
      let caller = tree.parent[entry.node];
      while (collapse && caller > 0 && tree.fn[caller] === me.fn) caller = tree.parent[caller];
      if (caller <= 0) continue;
      const moved = { ...entry, node: caller };
      const group = groups.get(tree.fn[caller]);
      if (group) group.push(moved);
      else groups.set(tree.fn[caller], [moved]);
    }
    return [...groups].map(([caller, members]) => up(tree, caller, members, me, collapse, false));
  });
  for (const entry of entries) {
    frame.a += entry.a;
    frame.b += entry.b;
    frame.countA += entry.countA;
    frame.countB += entry.countB;
  }
  frame.total = frame.a + frame.b;
  frame.count = frame.countA + frame.countB;
  frame.self = selfToo ? frame.total : 0;
  return frame;
}

// Leaves at the top, callers below them.
export function invertedFrames(tree: Tree, measure: Measure, collapse = false): Frame {
  const root: Frame = blank(-1, "", 0, null, () => {
    const groups = new Map<number, Map<number, Carried>>();
    measure.sides.forEach((side, s) => {
      side.nodes.forEach((node, i) => {
        if (node === 0) return;
        const fn = tree.fn[node];
        let group = groups.get(fn);
        if (!group) groups.set(fn, (group = new Map()));
        let entry = group.get(node);
        if (!entry) group.set(node, (entry = { node, a: 0, b: 0, countA: 0, countB: 0 }));
        const time = side.nsAt(i) * measure.scale[s];
        if (s === 0) {
          entry.a += time;
          entry.countA += side.countAt(i);
        } else {
          entry.b += time;
          entry.countB += side.countAt(i);
        }
      });
    });
    return [...groups].map(([fn, entries]) => up(tree, fn, [...entries.values()], root, collapse, true));
  });
  measure.sides.forEach((side, s) => {
    root.total += side.sum * measure.scale[s];
    root.count += side.countSum;
    if (s === 0) {
      root.a = side.sum * measure.scale[s];
      root.countA = side.countSum;
    } else {
      root.b = side.sum * measure.scale[s];
      root.countB = side.countSum;
    }
  });
  return root;
}

// The outermost nodes of a function: recursion inside them counts once.
export function outermost(tree: Tree, fn: number): number[] {
  const found: number[] = [];
  for (let node = 1; node < tree.count;) {
    if (tree.fn[node] === fn) {
      found.push(node);
      node = tree.end[node];
    } else {
      ++node;
    }
  }
  return found;
}

export function calleeFrames(tree: Tree, measure: Measure, fn: number, collapse = false): Frame {
  const nodes = outermost(tree, fn);
  if (nodes.length === 0) return blank(fn, "", 0, null, noKids);
  return down(tree, measure, fn, nodes, null, collapse);
}

export function callerFrames(tree: Tree, measure: Measure, fn: number, collapse = false): Frame {
  const entries = outermost(tree, fn).map((node) => {
    const entry: Carried = { node, a: 0, b: 0, countA: 0, countB: 0 };
    measure.sides.forEach((side, s) => {
      const time = side.total(tree, node) * measure.scale[s];
      if (s === 0) {
        entry.a = time;
        entry.countA = side.totalCount(tree, node);
      } else {
        entry.b = time;
        entry.countB = side.totalCount(tree, node);
      }
    });
    return entry;
  });
  return up(tree, fn, entries.filter((e) => e.a + e.b > 0), null, collapse, false);
}

const kMostFound = 5000; // frames that n and N step through
const kSmallestFound = 1e-4; // of all time; a thinner frame could not be seen

// Found frames from the outside in and from left to right.
export function foundFrames(root: Frame, found: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  const waiting: Frame[] = [root];
  while (waiting.length > 0 && frames.length < kMostFound) {
    const frame = waiting.pop()!;
    if (frame.fn >= 0 && found[frame.fn]) frames.push(frame);
    const children = childrenOf(frame).filter((child) => child.total >= kSmallestFound * root.total);
    waiting.push(...children.reverse());
  }
  return frames;
}

// Functions from the root to the frame; negative numbers for parts without one.
export function framePath(frame: Frame): Frame[] {
  const path: Frame[] = [];
  for (let at: Frame | null = frame; at && at.parent; at = at.parent) path.push(at);
  return path.reverse();
}

// A frame's place as text for the address bar, and back. By function, so that it outlives a change
// of range; null when the frame is not there any more.
export function encodePath(frame: Frame): string {
  return framePath(frame).map((f) => (f.fn >= 0 ? f.fn : "~" + f.label)).join(".");
}
export function findPath(root: Frame, text: string): Frame | null {
  let at: Frame | null = root;
  if (!text) return null;
  for (const part of text.split(".")) {
    const kids: Frame[] = at ? childrenOf(at) : [];
    at = kids.find((kid) => (kid.fn >= 0 ? String(kid.fn) : "~" + kid.label) === part) ?? null;
    if (!at) return null;
  }
  return at;
}
