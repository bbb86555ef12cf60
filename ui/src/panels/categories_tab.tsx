// Categories: what kind of work the time is, as the report's rules tell it.

import type { Category } from "../data/report.ts";
import { duration, percent } from "../format.ts";
import { useView } from "../hooks.ts";
import { DataTable, type Column } from "./data_table.tsx";

const nameOf = (row: Category): string => row.name ?? row.category ?? row.id ?? "";
const timeOf = (row: Category): number => row.time_ns ?? row.cpu_ns ?? row.self_ns ?? 0;

export function CategoriesTab() {
  const { report } = useView();
  const rows = report.categories;
  if (!rows) return <div class="empty">This run's report has no categories. <br />Modules say something similar: <b>Top</b>, by module.</div>;
  const columns: Column<Category>[] = [
    { id: "share", title: "share", value: (r) => r.share ?? 0, show: (r) => percent(r.share ?? 0), bar: (r) => r.share ?? 0 },
    { id: "time", title: "on-CPU", value: timeOf, show: (r) => duration(timeOf(r)) },
    { id: "ci", title: "95 % interval", value: (r) => (r.ci ? `${percent(r.ci[0])} – ${percent(r.ci[1])}` : ""), show: (r) => <span class="muted">{r.ci ? `${percent(r.ci[0])} – ${percent(r.ci[1])}` : ""}</span> },
    { id: "name", title: "category", value: nameOf, show: (r) => <bdi>{nameOf(r)}</bdi> },
  ];
  return (
    <div class="tab-body">
      <div class="tools"><span class="muted">Shares of on-CPU time of the whole run, by the report's rules; each sample belongs to one category.</span></div>
      <DataTable label="Categories" rows={rows} columns={columns} sort="share" rowKey={(row) => nameOf(row)} />
    </div>
  );
}
