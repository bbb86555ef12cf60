// The page: one selection of time, threads and search drives every panel.

import { useEffect, useMemo, useState } from "preact/hooks";
import { pendingReport } from "./data/report.ts";
import type { RunSource, Selection } from "./data/run_source.ts";
import { useAnswer, ViewContext, type View } from "./hooks.ts";
import { installKeys } from "./keys.ts";
import { DetailsBar } from "./panels/details_bar.tsx";
import { Help } from "./panels/help.tsx";
import { TabPanel, Tabs } from "./panels/tabs.tsx";
import { TimePanel } from "./panels/time_panel.tsx";
import { TopBar } from "./panels/top_bar.tsx";
import { VerdictStrip } from "./panels/verdict.tsx";
import { findFunctions } from "./search.ts";
import type { Store } from "./state.ts";
import { isDark, watchTheme } from "./theme.ts";

const kMostFunctionsSent = 20_000;

export function App({ runs, store }: { runs: RunSource[]; store: Store }) {
  const [state, setState] = useState(store.get());
  const [dark, setDark] = useState(isDark());
  const [help, setHelp] = useState(false);
  const run = runs[Math.max(0, Math.min(runs.length - 1, state.run))];
  useEffect(() => store.listen(setState), []);
  useEffect(() => watchTheme(() => setDark(isDark())), []);
  useEffect(() => installKeys(store, run, { help: setHelp, theme: () => setDark(isDark()) }), [run]);

  const tree = useAnswer(`tree ${run.id}`, () => run.tree());
  const found = useMemo(() => (tree.value ? findFunctions(tree.value.functions, state.search) : null),
                        [tree.value, state.search]);
  const whole = state.to <= state.from;
  const selection: Selection = useMemo(() => {
    const functions = found ? [...found.keys()].filter((fn) => found[fn]) : null;
    return {
      from: whole ? 0 : state.from,
      to: whole ? run.meta.window_ns : Math.min(state.to, run.meta.window_ns),
      threads: state.threads?.filter((id) => id < run.meta.threads.length) ?? null,
      functions: functions && functions.length <= kMostFunctionsSent ? functions : null,
    };
  }, [run, state.from, state.to, state.threads, found]);
  const selectionKey = `${run.id} ${selection.from}-${selection.to} ${selection.threads?.join(".") ?? "*"}`;
  const byThread = state.byThread && state.tab === "flame";
  const cells = useAnswer(`${selectionKey} ${byThread}`, (signal) => run.cells(selection, byThread, signal));
  // A run answers one question at a time, and the report is the longest: it comes after the flame graph.
  const drawable = tree.value !== null && cells.value !== null;
  const report = useAnswer(`report ${run.id} ${drawable}`, () => (drawable ? run.report() : Promise.resolve(null)));

  const failed = tree.error || report.error || cells.error;
  if (failed) return <div class="failed" role="alert"><h1>This run cannot be shown</h1><p>{failed}</p></div>;
  if (!tree.value || !cells.value) return <p class="loading">Reading {run.meta.run} …</p>;
  const view: View = {
    store, state, runs, run, selection, selectionKey, found, dark,
    tree: tree.value, cells: cells.value,
    report: report.value ?? pendingReport(run.meta.window_ns), judged: report.value !== null,
    busy: cells.loading || tree.loading,
  };
  return (
    <ViewContext.Provider value={view}>
      <TopBar onHelp={() => setHelp(true)} onTheme={() => setDark(isDark())} />
      <VerdictStrip />
      <TimePanel />
      <Tabs />
      <TabPanel />
      <DetailsBar />
      {help && <Help onClose={() => setHelp(false)} />}
    </ViewContext.Provider>
  );
}
