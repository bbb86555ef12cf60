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
  secondary?: (string | { kind: string; sentence?: string })[];
  reasons?: string[];
}
export interface Evidence {
  text?: string;
  frames?: Frame[];
  stack?: Frame[];
  time_ns?: number;
  count?: number;
  share?: number;
  [key: string]: unknown;
}
export interface Finding {
  id: string;
  title: string;
  share?: number;
  ci?: [number, number];
  evidence?: (Evidence | string)[];
  where?: { symbol?: string; file?: string; line?: number };
  recommendation?: string;
  gain_upper_bound?: number | null;
  severity?: string;
  [key: string]: unknown;
}
export interface Category {
  id?: string;
  name?: string;
  category?: string;
  share?: number;
  ci?: [number, number];
  cpu_ns?: number;
  time_ns?: number;
  self_ns?: number;
  samples?: number;
  [key: string]: unknown;
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
  categories?: Category[];
  locks?: Record<string, unknown>[];
  not_bottlenecks?: (string | { sentence?: string; text?: string; title?: string })[];
}
