// The frames as a tree of text: for reading, copying, and for those who cannot see the canvas.

import { useState } from "preact/hooks";
import type { Tree } from "../data/tree.ts";
import { childrenOf, type Frame } from "../flame/frames.ts";
import { duration, percent } from "../format.ts";
import { useView } from "../hooks.ts";
import { frameName } from "./flame_panel.tsx";

const kMostRows = 600;
const kSmallest = 0.002; // share of all: what is less is behind "more"

function heaviestPath(root: Frame): Set<Frame> {
  const open = new Set<Frame>([root]);
  for (let at = root; ;) {
    const kids = childrenOf(at);
    if (!kids.length || kids[0].total < root.total * 0.05) return open;
    at = kids[0];
    open.add(at);
  }
}

export function TreeTable({ root, tree }: { root: Frame; tree: Tree }) {
  const { found } = useView();
  const [open, setOpen] = useState<{ of: Frame; set: Set<Frame> }>({ of: root, set: heaviestPath(root) });
  const opened = open.of === root ? open.set : heaviestPath(root);
  const toggle = (frame: Frame): void => {
    const set = new Set(opened);
    if (!set.delete(frame)) set.add(frame);
    setOpen({ of: root, set });
  };
  const rows: Frame[] = [];
  const pending: Frame[] = [root];
  while (pending.length && rows.length < kMostRows) {
    const frame = pending.pop()!;
    rows.push(frame);
    if (!opened.has(frame)) continue;
    const kids = childrenOf(frame).filter((kid) => kid.total >= root.total * kSmallest);
    for (let i = kids.length; i-- > 0;) pending.push(kids[i]);
  }
  const onKey = (event: KeyboardEvent, frame: Frame): void => {
    const row = event.currentTarget as HTMLElement;
    const go = (element: Element | null): void => (element as HTMLElement | null)?.focus();
    if (event.key === "ArrowDown") go(row.nextElementSibling);
    else if (event.key === "ArrowUp") go(row.previousElementSibling);
    else if (event.key === "ArrowRight" && !opened.has(frame)) toggle(frame);
    else if (event.key === "ArrowLeft" && opened.has(frame)) toggle(frame);
    else if (event.key === "Enter" || event.key === " ") toggle(frame);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="scroll">
      <table class="grid" role="treegrid" aria-label="Call tree">
        <thead><tr><th class="num">total</th><th class="num">share</th><th class="num">self</th><th>function</th><th>module</th></tr></thead>
        <tbody>
          {rows.map((frame, i) => {
            const kids = childrenOf(frame).length > 0;
            return (
              <tr key={i} tabIndex={i === 0 ? 0 : -1} role="row" aria-level={frame.depth + 1} aria-expanded={kids ? opened.has(frame) : undefined}
                  class={found && frame.fn >= 0 && found[frame.fn] ? "found" : ""}
                  onKeyDown={(event) => onKey(event, frame)}>
                <td class="num">{duration(frame.total)}</td>
                <td class="num">{percent(frame.total / root.total)}</td>
                <td class="num">{frame.self > 0 ? duration(frame.self) : ""}</td>
                <td class="name" style={{ paddingLeft: `${8 + frame.depth * 11}px` }}>
                  {kids ? <button class="twist" aria-label={opened.has(frame) ? "Close" : "Open"} tabIndex={-1} onClick={() => toggle(frame)}>{opened.has(frame) ? "▾" : "▸"}</button> : <span class="twist" />}
                  <bdi>{frameName(tree, frame, "all")}</bdi>
                </td>
                <td class="muted"><bdi>{frame.fn >= 0 ? tree.functions.module[frame.fn] : ""}</bdi></td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {pending.length > 0 && <p class="muted pad">More rows than are shown here: zoom into the flame graph, or narrow the selection.</p>}
    </div>
  );
}
