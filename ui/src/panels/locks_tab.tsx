// Locks: who waits for which, how long, and which threads ended the waits.

import { useMemo, useState } from "preact/hooks";
import type { Table } from "../data/columns.ts";
import { kStateIds, kStateNames } from "../data/states.ts";
import { count, duration, percent } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { DataTable } from "./data_table.tsx";
import { nodeStack, StackList } from "./stack_list.tsx";
import { kWholeRunNote, nearestOwn } from "./waits_tab.tsx";

interface LockRow {
  id: number;
  kind: string;
  process: number;
  address: number;
  count: number;
  total: number;
  p50: number;
  p99: number;
  max: number;
  waiters: { node: number; ns: number; count: number }[];
  wakers: { thread: number; ns: number; count: number }[];
}

function readLocks(table: Table): LockRow[] {
  const { numbers } = table;
  const rows = Array.from(numbers.state, (state, i): LockRow => ({
    id: i, kind: kStateIds[state], process: numbers.process[i], address: numbers.address[i], count: numbers.count[i],
    total: numbers.total[i], p50: numbers.p50[i], p99: numbers.p99[i], max: numbers.max[i], waiters: [], wakers: [],
  }));
  numbers.waiter_lock.forEach((lock, i) => rows[lock]?.waiters.push({ node: numbers.waiter_node[i], ns: numbers.waiter_ns[i], count: numbers.waiter_count[i] }));
  numbers.waker_lock.forEach((lock, i) => rows[lock]?.wakers.push({ thread: numbers.waker_thread[i], ns: numbers.waker_ns[i], count: numbers.waker_count[i] }));
  return rows;
}

export function LocksTab() {
  const { run, tree, report, selection, selectionKey, state, found } = useView();
  const answer = useAnswer(`locks ${selectionKey} ${found ? state.search : ""}`, (signal) => run.locks(selection, signal));
  const rows = useMemo(() => (answer.value ? readLocks(answer.value) : []), [answer.value]);
  const [picked, setPicked] = useState<number | null>(null);
  const chosen = rows.find((row) => row.id === picked) ?? null;
  const all = rows.reduce((sum, row) => sum + row.total, 0);
  // Names that the report worked out, by address.
  const names = useMemo(() => {
    const known = new Map<number, string>();
    for (const lock of report.locks ?? []) {
      const address = typeof lock.address === "string" ? Number.parseInt(lock.address, 16) : Number(lock.address);
      if (Number.isFinite(address) && typeof lock.name === "string") known.set(address, lock.name);
    }
    return known;
  }, [report]);
  const nameOf = (row: LockRow): string => names.get(row.address) ?? (row.waiters[0] ? `in ${nearestOwn(tree, row.waiters[0].node)}` : "");
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Loading waits …</p>;
  if (!run.meta.has_waits) return <div class="empty">This run has no waits, so nothing is known about locks.</div>;
  const thread = (id: number): string => (run.meta.threads[id] ? `${run.meta.threads[id].name} (${run.meta.threads[id].tid})` : "a thread outside the target");
  return (
    <div class="tab-body">
      <div class="tools">
        <span class="tools-note">{rows.length ? `${duration(all)} of waiting for ${count(answer.value?.scalars.all ?? rows.length)} locks` : "No waits for locks"}</span>
        {!run.live && <span class="muted">{kWholeRunNote}</span>}
      </div>
      <div class={"split" + (chosen ? " two" : "")}>
        <DataTable label="Locks" rows={rows} sort="total" rowKey={(row) => row.id} onRow={(row) => setPicked(row.id)} chosen={(row) => row === chosen}
          empty="No thread waited for a lock in this selection: locks are not a bottleneck here."
          columns={[
            { id: "total", title: "waited", value: (r) => r.total, show: (r) => duration(r.total), bar: (r) => r.total / all },
            { id: "count", title: "waits", value: (r) => r.count, show: (r) => count(r.count) },
            { id: "p50", title: "median", value: (r) => r.p50, show: (r) => duration(r.p50) },
            { id: "p99", title: "p99", value: (r) => r.p99, show: (r) => duration(r.p99) },
            { id: "max", title: "longest", value: (r) => r.max, show: (r) => duration(r.max) },
            { id: "name", title: "lock", value: (r) => nameOf(r), show: (r) => <bdi>{nameOf(r)}</bdi> },
            { id: "address", title: "address", value: (r) => `0x${r.address.toString(16)}`, show: (r) => <code class="muted">{`0x${r.address.toString(16)}`}{r.kind === "futex" ? " futex" : ""}</code> },
          ]} />
        {chosen && (
          <aside class="side" aria-label="Threads that waited for the lock, and threads that woke them">
            <div class="tools"><b>0x{chosen.address.toString(16)}</b><span class="tools-note">{kStateNames[chosen.kind]} · {duration(chosen.total)} · {count(chosen.count)} waits</span><button class="toggle" onClick={() => setPicked(null)}>Close</button></div>
            {chosen.wakers.length > 0 && <>
              <h3>Woken by <small>usually the thread that held the lock</small></h3>
              <ul class="plain">{chosen.wakers.map((w) => <li key={w.thread}><bdi>{thread(w.thread)}</bdi> <span class="muted">{count(w.count)} waits, {duration(w.ns)}</span></li>)}</ul>
            </>}
            <h3>Waiting stacks</h3>
            {chosen.waiters.map((w) => <section key={w.node}><p><b>{percent(w.ns / chosen.total)}</b> <span class="muted">{duration(w.ns)} in {count(w.count)} waits</span></p><StackList lines={nodeStack(tree, w.node)} /></section>)}
          </aside>
        )}
      </div>
    </div>
  );
}
