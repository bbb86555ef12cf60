// A run whose data is in the page. The same questions as the server's, answered from cells of time
// bin, thread, state and node: ranges are as exact as the bins.

import { readTable, type Table } from "./columns.ts";
import type { Report } from "./report.ts";
import { readCells, readTimeline, type Meta, type RunSource, type Selection, type SourceText,
         type Timeline, type WrittenFormat } from "./run_source.ts";
import { readTree, type Tree } from "./tree.ts";
import type { Cells } from "./weights.ts";
import { State } from "./states.ts";

export class EmbeddedRun implements RunSource {
  readonly id = 0;
  readonly live = false;
  readonly meta: Meta;
  private readonly json: Report;
  private readonly tables = new Map<string, Table>();
  private treeAnswer: Tree | null = null;
  private allCells: Cells | null = null;
  private allLanes: Timeline | null = null;

  constructor(private readonly parts: Map<string, Uint8Array>) {
    this.meta = JSON.parse(new TextDecoder().decode(parts.get("meta"))) as Meta;
    this.json = JSON.parse(new TextDecoder().decode(parts.get("report"))) as Report;
  }

  private table(name: string): Table {
    let table = this.tables.get(name);
    if (!table) {
      const bytes = this.parts.get(name);
      if (!bytes) throw new Error(`this page has no ${name}`);
      table = readTable(bytes);
      this.tables.set(name, table);
    }
    return table;
  }

  async report(): Promise<Report> {
    return this.json;
  }
  async tree(): Promise<Tree> {
    this.treeAnswer ??= readTree(this.table("tree"));
    return this.treeAnswer;
  }

  async cells(selection: Selection, byThread: boolean): Promise<Cells> {
    this.allCells ??= readCells(this.table("cells"));
    const all = this.allCells;
    const wanted = selection.threads ? new Set(selection.threads) : null;
    if (!wanted && selection.from <= all.from && selection.to >= all.to) return all;
    const keep: number[] = [];
    const width = (all.to - all.from) / all.bins;
    for (let i = 0; i < all.node.length; ++i) {
      if (wanted && all.thread && !wanted.has(all.thread[i])) continue;
      const middle = all.from + ((all.bin ? all.bin[i] : 0) + 0.5) * width;
      if (all.bins > 1 && (middle < selection.from || middle >= selection.to)) continue;
      keep.push(i);
    }
    const rows = Uint32Array.from(keep);
    return {
      ...all,
      from: selection.from,
      to: selection.to,
      state: Uint8Array.from(rows, (i) => all.state[i]),
      node: Uint32Array.from(rows, (i) => all.node[i]),
      ns: Float64Array.from(rows, (i) => all.ns[i]),
      count: Float64Array.from(rows, (i) => all.count[i]),
      bin: all.bin && Uint32Array.from(rows, (i) => all.bin![i]),
      thread: all.thread && byThread ? Uint32Array.from(rows, (i) => all.thread![i]) : all.thread,
    };
  }

  async heat(selection: Selection, bins: number): Promise<Timeline> {
    if (selection.functions) return this.heatOfFunctions(selection, bins);
    const lanes = await this.lanes(selection, bins);
    return { ...lanes, thread: null };
  }

  private async heatOfFunctions(selection: Selection, bins: number): Promise<Timeline> {
    const tree = await this.tree();
    const cells = await this.cells({ ...selection, functions: null }, true);
    const wanted = new Uint8Array(tree.functions.count);
    for (const fn of selection.functions ?? []) wanted[fn] = 1;
    const below = new Uint8Array(tree.count);
    for (let v = 1; v < tree.count; ++v) below[v] = wanted[tree.fn[v]] || below[tree.parent[v]];
    const all = this.allCells!;
    const out = { bin: [] as number[], state: [] as number[], ns: [] as number[] };
    const width = (all.to - all.from) / all.bins;
    const length = selection.to - selection.from;
    for (let i = 0; i < cells.node.length; ++i) {
      if (!below[cells.node[i]]) continue;
      const middle = all.from + ((cells.bin ? cells.bin[i] : 0) + 0.5) * width;
      out.bin.push(Math.min(bins - 1, Math.floor(((middle - selection.from) / length) * bins)));
      out.state.push(cells.state[i] <= State.Kernel ? State.Running : cells.state[i]);
      out.ns.push(cells.ns[i]);
    }
    return {
      from: selection.from, to: selection.to, bins, thread: null,
      bin: Float64Array.from(out.bin),
      state: Float64Array.from(out.state),
      ns: Float64Array.from(out.ns),
    };
  }

