// Export of what is selected. The server writes every format that it has for the metric in view; pictures are drawn
// here, so a page that is a file has pictures and itself.

import { useRef } from "preact/hooks";
import type { WrittenFormat } from "../data/run_source.ts";
import { svgText } from "../export.ts";
import { findPath } from "../flame/frames.ts";
import { useAnswer, useView, type View } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import { mainModule, useFlameRoot } from "./flame_tab.tsx";

function save(name: string, data: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// This page as it came: without what it has drawn since.
function ownSource(): string {
  const copy = document.documentElement.cloneNode(true) as HTMLElement;
  copy.querySelector("#app")!.textContent = "";
  return "<!doctype html>\n" + copy.outerHTML;
}

type Entry = [title: string, help: string, go: () => void | Promise<void>];

function savePicture(name: string): void {
  document.querySelector<HTMLCanvasElement>("canvas.flame-canvas")?.toBlob((blob) => blob && save(`${name}.png`, blob, "image/png"));
}

// The server's name for what the tab shows; empty: it writes no such thing (one kind of wait alone).
function metricInView({ state }: View): string {
  if (state.tab === "heap") return state.heapOf === "allocated" ? "alloc_space" : "inuse_space";
  if (!state.only) return state.metric;
  return { running: "cpu", lock: "lock", runqueue: "runqueue" }[state.only] ?? "";
}

function written(view: View, formats: WrittenFormat[], base: string): Entry[] {
  const { run, state, selection } = view;
  const metric = metricInView(view);
  const more: Record<string, string> = { metric };
  if (metric === "off") more.idle = "0"; // as the page shows it
  if (state.tab !== "heap" && state.inverted) more.inverted = "1";
  if (state.tab !== "heap" && state.byThread) more.by = "thread";
  return formats.filter((format) => format.metrics.includes(metric)).map(({ name, title, help, suffix }) =>
    [title, help, async () => {
      try {
        save(`${base}-${metric}${suffix}`, await run.exported(name, selection, more), "application/octet-stream");
      } catch (error) {
        alert(error instanceof Error ? error.message : String(error));
      }
    }]);
}

export function ExportMenu() {
  const view = useView();
  const { tree, run, state } = view;
  const all = useFlameRoot();
  const menu = useRef<HTMLDetailsElement>(null);
  const formats = useAnswer(`formats ${run.id}`, () => run.formats());
  const base = run.meta.run.replace(/\.assay$/, "").replace(/[^\w.-]/g, "_") || "run";
  const name = `${base}-${metricInView(view) || state.only}`;
  const root = (): typeof all => findPath(all, state.zoom) ?? all;
  const pictures: Entry[] = [["PNG", "the flame graph as it is drawn", () => savePicture(name)]];
  if (state.tab !== "heap") {
    pictures.push(["Picture", "SVG of the frames in view", () => {
      const colours = new FrameColours(tree.functions, false, mainModule(view));
      save(`${name}.svg`, svgText(tree, root(), (frame) => colours.fill(frame), name), "image/svg+xml");
    }]);
  }
  const ofPage: Entry = ["This page as one file", "the whole run in one HTML file that works without Assay", () => {
    if (run.live) location.assign(`api/runs/${run.id}/html`);
    else save(`${base}.html`, ownSource(), "text/html");
  }];
  const entries = [...written(view, formats.value ?? [], base), ...pictures, ofPage];
  return (
    <details class="menu" id="export" ref={menu}>
      <summary title="Export the selection (x)">Export</summary>
      <div class="menu-body" role="menu">
        {entries.map(([title, help, go]) => (
          <button key={title} role="menuitem" onClick={() => {
            void go();
            if (menu.current) menu.current.open = false;
          }}><b>{title}</b><small class="muted">{help}</small></button>
        ))}
      </div>
    </details>
  );
}
