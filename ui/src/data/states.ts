// The states of a thread (src/view/data/thread_state.h), their order on the page and their colours.
// A blocked thread's states are the kinds of wait, in wait_kinds.ts.
import { kWaitKinds } from "./wait_kinds.ts";

export const enum State {
  User = 0,
  Kernel = 1,
  Runqueue = 2,
  Idle = 3,
  Running = 4,
  FirstBlocked = 8,
}

export const kStateIds = [
  "user", "kernel", "runqueue", "idle", "running", "", "", "",
  ...kWaitKinds.map((kind) => kind.id),
];

const ofWaits = <T,>(value: (kind: (typeof kWaitKinds)[number]) => T): Record<string, T> =>
  Object.fromEntries(kWaitKinds.map((kind) => [kind.id, value(kind)]));

export const kStateNames: Record<string, string> = {
  user: "user code", kernel: "kernel", running: "running", runqueue: "run queue", idle: "idle",
  ...ofWaits((kind) => kind.name),
};

// Order of bars, lanes and legends: what works, what is held up, what waits for work.
export const kStateOrder = [
  "user", "kernel", "running", "runqueue",
  ...[...kWaitKinds].sort((a, b) => a.order - b.order).map((kind) => kind.id),
  "idle",
];

const kLight: Record<string, string> = {
  user: "#2f6fd0", kernel: "#173f86", running: "#2f6fd0", runqueue: "#f0a30a", idle: "#e4e9ef",
  ...ofWaits((kind) => kind.light),
};
const kDark: Record<string, string> = {
  user: "#5b9bf5", kernel: "#2f62b8", running: "#5b9bf5", runqueue: "#f2b13c", idle: "#2a313b",
  ...ofWaits((kind) => kind.dark),
};

export function stateColour(id: string, dark: boolean): string {
  return (dark ? kDark : kLight)[id] ?? "#888888";
}

export type Metric = "cpu" | "off" | "wall";

export function metricWants(metric: Metric, only: string): (state: number) => boolean {
  if (only) return (state) => kStateIds[state] === only || (only === "running" && state <= 1);
  if (metric === "cpu") return (state) => state <= State.Kernel;
  if (metric === "off") return (state) => state >= State.FirstBlocked; // waiting for work is no problem
  return () => true;
}
