// Top: where time goes by function, file, module, line or category; and, for one function, the
// sandwich of its callers and callees.

import { useMemo } from "preact/hooks";
import { kStateNames, metricWants } from "../data/states.ts";
import { Weights } from "../data/weights.ts";
import { showDetails } from "../details.ts";
import { calleeFrames, callerFrames, type Frame } from "../flame/frames.ts";
import { count, duration, percent, shareError } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import { matcher } from "../search.ts";
import { topRows, type TopRow } from "../top.ts";
import { CategoryTable } from "./categories_tab.tsx";
import { DataTable, type Column } from "./data_table.tsx";
import { mainModule, MetricSwitch } from "./flame_tab.tsx";
import { FlameView } from "./flame_panel.tsx";

const kGroups: [string, string][] = [
  ["function", "Function"], ["file", "File"], ["module", "Module"], ["line", "Line"], ["category", "Category"],
];

function useWeights(): Weights {
  const { cells, tree, state } = useView();
  return useMemo(() => Weights.ofCells(cells, tree.count, metricWants(state.metric, state.only)), [cells, tree, state.metric, state.only]);
}

function LinesTable() {
  const { run, selection, selectionKey, state, store } = useView();
  const answer = useAnswer(`lines ${selectionKey}`, (signal) => run.lines({ ...selection, functions: null }, signal));
  const rows = useMemo(() => {
    const table = answer.value;
    if (!table) return [];
    const off = state.metric === "off";
    const matches = matcher(state.search);
    return Array.from(table.numbers.line, (line, i) => ({
      file: table.texts.files[table.numbers.file[i]], line,
      fn: table.texts.functions[table.numbers.function[i]],
      self: table.numbers[off ? "off_self" : "cpu_self"][i] + (state.metric === "wall" ? table.numbers.off_self[i] : 0),
      total: table.numbers[off ? "off_total" : "cpu_total"][i] + (state.metric === "wall" ? table.numbers.off_total[i] : 0),
    })).filter((row) => row.total > 0 && (!matches || matches(row.fn) || matches(row.file)));
  }, [answer.value, state.metric, state.search]);
  const most = rows.reduce((a, r) => Math.max(a, r.total), 0);
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Reading lines …</p>;
  return (
    <DataTable label="Lines by time" rows={rows} sort={state.sort} onSort={(sort) => store.set({ sort }, true)} rowKey={(row) => `${row.file}:${row.line}`}
      onRow={(row) => store.set({ tab: "source", file: row.file, line: row.line })}
      empty="No source lines: the program has no debug information, or the selection is empty."
      columns={[
        { id: "self", title: "self", value: (r) => r.self, show: (r) => duration(r.self), bar: (r) => r.self / most },
        { id: "total", title: "total", value: (r) => r.total, show: (r) => duration(r.total), bar: (r) => r.total / most },
        { id: "line", title: "line", value: (r) => `${r.file}:${r.line}`, show: (r) => <bdi>{r.file.slice(r.file.lastIndexOf("/") + 1)}:{r.line}</bdi> },
        { id: "fn", title: "function", value: (r) => r.fn, show: (r) => <bdi>{r.fn}</bdi> },
        { id: "file", title: "file", value: (r) => r.file, show: (r) => <bdi class="muted">{r.file}</bdi> },
      ]} />
  );
}

