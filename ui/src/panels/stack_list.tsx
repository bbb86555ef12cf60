// A stack as text that can be selected and copied, innermost function first.

import { useState } from "preact/hooks";
import type { Frame as ReportFrame } from "../data/report.ts";
import { pathOf, type Tree } from "../data/tree.ts";

export interface StackLine {
  name: string;
  where: string;
  kernel: boolean;
}

export function nodeStack(tree: Tree, node: number): StackLine[] {
  return pathOf(tree, node).reverse().map((at) => {
    const fn = tree.fn[at];
    const file = tree.functions.file[fn];
    return { name: tree.functions.name[fn], where: file ? `${file.slice(file.lastIndexOf("/") + 1)}:${tree.functions.line[fn]}` : tree.functions.module[fn], kernel: tree.functions.kind[fn] === 1 };
  });
}

export function reportStack(frames: ReportFrame[]): StackLine[] {
  return frames.map((frame) => ({
    name: frame.function, kernel: frame.kind === "kernel",
    where: frame.file ? `${frame.file.slice(frame.file.lastIndexOf("/") + 1)}${frame.line ? `:${frame.line}` : ""}` : frame.module,
  }));
}

export function StackList({ lines }: { lines: StackLine[] }) {
  const [copied, setCopied] = useState(false);
  if (!lines.length) return <p class="muted">No stack was taken.</p>;
  const copy = (): void => {
    void navigator.clipboard?.writeText(lines.map((line) => line.name).join("\n")).then(() => setCopied(true));
  };
  return (
    <div class="stack">
      <button class="copy" onClick={copy}>{copied ? "copied" : "copy stack"}</button>
      <ol>{lines.map((line, i) => <li key={i} class={line.kernel ? "kernel" : ""}><bdi>{line.name}</bdi> <span class="muted"><bdi>{line.where}</bdi></span></li>)}</ol>
    </div>
  );
}
