// Ties the store and asynchronous answers to components.

import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Report } from "./data/report.ts";
import type { RunSource, Selection } from "./data/run_source.ts";
import type { Tree } from "./data/tree.ts";
import type { Cells } from "./data/weights.ts";
import type { State, Store } from "./state.ts";

export interface Answer<T> {
  value: T | null; // the last one that came, also while the next is on its way
  error: string;
  loading: boolean;
}

// Asks again whenever `key` changes; a question that is overtaken by a later one is withdrawn, and its
// answer dropped.
export function useAnswer<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, error: "", loading: true });
  const current = useRef("");
  useEffect(() => {
    current.current = key;
    let shown = false;
    const withdrawn = new AbortController();
    // A quick answer never shows that it was awaited.
    const timer = setTimeout(() => {
      if (!shown && current.current === key) setAnswer((old) => ({ ...old, loading: true }));
    }, 120);
    ask(withdrawn.signal).then(
      (value) => {
        shown = true;
        if (current.current === key) setAnswer({ value, error: "", loading: false });
      },
      (error: unknown) => {
        shown = true;
        const text = error instanceof Error ? error.message : String(error);
        if (current.current === key) setAnswer({ value: null, error: text, loading: false });
      },
    );
    return () => {
      clearTimeout(timer);
      current.current = "";
      withdrawn.abort();
    };
  }, [key]);
  return answer;
}

// Everything that panels share.
export interface View {
  store: Store;
  state: State;
  runs: RunSource[];
  run: RunSource;
  report: Report;
  judged: boolean; // false: the report is on its way, and `report` stands in for it
  tree: Tree;
  selection: Selection;
  selectionKey: string;
  cells: Cells;
  found: Uint8Array | null; // by function: what the search matches; null: no search
  dark: boolean;
  busy: boolean;
}

export const ViewContext = createContext<View | null>(null);

export function useView(): View {
  const view = useContext(ViewContext);
  if (!view) throw new Error("a panel stands outside the page");
  return view;
}

// The size of an element, as it changes.
export function useSize<E extends HTMLElement>(): [(element: E | null) => void, number, number, { current: E | null }] {
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const element = useRef<E | null>(null);
  const observer = useRef<ResizeObserver | null>(null);
  const attach = useRef((next: E | null) => {
    observer.current?.disconnect();
    element.current = next;
    if (!next) return;
    observer.current = new ResizeObserver(() => setSize([next.clientWidth, next.clientHeight]));
    observer.current.observe(next);
    setSize([next.clientWidth, next.clientHeight]);
  });
  return [attach.current, size[0], size[1], element];
}
