#!/usr/bin/env node
// How fast the page is: a run with a million distinct call paths, and one with three million waits.
//
//   bench/page/run.mjs [--build build/release] [--nodes 1000000] [--waits 3000000] [--speedscope DIR] [--large MB] [--run FILE]
//
// Measures in headless Chromium without a GPU: from opening the address to the drawn flame graph; each
// frame of a series of zooms; from a range selection to the drawn answer; the size of the single file.
// The same stacks, exported as speedscope's JSON, are opened in npm's build of speedscope (a development
// dependency of ui/, or unpacked in DIR), to where it names its views. With --large only this: a run file
// of about so many megabytes (1000 takes minutes to make) is opened, ranges and threads are selected in it,
// functions are searched; with the server's memory. It is removed afterwards; with --run FILE the file is
// a run that is there already.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { Browser, findChromium, kSoftwareGl } from "../../tests/e2e/browser.mjs";
import { serveSpeedscope } from "../../tests/e2e/speedscope.mjs";

const options = { build: "build/release", nodes: "1000000", waits: "3000000", speedscope: "ui/node_modules/speedscope", large: "", run: "" };
for (let i = 2; i + 1 < process.argv.length; i += 2) options[process.argv[i].replace(/^--/, "")] = process.argv[i + 1];
const assay = join(options.build, "src/assay");
const maker = join(options.build, "tests/e2e/make_run");
for (const program of [assay, maker]) {
  if (!existsSync(program)) throw new Error(`${program} is not built; cmake --build --preset release --target assay make_run`);
}
const scratch = mkdtempSync(join(tmpdir(), "assay-bench-page-"));
const median = (list) => list.slice().sort((a, b) => a - b)[Math.floor(list.length / 2)];
const row = (what, value) => console.log(`${what.padEnd(58)} ${value}`);
const must = (program, ...args) => {
  const done = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (done.status !== 0) throw new Error(`${program}: ${done.stderr}`);
};

function serve(run) {
  const child = spawn(assay, ["view", run, "--no-browser"], { stdio: ["ignore", "pipe", "ignore"] });
  const begin = performance.now();
  return new Promise((resolve) => child.stdout.once("data", (text) => resolve({ url: String(text).trim(), child, startMs: performance.now() - begin })));
}

const kReady = `document.querySelector("canvas.flame-canvas")?.width > 10 && document.querySelector(".tools-note")`;

async function openMs(page, url) {
  await page.send("Page.navigate", { url: "about:blank" });
  const begin = performance.now();
  await page.send("Page.navigate", { url });
  await page.until(kReady, "the flame graph", 120_000);
  return performance.now() - begin;
}

// Zooms into the heaviest frames, level after level, and back; the time to draw each frame.
async function zoomFrames(page) {
  await page.eval(`window.assayFrameMs = []; document.querySelector("canvas.flame-canvas").focus()`);
  await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "no-preference" }] });
  for (let level = 0; level < 8; ++level) {
    await page.key("ArrowDown");
    await page.key(" ");
    await new Promise((resolve) => setTimeout(resolve, 350));
  }
  await page.key("Escape");
  await new Promise((resolve) => setTimeout(resolve, 400));
  return page.eval("window.assayFrameMs");
}

async function measureNodes(browser) {
  const run = join(scratch, "nodes.assay");
  must(maker, "big", run, options.nodes);
  const served = await serve(run);
  const page = await browser.page(1920, 1080);
  const first = await openMs(page, served.url); // with the browser's own start
  const times = [];
  for (let i = 0; i < 3; ++i) times.push(await openMs(page, served.url));
  const frames = await zoomFrames(page);
  row(`${options.nodes} call paths: the server is ready`, `${served.startMs.toFixed(0)} ms`);
  row("  the page opens, flame graph drawn (median of 3; first)", `${median(times).toFixed(0)} ms; ${first.toFixed(0)} ms`);
  row(`  a frame of a zoom (${frames.length} frames)`, `${median(frames).toFixed(1)} ms median, ${Math.max(...frames).toFixed(1)} ms worst`);
  await page.close();
  served.child.kill();
  return run;
}

async function measureWaits(browser) {
  const run = join(scratch, "waits.assay");
  must(maker, "big", run, "20000", options.waits);
  const served = await serve(run);
  const page = await browser.page(1920, 1080);
  await openMs(page, served.url + "#metric=wall");
  const times = [];
  for (let i = 1; i <= 5; ++i) {
    const before = await page.text(".tools-note");
    await page.eval(`window.rangeBegin = performance.now(); location.hash = "metric=wall&from=${i}000000000&to=${i + 2}${i}00000000"`);
    times.push(await page.until(`document.querySelector(".tools-note").innerText !== ${JSON.stringify(before)} && performance.now() - window.rangeBegin`));
  }
  row(`${options.waits} waits in 30 s: a range of 2 s selected, drawn`, `${median(times).toFixed(0)} ms median of 5`);
  await page.close();
  served.child.kill();
}

