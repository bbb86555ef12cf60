// Opens the runs and shows the page; a failure is shown in words.

import { render } from "preact";
import { App } from "./app.tsx";
import { openRuns } from "./data/run_source.ts";
import { homeOf, Store } from "./state.ts";
import { applyTheme } from "./theme.ts";

applyTheme();
const place = document.getElementById("app")!;

openRuns().then(
  (runs) => {
    place.textContent = "";
    render(<App runs={runs} store={new Store(homeOf(runs[0]?.meta.backend ?? ""))} />, place);
  },
  (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    place.textContent = "";
    render(
      <div class="failed" role="alert">
        <h1>This run cannot be shown</h1>
        <p>{text}</p>
        <p class="muted">If the server was stopped, start it again: <code>assay view RUN</code></p>
      </div>, place);
  },
);
