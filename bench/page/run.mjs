#!/usr/bin/env node
// How fast the page is: a run with a million distinct call paths, and one with three million waits.
//
//   bench/page/run.mjs [--build build/release] [--nodes 1000000] [--waits 3000000] [--speedscope DIR]
//
// Measures in headless Chromium without a GPU: from opening the address to the drawn flame graph; each
// frame of a series of zooms; from a range selection to the drawn answer; the size of the single file.
// With --speedscope DIR (npm's package speedscope, unpacked) the same stacks are opened there too.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { Browser, findChromium } from "../../tests/e2e/browser.mjs";

const options = { build: "build/release", nodes: "1000000", waits: "3000000", speedscope: "" };
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
  await page.until(kReady);
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
  await openMs(page, served.url); // the browser's own start is not the page's
  const times = [];
  for (let i = 0; i < 3; ++i) times.push(await openMs(page, served.url));
  const frames = await zoomFrames(page);
  row(`${options.nodes} call paths: the server is ready`, `${served.startMs.toFixed(0)} ms`);
  row("  the page opens, flame graph drawn (median of 3)", `${median(times).toFixed(0)} ms`);
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
  const folded = join(scratch, "nodes.folded");
  must(assay, "export", run, "--format", "folded", "-o", folded);
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const file = path === "/data" ? folded : join(options.speedscope, "dist/release", path === "/" ? "index.html" : path);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "text/plain" }).end(readFileSync(file));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.on("listening", resolve));
  const page = await browser.page(1920, 1080);
  const begin = performance.now();
  const { port } = server.address();
  await page.open(`http://127.0.0.1:${port}/#profileURL=http://127.0.0.1:${port}/data`);
  try {
    for (;;) {
      // Imported when the toolbar names its views.
      if (await page.eval(`/Left Heavy/.test(document.body?.innerText ?? "")`)) break;
      if (performance.now() - begin > 120_000) throw new Error("not within two minutes");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    row(`speedscope: the same stacks opened (${(statSync(folded).size / 1e6).toFixed(0)} MB folded)`, `${(performance.now() - begin).toFixed(0)} ms`);
  } catch (error) {
    row("speedscope: the same stacks opened", `failed: ${error.message}`);
  }
  await page.close();
  server.close();
}

const chromium = findChromium();
if (!chromium) {
  console.log("skipped: no Chromium");
  process.exit(77);
}
const browser = await Browser.start(chromium);
try {
  const run = await measureNodes(browser);
  await measureWaits(browser);
  const file = join(scratch, "page.html");
  must(assay, "report", run, "--format", "html", "-o", file);
  row(`the single file of the run with ${options.nodes} call paths`, `${(statSync(file).size / 1e6).toFixed(1)} MB`);
  if (options.speedscope) await measureSpeedscope(browser, run);
} finally {
  await browser.stop();
  rmSync(scratch, { recursive: true, force: true });
}
