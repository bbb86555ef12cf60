// Flame: on-CPU, off-CPU or wall time; merged or by thread; inverted; recursion collapsed.

import { useMemo } from "preact/hooks";
import { isHeapOnly } from "../data/run_source.ts";
import { metricWants, type Metric } from "../data/states.ts";
import { Weights } from "../data/weights.ts";
import { framesByPart, invertedFrames, mergedFrames, type Frame } from "../flame/frames.ts";
import { count, duration } from "../format.ts";
import { useView } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import { FlameView } from "./flame_panel.tsx";
import { TreeTable } from "./tree_table.tsx";

const kMetrics: [Metric, string, string][] = [
  ["cpu", "On-CPU", "time on the CPU, from samples"],
  ["off", "Off-CPU", "time blocked, without time in the run queue"],
  ["wall", "Wall", "time on the CPU, in the run queue and blocked"],
];

export function mainModule(view: { run: { meta: { processes: { exe: string }[] } } }): string {
  const exe = view.run.meta.processes[0]?.exe ?? "";
  return exe.slice(exe.lastIndexOf("/") + 1);
}

export function MetricSwitch() {
  const { state, store } = useView();
  return (
    <div class="switch" role="radiogroup" aria-label="Width shows">
      {kMetrics.map(([id, name, help]) => (
        <button key={id} role="radio" aria-checked={state.metric === id && !state.only} title={`${help} (o)`}
                class={state.metric === id && !state.only ? "on" : ""}
                onClick={() => store.set({ metric: id, only: "", zoom: "" })}>{name}</button>
      ))}
    </div>
  );
}

export function Toggle({ on, title, label, set }: { on: boolean; title: string; label: string; set: (on: boolean) => void }) {
  return <button class={"toggle" + (on ? " on" : "")} aria-pressed={on} title={title} onClick={() => set(!on)}>{label}</button>;
}

// The frames that the flame tab shows; exports take the same.
export function useFlameRoot(): Frame {
  const { state, tree, cells, run } = useView();
  return useMemo(() => {
    const wants = metricWants(state.metric, state.only);
    if (state.byThread && cells.thread) {
      const threads = [...new Set(cells.thread)].sort((a, b) => a - b);
      return framesByPart(tree, threads.map((id) => ({
        label: `${run.meta.threads[id]?.name ?? "thread"} (${run.meta.threads[id]?.tid ?? id})`,
        weights: Weights.ofCells(cells, tree.count, wants, id),
      })), state.collapse);
    }
    const measure = { sides: [Weights.ofCells(cells, tree.count, wants)], scale: [1] };
    return state.inverted ? invertedFrames(tree, measure, state.collapse) : mergedFrames(tree, measure, state.collapse);
  }, [cells, tree, state.metric, state.only, state.byThread, state.inverted, state.collapse]);
}

function emptyReason(metric: Metric, hasWaits: boolean, heapOnly: boolean, whole: boolean): string {
  if (heapOnly) return "This run has only allocations, and no CPU time or waits. See the Heap tab. assay record --heap records both.";
  if (metric !== "cpu" && !hasWaits) return "This run has no waits (it was imported, or only CPU time was recorded), so it has no off-CPU time.";
  if (whole && !hasWaits) return "This run is empty: it has no samples and no waits.";
  return "The selection has no such time. Clear the time range, the threads or the state above, or switch to wall time.";
}

export function FlameTab() {
  const view = useView();
  const { state, store, tree, dark, run } = view;
  const root = useFlameRoot();
  const colours = useMemo(() => {
    const palette = new FrameColours(tree.functions, dark, mainModule(view));
    return { fill: (frame: Frame) => palette.fill(frame), text: () => palette.text(), hatched: () => false };
  }, [tree, dark]);
  return (
    <div class="tab-body">
      <div class="tools">
        <MetricSwitch />
        <Toggle on={state.byThread} label="By thread" title="One flame graph for each thread (m)" set={(byThread) => store.set({ byThread, inverted: false, zoom: "" })} />
        <Toggle on={state.inverted} label="Inverted" title="Start from the leaf functions, callers below (v)" set={(inverted) => store.set({ inverted, byThread: false, zoom: "" })} />
        <Toggle on={state.collapse} label="Recursion collapsed" title="Show a function that calls itself as one frame (r)" set={(collapse) => store.set({ collapse, zoom: "" })} />
        <Toggle on={state.asTree} label="As tree" title="Show the frames as a text tree (a)" set={(asTree) => store.set({ asTree })} />
        {state.zoom && <button class="toggle" onClick={() => store.set({ zoom: "" })}>Whole width</button>}
        <span class="tools-note">{duration(root.total)} in {count(root.count)} {state.metric !== "cpu" ? "samples and waits" : root.count === 1 ? "sample" : "samples"}</span>
      </div>
      {root.total <= 0
        ? <div class="empty">{emptyReason(state.metric, run.meta.has_waits, isHeapOnly(run.meta), view.cells.node.length === 0 && !state.threads && state.to <= state.from)}</div>
        : state.asTree
          ? <TreeTable root={root} tree={tree} />
          : <FlameView root={root} tree={tree} style={colours} zoom={state.zoom} label="Flame graph" rootName="all threads"
                       onZoom={(zoom) => store.set({ zoom })} onPivot={(pivot) => store.set({ tab: "top", pivot })} />}
    </div>
  );
}
