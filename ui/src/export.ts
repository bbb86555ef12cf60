// The current frames as a picture; files for other programs come from the server (src/formats).

import type { Tree } from "./data/tree.ts";
import { childrenOf, type Frame } from "./flame/frames.ts";

function nameOf(tree: Tree, frame: Frame): string {
  return frame.fn < 0 ? frame.label : tree.functions.name[frame.fn];
}

export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");
}

// A still picture of the frames as wide as 1200 units; what is narrower than a tenth is left out.
export function svgText(tree: Tree, root: Frame, fill: (frame: Frame) => string, title: string): string {
  const width = 1200;
  const row = 18;
  const boxes: string[] = [];
  let deepest = 0;
  const pending: [Frame, number][] = [[root, 0]];
  while (pending.length) {
    const [frame, x] = pending.pop()!;
    const w = (frame.total / root.total) * width;
    deepest = Math.max(deepest, frame.depth - root.depth);
    const name = nameOf(tree, frame) || "all";
    const shown = frame.fn >= 0 ? tree.functions.short[frame.fn] : name;
    const letters = Math.floor((w - 6) / 6.6);
    const label = letters < 3 ? "" : shown.length > letters ? shown.slice(0, letters - 1) + "…" : shown;
    const y = (frame.depth - root.depth) * row + 24;
    boxes.push(`<g><title>${escapeXml(`${name.slice(0, 2000)} (${((frame.total / root.total) * 100).toFixed(2)} %)`)}</title>` +
      `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.1, w - 0.4).toFixed(2)}" height="${row - 1}" fill="${fill(frame)}"/>` +
      (label ? `<text x="${(x + 3).toFixed(2)}" y="${y + 12}">${escapeXml(label)}</text>` : "") + "</g>");
    let at = x;
    for (const kid of childrenOf(frame)) {
      const wide = (kid.total / root.total) * width;
      if (wide < 0.1) break;
      pending.push([kid, at]);
      at += wide;
    }
  }
  const height = (deepest + 1) * row + 32;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">` +
    `<rect width="100%" height="100%" fill="#fff"/><text x="4" y="15" font-size="13">${escapeXml(title)}</text>${boxes.join("")}</svg>`;
}
