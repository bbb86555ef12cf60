// Findings: what holds the server back, with the evidence and what to do about it.

import { useEffect } from "preact/hooks";
import type { Evidence, Finding } from "../data/report.ts";
import { percent, tidyPath } from "../format.ts";
import { useView } from "../hooks.ts";
import { reportStack, StackList } from "./stack_list.tsx";

const asList = (value: string[] | string | undefined): string[] => (Array.isArray(value) ? value : value ? [value] : []);

// A name of templates can fill the screen; the whole of it is in the title and in the stacks.
const kLongestName = 160;
const cut = (name: string): string => (name.length > kLongestName ? `${name.slice(0, kLongestName)} …` : name);

function EvidenceItem({ evidence }: { evidence: Evidence }) {
  const source = asList(evidence.source);
  return (
    <div class="evidence">
      {evidence.text && <p>{evidence.text}</p>}
      {source.length > 0 && <pre>{source.map((line, i) => `${(evidence.source_line ?? 1) + i}  ${line}`).join("\n")}</pre>}
      {evidence.frames && evidence.frames.length > 0 && <StackList lines={reportStack(evidence.frames)} />}
    </div>
  );
}

function FindingCard({ finding, open }: { finding: Finding; open: boolean }) {
  const { store } = useView();
  const where = finding.where;
  const pieces = finding.evidence ?? [];
  return (
    <article class={"finding" + (open ? " on" : "")} id={`finding-${finding.id}`}>
      <header>
        <h2>{finding.title}</h2>
        {finding.share !== undefined && <span class="big">{percent(finding.share)}</span>}
        <span class="muted">{finding.share_of ? `of ${finding.share_of}` : ""}{finding.ci ? ` · 95 %: ${percent(finding.ci[0])} – ${percent(finding.ci[1])}` : ""}</span>
      </header>
      {asList(finding.because).map((text) => <p key={text}>{text}</p>)}
      {where && (where.symbol || where.file) && (
        <p class="muted">at <bdi title={where.symbol}>{cut(where.symbol ?? "")}</bdi> {where.file && <bdi>{tidyPath(where.file)}{where.line ? `:${where.line}` : ""}</bdi>}
          {where.symbol && <button class="toggle" onClick={() => store.set({ search: where.symbol!, tab: "flame", metric: "wall", only: "" })}>Show in the flame graph</button>}
          {where.file && <button class="toggle" onClick={() => store.set({ file: where.file!, line: where.line ?? 0, tab: "source" })}>Source</button>}</p>
      )}
      {finding.recommendation && <p class="advice"><b>Try</b> {finding.recommendation}</p>}
      {finding.gain ? <p class="muted">{finding.gain}</p>
        : typeof finding.gain_upper_bound === "number" && <p class="muted">Gain at most {percent(finding.gain_upper_bound)}.</p>}
      {pieces.length > 0 && (
        <details open={open || undefined}><summary>{pieces.length} {pieces.length === 1 ? "piece" : "pieces"} of evidence</summary>
          {pieces.map((evidence, i) => <EvidenceItem key={i} evidence={evidence} />)}</details>
      )}
    </article>
  );
}

export function FindingsTab() {
  const { report, state, judged } = useView();
  useEffect(() => {
    if (state.finding) document.getElementById(`finding-${state.finding}`)?.scrollIntoView({ block: "nearest" });
  }, [state.finding]);
  if (!judged) return <p class="loading">Computing the verdict …</p>;
  if (!report.findings) return <div class="empty">This report has no findings: it was made by a version of Assay without them.</div>;
  const others = report.not_bottlenecks ?? [];
  const withheld = report.verdict?.kind === "withheld" ? report.verdict : null;
  return (
    <div class="scroll pad findings">
      {withheld && <>
        <h2>The verdict is withheld</h2>
        <p>{withheld.sentence}</p>
        <ul>{(withheld.withheld ?? []).map((reason) => <li key={reason.why}>{reason.why} {reason.remedy && <code>{reason.remedy}</code>}</li>)}</ul>
      </>}
      {(report.verdict?.secondary ?? []).length > 0 && <ul class="plain">{report.verdict!.secondary!.map((claim) => <li key={claim.kind}><b>{withheld ? "Would be" : "Also"} {claim.kind.replaceAll("-", " ")}</b>: {claim.sentence}</li>)}</ul>}
      {(report.accelerators ?? []).map((device) => <p class="muted" key={device.figures}><b>Device</b> {device.figures}</p>)}
      {report.findings.length === 0 && <p>No findings: no rule is above its threshold.</p>}
      {report.findings.map((finding) => <FindingCard key={finding.id} finding={finding} open={state.finding === finding.id} />)}
      {others.length > 0 && <><h2>Not the bottleneck</h2><ul>{others.map((item, i) => <li key={i}><b>{item.what}</b>: {item.text}</li>)}</ul></>}
    </div>
  );
}
