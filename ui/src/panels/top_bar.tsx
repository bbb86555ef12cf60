// The bar at the top: which run, what is selected, search, export, theme.

import { useMemo } from "preact/hooks";
import { hasTimes } from "../data/report.ts";
import { kStateNames, metricWants } from "../data/states.ts";
import { Weights } from "../data/weights.ts";
import { duration, percent, seconds } from "../format.ts";
import { useView } from "../hooks.ts";
import { foundTime } from "../search.ts";
import { toggleTheme } from "../theme.ts";
import { ExportMenu } from "./export_menu.tsx";

function SearchBox() {
  const { state, store, found, tree, cells } = useView();
  const share = useMemo(() => {
    if (!found) return "";
    const weights = Weights.ofCells(cells, tree.count, metricWants(state.metric, state.only));
    const matched = found.reduce((sum, mark) => sum + mark, 0);
    return `${percent(weights.sum ? foundTime(tree, weights, found) / weights.sum : 0)} · ${matched} functions`;
  }, [found, cells, tree, state.metric, state.only]);
  return (
    <div class="search">
      <input id="search" type="search" placeholder="Search  ( / )" title="Part of the name of a function, file or module, or /regular expression/" value={state.search}
             aria-label="Search functions, files and modules" spellcheck={false} autocomplete="off"
             onInput={(event) => store.set({ search: event.currentTarget.value }, true)}
             onKeyDown={(event) => {
               if (event.key === "Escape") store.set({ search: "" });
               if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
             }} />
      {found && <span class="search-share" aria-live="polite">{share}</span>}
    </div>
  );
}

function Chosen() {
  const { state, store, run } = useView();
  const step = (state.to - state.from) / 10;
  const clear = (what: string, change: Parameters<typeof store.set>[0]) => (
    <button class="clear" aria-label={`Clear ${what}`} onClick={() => store.set(change)}>×</button>
  );
  return (
    <div class="chosen">
      {state.to > state.from && <span class="pill">{seconds(state.from, step)} – {seconds(state.to, step)}{clear("range", { from: 0, to: 0 })}</span>}
      {state.baseTo > state.baseFrom && <span class="pill base">baseline {seconds(state.baseFrom, 1e7)} – {seconds(state.baseTo, 1e7)}{clear("baseline", { baseFrom: 0, baseTo: 0 })}</span>}
      {state.threads && <span class="pill">{state.threads.length} of {run.meta.threads.length} threads{clear("threads", { threads: null })}</span>}
      {state.only && <span class="pill">only {kStateNames[state.only] ?? state.only}{clear("state", { only: "" })}</span>}
    </div>
  );
}

export function TopBar({ onHelp, onTheme }: { onHelp: () => void; onTheme: () => void }) {
  const { runs, run, report, store, dark, busy } = useView();
  return (
    <header class="topbar">
      <svg class="logo" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
        <path d="M4 20h16M6 20l2-9h8l2 9M9 11V7a3 3 0 0 1 6 0v4" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" />
      </svg>
      <b class="brand">Assay</b>
      {runs.length > 1
        ? <select aria-label="Run" value={run.id} onChange={(event) => store.set({ run: Number(event.currentTarget.value), zoom: "", from: 0, to: 0, threads: null, pivot: -1 })}>
            {runs.map((r) => <option key={r.id} value={r.id}>{r.meta.run}</option>)}
          </select>
        : <span class="run-name" title={run.meta.path}><bdi>{run.meta.run}</bdi></span>}
      <span class="muted target" title={report.workload.command_line}><bdi>{report.workload.target || run.meta.backend}</bdi>{run.meta.window_ns > 0 && hasTimes(report) && ` · ${duration(run.meta.window_ns)}`}{report.workload.begin_utc && hasTimes(report) && ` · ${report.workload.begin_utc}`}</span>
      <Chosen />
      <span class={"busy" + (busy ? " on" : "")} role="status">{busy ? "…" : ""}</span>
      <SearchBox />
      <ExportMenu />
      <button class="icon" title="Light or dark (t)" aria-label={dark ? "Light theme" : "Dark theme"} onClick={() => { toggleTheme(); onTheme(); }}>
        <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true"><circle cx="12" cy="12" r="8" fill="none" stroke="currentColor" stroke-width="2" /><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor" /></svg>
      </button>
      <button class="icon" title="Keys (?)" aria-label="Keys" onClick={onHelp}>?</button>
    </header>
  );
}
