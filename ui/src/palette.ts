// Colours of frames. By kind of code and, for user code, by module: hues that also differ in
// lightness, so that they stay apart without red and green.

import { CodeKind, type Functions } from "./data/tree.ts";
import type { Frame } from "./flame/frames.ts";

// hue, saturation, lightness (light theme), lightness (dark theme)
const kModules: [number, number, number, number][] = [
  [212, 62, 74, 42], [38, 80, 72, 38], [174, 42, 68, 32], [268, 40, 80, 46],
  [22, 66, 76, 40], [196, 55, 80, 36], [330, 42, 82, 44], [54, 58, 74, 34],
];

function hash(text: string): number {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

export class FrameColours {
  private cache = new Map<number, string>();
  constructor(private readonly functions: Functions, private readonly dark: boolean,
              private readonly main: string) {}

  fill(frame: Frame): string {
    const { fn } = frame;
    if (fn < 0) return this.dark ? "#39424e" : "#d5dce4";
    let colour = this.cache.get(fn);
    if (!colour) this.cache.set(fn, (colour = this.colour(fn)));
    return colour;
  }

  private colour(fn: number): string {
    const kind = this.functions.kind[fn];
    const vary = (hash(this.functions.name[fn]) % 7) - 3;
    if (kind === CodeKind.Marker) return this.dark ? "#4b4f55" : "#c9ccd0";
    if (kind === CodeKind.Kernel) {
      return this.dark ? `hsl(232 22% ${36 + vary}%)` : `hsl(232 34% ${80 + vary}%)`;
    }
    const module = this.functions.module[fn];
    const [h, s, light, dark] =
      kModules[module === this.main ? 0 : 1 + (hash(module) % (kModules.length - 1))];
    return `hsl(${h} ${this.dark ? s - 12 : s}% ${(this.dark ? dark : light) + vary}%)`;
  }

  text(): string {
    return this.dark ? "#f2f5f8" : "#14181d";
  }
}

// Blue: less than before; orange: more. `lean` from -1 to 1.
export function differenceColour(lean: number, dark: boolean): string {
  const strength = Math.min(1, Math.abs(lean));
  if (strength < 0.02) return dark ? "#3d444d" : "#d9dde2";
  const hue = lean > 0 ? 28 : 214;
  return dark
    ? `hsl(${hue} ${Math.round(20 + 60 * strength)}% ${Math.round(32 + 14 * strength)}%)`
    : `hsl(${hue} ${Math.round(35 + 55 * strength)}% ${Math.round(88 - 26 * strength)}%)`;
}
