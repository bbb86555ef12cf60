// A run that a server answers for.

import { readTable, type Table } from "./columns.ts";
import type { Report } from "./report.ts";
import { readCells, readTimeline, type Meta, type RunSource, type Selection, type SourceText,
         type Timeline, type WrittenFormat } from "./run_source.ts";
import { readTree, type Tree } from "./tree.ts";
import type { Cells } from "./weights.ts";

type Query = Record<string, string | number>;

const kLongestUrl = 4000;

export class ServedRun implements RunSource {
  readonly live = true;
  private treeAnswer: Promise<Tree> | null = null;
  private reportAnswer: Promise<Report> | null = null;
  private seriesAnswer: Promise<Table> | null = null;

  private constructor(readonly id: number, readonly meta: Meta) {}

  static async open(id: number): Promise<ServedRun> {
    return new ServedRun(id, (await ServedRun.fetchJson(`api/runs/${id}/meta`)) as Meta);
  }

  static async fetchJson(path: string): Promise<unknown> {
    return (await ServedRun.fetchAnswer(path, "")).json();
  }

  // The server stops working on a question whose `signal` withdraws it.
  private static async fetchAnswer(path: string, query: string, signal?: AbortSignal): Promise<Response> {
    const post = query.length > kLongestUrl;
    const answer = post
      ? await fetch(path, { method: "POST", body: query, signal })
      : await fetch(query ? `${path}?${query}` : path, { signal });
    if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
    return answer;
  }

  private async table(what: string, query: Query = {}, signal?: AbortSignal): Promise<Table> {
    const text = Object.entries(query).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&");
    const answer = await ServedRun.fetchAnswer(`api/runs/${this.id}/${what}`, text, signal);
    return readTable(await answer.arrayBuffer());
  }

  private static query(selection: Selection, more: Query = {}): Query {
    const query: Query = { from: Math.floor(selection.from), to: Math.ceil(selection.to), ...more };
    if (selection.threads) query.threads = selection.threads.join(",");
    if (selection.functions) query.functions = selection.functions.join(",");
    return query;
  }

  report(): Promise<Report> {
    this.reportAnswer ??= ServedRun.fetchJson(`api/runs/${this.id}/report`) as Promise<Report>;
    return this.reportAnswer;
  }
  tree(): Promise<Tree> {
    this.treeAnswer ??= this.table("tree").then(readTree);
    return this.treeAnswer;
  }
  async cells(selection: Selection, byThread: boolean, signal?: AbortSignal): Promise<Cells> {
    const query = ServedRun.query({ ...selection, functions: null }, { by_thread: byThread ? 1 : 0 });
    return readCells(await this.table("cells", query, signal));
  }
  async heat(selection: Selection, bins: number, signal?: AbortSignal): Promise<Timeline> {
    return readTimeline(await this.table("heat", ServedRun.query(selection, { bins }), signal));
  }
  async lanes(selection: Selection, bins: number, signal?: AbortSignal): Promise<Timeline> {
    return readTimeline(await this.table("lanes", ServedRun.query(selection, { bins }), signal));
  }
  order(selection: Selection, thread: number, signal?: AbortSignal): Promise<Table> {
    return this.table("order", ServedRun.query(selection, { thread }), signal);
  }
  waits(selection: Selection, signal?: AbortSignal): Promise<Table> {
    return this.table("waits", ServedRun.query(selection), signal);
  }
  locks(selection: Selection, signal?: AbortSignal): Promise<Table> {
    return this.table("locks", ServedRun.query(selection), signal);
  }
  lines(selection: Selection, signal?: AbortSignal): Promise<Table> {
    return this.table("lines", ServedRun.query(selection), signal);
  }
  heap(selection: Selection, signal?: AbortSignal): Promise<Table> {
    return this.table("heap", ServedRun.query({ ...selection, functions: null }), signal);
  }
  series(): Promise<Table> {
    this.seriesAnswer ??= this.table("series");
    return this.seriesAnswer;
  }
  async source(file: string, from: number, to: number): Promise<SourceText> {
    const query = `file=${encodeURIComponent(file)}&from=${from}&to=${to}`;
    const answer = await ServedRun.fetchAnswer(`api/runs/${this.id}/source`, query);
    return (await answer.json()) as SourceText;
  }
  formats(): Promise<WrittenFormat[]> {
    return ServedRun.fetchJson("api/formats") as Promise<WrittenFormat[]>;
  }
  async exported(format: string, selection: Selection, more: Record<string, string>): Promise<Blob> {
    const whole = selection.from <= 0 && selection.to >= this.meta.window_ns;
    const query: Query = whole ? { format, ...more } : { format, from: Math.round(selection.from), to: Math.round(selection.to), ...more };
    if (selection.threads) query.threads = selection.threads.join(",");
    const text = Object.entries(query).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&");
    return (await ServedRun.fetchAnswer(`api/runs/${this.id}/export`, text)).blob();
  }
}
