// Diff: two runs, or two ranges of one. Frames of either side keep their place, so that what vanished
// is seen as well as what came.

import { useMemo } from "preact/hooks";
import type { RunSource } from "../data/run_source.ts";
import { metricWants } from "../data/states.ts";
import { moveWeights, uniteTrees } from "../data/union_tree.ts";
import { Weights } from "../data/weights.ts";
import { showDetails } from "../details.ts";
import { diffRows, zScore, type DiffRow } from "../diff.ts";
import { invertedFrames, mergedFrames, type Frame } from "../flame/frames.ts";
import { digits, duration, percent, seconds } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { differenceColour } from "../palette.ts";
import { readLines, requestsIn } from "../time/load_series.ts";
import { DataTable } from "./data_table.tsx";
import { MetricSwitch, Toggle } from "./flame_tab.tsx";
import { FlameView } from "./flame_panel.tsx";

const kCertain = 2; // standard errors: what is less is hatched as noise

interface Sides {
  tree: ReturnType<typeof useView>["tree"];
  a: Weights;
  b: Weights;
  lengthA: number;
  lengthB: number;
  requestsA: number | null;
  requestsB: number | null;
  words: string;
}

async function askSides(view: ReturnType<typeof useView>, other: RunSource | null): Promise<Sides> {
  const { run, state, selection, tree } = view;
  const wants = metricWants(state.metric, state.only);
  const lines = readLines(await run.series());
  const cellsB = await run.cells(selection, false);
  const b = Weights.ofCells(cellsB, tree.count, wants);
  const lengthB = selection.to - selection.from;
  const requestsB = requestsIn(lines, selection.from, selection.to);
  if (!other) {
    const base = { ...selection, from: state.baseFrom, to: state.baseTo };
    const cellsA = await run.cells(base, false);
    return {
      tree, a: Weights.ofCells(cellsA, tree.count, wants), b, lengthA: base.to - base.from, lengthB, requestsB,
      requestsA: requestsIn(lines, base.from, base.to),
      words: `${seconds(base.from, 1e7)} – ${seconds(base.to, 1e7)} → ${seconds(selection.from, 1e7)} – ${seconds(selection.to, 1e7)}`,
    };
  }
  const otherTree = await other.tree();
  const all = { from: 0, to: other.meta.window_ns, threads: null, functions: null };
  const cellsA = await other.cells(all, false);
  const united = uniteTrees(otherTree, tree);
  return {
    tree: united.tree, a: moveWeights(Weights.ofCells(cellsA, otherTree.count, wants), united.fromA), b: moveWeights(b, united.fromB),
    lengthA: other.meta.window_ns, lengthB, requestsB, requestsA: requestsIn(readLines(await other.series()), 0, other.meta.window_ns),
    words: `${other.meta.run} → ${run.meta.run}`,
  };
}

function unitOf(sides: Sides, norm: string): { scaleA: number; scaleB: number; show: (v: number) => string } {
  if (norm === "share") return { scaleA: 1 / Math.max(1, sides.a.sum), scaleB: 1 / Math.max(1, sides.b.sum), show: percent };
  if (norm === "request" && sides.requestsA && sides.requestsB) {
    return { scaleA: 1 / sides.requestsA, scaleB: 1 / sides.requestsB, show: (v) => `${duration(v)}/req` };
  }
  return { scaleA: 1e9 / Math.max(1, sides.lengthA), scaleB: 1e9 / Math.max(1, sides.lengthB), show: (v) => `${duration(v)}/s` };
}

