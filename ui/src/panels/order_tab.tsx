// Time order: what one thread did, from left to right as it happened.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Timeline } from "../data/run_source.ts";
import { kStateIds, kStateNames, State, stateColour } from "../data/states.ts";
import { showDetails } from "../details.ts";
import { TextFitter } from "../flame/fit_text.ts";
import { kRowHeight } from "../flame/flame_canvas.ts";
import { duration, seconds } from "../format.ts";
import { useAnswer, useSize, useView } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import type { Frame } from "../flame/frames.ts";
import { runsOf, type Runs } from "../time/runs.ts";
import { heatShape, laneBins } from "../time/scale.ts";
import { mainModule } from "./flame_tab.tsx";

// Of these threads the one that ran longest in the range, by the bins that touch it.
export function busiest(threads: { id: number }[], lanes: Timeline, from: number, to: number): number {
  const sums = new Map(threads.map((thread) => [thread.id, 0]));
  const width = (lanes.to - lanes.from) / lanes.bins;
  lanes.thread?.forEach((thread, i) => {
    const begin = lanes.from + lanes.bin[i] * width;
    const known = sums.get(thread);
    if (known === undefined || lanes.state[i] !== State.Running || begin >= to || begin + width <= from) return;
    sums.set(thread, known + lanes.ns[i]);
  });
  return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
}

