// A table of figures: sorted by a click on its head, copied as tab-separated text, walked by keys.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

export interface Column<Row> {
  id: string;
  title: string;
  help?: string;
  value: (row: Row) => number | string; // for sorting and copying
  show?: (row: Row) => ComponentChildren;
  bar?: (row: Row) => number; // 0–1, drawn behind the figure
}

interface Props<Row> {
  label: string;
  rows: Row[];
  columns: Column<Row>[];
  sort: string;
  onSort?: (id: string) => void;
  rowKey: (row: Row, i: number) => string | number;
  onRow?: (row: Row) => void;
  onHover?: (row: Row | null) => void;
  chosen?: (row: Row) => boolean;
  empty?: ComponentChildren;
}

const kStep = 200;

export function tableText<Row>(rows: Row[], columns: Column<Row>[]): string {
  const plain = (value: number | string): string => String(value).replace(/[\t\n\r]/g, " ");
  const head = columns.map((column) => column.title).join("\t");
  return [head, ...rows.map((row) => columns.map((column) => plain(column.value(row))).join("\t"))].join("\n");
}

export function DataTable<Row>(props: Props<Row>) {
  const { rows, columns } = props;
  const [own, setOwn] = useState(props.sort);
  const [shown, setShown] = useState(kStep);
  const [copied, setCopied] = useState(false);
  const sort = props.onSort ? props.sort : own;
  const sorted = useMemo(() => {
    const column = columns.find((c) => c.id === sort) ?? columns[0];
    return rows.slice().sort((a, b) => {
      const x = column.value(a);
      const y = column.value(b);
      return typeof x === "number" && typeof y === "number" ? y - x : String(x).localeCompare(String(y));
    });
  }, [rows, sort, columns.length]);
  const copy = (): void => {
    void navigator.clipboard?.writeText(tableText(sorted, columns)).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1200);
    });
  };
  const onKey = (event: KeyboardEvent, row: Row): void => {
    const line = event.currentTarget as HTMLElement;
    const go = (element: Element | null): void => (element as HTMLElement | null)?.focus();
    if (event.key === "ArrowDown") go(line.nextElementSibling);
    else if (event.key === "ArrowUp") go(line.previousElementSibling);
    else if (event.key === "Enter" && props.onRow) props.onRow(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  if (!rows.length) return <div class="empty">{props.empty ?? "Nothing in this selection."}</div>;
  return (
    <div class="scroll">
      <table class="grid" aria-label={props.label}>
        <thead><tr>
          {columns.map((column, i) => {
            const numeric = typeof column.value(rows[0]) === "number";
            return (
              <th key={column.id} class={numeric ? "num" : ""} aria-sort={sort === column.id ? "descending" : "none"} title={column.help}>
                <button onClick={() => (props.onSort ? props.onSort(column.id) : setOwn(column.id))}>{column.title}{sort === column.id ? " ▾" : ""}</button>
                {i === columns.length - 1 && <button class="copy" title="Copy the table as tab-separated text" onClick={copy}>{copied ? "copied" : "copy"}</button>}
              </th>
            );
          })}
        </tr></thead>
        <tbody>
          {sorted.slice(0, shown).map((row, i) => (
            <tr key={props.rowKey(row, i)} tabIndex={i === 0 ? 0 : -1} class={(props.onRow ? "click" : "") + (props.chosen?.(row) ? " on" : "")}
                onClick={() => props.onRow?.(row)} onKeyDown={(event) => onKey(event, row)}
                onMouseEnter={() => props.onHover?.(row)} onFocus={() => props.onHover?.(row)}>
              {columns.map((column) => {
                const numeric = typeof column.value(row) === "number";
                return (
                  <td key={column.id} class={numeric ? "num" : "text"}>
                    {column.bar && <i class="cell-bar" style={{ width: `${Math.max(0, Math.min(1, column.bar(row))) * 100}%` }} />}
                    <span>{column.show ? column.show(row) : column.value(row)}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown && <button class="toggle more" onClick={() => setShown(shown + kStep)}>{sorted.length - shown} more rows</button>}
    </div>
  );
}
