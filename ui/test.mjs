// Bundles each test/*.test.ts and runs it with Node's own test runner.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const out = mkdtempSync(join(tmpdir(), "assay-ui-"));
try {
  const tests = readdirSync(here + "test").filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => here + "test/" + name),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const files = tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status;
} finally {
  rmSync(out, { recursive: true, force: true });
}
