// The current frames in other programs' formats.

import type { Tree } from "./data/tree.ts";
import { childrenOf, framePath, type Frame } from "./flame/frames.ts";

const kSmallest = 1e-6; // share of all: below it a frame's own time goes to its caller

function nameOf(tree: Tree, frame: Frame): string {
  return frame.fn < 0 ? frame.label : tree.functions.name[frame.fn];
}

// Every frame with time of its own, root first. Depth first, heaviest first.
export function* leaves(root: Frame): Generator<{ path: Frame[]; ns: number }> {
  const pending = [root];
  while (pending.length) {
    const frame = pending.pop()!;
    let own = frame.total;
    const kids = childrenOf(frame).filter((kid) => kid.total > root.total * kSmallest);
    for (let i = kids.length; i-- > 0;) {
      own -= kids[i].total;
      pending.push(kids[i]);
    }
    if (own > 0.5 && frame.parent) yield { path: framePath(frame), ns: Math.round(own) };
  }
}

export function foldedText(tree: Tree, root: Frame): string {
  const clean = (name: string): string => name.replace(/;/g, ":").replace(/[\n\r]/g, " ");
  const lines: string[] = [];
  for (const { path, ns } of leaves(root)) lines.push(`${path.map((f) => clean(nameOf(tree, f))).join(";")} ${Math.max(1, Math.round(ns / 1000))}`);
  return lines.join("\n") + "\n";
}

export function speedscopeText(tree: Tree, root: Frame, name: string): string {
  const frames: { name: string; file?: string; line?: number }[] = [];
  const ids = new Map<string, number>();
  const idOf = (frame: Frame): number => {
    const key = frame.fn >= 0 ? `${frame.fn}` : `~${frame.label}`;
    let id = ids.get(key);
    if (id === undefined) {
      id = frames.length;
      ids.set(key, id);
      const file = frame.fn >= 0 ? tree.functions.file[frame.fn] : "";
      frames.push({ name: nameOf(tree, frame), ...(file ? { file, line: tree.functions.line[frame.fn] } : {}) });
    }
    return id;
  };
  const samples: number[][] = [];
  const weights: number[] = [];
  for (const { path, ns } of leaves(root)) {
    samples.push(path.map(idOf));
    weights.push(ns);
  }
  const end = weights.reduce((a, b) => a + b, 0);
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json", exporter: "assay", name, activeProfileIndex: 0,
    shared: { frames }, profiles: [{ type: "sampled", name, unit: "nanoseconds", startValue: 0, endValue: end, samples, weights }],
  });
}

class Proto {
  private bytes: number[] = [];
  varint(value: number): this {
    let rest = value;
    while (rest >= 128) {
      this.bytes.push((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    this.bytes.push(rest);
    return this;
  }
  number(field: number, value: number): this {
    return this.varint(field * 8).varint(value);
  }
  data(field: number, data: Uint8Array | number[]): this {
    this.varint(field * 8 + 2).varint(data.length);
    for (const byte of data) this.bytes.push(byte);
    return this;
  }
  packed(field: number, values: number[]): this {
    const inner = new Proto();
    values.forEach((value) => inner.varint(value));
    return this.data(field, inner.bytes);
  }
  message(field: number, fill: (inner: Proto) => void): this {
    const inner = new Proto();
    fill(inner);
    return this.data(field, inner.bytes);
  }
  done(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.bytes);
  }
}

// profile.proto: sample types (1), samples (2), locations (4), functions (5), strings (6).
export function pprofBytes(tree: Tree, root: Frame, type: string): Uint8Array<ArrayBuffer> {
  const strings = [""];
  const known = new Map<string, number>([["", 0]]);
  const text = (value: string): number => {
    let id = known.get(value);
    if (id === undefined) {
      id = strings.length;
      strings.push(value);
      known.set(value, id);
    }
    return id;
  };
  const proto = new Proto();
  proto.message(1, (m) => m.number(1, text(type)).number(2, text("nanoseconds")));
  const ids = new Map<string, { id: number; frame: Frame }>();
  for (const { path, ns } of leaves(root)) {
    const locations = path.map((frame) => {
      const key = frame.fn >= 0 ? `${frame.fn}` : `~${frame.label}`;
      let entry = ids.get(key);
      if (!entry) ids.set(key, (entry = { id: ids.size + 1, frame }));
      return entry.id;
    });
    proto.message(2, (m) => m.packed(1, locations.reverse()).packed(2, [ns]));
  }
  for (const { id, frame } of ids.values()) {
    const fn = frame.fn;
    const line = fn >= 0 ? tree.functions.line[fn] : 0;
    proto.message(4, (m) => m.number(1, id).message(4, (l) => l.number(1, id).number(2, line)));
    proto.message(5, (m) => m.number(1, id).number(2, text(nameOf(tree, frame))).number(3, text(nameOf(tree, frame)))
      .number(4, text(fn >= 0 ? tree.functions.file[fn] : "")).number(5, line));
  }
  const encoder = new TextEncoder();
  for (const value of strings) proto.data(6, encoder.encode(value));
  return proto.done();
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

export function tsvText(tree: Tree, root: Frame): string {
  const lines = ["depth\ttotal_ns\tself_ns\tcount\tfunction\tmodule"];
  const pending = [root];
  while (pending.length && lines.length < 200_000) {
    const frame = pending.pop()!;
    const module = frame.fn >= 0 ? tree.functions.module[frame.fn] : "";
    lines.push([frame.depth, Math.round(frame.total), Math.round(frame.self), frame.count, nameOf(tree, frame) || "all", module].map((v) => String(v).replace(/[\t\n\r]/g, " ")).join("\t"));
    const kids = childrenOf(frame).filter((kid) => kid.total > root.total * kSmallest);
    for (let i = kids.length; i-- > 0;) pending.push(kids[i]);
  }
  return lines.join("\n") + "\n";
}