function Sandwich({ fn, weights }: { fn: number; weights: Weights }) {
  const view = useView();
  const { tree, state, store, dark } = view;
  const measure = useMemo(() => ({ sides: [weights], scale: [1] }), [weights]);
  const callers = useMemo(() => callerFrames(tree, measure, fn, state.collapse), [tree, measure, fn, state.collapse]);
  const callees = useMemo(() => calleeFrames(tree, measure, fn, state.collapse), [tree, measure, fn, state.collapse]);
  const colours = useMemo(() => {
    const palette = new FrameColours(tree.functions, dark, mainModule(view));
    return { fill: (frame: Frame) => palette.fill(frame), text: () => palette.text(), hatched: () => false };
  }, [tree, dark]);
  const name = tree.functions.name[fn] ?? "";
  const all = weights.sum;
  return (
    <div class="sandwich" aria-label={`Callers and callees of ${name}`}>
      <div class="tools">
        <b class="ellipsis"><bdi>{tree.functions.short[fn]}</bdi></b>
        <span class="tools-note">{duration(callees.total)} · {percent(callees.total / all)} total · self {duration(callees.self)} · {percent(callees.self / all)}</span>
        <button class="toggle" onClick={() => store.set({ pivot: -1 })}>Close</button>
      </div>
      <h3>Callers <small>functions that call it, nearest first</small></h3>
      <div class="half"><FlameView root={callers} tree={tree} style={colours} zoom="" onZoom={() => {}} onPivot={(pivot) => store.set({ pivot })} label="Callers" rootName={name} /></div>
      <h3>Callees <small>functions that it calls</small></h3>
      <div class="half"><FlameView root={callees} tree={tree} style={colours} zoom="" onZoom={() => {}} onPivot={(pivot) => store.set({ pivot })} label="Callees" rootName={name} /></div>
    </div>
  );
}

export function TopTab() {
  const { tree, state, store, found } = useView();
  const weights = useWeights();
  const byTree = state.group === "function" || state.group === "file" || state.group === "module";
  const rows = useMemo(() => (byTree ? topRows(tree, weights, state.group, found) : []).filter((row) => !found || row.found),
                       [tree, weights, state.group, found]);
  const all = weights.sum;
  const byFunction = state.group === "function";
  const columns: Column<TopRow>[] = [
    { id: "self", title: "self", help: "time in the function itself, without the functions it calls", value: (r) => r.self, show: (r) => duration(r.self), bar: (r) => r.self / all },
    { id: "selfShare", title: "%", value: (r) => r.self / all, show: (r) => percent(r.self / all) },
    { id: "total", title: "total", help: "time in the function and in the functions it calls; rows overlap", value: (r) => r.total, show: (r) => duration(r.total), bar: (r) => r.total / all },
    { id: "totalShare", title: "%", value: (r) => r.total / all, show: (r) => percent(r.total / all) },
    { id: "name", title: state.group, value: (r) => r.name, show: (r) => <bdi title={r.name.slice(0, 2000)}>{byFunction ? tree.functions.short[r.key] : r.name}</bdi> },
    ...(state.group === "module" ? [] : [{ id: "module", title: "module", value: (r: TopRow) => r.module, show: (r: TopRow) => <bdi class="muted">{r.module}</bdi> }]),
  ];
  const hover = (row: TopRow | null): void => {
    if (!row) return;
    const share = row.total / all;
    showDetails({ name: row.name, where: row.where, module: row.module, figures: [
      `total ${duration(row.total)} ± ${percent(shareError(share, weights.countSum))}`, percent(share),
      `self ${duration(row.self)} (${percent(row.self / all)})`, `${count(row.count)} samples or waits directly in it`] });
  };
  const pivot = byFunction && state.pivot >= 0 && state.pivot < tree.functions.count;
  return (
    <div class="tab-body">
      <div class="tools">
        <MetricSwitch />
        <div class="switch" role="radiogroup" aria-label="By">
          {kGroups.map(([id, name]) => <button key={id} role="radio" aria-checked={state.group === id} class={state.group === id ? "on" : ""} onClick={() => store.set({ group: id, pivot: -1 })}>{name}</button>)}
        </div>
        <span class="tools-note">{duration(all)}{state.only ? ` ${kStateNames[state.only] ?? state.only}` : ""}{found ? " · only functions that match the search" : ""}</span>
      </div>
      <div class={"split" + (pivot ? " two" : "")}>
        {state.group === "line" ? <LinesTable /> : state.group === "category" ? <CategoryTable /> :
          <DataTable label={`Top by ${state.group}`} rows={rows} columns={columns} sort={state.sort} onSort={(sort) => store.set({ sort }, true)}
                     rowKey={(row) => row.key} onRow={byFunction ? (row) => store.set({ pivot: row.key }) : undefined}
                     chosen={(row) => byFunction && row.key === state.pivot} onHover={hover} />}
        {pivot && <Sandwich fn={state.pivot} weights={weights} />}
      </div>
    </div>
  );
}
