// The states of a thread (src/view/data/thread_state.h), their order on the page and their colours.

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
  "lock", "condition", "futex", "network_receive", "network_send", "disk", "timer", "poll",
  "page_fault", "pipe", "child", "other", "unknown",
];

export const kStateNames: Record<string, string> = {
  user: "user code", kernel: "kernel", running: "running", runqueue: "run queue", idle: "idle",
  lock: "lock", condition: "condition", futex: "futex", network_receive: "net receive",
  network_send: "net send", disk: "disk", timer: "timer", poll: "poll", page_fault: "page fault",
  pipe: "pipe", child: "child", other: "other", unknown: "unknown",
};

// Order of bars, lanes and legends: what works, what is held up, what waits for work.
export const kStateOrder = [
  "user", "kernel", "running", "runqueue", "lock", "condition", "futex", "disk", "page_fault",
  "network_send", "network_receive", "pipe", "child", "timer", "other", "unknown", "poll", "idle",
];

// Told apart by lightness as well as hue (chosen by hand to stay apart for most colour-blind readers).
const kLight: Record<string, string> = {
  user: "#2f6fd0", kernel: "#173f86", running: "#2f6fd0", runqueue: "#f0a30a",
  lock: "#c8401a", condition: "#e58b6b", futex: "#a8623f",
  disk: "#7a5a1e", page_fault: "#b59a35",
  network_send: "#0f8f73", network_receive: "#4fb99f", pipe: "#8fd0bf", child: "#63808c",
  timer: "#9b86b8", other: "#8a8f98", unknown: "#b3b7bd", poll: "#cfd8e3", idle: "#e4e9ef",
};
const kDark: Record<string, string> = {
  user: "#5b9bf5", kernel: "#2f62b8", running: "#5b9bf5", runqueue: "#f2b13c",
  lock: "#e8623a", condition: "#c98a72", futex: "#b0714e",
  disk: "#b08a3e", page_fault: "#cdb65a",
  network_send: "#1fa98a", network_receive: "#3f8f7c", pipe: "#5c8f84", child: "#6f8b97",
  timer: "#8d7bab", other: "#7b818b", unknown: "#5d636d", poll: "#3a4350", idle: "#2a313b",
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
