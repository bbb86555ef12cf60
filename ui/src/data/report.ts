// What the page reads of the JSON report (docs/report.schema.json). Parts that a run or an older
// Assay does not have are absent.

export interface Frame {
  function: string;
  module: string;
  kind: string;
  file?: string;
  line?: number;
  inlined?: boolean;
}
export interface Split {
  wall_ns: number;
  user_ns: number;
  kernel_ns: number;
  runqueue_ns: number;
  idle_ns: number;
  blocked_ns: Record<string, number>;
}
export interface Verdict {
  kind: string;
  sentence: string;
  confidence?: number | string;
  secondary?: { kind: string; sentence: string }[];
  withheld?: { why: string; remedy: string }[];
  next_step?: string;
  next_command?: string;
}
export interface Evidence {
  text?: string;
  frames?: Frame[];
  source?: string[] | string;
  source_line?: number;
}
export interface Finding {
  id: string;
  title: string;
  share?: number;
  ci?: [number, number];
  evidence?: Evidence[];
  where?: { symbol?: string; file?: string; line?: number };
  share_of?: string;
  because?: string[] | string;
  recommendation?: string;
  gain_upper_bound?: number | null;
  gain?: string;
}
export interface Category {
  breakdown: string;
  id: string;
  name: string;
  share: number;
  ci?: [number, number];
  time_ns: number;
  samples: number;
  inclusive_share?: number;
  top_function?: string;
}
export interface Limit {
  topic: string;
  text: string;
  remedy: string;
}
export interface Quality {
  samples: number;
  waits: number;
  hz: number;
  lost: number;
  lost_share: number;
  complete_share: number;
  unresolved_share: number;
  accounting: { error_share: number };
  own_cost: { cpu_ns: number | null; peak_rss_bytes: number | null };
  finished: boolean;
  end_reason: string;
  limits: Limit[];
}
// An imported profile may hold sums only: its times are then made up and mean nothing.
export function hasTimes(report: Report): boolean {
  return report.facts.import?.times !== "absent";
}

// Stands in until the report has come: it takes longer than the first flame graph.
export function pendingReport(windowNs: number): Report {
  return {
    assay_version: "", run: "", facts: {},
    workload: { target: "", command_line: "", begin_utc: "", window_ns: windowNs, backend: "", oncpu_event: "", cpus: 0 },
    quality: {
      samples: 0, waits: 0, hz: 0, lost: 0, lost_share: 0, complete_share: 0, unresolved_share: 0, accounting: { error_share: 0 },
      own_cost: { cpu_ns: null, peak_rss_bytes: null }, finished: true, end_reason: "", limits: [],
    },
    thread_time: { wall_ns: 0, user_ns: 0, kernel_ns: 0, runqueue_ns: 0, idle_ns: 0, blocked_ns: {} },
  };
}

export interface HeapAmount {
  bytes: number;
  bytes_error: number;
  objects: number;
  objects_error: number;
  samples: number;
}
export interface HeapSite {
  function: string;
  module: string;
  file?: string;
  line?: number;
  live: HeapAmount;
  allocated: HeapAmount;
  old: HeapAmount;
  freed_share: number;
  median_lifetime_ns: number;
  growth_bytes_per_s: number;
  leaks: boolean;
  frames: Frame[];
}
export interface HeapReport {
  timed?: boolean; // false: sums of an imported profile, which say nothing of time
  live_known?: boolean;
  freed_known?: boolean;
  window_ns: number;
  live: HeapAmount;
  allocated: HeapAmount;
  peak_bytes: number;
  peak_ns: number;
  young_ns: number;
  rate_bytes?: number;
  timeline: { time_ns: number; live_bytes: number; live_objects: number }[];
  sites: HeapSite[];
}

export interface Report {
  assay_version: string;
  run: string;
  workload: {
    target: string;
    command_line: string;
    begin_utc: string;
    window_ns: number;
    backend: string;
    oncpu_event: string;
    cpus: number;
  };
  quality: Quality;
  facts: Record<string, Record<string, string>>;
  thread_time: Split;
  verdict?: Verdict;
  findings?: Finding[];
  heap?: HeapReport | null;
  categories?: Category[];
  locks?: Record<string, unknown>[];
  accelerators?: { figures: string }[];
  not_bottlenecks?: { what: string; text: string; share?: number }[];
}