  // The bins of the file, put where they belong among those asked for.
  async lanes(selection: Selection, bins: number): Promise<Timeline> {
    this.allLanes ??= readTimeline(this.table("lanes"));
    const all = this.allLanes;
    const wanted = selection.threads ? new Set(selection.threads) : null;
    const width = (all.to - all.from) / all.bins;
    const length = selection.to - selection.from;
    const kept = { bin: [] as number[], state: [] as number[], ns: [] as number[], thread: [] as number[] };
    for (let i = 0; i < all.ns.length; ++i) {
      if (wanted && all.thread && !wanted.has(all.thread[i])) continue;
      const begin = all.from + all.bin[i] * width;
      if (begin + width <= selection.from || begin >= selection.to) continue;
      const first = Math.max(0, Math.floor(((begin - selection.from) / length) * bins + 1e-9));
      const last = Math.min(bins - 1,
                            Math.ceil(((begin + width - selection.from) / length) * bins - 1e-9) - 1);
      const share = 1 / Math.max(1, last - first + 1);
      for (let bin = first; bin <= Math.max(first, last); ++bin) {
        kept.bin.push(Math.min(bin, bins - 1));
        kept.state.push(all.state[i]);
        kept.ns.push(all.ns[i] * share);
        kept.thread.push(all.thread ? all.thread[i] : 0);
      }
    }
    return {
      from: selection.from, to: selection.to, bins,
      bin: Float64Array.from(kept.bin),
      state: Float64Array.from(kept.state),
      ns: Float64Array.from(kept.ns),
      thread: Float64Array.from(kept.thread),
    };
  }

  // The heaviest cell of each bin stands for it.
  async order(selection: Selection, thread: number): Promise<Table> {
    const cells = await this.cells({ ...selection, threads: [thread], functions: null }, true);
    const all = this.allCells!;
    const width = (all.to - all.from) / all.bins;
    const best = new Map<number, number>();
    for (let i = 0; i < cells.node.length; ++i) {
      const bin = cells.bin ? cells.bin[i] : 0;
      const known = best.get(bin);
      if (known === undefined || cells.ns[i] > cells.ns[known]) best.set(bin, i);
    }
    const rows = [...best.entries()].sort((a, b) => a[0] - b[0]);
    const column = (value: (row: [number, number]) => number) => Float64Array.from(rows, value);
    return {
      kind: "order", scalars: { exact: 0 }, texts: {},
      numbers: {
        begin: column(([bin]) => all.from + bin * width),
        ns: column(() => width),
        state: column(([, i]) => cells.state[i]),
        node: column(([, i]) => cells.node[i]),
      },
    };
  }

  async waits(): Promise<Table> {
    return this.table("waits");
  }
  async locks(): Promise<Table> {
    return this.table("locks");
  }
  async lines(): Promise<Table> {
    return this.table("lines");
  }
  async heap(): Promise<Table> {
    return this.table("heap");
  }
  async series(): Promise<Table> {
    return this.table("series");
  }
  async source(file: string, from: number): Promise<SourceText> {
    const kept = this.parts.get("source");
    const texts = kept ? (JSON.parse(new TextDecoder().decode(kept)) as SourceText[]) : [];
    return texts.find((text) => text.file === file) ?? { file, from, origin: "none", lines: [] };
  }

  async formats(): Promise<WrittenFormat[]> {
    return [];
  }
  async exported(): Promise<Blob> {
    throw new Error("a saved page has no server to write it");
  }
}
