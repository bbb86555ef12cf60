// Source: the hot lines of a file, with their text where it is known.

import { useMemo } from "preact/hooks";
import { duration, percent, tidyPath } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { matcher } from "../search.ts";
import { kWholeRunNote } from "./waits_tab.tsx";

const kAround = 6; // lines shown above and below a hot one
const kMostFiles = 300;

interface HotLine {
  line: number;
  fn: string;
  self: number;
  total: number;
}

export function SourceTab() {
  const { run, selection, selectionKey, state, store } = useView();
  const answer = useAnswer(`lines ${selectionKey}`, (signal) => run.lines({ ...selection, functions: null }, signal));
  const off = state.metric === "off";
  const files = useMemo(() => {
    const table = answer.value;
    if (!table) return [];
    const byFile = new Map<string, { file: string; self: number; lines: HotLine[] }>();
    const { numbers, texts } = table;
    numbers.line.forEach((line, i) => {
      const file = texts.files[numbers.file[i]];
      let entry = byFile.get(file);
      if (!entry) byFile.set(file, (entry = { file, self: 0, lines: [] }));
      const self = numbers[off ? "off_self" : "cpu_self"][i];
      entry.self += self;
      entry.lines.push({ line, fn: texts.functions[numbers.function[i]], self, total: numbers[off ? "off_total" : "cpu_total"][i] });
    });
    const matches = matcher(state.search);
    return [...byFile.values()]
      .filter((f) => f.lines.some((l) => l.total > 0) && (!matches || matches(f.file) || f.lines.some((l) => matches(l.fn))))
      .sort((a, b) => b.self - a.self || b.lines.length - a.lines.length);
  }, [answer.value, off, state.search]);
  // A file that was asked for is shown though no time was seen in it, as where memory is allocated.
  const asked = state.file ? { file: state.file, self: 0, lines: [] as HotLine[] } : undefined;
  const chosen = files.find((f) => f.file === state.file) ?? asked ?? files[0];
  const looked = state.file === chosen?.file ? state.line : 0;
  const numbers = [...(chosen?.lines.map((l) => l.line) ?? []), ...(looked ? [looked] : [])];
  const last = numbers.reduce((a, b) => Math.max(a, b), 1);
  const first = Math.max(1, numbers.reduce((a, b) => Math.min(a, b), last) - kAround);
  const text = useAnswer(`source ${run.id} ${chosen?.file} ${first} ${last}`, () =>
    chosen ? run.source(chosen.file, first, Math.min(last + kAround, first + 4999)) : Promise.resolve({ file: "", from: 1, origin: "none", lines: [] as string[] }));
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Reading lines …</p>;
  if (!chosen) return <div class="empty">No source lines: the modules of this run have no debug information, or nothing is selected. <br />Programs built with <code>-g</code>, or with their debug packages installed, have them.</div>;
  const known = text.value && text.value.file === chosen.file ? text.value : null;
  const total = files.reduce((sum, f) => sum + f.self, 0);
  const most = Math.max(1, ...chosen.lines.map((l) => l.total));
  const hot = new Map(chosen.lines.map((l) => [l.line, l]));
  const shown = chosen.lines.filter((l) => l.total > 0).map((l) => l.line);
  if (looked && !shown.includes(looked)) shown.push(looked);
  const told = known !== null && known.origin !== "none";
  const around = told ? kAround : 0;
  const rows = [...new Set(shown.flatMap((line) => Array.from({ length: 2 * around + 1 }, (_, i) => line - around + i)))]
    .filter((line) => line >= 1).sort((a, b) => a - b);
  return (
    <div class="tab-body">
      <div class="tools">
        <select aria-label="File" class="wide" value={chosen.file} onChange={(event) => store.set({ file: event.currentTarget.value, line: 0 })}>
          {chosen === asked && <option value={chosen.file}>no time  {tidyPath(chosen.file)}</option>}
          {files.slice(0, kMostFiles).map((f) => <option key={f.file} value={f.file}>{percent(f.self / Math.max(1, total))}  {tidyPath(f.file)}</option>)}
        </select>
        <span class="tools-note">{off ? "blocked" : "on-CPU"} · self {duration(chosen.self)}</span>
        <span class="muted">{chosen === asked ? "no samples or waits in this file; " : ""}{known?.origin === "disk" ? "text from this machine's disk; it may be newer than the run" : known?.origin === "none" ? "the source text of this file is not available" : ""}{run.live ? "" : " " + kWholeRunNote}</span>
      </div>
      <div class="scroll">
        <table class="grid source" aria-label={`Source of ${chosen.file}`}>
          <thead><tr><th class="num">self</th><th class="num">total</th><th class="num">line</th><th>text</th></tr></thead>
          <tbody>
            {rows.map((line, i) => {
              const l = hot.get(line);
              const gap = i > 0 && line > rows[i - 1] + 1;
              return (
                <tr key={line} class={(l && l.total > 0 ? "hot" : "") + (gap ? " gap" : "") + (line === looked ? " looked" : "")}>
                  <td class="num">{l && l.self > 0 ? duration(l.self) : ""}</td>
                  <td class="num">{l && l.total > 0 && <><i class="cell-bar" style={{ width: `${(l.total / most) * 100}%` }} /><span>{duration(l.total)}</span></>}</td>
                  <td class="num muted">{line}</td>
                  <td class="code"><bdi>{told ? known.lines[line - known.from] ?? "" : l ? `in ${l.fn}` : ""}</bdi></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}
