// Categories: what kind of work the time is. By subsystem for the selection, worked out here from the
// owner of each call path; the other breakdowns of the report are of the whole run.

import { useMemo } from "preact/hooks";
import type { Category } from "../data/report.ts";
import { metricWants } from "../data/states.ts";
import { Weights } from "../data/weights.ts";
import { showDetails } from "../details.ts";
import { count, duration, percent, shareError } from "../format.ts";
import { useView } from "../hooks.ts";
import { DataTable } from "./data_table.tsx";
import { MetricSwitch } from "./flame_tab.tsx";

interface Row {
  name: string;
  ns: number;
  count: number;
  top: string;
  topNs: number;
}

export function CategoryTable() {
  const { tree, cells, state } = useView();
  const weights = useMemo(() => Weights.ofCells(cells, tree.count, metricWants(state.metric, state.only)), [cells, tree, state.metric, state.only]);
  const rows = useMemo(() => {
    const sums = new Map<number, Row & { leaves: Map<number, number> }>();
    weights.nodes.forEach((node, i) => {
      const category = tree.category?.[node] ?? 0;
      let row = sums.get(category);
      if (!row) sums.set(category, (row = { name: tree.categoryNames[category] ?? "?", ns: 0, count: 0, top: "", topNs: 0, leaves: new Map() }));
      const ns = weights.nsAt(i);
      row.ns += ns;
      row.count += weights.countAt(i);
      const fn = tree.fn[node];
      const sum = (row.leaves.get(fn) ?? 0) + ns;
      row.leaves.set(fn, sum);
      if (sum > row.topNs && fn >= 0) {
        row.topNs = sum;
        row.top = tree.functions.short[fn];
      }
    });
    return [...sums.values()] as Row[];
  }, [weights, tree]);
  const all = Math.max(1, weights.sum);
  return (
    <DataTable label="Time by subsystem" rows={rows} sort="share" rowKey={(row) => row.name}
      onHover={(row) => row && showDetails({ name: row.name, where: "", module: `hottest function ${row.top}`, figures: [`${duration(row.ns)} ± ${percent(shareError(row.ns / all, weights.countSum))}`, percent(row.ns / all), `${count(row.count)} samples or waits`] })}
      columns={[
        { id: "share", title: "share", value: (r) => r.ns / all, show: (r) => percent(r.ns / all), bar: (r) => r.ns / all },
        { id: "time", title: "time", value: (r) => r.ns, show: (r) => duration(r.ns) },
        { id: "name", title: "subsystem", value: (r) => r.name, show: (r) => <bdi>{r.name}</bdi> },
        { id: "top", title: "hottest function", value: (r) => r.top, show: (r) => <bdi class="muted">{r.top}</bdi> },
      ]} />
  );
}

function Breakdown({ name, rows }: { name: string; rows: Category[] }) {
  return (
    <section>
      <h3>{name.replaceAll("_", " ")} <small>on-CPU, whole run</small></h3>
      <table class="grid"><tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <td class="num"><i class="cell-bar" style={{ width: `${row.share * 100}%` }} /><span>{percent(row.share)}</span></td>
            <td class="text"><bdi>{row.name}</bdi></td>
            <td class="muted text">{row.ci ? `${percent(row.ci[0])} – ${percent(row.ci[1])}` : ""}</td>
          </tr>
        ))}
      </tbody></table>
    </section>
  );
}

export function CategoriesTab() {
  const { report, tree } = useView();
  const breakdowns = new Map<string, Category[]>();
  for (const row of report.categories ?? []) {
    if (row.breakdown === "subsystem") continue;
    breakdowns.set(row.breakdown, [...(breakdowns.get(row.breakdown) ?? []), row]);
  }
  // A breakdown of which a run has nothing says nothing.
  for (const [name, rows] of breakdowns) if (rows.length === 1) breakdowns.delete(name);
  if (!tree.category) return <div class="empty">This page's data has no categories. <br />Modules say something similar: <b>Top</b>, by module.</div>;
  return (
    <div class="tab-body">
      <div class="tools"><MetricSwitch /><span class="muted">Each moment belongs to one subsystem: the innermost that a rule knows.</span></div>
      <div class={"split" + (breakdowns.size ? " two" : "")}>
        <CategoryTable />
        {breakdowns.size > 0 && <aside class="side">{[...breakdowns].map(([name, rows]) => <Breakdown key={name} name={name} rows={rows} />)}</aside>}
      </div>
    </div>
  );
}