async function measureSpeedscope(browser, run) {
  const release = join(options.speedscope, "dist/release");
  if (!existsSync(release)) return row("speedscope: the same stacks opened", "not installed: npm --prefix ui ci");
  const file = join(scratch, "nodes.speedscope.json");
  must(assay, "export", run, "--metric", "cpu", "-o", file);
  const what = `speedscope: the same stacks opened (${(statSync(file).size / 1e6).toFixed(0)} MB of JSON)`;
  const served = await serveSpeedscope(release, file);
  const page = await browser.page(1920, 1080);
  const begin = performance.now();
  try {
    await page.open(served.url);
    for (;;) {
      // Imported when the toolbar names its views.
      // A page that is busy for longer than the driver waits has not answered yet.
      if (await page.eval(`/Left Heavy/.test(document.body?.innerText ?? "")`).catch(() => false)) break;
      if (performance.now() - begin > 120_000) throw new Error("not within two minutes");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    row(what, `${(performance.now() - begin).toFixed(0)} ms`);
  } catch (error) {
    row(what, `failed after ${((performance.now() - begin) / 1000).toFixed(0)} s: ${error.message}`);
  }
  await page.close().catch(() => {});
  served.stop();
}

// From a change of the address to figures other than before.
async function answerMs(page, hash) {
  const before = await page.text(".tools-note");
  await page.eval(`window.asked = performance.now(); location.hash = ${JSON.stringify(hash)}`);
  return page.until(`document.querySelector(".tools-note").innerText !== ${JSON.stringify(before)} && performance.now() - window.asked`);
}

function memoryMb(pid, field) {
  const line = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return (Number(line[1]) / 1024).toFixed(0);
}

async function measureLarge(browser) {
  const run = options.run || join(scratch, "large.assay");
  if (!options.run) must(maker, "large", run, options.large);
  const served = await serve(run);
  const page = await browser.page(1920, 1080);
  const begin = performance.now();
  await page.send("Page.navigate", { url: served.url + "#metric=wall" });
  await page.until(`document.querySelector("progress, canvas.flame-canvas")`, "how far it is", 60_000);
  const told = performance.now() - begin;
  await page.until(kReady, "the flame graph", 300_000);
  const first = performance.now() - begin;
  // While the verdict is worked out.
  const early = [];
  for (let i = 1; i <= 3; ++i) early.push(await answerMs(page, `metric=wall&from=${i}1000000000&to=${i}6${i}00000000`));
  await page.until(`document.querySelector(".verdict:not(.pending)")`, "the verdict", 300_000);
  const judged = performance.now() - begin;
  const again = await openMs(page, served.url + "#metric=wall");
  await page.until(`document.querySelector(".verdict:not(.pending)")`, "the verdict", 300_000);
  const ranges = [], threads = [];
  for (let i = 1; i <= 5; ++i) ranges.push(await answerMs(page, `metric=wall&from=${i}0000000000&to=${i}5${i}00000000`));
  const window = await page.eval(`fetch("api/runs/0/meta").then((answer) => answer.json()).then((meta) => meta.window_ns)`);
  const half = await answerMs(page, `metric=wall&from=${Math.floor(window * 0.2)}&to=${Math.floor(window * 0.7)}`);
  // Different numbers of them: any two threads of this run have the same figures to three digits.
  for (const some of ["1.2", "3.4.5", "6.7.8.9"]) threads.push(await answerMs(page, `metric=wall&threads=${some}`));
  await page.eval(`window.asked = performance.now(); location.hash = "metric=wall&search=function_77"`);
  const search = await page.until(`document.querySelector(".search-share")?.innerText.includes("functions") && performance.now() - window.asked`);
  row(`a run of ${(statSync(run).size / 1e6).toFixed(0)} MB: the server is ready`, `${served.startMs.toFixed(0)} ms`);
  row("  the page says how far it is", `${told.toFixed(0)} ms`);
  row("  the flame graph is drawn (first; again); the verdict", `${first.toFixed(0)} ms; ${again.toFixed(0)} ms; ${judged.toFixed(0)} ms`);
  row("  a range of 5 s selected before the verdict, drawn", `${median(early).toFixed(0)} ms median of 3, ${Math.max(...early).toFixed(0)} ms worst`);
  row("  a range of about 5 s selected, drawn", `${median(ranges).toFixed(0)} ms median of 5, ${Math.max(...ranges).toFixed(0)} ms worst`);
  row("  half of the run selected, drawn", `${half.toFixed(0)} ms`);
  row("  two to four of its threads selected over the whole run, drawn", `${median(threads).toFixed(0)} ms median of 3`);
  row("  functions searched, their share shown", `${search.toFixed(0)} ms`);
  row("  memory of the server (at most)", `${memoryMb(served.child.pid, "VmRSS")} MB (${memoryMb(served.child.pid, "VmHWM")} MB)`);
  await page.close();
  served.child.kill();
}

async function measureAll(browser) {
  const run = await measureNodes(browser);
  await measureWaits(browser);
  const file = join(scratch, "page.html");
  must(assay, "report", run, "--format", "html", "-o", file);
  row(`the single file of the run with ${options.nodes} call paths`, `${(statSync(file).size / 1e6).toFixed(1)} MB`);
  await measureSpeedscope(browser, run);
}

const chromium = findChromium();
if (!chromium) {
  console.log("skipped: no Chromium");
  process.exit(77);
}
console.log(`load average ${loadavg()[0].toFixed(1)}`);
const browser = await Browser.start(chromium, kSoftwareGl);
try {
  if (options.large || options.run) await measureLarge(browser);
  else await measureAll(browser);
} finally {
  await browser.stop();
  rmSync(scratch, { recursive: true, force: true });
}
