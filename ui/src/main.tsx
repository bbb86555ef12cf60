// Opens the runs and shows the page; a failure is shown in words.

import { render } from "preact";
import { App } from "./app.tsx";
import { isHeapOnly, openRuns } from "./data/run_source.ts";
import { homeOf, Store } from "./state.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
const place = document.getElementById("app")!;

function Opening({ name, progress }: { name: string; progress: number }) {
  return (
    <p class="loading">
      Reading {name} … {Math.floor(progress * 100)} %
      <progress value={progress} max={1} aria-label={`${name} is being read`} />
    </p>
  );
}

openRuns((name, progress) => {
  if (place.querySelector("progress") === null) place.textContent = "";
  render(<Opening name={name} progress={progress} />, place);
}).then(
  (runs) => {
    render(null, place);
    place.textContent = "";
    render(<App runs={runs} store={new Store(homeOf(runs.length > 0 && isHeapOnly(runs[0].meta)))} />, place);
  },
  (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    render(null, place);
    place.textContent = "";
    render(
      <div class="failed" role="alert">
        <h1>This run cannot be shown</h1>
        <p>{text}</p>
        <p class="muted">If the server was stopped, start it again: <code>assay view RUN</code></p>
      </div>, place);
  },
);
