// The flame graph: frames on a canvas, with everything it does also on the keyboard and, as a tree
// of real elements, for those who do not see it.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Tree } from "../data/tree.ts";
import { showDetails } from "../details.ts";
import { FlameCanvas, kRowHeight, type FlameStyle, type Viewport } from "../flame/flame_canvas.ts";
import { childrenOf, encodePath, findPath, foundFrames, framePath, type Frame } from "../flame/frames.ts";
import { count, duration, percent, shareError } from "../format.ts";
import { useSize, useView } from "../hooks.ts";
import { kNextFound } from "../keys.ts";

const kWhole: Viewport = { from: 0, to: 1 };

export interface FlameProps {
  root: Frame;
  tree: Tree;
  style: Pick<FlameStyle, "fill" | "text" | "hatched">;
  zoom: string;
  onZoom: (path: string) => void;
  onPivot: (fn: number) => void;
  describe?: (frame: Frame, root: Frame) => string[];
  amount?: (value: number) => string; // what width means, in words; time otherwise
  label: string;
  rootName: string;
}

export function frameName(tree: Tree, frame: Frame, rootName = "all"): string {
  if (frame.fn < 0) return frame.label || rootName;
  return tree.functions.short[frame.fn];
}

export function stackText(tree: Tree, frame: Frame): string {
  return framePath(frame).map((f) => (f.fn < 0 ? f.label : tree.functions.name[f.fn])).join("\n");
}

function plainFigures(frame: Frame, root: Frame): string[] {
  const share = frame.total / root.total;
  return [
    `${duration(frame.total)} ± ${percent(shareError(share, root.count))}`,
    `${percent(share)}`,
    `self ${duration(frame.self)} (${percent(frame.self / root.total)})`,
    `${count(frame.count)} samples or waits`,
  ];
}

