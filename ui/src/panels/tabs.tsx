// The row of tabs and the panel that the chosen one shows.

import type { ComponentType } from "preact";
import { useView } from "../hooks.ts";
import { kTabs, type Tab } from "../state.ts";
import { CategoriesTab } from "./categories_tab.tsx";
import { CountersTab } from "./counters_tab.tsx";
import { DiffTab } from "./diff_tab.tsx";
import { FindingsTab } from "./findings_tab.tsx";
import { FlameTab } from "./flame_tab.tsx";
import { HeapTab } from "./heap_tab.tsx";
import { LocksTab } from "./locks_tab.tsx";
import { OrderTab } from "./order_tab.tsx";
import { SourceTab } from "./source_tab.tsx";
import { TopTab } from "./top_tab.tsx";
import { WaitsTab } from "./waits_tab.tsx";

const kPanels: Record<Tab, [title: string, panel: ComponentType]> = {
  flame: ["Flame", FlameTab],
  order: ["Time order", OrderTab],
  top: ["Top", TopTab],
  locks: ["Locks", LocksTab],
  waits: ["Waits", WaitsTab],
  categories: ["Categories", CategoriesTab],
  findings: ["Findings", FindingsTab],
  source: ["Source", SourceTab],
  counters: ["Counters", CountersTab],
  heap: ["Heap", HeapTab],
  diff: ["Diff", DiffTab],
};

export function Tabs() {
  const { state, store, report } = useView();
  const counts: Partial<Record<Tab, number>> = { findings: report.findings?.length };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = kTabs[(kTabs.indexOf(state.tab) + step + kTabs.length) % kTabs.length];
    store.set({ tab: next });
    requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={onKey}>
      {kTabs.map((tab, i) => (
        <button key={tab} id={`tab-${tab}`} role="tab" aria-selected={state.tab === tab} tabIndex={state.tab === tab ? 0 : -1}
                aria-controls="panel" class={state.tab === tab ? "on" : ""} title={`${kPanels[tab][0]} (${i < 9 ? i + 1 : tab === "heap" ? "=" : "-"})`}
                onClick={() => store.set({ tab })}>
          {kPanels[tab][0]}{counts[tab] ? <span class="badge">{counts[tab]}</span> : null}
        </button>
      ))}
    </div>
  );
}

export function TabPanel() {
  const { state } = useView();
  const Panel = kPanels[state.tab][1];
  return (
    <section class="panel" id="panel" role="tabpanel" aria-labelledby={`tab-${state.tab}`}>
      <Panel />
    </section>
  );
}
