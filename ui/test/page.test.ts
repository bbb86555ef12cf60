import assert from "node:assert/strict";
import { test } from "node:test";
import { readBundle, readTable } from "../src/data/columns.ts";
import { layTree, type Functions, type Tree } from "../src/data/tree.ts";
import { moveWeights, uniteTrees } from "../src/data/union_tree.ts";
import { Weights } from "../src/data/weights.ts";
import { diffRows, zScore } from "../src/diff.ts";
import { escapeXml, svgText } from "../src/export.ts";
import { calleeFrames, callerFrames, childrenOf, encodePath, findPath, foundFrames, framesByPart, invertedFrames, mergedFrames,
         type Frame } from "../src/flame/frames.ts";
import { amount, duration, percent, tidyPath, shareError } from "../src/format.ts";
import { findFunctions, foundTime, matcher } from "../src/search.ts";
import { decodeState, encodeState, homeOf, kDefaults } from "../src/state.ts";
import { heatShape, heatTime, laneBins, roundStep, spread, ticks } from "../src/time/scale.ts";
import { busiest } from "../src/panels/order_tab.tsx";
import { asRate, requestsIn, type Line } from "../src/time/load_series.ts";
import { runsOf } from "../src/time/runs.ts";
import { topRows } from "../src/top.ts";

function functionsOf(names: string[]): Functions {
  return {
    count: names.length, name: names, short: names, module: names.map(() => "server"), file: names.map((n) => `/src/${n}.cpp`),
    line: Float64Array.from(names, () => 1), kind: new Uint8Array(names.length), named: new Uint8Array(names.length).fill(1),
  };
}

// "main>parse>copy" … → a tree of these paths, with the node of each.
function treeOf(paths: string[]): { tree: Tree; at: (path: string) => number } {
  const names: string[] = [];
  const id = (name: string): number => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
  const all = new Set<string>();
  for (const path of paths) path.split(">").forEach((_, i, parts) => all.add(parts.slice(0, i + 1).join(">")));
  const sorted = [...all].sort();
  const depths = [0, ...sorted.map((p) => p.split(">").length)];
  const fns = [0, ...sorted.map((p) => id(p.split(">").pop()!))];
  return { tree: layTree(depths, fns, functionsOf(names), new Set()), at: (path) => sorted.indexOf(path) + 1 };
}

const sample = treeOf(["main>parse>copy", "main>parse>parse>copy", "main>send", "idle"]);
const weights = Weights.of([
  [sample.at("main>parse>copy"), 30, 3], [sample.at("main>parse>parse>copy"), 20, 2], [sample.at("main>parse"), 10, 1],
  [sample.at("main>send"), 40, 4], [sample.at("idle"), 5, 1],
]);
const measure = { sides: [weights], scale: [1] };
const names = (tree: Tree, frames: Frame[]): string[] => frames.map((f) => `${tree.functions.name[f.fn]} ${f.total}`);
const kid = (tree: Tree, frame: Frame, name: string): Frame => childrenOf(frame).find((f) => tree.functions.name[f.fn] === name)!;

test("tables are read, and damaged ones refused", () => {
  const text = new TextEncoder();
  const header = text.encode(JSON.stringify({ kind: "x", scalars: { a: 1 }, columns: [["n", "u", 3, 4], ["d", "d", 2, 2], ["s", "s", 2, 5]] }));
  const data = [5, 0x80, 0x01, 0, /* 1, -1 */ 2, 3, /* "ab", "c" */ 2, 97, 98, 1, 99];
  const bytes = Uint8Array.from([65, 83, 67, 49, header.length & 255, header.length >> 8, 0, 0, ...header, ...data]);
  const table = readTable(bytes);
  assert.deepEqual([...table.numbers.n], [5, 128, 0]);
  assert.deepEqual([...table.numbers.d], [1, -1]);
  assert.deepEqual(table.texts.s, ["ab", "c"]);
  for (let length = 0; length < bytes.length; ++length) assert.throws(() => readTable(bytes.subarray(0, length)));
  assert.throws(() => readBundle(Uint8Array.from([255, 255, 255, 127, 1])));
});