export function FlameView(props: FlameProps) {
  const { root, tree, zoom } = props;
  const { dark, found } = useView();
  const [attach, width, height, holder] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<FlameCanvas | null>(null);
  const [viewport, setViewport] = useState<Viewport>(kWhole);
  const [scroll, setScroll] = useState(0);
  const [selected, setSelected] = useState<Frame | null>(null);
  const [deepest, setDeepest] = useState(0);
  const animation = useRef(0);

  const style: FlameStyle = useMemo(() => ({
    ...props.style,
    fill: (frame) => (found && frame.fn >= 0 && found[frame.fn] ? (dark ? "#c05fb0" : "#f29be0") : props.style.fill(frame)),
    name: (frame) => frameName(tree, frame, props.rootName) + (tree.inlined.has(frame.node) && frame.fn >= 0 ? " ·inl" : ""),
    dimmed: (frame) => found !== null && !(frame.fn >= 0 && found[frame.fn]) && frame.depth > 0,
    background: dark ? "#14181d" : "#ffffff",
    merged: dark ? "#566070" : "#aab3be",
    outline: dark ? "#ffffff" : "#000000",
    font: "12px system-ui, sans-serif",
  }), [props.style, tree, found, dark, props.rootName]);

  const describe = props.describe ?? plainFigures;
  const show = (frame: Frame | null): void => {
    if (!frame) return showDetails(null);
    const fn = frame.fn;
    const functions = tree.functions;
    showDetails({
      name: fn < 0 ? frame.label || props.rootName : functions.name[fn],
      module: fn < 0 ? "" : functions.module[fn],
      where: fn >= 0 && functions.file[fn] ? `${functions.file[fn]}:${functions.line[fn]}` : "",
      figures: [...describe(frame, root), ...(fn >= 0 && tree.inlined.has(frame.node) ? ["inlined"] : [])],
    });
  };

  // A zoom glides, unless the reader wants no motion.
  const glideTo = (to: Viewport): void => {
    cancelAnimationFrame(animation.current);
    const from = viewport;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const begin = performance.now();
    const step = (now: number): void => {
      const t = still ? 1 : Math.min(1, (now - begin) / 180);
      const ease = 1 - (1 - t) ** 3;
      setViewport({ from: from.from + (to.from - from.from) * ease, to: from.to + (to.to - from.to) * ease });
      if (t < 1) animation.current = requestAnimationFrame(step);
    };
    step(still ? begin : begin + 16);
  };

  useLayoutEffect(() => {
    const focus = findPath(root, zoom);
    painter.current ??= canvas.current && new FlameCanvas(canvas.current);
    if (!painter.current || root.total <= 0) return;
    glideTo(focus ? painter.current.extent(root, focus) : kWhole);
    setSelected(focus);
    if (focus && holder.current) {
      const top = focus.depth * kRowHeight;
      const view = holder.current;
      if (top < view.scrollTop || top > view.scrollTop + view.clientHeight - 80) view.scrollTop = Math.max(0, top - 60);
    }
  }, [root, zoom]);
  useEffect(() => () => cancelAnimationFrame(animation.current), []);

  useLayoutEffect(() => {
    if (!canvas.current) return;
    painter.current ??= new FlameCanvas(canvas.current);
    const began = performance.now();
    painter.current.draw(root, viewport, scroll, selected, style);
    (window as unknown as { assayFrameMs?: number[] }).assayFrameMs?.push(performance.now() - began);
    if (painter.current.deepest > deepest || painter.current.deepest < deepest - 3) setDeepest(painter.current.deepest);
  });

  const at = (event: MouseEvent): Frame | null => {
    const box = canvas.current!.getBoundingClientRect();
    return painter.current?.frameAt(event.clientX - box.left, event.clientY - box.top) ?? null;
  };
  const choose = (frame: Frame): void => {
    setSelected(frame);
    show(frame);
    const box = holder.current;
    if (!box) return;
    const top = frame.depth * kRowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + kRowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + kRowHeight - box.clientHeight;
  };
  const zoomTo = (frame: Frame | null): void => props.onZoom(frame && frame.parent ? encodePath(frame) : "");
  const sibling = (frame: Frame, step: number): Frame => {
    const family = frame.parent ? childrenOf(frame.parent) : [frame];
    return family[Math.max(0, Math.min(family.length - 1, family.indexOf(frame) + step))];
  };
  useEffect(() => {
    const onNext = (event: Event): void => {
      if (!found) return;
      const frames = foundFrames(root, found);
      if (frames.length === 0) return;
      const step = (event as CustomEvent<number>).detail;
      const now = selected ? frames.indexOf(selected) : -1;
      const next = now < 0 ? (step > 0 ? 0 : frames.length - 1) : (now + step + frames.length) % frames.length;
      const extent = painter.current?.extent(root, frames[next]);
      if (extent && (extent.from < viewport.from || extent.to > viewport.to)) glideTo(kWhole);
      choose(frames[next]);
    };
    window.addEventListener(kNextFound, onNext);
    return () => window.removeEventListener(kNextFound, onNext);
  });
  const onKey = (event: KeyboardEvent): void => {
    const frame = selected ?? root;
    const steps: Record<string, () => void> = {
      ArrowDown: () => choose(childrenOf(frame)[0] ?? frame),
      ArrowUp: () => choose(frame.parent ?? frame),
      ArrowLeft: () => choose(sibling(frame, -1)),
      ArrowRight: () => choose(sibling(frame, 1)),
      " ": () => zoomTo(frame),
      Enter: () => frame.fn >= 0 && props.onPivot(frame.fn),
      Escape: () => zoomTo(null),
      c: () => void navigator.clipboard?.writeText(stackText(tree, frame)),
    };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const box = canvas.current!.getBoundingClientRect();
    const here = viewport.from + ((event.clientX - box.left) / width) * (viewport.to - viewport.from);
    const factor = Math.exp((event.deltaY || event.deltaX) * 0.002);
    const size = Math.min(1, (viewport.to - viewport.from) * factor);
    const from = Math.max(0, Math.min(1 - size, here - (here - viewport.from) * (size / (viewport.to - viewport.from))));
    setViewport({ from, to: from + size });
  };

  if (root.total <= 0) return <div class="empty">Nothing here: no time of this kind in the selection.</div>;
  const contentHeight = Math.max(height, (deepest + 2) * kRowHeight);
  const path = selected ? framePath(selected) : [];
  return (
    <div class="flame" ref={attach} onScroll={() => setScroll(holder.current!.scrollTop)}>
      <div style={{ height: `${contentHeight}px` }}>
        <canvas ref={canvas} class="flame-canvas" tabIndex={0} role="application" aria-label={`${props.label}. Arrow keys move, space zooms, Enter shows callers and callees.`}
                aria-describedby="flame-path" style={{ width: `${width}px`, height: `${height}px` }}
                onMouseMove={(event) => show(at(event) ?? selected)}
                onMouseLeave={() => show(selected)}
                onClick={(event) => {
                  const frame = at(event);
                  canvas.current!.focus();
                  if (frame) {
                    setSelected(frame);
                    zoomTo(frame);
                  }
                }}
                onDblClick={(event) => {
                  const frame = at(event);
                  if (frame && frame.fn >= 0) props.onPivot(frame.fn);
                }}
                onKeyDown={onKey} onWheel={onWheel} />
      </div>
      <ul id="flame-path" class="unseen" role="tree" aria-label="Selected frame, its callers and callees" aria-live="polite">
        {[...path, ...childrenOf(selected ?? root).slice(0, 12)].map((frame, i) => (
          <li key={i} role="treeitem" aria-level={frame.depth} aria-selected={frame === selected}>
            {frameName(tree, frame)} {(props.amount ?? duration)(frame.total)} {percent(frame.total / root.total)}
          </li>
        ))}
      </ul>
    </div>
  );
}
