// ui/dist/page.html is what ui/src builds to (or, with --unit: the page's unit tests pass).
// Exit 77 where Node's packages are not installed: npm --prefix ui ci.
import { existsSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const [ui, what] = process.argv.slice(2);
for (const name of ["esbuild", "preact", "typescript"]) {
  if (existsSync(join(ui, "node_modules", name))) continue;
  console.log(`skipped: ${name} is not installed; npm --prefix ui ci`);
  process.exit(77);
}
const steps = what === "--unit" ? [["test.mjs"]] : [["node_modules/typescript/bin/tsc", "--noEmit"], ["build.mjs", "--check"]];
for (const step of steps) {
  const done = spawnSync(process.execPath, step, { cwd: ui, stdio: "inherit" });
  if (done.status !== 0) process.exit(1);
}