test("numbers of any length and names in any letters are read", () => {
  const varint = (value: bigint): number[] => (value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]);
  const values = [0n, 127n, 128n, 16383n, 16384n, 2097151n, 2097152n, 268435455n, 268435456n, 2n ** 35n + 5n, 2n ** 53n - 1n, 3n];
  const numbers = values.flatMap(varint);
  const texts = ["plain", "na\u00efve \u4e16", ""].flatMap((text) => {
    const bytes = [...new TextEncoder().encode(text)];
    return [bytes.length, ...bytes];
  });
  const header = new TextEncoder().encode(JSON.stringify({ kind: "x", scalars: {}, columns: [["n", "u", values.length, numbers.length], ["s", "s", 3, texts.length]] }));
  const table = readTable(Uint8Array.from([65, 83, 67, 49, header.length & 255, header.length >> 8, 0, 0, ...header, ...numbers, ...texts]));
  assert.deepEqual([...table.numbers.n], values.map(Number));
  assert.deepEqual(table.texts.s, ["plain", "na\u00efve \u4e16", ""]);
});

test("weights of cells are those of rows, looked up or searched for", () => {
  const node = Uint32Array.from([1, 3, 5, 3, 4]);
  const cells = { from: 0, to: 1, bins: 1, state: Uint8Array.from([0, 0, 0, 1, 9]), node, bin: null, thread: null,
                  ns: Float64Array.from([5, 7, 11, 13, 99]), count: Float64Array.from([1, 1, 1, 2, 9]) };
  const fast = Weights.ofCells(cells, sample.tree.count, (state) => state <= 1);
  const slow = Weights.of([[1, 5, 1], [3, 20, 3], [5, 11, 1]]);
  assert.deepEqual([...fast.nodes], [...slow.nodes]);
  for (let v = 0; v < sample.tree.count; ++v) {
    assert.equal(fast.total(sample.tree, v), slow.total(sample.tree, v));
    assert.equal(fast.totalCount(sample.tree, v), slow.totalCount(sample.tree, v));
    assert.equal(fast.self(v), slow.self(v));
  }
});

test("a tree out of preorder is refused", () => {
  assert.throws(() => layTree([0, 1, 3], [0, 0, 0], functionsOf(["f"]), new Set()));
});

test("merged frames add up and come heaviest first", () => {
  const root = mergedFrames(sample.tree, measure);
  assert.equal(root.total, 105);
  assert.deepEqual(names(sample.tree, childrenOf(root)), ["main 100", "idle 5"]);
  const main = kid(sample.tree, root, "main");
  assert.deepEqual(names(sample.tree, childrenOf(main)), ["parse 60", "send 40"]);
  assert.equal(kid(sample.tree, main, "parse").self, 10);
});

test("collapsed recursion keeps the time", () => {
  const main = kid(sample.tree, mergedFrames(sample.tree, measure, true), "main");
  const parse = kid(sample.tree, main, "parse");
  assert.equal(parse.total, 60);
  assert.deepEqual(names(sample.tree, childrenOf(parse)), ["copy 50"]);
});

test("inverted frames begin at the leaves", () => {
  const root = invertedFrames(sample.tree, measure);
  assert.equal(root.total, 105);
  assert.deepEqual(names(sample.tree, childrenOf(root)), ["copy 50", "send 40", "parse 10", "idle 5"]);
  assert.deepEqual(names(sample.tree, childrenOf(kid(sample.tree, root, "copy"))), ["parse 50"]);
});

test("sandwich: recursion counts once", () => {
  const fn = sample.tree.functions.name.indexOf("parse");
  assert.equal(calleeFrames(sample.tree, measure, fn).total, 60);
  const callers = callerFrames(sample.tree, measure, fn);
  assert.equal(callers.total, 60);
  assert.deepEqual(names(sample.tree, childrenOf(callers)), ["main 60"]);
});

test("by thread: one child each", () => {
  const root = framesByPart(sample.tree, [{ label: "one", weights }, { label: "none", weights: Weights.of([]) }]);
  assert.deepEqual(childrenOf(root).map((f) => f.label), ["one"]);
  assert.equal(root.total, 105);
});