export function DiffTab() {
  const view = useView();
  const { run, runs, state, store, dark, selectionKey } = view;
  const others = runs.filter((r) => r !== run);
  const ranges = state.baseTo > state.baseFrom;
  const other = runs.find((r) => r.id === state.versus && r !== run) ?? (ranges ? null : others[0] ?? null);
  const possible = ranges || other !== null;
  const key = `diff ${selectionKey} ${other?.id ?? "-"} ${state.baseFrom}-${state.baseTo} ${state.metric} ${state.only}`;
  const answer = useAnswer(key, () => (possible ? askSides(view, other) : Promise.resolve(null)));
  const sides = answer.value;
  const unit = sides && unitOf(sides, state.norm);
  const root = useMemo(() => {
    if (!sides || !unit) return null;
    const measure = { sides: [sides.a, sides.b], scale: [unit.scaleA, unit.scaleB] };
    return state.inverted ? invertedFrames(sides.tree, measure, state.collapse) : mergedFrames(sides.tree, measure, state.collapse);
  }, [sides, state.norm, state.inverted, state.collapse]);
  const rows = useMemo(() => (sides && unit ? diffRows(sides.tree, sides.a, sides.b, unit.scaleA, unit.scaleB) : []), [sides, state.norm]);
  const style = useMemo(() => ({
    fill: (frame: Frame) => differenceColour(frame.total > 0 ? (frame.b - frame.a) / frame.total : 0, dark),
    text: () => (dark ? "#f2f5f8" : "#14181d"),
    hatched: (frame: Frame) => frame.depth > 0 && Math.abs(zScore(frame.a, frame.b, frame.countA, frame.countB)) < kCertain,
  }), [dark]);
  if (!possible) {
    return <div class="empty">Nothing to compare yet. <br />Drag with <kbd>Ctrl</kbd> over the time panel for a baseline range (or press <kbd>b</kbd> there), <br />or open two runs: <code>assay view before.assay after.assay</code></div>;
  }
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!sides || !unit || !root) return <p class="loading">Comparing …</p>;
  const delta = (a: number, b: number): string => (a > 0 ? `${b >= a ? "+" : "−"}${digits(Math.abs((b - a) / a) * 100)} %` : "new");
  const describe = (frame: Frame): string[] => {
    const z = zScore(frame.a, frame.b, frame.countA, frame.countB);
    return [`${unit.show(frame.a)} → ${unit.show(frame.b)}`, delta(frame.a, frame.b), Math.abs(z) < kCertain ? "within noise" : `${digits(Math.abs(z))} standard errors apart`, `${frame.countA} → ${frame.countB} samples or waits`];
  };
  const most = rows.reduce((m, r) => Math.max(m, Math.abs(r.selfB - r.selfA)), 0);
  const hover = (row: DiffRow | null): void => {
    if (row) showDetails({ name: row.name, module: row.module, where: "", figures: [`self ${unit.show(row.selfA)} → ${unit.show(row.selfB)}`, delta(row.selfA, row.selfB), Math.abs(row.z) < kCertain ? "within noise" : `${digits(Math.abs(row.z))} standard errors apart`, `total ${unit.show(row.a)} → ${unit.show(row.b)}`] });
  };
  const norms: [string, string, boolean][] = [["second", "Per second", true], ["request", "Per request", !!sides.requestsA && !!sides.requestsB], ["share", "Share", true]];
  return (
    <div class="tab-body">
      <div class="tools">
        <MetricSwitch />
        <div class="switch" role="radiogroup" aria-label="Unit">
          {norms.map(([id, name, usable]) => <button key={id} role="radio" disabled={!usable} aria-checked={state.norm === id} class={state.norm === id ? "on" : ""} title={usable ? "" : "neither side has a load that counts requests"} onClick={() => store.set({ norm: id })}>{name}</button>)}
        </div>
        {runs.length > 1 && <label>before <select value={other ? other.id : -1} onChange={(event) => store.set({ versus: Number(event.currentTarget.value), zoom: "" })}>
          {ranges && <option value={-1}>the baseline range</option>}
          {others.map((r) => <option key={r.id} value={r.id}>{r.meta.run}</option>)}
        </select></label>}
        <Toggle on={state.inverted} label="Inverted" title="Start from the leaf functions (v)" set={(inverted) => store.set({ inverted, zoom: "" })} />
        <span class="tools-note">{sides.words}: {unit.show(root.a)} → {unit.show(root.b)} ({delta(root.a, root.b)})</span>
      </div>
      <div class="diff-key"><i class="less" /> less <i class="same" /> same <i class="more" /> more <i class="noise" /> within noise (less than {kCertain} standard errors) <span class="muted">width: before and after together</span></div>
      <div class="split two diff">
        <FlameView root={root} tree={sides.tree} style={style} zoom={state.zoom} label="Difference" rootName="all" describe={describe}
                   onZoom={(zoom) => store.set({ zoom })} onPivot={(fn) => store.set({ search: sides.tree.functions.short[fn] })} />
        <DataTable label="Functions by difference" rows={rows} sort="delta" rowKey={(row) => row.fn} onHover={hover}
          columns={[
            { id: "delta", title: "Δ self", value: (r) => Math.abs(r.selfB - r.selfA), show: (r) => <span class={Math.abs(r.z) < kCertain ? "muted" : r.selfB > r.selfA ? "rise" : "fall"}>{r.selfB >= r.selfA ? "+" : "−"}{unit.show(Math.abs(r.selfB - r.selfA))}</span>, bar: (r) => Math.abs(r.selfB - r.selfA) / most },
            { id: "b", title: "after", value: (r) => r.selfB, show: (r) => unit.show(r.selfB) },
            { id: "z", title: "errors apart", help: "standard errors; below 2 it may be chance", value: (r) => Math.abs(r.z), show: (r) => digits(Math.abs(r.z)) },
            { id: "name", title: "function", value: (r) => r.name, show: (r) => <bdi>{sides.tree.functions.short[r.fn]}</bdi> },
          ]} />
      </div>
    </div>
  );
}
