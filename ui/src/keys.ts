// Keys that work everywhere on the page; the list is also what `?` shows.

import type { RunSource } from "./data/run_source.ts";
import { kTabs, type Store } from "./state.ts";
import { toggleTheme } from "./theme.ts";

export const kKeys: [keys: string, meaning: string][] = [
  ["1 … 9, =, -", "open a tab: flame, time order, top, locks, waits, categories, findings, source, counters; = heap, - difference"],
  ["/", "search; Enter keeps it, Escape clears it. /text/ is a regular expression"],
  ["n, N", "next or previous frame that matches the search"],
  ["o", "switch between on-CPU, off-CPU and wall time"],
  ["v", "invert: start from the leaf functions"],
  ["r", "collapse recursion"],
  ["m", "merge threads, or show each thread"],
  ["a", "show the flame graph as a text tree"],
  ["arrows", "flame graph: go to caller, callee, neighbour; time panel: move the range (Shift: move its end)"],
  ["space", "zoom to the selected frame"],
  ["Enter", "show callers and callees of the selected function"],
  ["c", "copy the selected stack"],
  ["0", "reset zoom, range, threads and search"],
  ["h", "change what the heat map counts"],
  ["x", "export"],
  ["l", "hide or show the time panel"],
  ["t", "switch between light and dark"],
  ["?", "show this list"],
];

// Sent to the flame graph; its detail is 1 or −1.
export const kNextFound = "assay-next-found";

interface Actions {
  help: (shown: boolean | ((old: boolean) => boolean)) => void;
  theme: () => void;
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element && (element.tagName === "INPUT" || element.tagName === "SELECT" || element.tagName === "TEXTAREA");
}

export function installKeys(store: Store, run: RunSource, actions: Actions): () => void {
  const nextOf = <T>(list: readonly T[], now: T): T => list[(list.indexOf(now) + 1) % list.length];
  const nextFound = (step: number): void => {
    if (store.get().tab !== "flame") store.set({ tab: "flame" });
    window.dispatchEvent(new CustomEvent<number>(kNextFound, { detail: step }));
  };
  const bindings: Record<string, () => void> = {
    "/": () => document.querySelector<HTMLInputElement>("#search")?.focus(),
    "?": () => actions.help((old) => !old),
    n: () => nextFound(1),
    N: () => nextFound(-1),
    o: () => store.set({ metric: nextOf(["cpu", "off", "wall"] as const, store.get().metric), only: "", zoom: "" }),
    v: () => store.set({ inverted: !store.get().inverted, zoom: "", tab: "flame" }),
    r: () => store.set({ collapse: !store.get().collapse, zoom: "" }),
    m: () => store.set({ byThread: !store.get().byThread, zoom: "", tab: "flame" }),
    a: () => store.set({ asTree: !store.get().asTree, tab: "flame" }),
    h: () => store.set({ heat: nextOf(["running", "runqueue", "lock", "blocked"], store.get().heat) }),
    x: () => document.querySelector<HTMLElement>("#export > summary")?.click(),
    l: () => document.querySelector<HTMLElement>("#fold-time")?.click(),
    "0": () => store.set({ zoom: "", from: 0, to: 0, baseFrom: 0, baseTo: 0, threads: null, search: "", only: "", pivot: -1 }),
    "-": () => store.set({ tab: "diff" }),
    "=": () => store.set({ tab: "heap" }),
    t: () => {
      toggleTheme();
      actions.theme();
    },
  };
  for (let i = 0; i < 9; ++i) bindings[String(i + 1)] = () => store.set({ tab: kTabs[i] });
  void run;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      actions.help(false);
      document.querySelectorAll("details[open].menu").forEach((menu) => menu.removeAttribute("open"));
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const action = bindings[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  window.addEventListener("keydown", onKey);
  return () => window.removeEventListener("keydown", onKey);
}