test("found frames come outermost first, and thin ones not at all", () => {
  const root = mergedFrames(sample.tree, measure);
  const found = new Uint8Array(sample.tree.functions.count);
  const number = (name: string) => sample.tree.functions.name.indexOf(name);
  found[number("parse")] = found[number("copy")] = 1;
  const names = foundFrames(root, found).map((frame) => sample.tree.functions.name[frame.fn]);
  assert.deepEqual(names.slice(0, 2), ["parse", "copy"]);
  assert.ok(names.every((name) => name === "parse" || name === "copy"));
  assert.deepEqual(foundFrames(root, new Uint8Array(sample.tree.functions.count)), []);
});

test("a frame's path survives as text", () => {
  const root = mergedFrames(sample.tree, measure);
  const copy = kid(sample.tree, kid(sample.tree, kid(sample.tree, root, "main"), "parse"), "copy");
  assert.equal(findPath(root, encodePath(copy)), copy);
  assert.equal(findPath(root, "99.98"), null);
  assert.equal(findPath(root, ""), null);
});

test("top: self and total, each moment once", () => {
  const rows = topRows(sample.tree, weights, "function", null);
  const of = (name: string) => rows.find((row) => row.name === name)!;
  assert.equal(of("parse").total, 60);
  assert.equal(of("parse").self, 10);
  assert.equal(of("copy").total, 50);
  assert.equal(rows.reduce((sum, row) => sum + row.self, 0), 105);
  assert.equal(topRows(sample.tree, weights, "module", null)[0].total, 105);
});

test("search: text, expressions, no double counting", () => {
  const found = findFunctions(sample.tree.functions, "PARSE")!;
  assert.equal(foundTime(sample.tree, weights, found), 60);
  assert.equal(findFunctions(sample.tree.functions, "  "), null);
  assert.ok(matcher("/^se.d$/")!("send"));
  assert.ok(!matcher("/(/")!("("));
});

test("two runs share one tree", () => {
  const other = treeOf(["main>parse>copy", "main>fresh"]);
  const before = Weights.of([[other.at("main>parse>copy"), 10, 1], [other.at("main>fresh"), 7, 1]]);
  const united = uniteTrees(other.tree, sample.tree);
  const a = moveWeights(before, united.fromA);
  const b = moveWeights(weights, united.fromB);
  const root = mergedFrames(united.tree, { sides: [a, b], scale: [1, 1] });
  const main = kid(united.tree, root, "main");
  assert.equal(main.a, 17);
  assert.equal(main.b, 100);
  assert.equal(kid(united.tree, main, "fresh").b, 0); // vanished, and still there
  const rows = diffRows(united.tree, a, b, 1, 1);
  assert.equal(rows.find((row) => row.name === "copy")!.selfB, 50);
});

test("differences know chance from change", () => {
  assert.ok(Math.abs(zScore(100, 104, 100, 104)) < 1);
  assert.ok(zScore(100, 300, 100, 300) > 5);
  assert.ok(zScore(300, 100, 300, 100) < -5);
  assert.ok(Math.abs(zScore(0, 1, 0, 1)) < 2);
  assert.equal(zScore(0, 0, 0, 0), 0);
});

test("state goes into the hash and back; strange hashes do no harm", () => {
  const state = { ...kDefaults, tab: "top" as const, threads: [1, 5], search: "a&b=c#d", from: 12, to: 99, inverted: true };
  assert.deepEqual(decodeState("#" + encodeState(state)), state);
  assert.equal(encodeState(kDefaults), "");
  assert.deepEqual(decodeState("#tab=evil&from=x&threads=1.z&metric=7&__proto__=1&x=%E0%A4%A&run=Infinity"), kDefaults);
});

test("a run of nothing but allocations opens on its heap, and its flame graph has an address", () => {
  const home = homeOf(true);
  assert.equal(decodeState("", home).tab, "heap");
  assert.equal(encodeState(home, home), "");
  const flame = { ...home, tab: "flame" as const };
  assert.equal(encodeState(flame, home), "tab=flame");
  assert.deepEqual(decodeState("#tab=flame", home), flame);
  assert.equal(decodeState("", homeOf(false)).tab, "flame");
});

