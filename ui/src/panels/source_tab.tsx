// Source: the hot lines of a file, with their text where it is known.

import { useMemo } from "preact/hooks";
import { duration, percent } from "../format.ts";
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
  const answer = useAnswer(`lines ${selectionKey}`, () => run.lines({ ...selection, functions: null }));
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
  const chosen = files.find((f) => f.file === state.file) ?? files[0];
  const last = chosen ? chosen.lines[chosen.lines.length - 1].line : 0;
  const first = chosen ? Math.max(1, chosen.lines[0].line - kAround) : 1;
  const text = useAnswer(`source ${run.id} ${chosen?.file}`, () =>
    chosen ? run.source(chosen.file, first, Math.min(last + kAround, first + 4999)) : Promise.resolve({ file: "", from: 1, origin: "none", lines: [] as string[] }));
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Reading lines …</p>;
  if (!chosen) return <div class="empty">No source lines: the modules of this run have no debug information, or nothing is selected. <br />Programs built with <code>-g</code>, or with their debug packages installed, have them.</div>;
  const known = text.value && text.value.file === chosen.file ? text.value : null;
  const total = files.reduce((sum, f) => sum + f.self, 0);
  const most = Math.max(1, ...chosen.lines.map((l) => l.total));
  const hot = new Map(chosen.lines.map((l) => [l.line, l]));
  const rows: number[] = [];
  if (known && known.lines.length) {
    for (const l of chosen.lines) {
      if (l.total <= 0) continue;
      for (let line = Math.max(1, l.line - kAround); line <= l.line + kAround; ++line) {
        if (!rows.length || line > rows[rows.length - 1]) rows.push(line);
      }
    }
  } else {
    rows.push(...chosen.lines.filter((l) => l.total > 0).map((l) => l.line));
  }
  return (
    <div class="tab-body">
      <div class="tools">
        <select aria-label="File" class="wide" value={chosen.file} onChange={(event) => store.set({ file: event.currentTarget.value })}>
          {files.slice(0, kMostFiles).map((f) => <option key={f.file} value={f.file}>{percent(f.self / Math.max(1, total))}  {f.file}</option>)}
        </select>
        <span class="tools-note">{off ? "blocked" : "on-CPU"} · self {duration(chosen.self)}</span>
        <span class="muted">{known?.origin === "disk" ? "text from this machine's disk, which may be newer than the run" : known?.origin === "none" ? "the text of this file is not known here" : ""}{run.live ? "" : " " + kWholeRunNote}</span>
      </div>
      <div class="scroll">
        <table class="grid source" aria-label={`Source of ${chosen.file}`}>
          <thead><tr><th class="num">self</th><th class="num">total</th><th class="num">line</th><th>text</th></tr></thead>
          <tbody>
            {rows.map((line, i) => {
              const l = hot.get(line);
              const gap = i > 0 && line > rows[i - 1] + 1;
              return (
                <tr key={line} class={(l && l.total > 0 ? "hot" : "") + (gap ? " gap" : "")}>
                  <td class="num">{l && l.self > 0 ? duration(l.self) : ""}</td>
                  <td class="num">{l && l.total > 0 && <><i class="cell-bar" style={{ width: `${(l.total / most) * 100}%` }} /><span>{duration(l.total)}</span></>}</td>
                  <td class="num muted">{line}</td>
                  <td class="code"><bdi>{known?.lines[line - known.from] ?? (l ? `in ${l.fn}` : "")}</bdi></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}
