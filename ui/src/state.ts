// The one state of the page: what is selected and how it is shown. All of it stands in the address
// bar's hash, so that a link brings another person to the same sight and Back undoes a step.

import type { Metric } from "./data/states.ts";

export const kTabs = [
  "flame", "order", "top", "locks", "waits", "categories", "findings", "source", "counters", "heap", "diff",
] as const;
export type Tab = (typeof kTabs)[number];

export interface State {
  run: number;
  versus: number; // another run to compare with; -1: none
  from: number; // ns since the window began; 0–0: all
  to: number;
  baseFrom: number; // the baseline range; 0–0: none
  baseTo: number;
  threads: number[] | null;
  search: string;
  tab: Tab;
  metric: Metric;
  only: string; // one state's id; empty: all of the metric
  byThread: boolean;
  inverted: boolean;
  collapse: boolean;
  asTree: boolean; // the flame tab as a table that can be expanded
  zoom: string; // path of the frame that fills the width
  group: string; // top: function, file, module, line, category
  sort: string;
  pivot: number; // sandwich: a function; -1: none
  heat: string; // what the heat map counts: a state's id
  norm: string; // diff: second, request, share
  order: number; // thread of the time order; -1: the busiest
  file: string; // source
  line: number; // the line of it to look at; 0: none
  finding: string;
  heapOf: string; // heap: live, allocated; empty: what there is
}

export const kDefaults: State = {
  run: 0, versus: -1, from: 0, to: 0, baseFrom: 0, baseTo: 0, threads: null, search: "",
  tab: "flame", metric: "cpu", only: "", byThread: false, inverted: false, collapse: false,
  asTree: false, zoom: "", group: "function", sort: "self", pivot: -1, heat: "running",
  norm: "second", order: -1, file: "", line: 0, finding: "", heapOf: "",
};

// What an address without a hash shows: a heap profile has no time, so its flame graph would be empty.
export function homeOf(heapOnly: boolean): State {
  return heapOnly ? { ...kDefaults, tab: "heap" } : kDefaults;
}

export function encodeState(state: State, home = kDefaults): string {
  const parts: string[] = [];
  for (const key of Object.keys(kDefaults) as (keyof State)[]) {
    const value = state[key];
    if (value === home[key]) continue;
    const text = Array.isArray(value) ? value.join(".") : String(value);
    parts.push(`${key}=${encodeURIComponent(text)}`);
  }
  return parts.join("&");
}

// Anything that is not a state of ours is left out: a hash may come from anywhere.
export function decodeState(hash: string, home = kDefaults): State {
  const state = { ...home } as Record<string, unknown>;
  for (const part of hash.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    if (equals < 1) continue;
    const key = part.slice(0, equals) as keyof State;
    if (!Object.hasOwn(kDefaults, key)) continue;
    let text: string;
    try {
      text = decodeURIComponent(part.slice(equals + 1));
    } catch {
      continue;
    }
    const like = kDefaults[key];
    if (key === "threads") {
      const list = text.split(".").map(Number);
      if (list.every((id) => Number.isInteger(id) && id >= 0)) state.threads = list;
    } else if (typeof like === "number") {
      const value = Number(text);
      if (Number.isFinite(value)) state[key] = value;
    } else if (typeof like === "boolean") {
      state[key] = text === "true";
    } else {
      state[key] = text;
    }
  }
  const result = state as unknown as State;
  if (!kTabs.includes(result.tab)) result.tab = home.tab;
  if (!["cpu", "off", "wall"].includes(result.metric)) result.metric = home.metric;
  return result;
}

type Listener = (state: State) => void;

export class Store {
  private state: State;
  private listeners: Listener[] = [];

  constructor(private readonly home: State = kDefaults) {
    this.state = decodeState(location.hash, home);
    window.addEventListener("popstate", () => {
      this.state = decodeState(location.hash, home);
      this.tell();
    });
    window.addEventListener("hashchange", () => {
      if (encodeState(this.state, home) === location.hash.slice(1)) return;
      this.state = decodeState(location.hash, home);
      this.tell();
    });
  }

  get(): State {
    return this.state;
  }

  // `quiet`: a step that Back should not stop at (typing, scrolling).
  set(change: Partial<State>, quiet = false): void {
    const next = { ...this.state, ...change };
    const hash = encodeState(next, this.home);
    if (hash === encodeState(this.state, this.home)) return;
    this.state = next;
    const url = "#" + hash;
    if (quiet) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
    this.tell();
  }

  listen(listener: Listener): () => void {
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((known) => known !== listener);
    };
  }

  private tell(): void {
    for (const listener of this.listeners) listener(this.state);
  }
}