test("figures", () => {
  assert.equal(duration(1234), "1.23 µs");
  assert.equal(duration(61e9), "1 min 1 s");
  assert.equal(percent(0.0001), "< 0.1 %");
  assert.equal(percent(Number.NaN), "–");
  assert.equal(amount(1_500_000, "bytes"), "1.50 MB");
  assert.ok(shareError(0.5, 100) > 0.09 && shareError(0.5, 100) < 0.1);
  assert.equal(shareError(0.5, 0), 1);
  assert.equal(tidyPath("/a/build/../../src/./x.cpp"), "/src/x.cpp");
  assert.equal(tidyPath("../lab/x.cpp"), "../lab/x.cpp");
});

test("scales", () => {
  assert.equal(roundStep(1.5e8), 2e8);
  const shape = heatShape(8e9);
  assert.equal(shape.columns, 80);
  assert.equal(heatTime(shape, 0, 0, 800, 100, false), 0);
  assert.equal(heatTime(shape, 799, 99, 800, 100, true), 8e9);
  assert.deepEqual(ticks(0, 1e9, 4).at, [0, 5e8, 1e9]);
});

test("lanes have whole groups of the heat map's cells, and long bins are spread", () => {
  const shape = heatShape(1e9);
  assert.equal(shape.columns * shape.rows, 2000); // as RunIndex adds up (queries_test.cpp)
  for (const threads of [1, 64, 10_000, 1_000_000]) {
    const bins = laneBins(shape, threads);
    assert.equal((shape.columns * shape.rows) % bins, 0);
    assert.ok(bins >= shape.columns && bins <= 650);
  }
  assert.deepEqual([...spread(Float64Array.from([4, 8]), 8)], [1, 1, 1, 1, 2, 2, 2, 2]);
  const same = Float64Array.from([1, 2]);
  assert.equal(spread(same, 2), same);
});

test("the busiest thread is that of the range", () => {
  const lanes = {
    from: 0, to: 100, bins: 10, bin: Float64Array.from([0, 1, 5, 6, 6]), thread: Float64Array.from([0, 0, 1, 2, 1]),
    state: Float64Array.from([4, 4, 4, 4, 8]), ns: Float64Array.from([9, 9, 7, 8, 10]),
  };
  const threads = [{ id: 0 }, { id: 1 }, { id: 2 }];
  assert.equal(busiest(threads, lanes, 0, 100), 0);
  assert.equal(busiest(threads, lanes, 50, 60), 1);
  assert.equal(busiest(threads, lanes, 55, 70), 2);
  assert.equal(busiest(threads.slice(1), lanes, 0, 20), 1); // one of those that are there
  assert.equal(busiest([], lanes, 0, 100), -1);
});

test("rates and requests", () => {
  const line: Line = { name: "requests", label: "", unit: "count", scope: 5, owner: 0, kind: 1, time: Float64Array.from([0, 1e9, 2e9]), value: Float64Array.from([0, 100, 300]) };
  assert.deepEqual([...asRate(line).value], [100, 200]);
  assert.equal(requestsIn([line], 0, 2e9), 300);
  assert.equal(requestsIn([line], 5e8, 1.5e9), 150);
  assert.equal(requestsIn([], 0, 1), null);
});

test("time order: neighbours with the same frames are one run", () => {
  const copy = sample.at("main>parse>copy");
  const table = { kind: "order", scalars: {}, texts: {}, numbers: {
    begin: Float64Array.from([0, 10, 20]), ns: Float64Array.from([10, 10, 5]), state: Float64Array.from([0, 0, 8]), node: Float64Array.from([copy, sample.at("main>send"), copy]) } };
  const runs = runsOf(sample.tree, table);
  const main = sample.at("main");
  const mains = [...runs.node.keys()].filter((i) => runs.node[i] === main).map((i) => [runs.begin[i], runs.end[i]]);
  assert.deepEqual(mains.sort((a, b) => a[0] - b[0]), [[0, 20], [20, 25]]);
});

test("pictures hold no markup of names", () => {
  const root = mergedFrames(sample.tree, { sides: [Weights.of([[sample.at("main>send"), 5_000_000, 4]])], scale: [1] });
  assert.equal(escapeXml(`<a b="c">&'`), "&#60;a b=&#34;c&#34;&#62;&#38;&#39;");
  assert.ok(svgText(sample.tree, root, () => "#fff", "<t>").startsWith("<svg"));
});
