// Findings: what holds the server back, with the evidence and what to do about it.

import { useEffect } from "preact/hooks";
import type { Evidence, Finding } from "../data/report.ts";
import { duration, percent } from "../format.ts";
import { useView } from "../hooks.ts";
import { reportStack, StackList } from "./stack_list.tsx";

function EvidenceItem({ evidence }: { evidence: Evidence | string }) {
  if (typeof evidence === "string") return <p>{evidence}</p>;
  const frames = evidence.frames ?? evidence.stack;
  const figures = [
    evidence.share !== undefined ? percent(evidence.share) : "",
    evidence.time_ns !== undefined ? duration(evidence.time_ns) : "",
    evidence.count !== undefined ? `${evidence.count} times` : "",
  ].filter(Boolean).join(" · ");
  return (
    <div class="evidence">
      {evidence.text && <p>{evidence.text}</p>}
      {figures && <p class="muted">{figures}</p>}
      {frames && <StackList lines={reportStack(frames)} />}
    </div>
  );
}

function FindingCard({ finding, open }: { finding: Finding; open: boolean }) {
  const { store } = useView();
  const where = finding.where;
  return (
    <article class={"finding" + (open ? " on" : "")} id={`finding-${finding.id}`}>
      <header>
        <h2>{finding.title}</h2>
        {finding.share !== undefined && <span class="big">{percent(finding.share)}</span>}
        {finding.ci && <span class="muted">95 %: {percent(finding.ci[0])} – {percent(finding.ci[1])}</span>}
      </header>
      {where && (where.symbol || where.file) && (
        <p class="muted">at <bdi>{where.symbol}</bdi> {where.file && <bdi>{where.file}{where.line ? `:${where.line}` : ""}</bdi>}
          {where.symbol && <button class="toggle" onClick={() => store.set({ search: where.symbol!, tab: "flame" })}>Show in the flame graph</button>}</p>
      )}
      {finding.recommendation && <p class="advice"><b>Do</b> {finding.recommendation}</p>}
      {typeof finding.gain_upper_bound === "number" && <p class="muted">Gain at most {percent(finding.gain_upper_bound)}.</p>}
      {finding.evidence && finding.evidence.length > 0 && (
        <details open={open}><summary>{finding.evidence.length} {finding.evidence.length === 1 ? "piece" : "pieces"} of evidence</summary>
          {finding.evidence.map((evidence, i) => <EvidenceItem key={i} evidence={evidence} />)}</details>
      )}
    </article>
  );
}

export function FindingsTab() {
  const { report, state } = useView();
  useEffect(() => {
    if (state.finding) document.getElementById(`finding-${state.finding}`)?.scrollIntoView({ block: "nearest" });
  }, [state.finding]);
  if (report.verdict?.kind === "withheld") {
    return (
      <div class="scroll pad findings">
        <h2>The verdict is withheld</h2>
        <p>{report.verdict.sentence}</p>
        {report.quality.limits.map((limit) => <p key={limit.text}><b>{limit.topic}</b>: {limit.text} {limit.remedy && <code>{limit.remedy}</code>}</p>)}
        {(report.findings ?? []).map((finding) => <FindingCard key={finding.id} finding={finding} open={state.finding === finding.id} />)}
      </div>
    );
  }
  if (!report.findings) return <div class="empty">This run's report has no findings: it was made by an Assay that does not look for them yet.</div>;
  const others = report.not_bottlenecks ?? [];
  return (
    <div class="scroll pad findings">
      {report.findings.length === 0 && <p>Nothing stands out: no finding is above its threshold.</p>}
      {report.findings.map((finding) => <FindingCard key={finding.id} finding={finding} open={state.finding === finding.id} />)}
      {others.length > 0 && <><h2>Not the bottleneck</h2><ul>{others.map((item, i) => <li key={i}>{typeof item === "string" ? item : item.sentence ?? item.text ?? item.title}</li>)}</ul></>}
    </div>
  );
}
