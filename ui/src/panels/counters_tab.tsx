// Counters: every series of the run as a small chart on the run's axis.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { showDetails } from "../details.ts";
import { amount, seconds } from "../format.ts";
import { useAnswer, useView } from "../hooks.ts";
import { matcher } from "../search.ts";
import { asRate, kScopes, readLines, type Line } from "../time/load_series.ts";

const kMostCharts = 120;

function Chart({ line, title }: { line: Line; title: string }) {
  const { dark, run, state, selection } = useView();
  const canvas = useRef<HTMLCanvasElement>(null);
  const rate = useMemo(() => asRate(line), [line]);
  const most = rate.value.reduce((a, b) => Math.max(a, b), 0);
  const least = rate.value.reduce((a, b) => Math.min(a, b), most);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const ratio = window.devicePixelRatio || 1;
    const width = element.clientWidth;
    const height = element.clientHeight;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    const context = element.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const window_ns = Math.max(1, run.meta.window_ns);
    if (state.to > state.from) {
      context.fillStyle = dark ? "#26303c" : "#e8eff8";
      context.fillRect((selection.from / window_ns) * width, 0, ((selection.to - selection.from) / window_ns) * width, height);
    }
    context.strokeStyle = dark ? "#5b9bf5" : "#2f6fd0";
    context.lineWidth = 1.4;
    context.beginPath();
    const floor = least > most * 0.8 && most > 0 ? least - (most - least) * 0.5 : 0;
    rate.time.forEach((t, i) => context.lineTo((t / window_ns) * width, height - 3 - ((rate.value[i] - floor) / Math.max(1e-9, most - floor)) * (height - 8)));
    context.stroke();
  }, [rate, dark, selection]);
  const onMove = (event: MouseEvent): void => {
    const box = canvas.current!.getBoundingClientRect();
    const t = ((event.clientX - box.left) / box.width) * run.meta.window_ns;
    let i = rate.time.findIndex((at) => at >= t);
    if (i < 0) i = rate.time.length - 1;
    showDetails({ name: title, module: seconds(t, 1e7), where: "", figures: [amount(rate.value[i], rate.unit)] });
  };
  return (
    <figure class="chart">
      <figcaption title={title}><bdi>{title}</bdi> <b>{amount(least, rate.unit)} – {amount(most, rate.unit)}</b></figcaption>
      <canvas ref={canvas} role="img" aria-label={`${title}: between ${amount(least, rate.unit)} and ${amount(most, rate.unit)}`} onMouseMove={onMove} />
    </figure>
  );
}

export function CountersTab() {
  const { run, state, selection } = useView();
  const answer = useAnswer(`series ${run.id}`, () => run.series());
  const lines = useMemo(() => (answer.value ? readLines(answer.value) : []), [answer.value]);
  if (answer.error) return <div class="empty">{answer.error}</div>;
  if (!answer.value) return <p class="loading">Reading counters …</p>;
  const ownerOf = (line: Line): string => {
    if (line.scope === 1) return run.meta.processes[line.owner] ? `${run.meta.processes[line.owner].comm} ${run.meta.processes[line.owner].pid}` : "";
    if (line.scope === 2) return run.meta.threads[line.owner] ? `${run.meta.threads[line.owner].name} ${run.meta.threads[line.owner].tid}` : "";
    return line.label;
  };
  const matches = matcher(state.search);
  const wanted = lines.filter((line) => {
    if (line.time.length < 2) return false;
    if (line.scope === 2 && selection.threads && !selection.threads.includes(line.owner)) return false;
    if (line.scope === 2 && !selection.threads && run.meta.threads.length > 8 && !matches) return false;
    return !matches || matches(line.name) || matches(ownerOf(line)) || matches(kScopes[line.scope]);
  });
  if (!wanted.length) return <div class="empty">{lines.length ? "No counter matches the search." : "This run holds no counters."}</div>;
  const scopes = [5, 0, 3, 1, 4, 2, 6].filter((scope) => wanted.some((line) => line.scope === scope));
  let left = kMostCharts;
  return (
    <div class="scroll pad">
      {scopes.map((scope) => {
        const some = wanted.filter((line) => line.scope === scope).slice(0, Math.max(0, left));
        left -= some.length;
        return some.length ? (
          <section key={scope}><h3>{kScopes[scope]}</h3>
            <div class="charts">{some.map((line, i) => <Chart key={i} line={line} title={[line.name.replaceAll("_", " "), ownerOf(line)].filter(Boolean).join(" · ")} />)}</div>
          </section>
        ) : null;
      })}
      {wanted.length > kMostCharts && <p class="muted">{wanted.length - kMostCharts} more: search for a counter's name, or choose threads.</p>}
    </div>
  );
}
