// FlameCanvas: draws frames on a canvas and tells which frame lies under a point.
//
// Only what is wider than half a pixel is visited: children come heaviest first, so the first that is
// too narrow ends its family with one mark for all the rest. No frame is dropped: zooming in brings
// it back.

import { TextFitter } from "./fit_text.ts";
import { childrenOf, framePath, type Frame } from "./frames.ts";

export const kRowHeight = 19;
const kNarrowest = 0.5; // pixels

export interface FlameStyle {
  fill(frame: Frame): string;
  text(frame: Frame): string;
  name(frame: Frame): string;
  dimmed(frame: Frame): boolean;
  hatched(frame: Frame): boolean;
  background: string;
  merged: string;
  outline: string;
  font: string;
}

interface Box {
  frame: Frame;
  x: number;
  y: number;
  w: number;
}

export interface Viewport {
  from: number; // share of the root's width
  to: number;
}

export class FlameCanvas {
  private boxes: Box[] = [];
  private texts = new TextFitter();
  deepest = 0;

  constructor(readonly canvas: HTMLCanvasElement) {}

  // Where a frame lies, as a share of the root.
  extent(root: Frame, frame: Frame): Viewport {
    let from = 0;
    let at = root;
    for (const step of framePath(frame)) {
      for (const kid of childrenOf(at)) {
        if (kid === step) break;
        from += kid.total;
      }
      at = step;
    }
    return { from: from / root.total, to: (from + frame.total) / root.total };
  }

  frameAt(x: number, y: number): Frame | null {
    for (let i = this.boxes.length - 1; i >= 0; --i) {
      const box = this.boxes[i];
      if (x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + kRowHeight) return box.frame;
    }
    return null;
  }

  draw(root: Frame, viewport: Viewport, scrollTop: number, selected: Frame | null,
       style: FlameStyle): void {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = style.background;
    context.fillRect(0, 0, width, height);
    context.font = style.font;
    context.textBaseline = "middle";
    this.boxes = [];
    this.deepest = 0;
    if (root.total <= 0) return;
    const scale = width / ((viewport.to - viewport.from) * root.total);
    const left = -viewport.from * root.total * scale;
    // Depth first without recursion; each entry is one family.
    const frames: Frame[] = [root];
    const xs: number[] = [left];
    while (frames.length) {
      const frame = frames.pop()!;
      const x = xs.pop()!;
      const w = frame.total * scale;
      const y = frame.depth * kRowHeight - scrollTop;
      if (frame.depth > this.deepest) this.deepest = frame.depth;
      if (y + kRowHeight > 0 && y < height) this.drawFrame(context, frame, x, y, w, width, selected, style);
      if (y >= height && frame.depth > 200) continue; // far below: only its depth would be learnt
      this.pushKids(context, frame, x, scale, width, height, scrollTop, style, frames, xs);
    }
    this.outlineSelected(context, selected, style);
  }

  private pushKids(context: CanvasRenderingContext2D, frame: Frame, x: number, scale: number,
                   width: number, height: number, scrollTop: number, style: FlameStyle,
                   frames: Frame[], xs: number[]): void {
    const kids = childrenOf(frame);
    const y = (frame.depth + 1) * kRowHeight - scrollTop;
    let at = x;
    for (let i = 0; i < kids.length; ++i) {
      const w = kids[i].total * scale;
      if (w < kNarrowest) {
        let rest = 0;
        for (let k = i; k < kids.length; ++k) rest += kids[k].total;
        const wide = rest * scale;
        if (wide >= kNarrowest && y + kRowHeight > 0 && y < height && at < width && at + wide > 0) {
          context.fillStyle = style.merged;
          context.fillRect(Math.max(0, at), y + kRowHeight / 2 - 1, Math.min(wide, width), 2);
        }
        break;
      }
      if (at + w > 0 && at < width) {
        frames.push(kids[i]);
        xs.push(at);
      }
      at += w;
    }
  }

  private drawFrame(context: CanvasRenderingContext2D, frame: Frame, x: number, y: number, w: number,
                    width: number, _selected: Frame | null, style: FlameStyle): void {
    const left = Math.max(0, x);
    const right = Math.min(width, x + w);
    const wide = right - left;
    this.boxes.push({ frame, x: left, y, w: wide });
    const gap = wide > 3 ? 1 : 0;
    const dimmed = style.dimmed(frame);
    context.globalAlpha = dimmed ? 0.38 : 1;
    context.fillStyle = style.fill(frame);
    context.fillRect(left, y, wide - gap, kRowHeight - 1);
    if (style.hatched(frame) && wide > 6) hatch(context, left, y, wide - gap, kRowHeight - 1, style.background);
    if (wide >= 26) {
      context.globalAlpha = dimmed ? 0.72 : 1;
      context.fillStyle = style.text(frame);
      context.fillText(this.texts.fit(context, style.name(frame), wide - 9), left + 4, y + kRowHeight / 2);
    }
    context.globalAlpha = 1;
  }

  private outlineSelected(context: CanvasRenderingContext2D, selected: Frame | null,
                          style: FlameStyle): void {
    const box = selected && this.boxes.find((b) => b.frame === selected);
    if (!box) return;
    context.strokeStyle = style.outline;
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, box.y + 1, Math.max(1, box.w - 3), kRowHeight - 3);
  }
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number,
               colour: string): void {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = colour;
  context.globalAlpha *= 0.55;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - h; at < x + w; at += 6) {
    context.moveTo(at, y + h);
    context.lineTo(at + h, y);
  }
  context.stroke();
  context.restore();
}
