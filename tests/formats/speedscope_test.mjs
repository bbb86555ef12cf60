// speedscope's own build shows the totals of our files: what its table says of each function is what Assay's
// csv says of it.
//
//   node speedscope_test.mjs ASSAY GOLDEN_DIR UI_DIR
//
// Exit 0: they agree, 1: they do not, 77: skipped, saying why (npm's package speedscope, a development
// dependency of ui/, or Chromium is missing). Figures must be equal as precisely as the table prints them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Browser, findChromium, kSoftwareGl } from "../e2e/browser.mjs";
import { serveSpeedscope } from "../e2e/speedscope.mjs";

const [assay, golden, ui] = process.argv.slice(2);
const skip = (why) => {
  console.log(`skipped: ${why}`);
  process.exit(77);
};
const chromium = findChromium() ?? skip("no Chromium; install the package chromium");
const release = join(ui, "node_modules/speedscope/dist/release");
if (!existsSync(release)) skip("speedscope is not installed; npm --prefix ui ci");

const scratch = mkdtempSync(join(tmpdir(), "assay-speedscope-"));
const must = (...args) => {
  const done = spawnSync(assay, args, { encoding: "utf8" });
  assert.equal(done.status, 0, `assay ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
};

// Function → [total, self] in ns, of the run's CPU time or of its time off the CPU.
function byCsv(run, kind, ...selection) {
  const table = must("export", run, "--format", "tsv", "--metric", kind, ...selection);
  const [head, ...lines] = table.trim().split("\n").map((line) => line.split("\t"));
  const at = (name) => head.indexOf(`${name}_${kind}_ns`);
  const sums = new Map();
  for (const row of lines) {
    const name = row[head.indexOf("function")], old = sums.get(name) ?? [0, 0];
    sums.set(name, [old[0] + Number(row[at("total")]), old[1] + Number(row[at("self")])]);
  }
  return sums;
}

// "1.50ms (25%)" → the value in ns and half of the last printed digit.
function printed(text) {
  const match = /^([\d.]+)(ns|µs|ms|s)\b/.exec(text) ?? assert.fail(`no time: ${text}`);
  const unit = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[match[2]];
  const digits = (match[1].split(".")[1] ?? "").length;
  return { ns: Number(match[1]) * unit, tolerance: 0.5001 * unit * 10 ** -digits };
}

// The rows of speedscope's table of functions: [total, self, name].
async function shownBy(browser, file) {
  const served = await serveSpeedscope(release, file);
  const page = await browser.page(1400, 1000);
  await page.open(served.url + "&view=sandwich");
  await page.until(`/Symbol Name/.test(document.body.innerText) && document.querySelectorAll("tr").length > 2`, "speedscope's table");
  const rows = await page.eval(`[...document.querySelectorAll("tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim())).filter((row) => row.length >= 3)`);
  await page.close();
  served.stop();
  return rows;
}

function same(what, text, ns) {
  const shown = printed(text);
  assert.ok(Math.abs(shown.ns - ns) <= shown.tolerance, `${what}: speedscope ${shown.ns} ns, Assay ${ns} ns`);
}

async function cpuTime(browser) {
  const run = join(scratch, "run.assay");
  must("import", join(golden, "stacks.folded"), "--unit", "us", "-o", run, "-q");
  const file = join(scratch, "run.speedscope.json");
  must("export", run, "--format", "speedscope", "--metric", "cpu", "-o", file);
  const rows = await shownBy(browser, file);
  const ours = byCsv(run, "cpu");
  assert.ok(rows.length >= 3, `speedscope shows ${rows.length} functions`);
  for (const [total, self, name] of rows) {
    const want = ours.get(name) ?? assert.fail(`Assay has no function ${name}`);
    same(`total of ${name}`, total, want[0]);
    same(`self of ${name}`, self, want[1]);
  }
  console.log(`${rows.length} functions agree`);
}

// Of wall time, what a thread was blocked is its leaf's.
async function wallTime(browser) {
  const run = join(scratch, "waits.assay");
  must("import", join(golden, "perf_dwarf.data"), "--no-names", "-o", run, "-q");
  const file = join(scratch, "wall.speedscope.json");
  must("export", run, "--format", "speedscope", "--metric", "wall", "--thread", "sleep", "-o", file);
  const rows = await shownBy(browser, file);
  const [, self] = rows.find(([, , name]) => name === "[blocked: unknown]") ?? assert.fail(`no wait in ${rows}`);
  same("time blocked", self, [...byCsv(run, "off", "--thread", "sleep").values()].reduce((sum, row) => sum + row[1], 0));
  console.log("waits agree");
}

const browser = await Browser.start(chromium, kSoftwareGl);
try {
  await cpuTime(browser);
  await wallTime(browser);
} finally {
  await browser.stop();
  rmSync(scratch, { recursive: true, force: true });
}
