// Export of what is selected: the frames of the flame tab, as they stand; on the heap tab, the heap.

import { useRef } from "preact/hooks";
import { foldedText, pprofBytes, speedscopeText, svgText, tsvText } from "../export.ts";
import { findPath } from "../flame/frames.ts";
import { useView, type View } from "../hooks.ts";
import { FrameColours } from "../palette.ts";
import { mainModule, useFlameRoot } from "./flame_tab.tsx";

function save(name: string, data: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
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

// What the server writes of the heap; a page that is a file has its picture only.
function heapEntries({ run, state, selection }: View, base: string): Entry[] {
  const metric = state.heapOf === "allocated" ? "alloc_space" : "inuse_space";
  const whole = selection.from <= 0 && selection.to >= run.meta.window_ns;
  const range = whole ? "" : `&from=${Math.round(selection.from)}&to=${Math.round(selection.to)}`;
  const written: [title: string, help: string, format: string][] = [
    ["pprof", "live and allocated, for go tool pprof", "pprof"],
    ["Folded stacks", "bytes, for flame graph tools", "folded"],
    ["SVG", "a flame graph that zooms and searches", "svg"],
    ["gperftools", "heap profile text, for google-pprof", "gperftools-heap"],
  ];
  const entries: Entry[] = written.map(([title, help, format]) =>
    [title, help, () => location.assign(`api/runs/${run.id}/export?format=${format}&metric=${metric}${range}`)]);
  return [...(run.live ? entries : []), ["PNG", "the flame graph as it is drawn", () => savePicture(`${base}-${metric}`)]];
}

export function ExportMenu() {
  const view = useView();
  const { tree, run, state } = view;
  const all = useFlameRoot();
  const menu = useRef<HTMLDetailsElement>(null);
  const base = run.meta.run.replace(/\.assay$/, "").replace(/[^\w.-]/g, "_") || "run";
  const metric = state.only || { cpu: "cpu", off: "off_cpu", wall: "wall" }[state.metric];
  const name = `${base}-${metric}`;
  const root = (): typeof all => findPath(all, state.zoom) ?? all;
  const ofTime: Entry[] = [
    ["Folded stacks", "microseconds, for flame graph tools", () => save(`${name}.folded`, foldedText(tree, all), "text/plain")],
    ["pprof", "for go tool pprof and others", async () => save(`${name}.pb.gz`, await gzip(pprofBytes(tree, all, metric)), "application/octet-stream")],
    ["speedscope", "JSON for speedscope.app", () => save(`${name}.speedscope.json`, speedscopeText(tree, all, name), "application/json")],
    ["SVG", "a picture of the frames in view", () => {
      const colours = new FrameColours(tree.functions, false, mainModule(view));
      save(`${name}.svg`, svgText(tree, root(), (frame) => colours.fill(frame), name), "image/svg+xml");
    }],
    ["PNG", "the flame graph as it is drawn", () => savePicture(name)],
    ["TSV", "one row per frame, for spreadsheets", () => save(`${name}.tsv`, tsvText(tree, all), "text/tab-separated-values")],
  ];
  const ofPage: Entry = ["This page as one file", "the whole run, to send to somebody", () => {
    if (run.live) location.assign(`api/runs/${run.id}/html`);
    else save(`${base}.html`, ownSource(), "text/html");
  }];
  const formats = [...(state.tab === "heap" ? heapEntries(view, base) : ofTime), ofPage];
  return (
    <details class="menu" id="export" ref={menu}>
      <summary title="Export what is selected (x)">Export</summary>
      <div class="menu-body" role="menu">
        {formats.map(([title, help, go]) => (
          <button key={title} role="menuitem" onClick={() => {
            void go();
            if (menu.current) menu.current.open = false;
          }}><b>{title}</b><small class="muted">{help}</small></button>
        ))}
      </div>
    </details>
  );
}