export function OrderTab() {
  const view = useView();
  const { run, tree, selection, selectionKey, state, store, dark, found } = view;
  const threads = selection.threads ? run.meta.threads.filter((t) => selection.threads!.includes(t.id)) : run.meta.threads;
  const whole = { from: 0, to: run.meta.window_ns, threads: null, functions: null };
  const bins = laneBins(heatShape(run.meta.window_ns), run.meta.threads.length);
  const lanes = useAnswer(`lanes ${run.id}`, (signal) => run.lanes(whole, bins, signal));
  const thread = threads.some((t) => t.id === state.order) ? state.order
    : lanes.value ? busiest(threads, lanes.value, selection.from, selection.to) : -1;
  const answer = useAnswer(`order ${selectionKey} ${thread}`, (signal) => (thread < 0 ? Promise.resolve(null) : run.order(selection, thread, signal)));
  const runs: Runs | null = useMemo(() => (answer.value ? runsOf(tree, answer.value) : null), [answer.value, tree]);
  const palette = useMemo(() => new FrameColours(tree.functions, dark, mainModule(view)), [tree, dark]);
  const [attach, width, height, holder] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const texts = useRef(new TextFitter());
  const [scroll, setScroll] = useState(0);
  const [seen, setSeen] = useState<{ of: Runs | null; from: number; to: number } | null>(null);
  const range = seen && seen.of === runs ? seen : { from: selection.from, to: selection.to };
  useLayoutEffect(() => {
    if (!canvas.current || !runs || width < 10) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = Math.round(height * ratio);
    const context = canvas.current.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = dark ? "#14181d" : "#ffffff";
    context.fillRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const scale = width / (range.to - range.from);
    const drawn = new Float64Array(runs.deepest + 2).fill(-1);
    for (let i = 0; i < runs.count; ++i) {
      const depth = runs.depth[i];
      const y = depth * kRowHeight - scroll;
      if (y + kRowHeight < 0 || y > height) continue;
      const left = Math.max(0, (runs.begin[i] - range.from) * scale);
      const right = Math.min(width, (runs.end[i] - range.from) * scale);
      if (right <= 0 || left >= width || right < drawn[depth] + 0.5) continue;
      drawn[depth] = right;
      const id = kStateIds[runs.state[i]];
      const fn = tree.fn[runs.node[i]];
      context.globalAlpha = found && fn >= 0 && !found[fn] ? 0.3 : 1;
      context.fillStyle = depth === 0 ? stateColour(id, dark) : palette.fill({ fn } as Frame);
      const wide = Math.max(0.5, right - left);
      context.fillRect(left, y, wide - (wide > 3 ? 1 : 0), kRowHeight - 1);
      if (wide > 34) {
        const text = depth === 0 ? kStateNames[id] : tree.functions.short[fn];
        context.fillStyle = depth === 0 && runs.state[i] <= 1 ? "#ffffff" : palette.text();
        context.fillText(texts.current.fit(context, text, wide - 9), left + 4, y + kRowHeight / 2);
      }
      context.globalAlpha = 1;
    }
  });
  const at = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    const t = range.from + ((event.clientX - box.left) / width) * (range.to - range.from);
    const depth = Math.floor((event.clientY - box.top + scroll) / kRowHeight);
    for (let i = 0; runs && i < runs.count; ++i) if (runs.depth[i] === depth && t >= runs.begin[i] && t < runs.end[i]) return i;
    return -1;
  };
  const onMove = (event: MouseEvent): void => {
    const i = at(event);
    if (i < 0 || !runs) return showDetails(null);
    const fn = tree.fn[runs.node[i]];
    const id = kStateIds[runs.state[i]];
    showDetails({
      name: fn >= 0 ? tree.functions.name[fn] : kStateNames[id], module: fn >= 0 ? tree.functions.module[fn] : "",
      where: fn >= 0 && tree.functions.file[fn] ? `${tree.functions.file[fn]}:${tree.functions.line[fn]}` : "",
      figures: [duration(runs.end[i] - runs.begin[i]), `from ${seconds(runs.begin[i], 1e6)}`, kStateNames[id]],
    });
  };
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const box = canvas.current!.getBoundingClientRect();
    const share = (event.clientX - box.left) / width;
    const here = range.from + share * (range.to - range.from);
    const size = Math.min(selection.to - selection.from, (range.to - range.from) * Math.exp((event.deltaY || event.deltaX) * 0.002));
    const from = Math.max(selection.from, Math.min(selection.to - size, here - share * size));
    setSeen({ of: runs, from, to: from + size });
  };
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!runs && threads.length) return <p class="loading">Putting the thread's time in order …</p>;
  if (!threads.length) return <div class="empty">This run names no threads.</div>;
  return (
    <div class="tab-body">
      <div class="tools">
        <label>Thread <select value={thread} onChange={(event) => store.set({ order: Number(event.currentTarget.value) })}>
          {threads.map((t) => <option key={t.id} value={t.id}>{t.name} ({t.tid})</option>)}
        </select></label>
        <button class="toggle" disabled={range.from === selection.from && range.to === selection.to} onClick={() => setSeen(null)}>Whole range</button>
        <button class="toggle" disabled={range.from === selection.from && range.to === selection.to} onClick={() => store.set({ from: Math.round(range.from), to: Math.round(range.to) })}>Select what is seen</button>
        <span class="tools-note">{seconds(range.from, 1e6)} – {seconds(range.to, 1e6)}</span>
        <span class="muted">{answer.value && !answer.value.scalars.exact ? "each moment shows what took most of it; select a shorter range for every interval" : "every interval; between waits the samples say what ran"}. Ctrl or Shift with the wheel zooms; click zooms to what is clicked.</span>
      </div>
      {runs && runs.count === 0
        ? <div class="empty">This thread did nothing that was seen in this range.</div>
        : <div class="flame" ref={attach} onScroll={() => setScroll(holder.current!.scrollTop)}>
            <div style={{ height: `${Math.max(height, ((runs?.deepest ?? 0) + 2) * kRowHeight)}px` }}>
              <canvas ref={canvas} class="flame-canvas order" tabIndex={0} style={{ width: `${width}px`, height: `${height}px` }} role="img"
                      aria-label={`What the thread did from ${seconds(range.from, 1e6)} to ${seconds(range.to, 1e6)}`}
                      onMouseMove={onMove} onMouseLeave={() => showDetails(null)} onWheel={onWheel}
                      onClick={(event) => {
                        const i = at(event);
                        if (i >= 0 && runs) setSeen({ of: runs, from: Math.max(selection.from, runs.begin[i]), to: Math.min(selection.to, runs.end[i]) });
                      }}
                      onDblClick={() => setSeen(null)} />
            </div>
          </div>}
    </div>
  );
}
