// RunSource: where the page's answers come from: the server, or the data in the page itself.

import { readBundle, readTable, type Table } from "./columns.ts";
import { EmbeddedRun } from "./embedded_run.ts";
import { ServedRun } from "./served_run.ts";
import type { Report } from "./report.ts";
import type { Tree } from "./tree.ts";
import type { Cells } from "./weights.ts";

export interface ThreadInfo {
  id: number;
  process: number;
  tid: number;
  name: string;
  pool: string;
  begin_ns: number;
  end_ns: number;
}
export interface ProcessInfo {
  id: number;
  pid: number;
  comm: string;
  exe: string;
  role: string;
}
export interface Meta {
  run: string;
  path: string;
  window_ns: number;
  utc_begin_ns: number;
  sample_period_ns: number;
  backend: string;
  oncpu_event: string;
  has_waits: boolean;
  heap_only?: boolean;
  nodes: number;
  states: { id: string; name: string }[];
  processes: ProcessInfo[];
  threads: ThreadInfo[];
}

// Made by assay heap, or of another tool's heap profile: allocations, and nothing of time.
export function isHeapOnly(meta: Meta): boolean {
  return meta.heap_only === true || meta.backend === "heap";
}

// Which part of a run a question is about. `functions`: those a search has found.
export interface Selection {
  from: number;
  to: number;
  threads: number[] | null;
  functions: number[] | null;
}

export interface Timeline {
  from: number;
  to: number;
  bins: number;
  bin: Float64Array;
  state: Float64Array;
  ns: Float64Array;
  thread: Float64Array | null;
}

export interface SourceText {
  file: string;
  from: number;
  origin: string;
  lines: string[];
}

// A format that the server writes (src/formats), for the export menu.
export interface WrittenFormat {
  name: string;
  title: string;
  help: string;
  suffix: string;
  metrics: string[];
}

// `signal` cancels a question whose answer is no longer needed.
export interface RunSource {
  readonly id: number;
  readonly meta: Meta;
  readonly live: boolean; // a server answers; else only what the file holds
  report(): Promise<Report>;
  tree(): Promise<Tree>;
  cells(selection: Selection, byThread: boolean, signal?: AbortSignal): Promise<Cells>;
  heat(selection: Selection, bins: number, signal?: AbortSignal): Promise<Timeline>;
  lanes(selection: Selection, bins: number, signal?: AbortSignal): Promise<Timeline>;
  order(selection: Selection, thread: number, signal?: AbortSignal): Promise<Table>;
  waits(selection: Selection, signal?: AbortSignal): Promise<Table>;
  locks(selection: Selection, signal?: AbortSignal): Promise<Table>;
  lines(selection: Selection, signal?: AbortSignal): Promise<Table>;
  heap(selection: Selection, signal?: AbortSignal): Promise<Table>;
  series(): Promise<Table>;
  source(file: string, from: number, to: number): Promise<SourceText>;
  formats(): Promise<WrittenFormat[]>; // none where no server writes them
  exported(format: string, selection: Selection, more: Record<string, string>): Promise<Blob>;
}

export function readTimeline(table: Table): Timeline {
  const { numbers, scalars } = table;
  return {
    from: scalars.from,
    to: scalars.to,
    bins: scalars.bins,
    bin: numbers.bin ?? new Float64Array(numbers.ns.length),
    state: numbers.state,
    ns: numbers.ns,
    thread: numbers.thread ?? null,
  };
}

export function readCells(table: Table): Cells {
  const { numbers, scalars } = table;
  return {
    from: scalars.from,
    to: scalars.to,
    bins: scalars.bins,
    state: new Uint8Array(numbers.state),
    node: new Uint32Array(numbers.node),
    ns: numbers.ns,
    count: numbers.count,
    bin: numbers.bin ? new Uint32Array(numbers.bin) : null,
    thread: numbers.thread ? new Uint32Array(numbers.thread) : null,
  };
}

async function unpack(text: string): Promise<Uint8Array> {
  const binary = atob(text);
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) packed[i] = binary.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

interface Listed {
  id: number;
  name: string;
  ready: boolean;
  progress: number;
  error: string;
}

// A large run is laid out while the page is open already; `tell` hears how far it is.
export async function openRuns(tell: (name: string, progress: number) => void): Promise<RunSource[]> {
  const embedded = document.getElementById("assay-data");
  if (embedded) {
    const parts = readBundle(await unpack(embedded.textContent ?? ""));
    return [new EmbeddedRun(parts)];
  }
  let list: Listed[];
  for (;;) {
    list = (await ServedRun.fetchJson("api/runs?wait=1")) as Listed[];
    const failed = list.find((run) => run.error);
    if (failed) throw new Error(failed.error);
    const waits = list.find((run) => !run.ready);
    if (!waits) break;
    tell(waits.name, waits.progress);
  }
  return Promise.all(list.map((run) => ServedRun.open(run.id)));
}

export { readTable };
