// Waits: blocked time by kind and path, with the distribution of the single waits.

import { useMemo, useState } from "preact/hooks";
import { kStateIds, kStateNames, stateColour } from "../data/states.ts";
import { showDetails } from "../details.ts";
import { count, duration, percent } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { DataTable } from "./data_table.tsx";
import { nodeStack, StackList } from "./stack_list.tsx";

export interface WaitRow {
  state: string;
  node: number;
  count: number;
  total: number;
  p50: number;
  p99: number;
  max: number;
}

export const kWholeRunNote = "This page is a saved file: these numbers are for the whole run, not for the selected range and threads.";

// Waiting on behalf of others, though it may be compiled into the program.
const kWaitingHelpers = /^(std::|__gnu_cxx::|__gthread|pthread_|__pthread|boost::|absl::)/;

// Where in the kernel or a library it waits: the leaf, but not the scheduler, in which all waits end.
export function waitsIn(tree: ReturnType<typeof useView>["tree"], node: number): string {
  const { functions } = tree;
  for (let at = node; at > 0; at = tree.parent[at]) {
    const name = functions.short[tree.fn[at]];
    if (!/^(__)?(schedule|io_schedule|preempt_schedule)/.test(name)) return name;
  }
  return node > 0 ? functions.short[tree.fn[node]] : "(no stack)";
}

// The function of ours nearest to the wait: the first from the leaf that is neither kernel nor libc.
export function nearestOwn(tree: ReturnType<typeof useView>["tree"], node: number): string {
  const { functions } = tree;
  for (let at = node; at > 0; at = tree.parent[at]) {
    const fn = tree.fn[at];
    if (functions.kind[fn] === 0 && !/^(libc|libpthread|ld-|libstdc)/.test(functions.module[fn])
        && !kWaitingHelpers.test(functions.name[fn])) return functions.short[fn];
  }
  return node > 0 ? functions.short[tree.fn[node]] : "(no stack)";
}

export function WaitsTab() {
  const { run, tree, selection, selectionKey, state, store, dark, found } = useView();
  const answer = useAnswer(`waits ${selectionKey} ${found ? state.search : ""}`, (signal) => run.waits(selection, signal));
  const [chosen, setChosen] = useState<WaitRow | null>(null);
  const rows = useMemo(() => {
    const numbers = answer.value?.numbers;
    if (!numbers) return [];
    return Array.from(numbers.state, (id, i): WaitRow => ({
      state: kStateIds[id], node: numbers.node[i], count: numbers.count[i], total: numbers.total[i],
      p50: numbers.p50[i], p99: numbers.p99[i], max: numbers.max[i],
    })).filter((row) => !state.only || row.state === state.only);
  }, [answer.value, state.only]);
  const all = rows.reduce((sum, row) => sum + row.total, 0);
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Loading waits …</p>;
  if (!run.meta.has_waits) return <div class="empty">This run has no waits: it was imported, or only CPU time was recorded. <br /><code>assay record</code> records waits.</div>;
  return (
    <div class="tab-body">
      <div class="tools">
        <span class="tools-note">{duration(all)} off the CPU on {count(answer.value?.scalars.all ?? 0)} paths{state.only ? `, only ${kStateNames[state.only]}` : ""}</span>
        {!run.live && <span class="muted">{kWholeRunNote}</span>}
      </div>
      <div class={"split" + (chosen ? " two" : "")}>
        <DataTable label="Waits by path" rows={rows} sort="total" rowKey={(row) => `${row.state}${row.node}`} onRow={setChosen} chosen={(row) => row === chosen}
          onHover={(row) => row && showDetails({ name: row.node ? tree.functions.name[tree.fn[row.node]] : "(no stack)", where: "", module: kStateNames[row.state], figures: [duration(row.total), percent(row.total / all), `p50 ${duration(row.p50)}`, `p99 ${duration(row.p99)}`, `max ${duration(row.max)}`] })}
          columns={[
            { id: "total", title: "total", value: (r) => r.total, show: (r) => duration(r.total), bar: (r) => r.total / all },
            { id: "kind", title: "kind", value: (r) => kStateNames[r.state], show: (r) => <span class="chip flat"><i style={{ background: stateColour(r.state, dark) }} />{kStateNames[r.state]}</span> },
            { id: "count", title: "waits", value: (r) => r.count, show: (r) => count(r.count) },
            { id: "p50", title: "median", value: (r) => r.p50, show: (r) => duration(r.p50) },
            { id: "p99", title: "p99", value: (r) => r.p99, show: (r) => duration(r.p99) },
            { id: "max", title: "longest", value: (r) => r.max, show: (r) => duration(r.max) },
            { id: "own", title: "called from", value: (r) => nearestOwn(tree, r.node), show: (r) => <bdi>{nearestOwn(tree, r.node)}</bdi> },
            { id: "leaf", title: "waits in", value: (r) => waitsIn(tree, r.node), show: (r) => <bdi class="muted">{waitsIn(tree, r.node)}</bdi> },
          ]} />
        {chosen && (
          <aside class="side" aria-label="Stack of the wait">
            <div class="tools"><b>{kStateNames[chosen.state]}</b><span class="tools-note">{duration(chosen.total)} in {count(chosen.count)} waits</span>
              <button class="toggle" onClick={() => store.set({ only: chosen.state, metric: "wall", tab: "flame", zoom: "" })}>Flame</button>
              <button class="toggle" onClick={() => setChosen(null)}>Close</button></div>
            <StackList lines={nodeStack(tree, chosen.node)} />
          </aside>
        )}
      </div>
    </div>
  );
}
