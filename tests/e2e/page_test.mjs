// Drives the page in headless Chromium on real run files of the real program.
//
//   node page_test.mjs ASSAY MAKE_RUN LAB_DIR OUT_DIR
//
// Exit 0: all passed, 1: something failed, 77: skipped (no Chromium). The run that most tests look at
// is captured here from the lab's demo server; where the kernel allows no capture it is synthetic.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Browser, findChromium } from "./browser.mjs";

const [assay, makeRun, lab, out] = process.argv.slice(2);
const chromium = findChromium();
if (!chromium) {
  console.log("skipped: no Chromium; install the package chromium");
  process.exit(77);
}
mkdirSync(out, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "assay-e2e-"));
const started = [];

function run(program, ...args) {
  const done = spawnSync(program, args, { encoding: "utf8", timeout: 60_000 });
  assert.equal(done.status, 0, `${program} ${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

function startAndRead(program, args, pattern) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  started.push(child);
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part) => {
      text += part;
      const match = pattern.exec(text);
      if (match) resolve({ child, match });
    });
    child.on("exit", () => reject(new Error(`${program} ended: ${text}`)));
    child.on("error", reject);
  });
}

// Two seconds of the demo server under its load; false when this machine allows no capture.
async function capture(path) {
  if (!existsSync(join(lab, "demo_server"))) return false;
  const { child, match } = await startAndRead(join(lab, "demo_server"), [], /listening on 127\.0\.0\.1:(\d+)/);
  const load = spawn(join(lab, "demo_load"), ["--port", match[1], "--for", "30"], { stdio: "ignore" });
  started.push(load);
  const done = spawnSync(assay, ["record", "--pid", String(child.pid), "--for", "2s", "-q", "-o", path], { encoding: "utf8", timeout: 60_000 });
  load.kill();
  child.kill();
  if (done.status !== 0) console.log(`no capture here: ${done.stderr}`);
  return done.status === 0;
}

async function serve(...runs) {
  const { child, match } = await startAndRead(assay, ["view", ...runs, "--no-browser"], /(http:\/\/\S+)\n/);
  return { url: match[1], stop: () => child.kill() };
}

const tests = [];
const test = (name, body) => tests.push([name, body]);
const note = (page) => page.text(".tools-note");
// The verdict comes last and moves what is below it.
const settled = (page) => page.until(`document.querySelector(".verdict:not(.pending)")`, "the verdict");
async function ready(page) {
  await page.until(`document.querySelector("canvas.flame-canvas")?.width > 10 && document.querySelector(".tools-note")`, "the flame graph");
  await settled(page);
}
const hash = (page) => page.eval("location.hash");

// A canvas has been drawn on when its pixels are not all alike.
const drawn = (page, selector) => page.eval(`(() => { const c = document.querySelector(${JSON.stringify(selector)}); const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; for (let i = 4; i < d.length; i += 4) if (d[i] !== d[0] || d[i + 1] !== d[1] || d[i + 2] !== d[2]) return true; return false; })()`);
// The page's own words about what is under the middle of a row of the flame graph.
async function frameBox(page, row) {
  const box = await page.box("canvas.flame-canvas");
  return { x: box.x + 40, y: box.y + row * 19 + 9 };
}

test("load: everything is there, drawn, and asked of the server only", async ({ browser, served }) => {
  const page = await browser.page(1280, 720);
  await page.open(served.url);
  await ready(page);
  await page.until(`document.querySelectorAll(".lane canvas").length > 0`);
  assert.ok(await page.count(".bar-part") >= 2, "the bar of thread time has parts");
  assert.match(await page.text(".trust"), /samples? at \d+ Hz/);
  assert.ok((await page.text(".verdict h1")).length > 20);
  assert.equal(await page.count("[role=tab]"), 11);
  for (const canvas of ["canvas.flame-canvas", ".heat canvas", ".lane canvas", ".load canvas"]) {
    await page.until(`document.querySelector(${JSON.stringify(canvas)})`);
    assert.ok(await drawn(page, canvas), `${canvas} is blank`);
  }
  const origin = new URL(served.url).origin;
  for (const url of page.requests) assert.ok(url.startsWith(origin) || url.startsWith("data:") || url === "about:blank", `asked ${url}`);
  await page.screenshot(join(out, "load.png"));
  return page;
});

test("range: a drag over the heat map narrows everything", async ({ browser, served }) => {
  const page = await browser.page();
  await page.open(served.url + "#metric=wall");
  await ready(page);
  await page.until(`document.querySelector(".heat canvas")`);
  const before = await note(page);
  const map = await page.box(".heat canvas");
  await page.drag(map.x + map.w * 0.3, map.y + 3, map.x + map.w * 0.6, map.y + map.h - 3);
  await page.until(`location.hash.includes("from=")`);
  await page.until(`document.querySelector(".tools-note").innerText !== ${JSON.stringify(before)}`);
  assert.match(await page.text(".pill"), /s – .* s/);
  await page.key("0");
  await page.until(`!location.hash.includes("from=")`);
  await page.until(`document.querySelector(".tools-note").innerText === ${JSON.stringify(before)}`, "the whole run again");
  return page;
});

test("metric: on-CPU, off-CPU and wall by mouse and by key", async ({ browser, served }) => {
  const page = await browser.page();
  await page.open(served.url);
  await ready(page);
  const cpu = await note(page);
  await page.click(".switch button:nth-child(3)");
  await page.until(`location.hash.includes("metric=wall")`);
  assert.notEqual(await note(page), cpu);
  await page.key("o");
  await page.until(`!location.hash.includes("metric")`, "on-CPU after wall");
  assert.equal(await note(page), cpu);
  for (const key of ["m", "v", "r"]) {
    await page.key(key);
    await ready(page);
    await page.until(`document.querySelectorAll(".toggle.on").length === 1`);
    await page.key(key);
  }
  return page;
});

test("search: share and marked frames", async ({ browser, served, known }) => {
  const page = await browser.page();
  await page.open(served.url + "#metric=wall");
  await ready(page);
  await page.key("/");
  await page.type(known);
  await page.until(`/\\d %/.test(document.querySelector(".search-share")?.innerText ?? "")`);
  await page.key("Enter");
  assert.match(await hash(page), /search=/);
  await page.eval(`document.activeElement.blur()`);
  const selected = `document.querySelector('#flame-path [aria-selected="true"]')?.innerText ?? ""`;
  const found = `(${selected}).includes(${JSON.stringify(known)})`;
  // The graph of the search may still be on its way when the key comes: then there is nothing to step to yet.
  for (let look = 0; look < 50 && !(await page.eval(found)); look++) {
    await page.key("n");
    await new Promise((resume) => setTimeout(resume, 100));
  }
  await page.until(found);
  await page.eval(`document.querySelector("#search").focus()`);
  await page.key("Escape");
  await page.until(`!location.hash.includes("search=")`);
  return page;
});

test("zoom: a click fills the width, Back undoes it", async ({ browser, served }) => {
  const page = await browser.page();
  await page.open(served.url + "#metric=wall");
  await ready(page);
  const { x, y } = await frameBox(page, 1);
  await page.mouse("mouseMoved", x, y, { buttons: 0 });
  await page.until(`document.querySelector(".details-name")`);
  await page.clickAt(x, y);
  await page.until(`location.hash.includes("zoom=")`);
  await page.eval("history.back()");
  await page.until(`!location.hash.includes("zoom=")`);
  return page;
});

test("sandwich: from the flame graph and from the table", async ({ browser, served }) => {
  const page = await browser.page(1600, 900);
  await page.open(served.url + "#metric=wall");
  await ready(page);
  await page.eval(`document.querySelector("canvas.flame-canvas").focus()`);
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  await page.key("Enter");
  await page.until(`document.querySelectorAll(".sandwich canvas").length === 2`);
  await page.click(".sandwich .toggle");
  await page.until(`!document.querySelector(".sandwich")`);
  await page.click(".grid tbody tr:nth-child(2)");
  await page.until(`document.querySelectorAll(".sandwich canvas").length === 2`);
  for (const group of ["file", "module", "line", "category"]) {
    await page.open(served.url + `#tab=top&metric=wall&group=${group}`);
    await page.until(`document.querySelector(".grid tbody tr, .empty")`);
  }
  return page;
});

test("locks and waits: tables with stacks", async ({ browser, served }) => {
  const page = await browser.page(1600, 900);
  await page.open(served.url + "#tab=waits");
  await page.until(`document.querySelectorAll(".grid tbody tr").length > 0`);
  await settled(page);
  await page.click(".grid tbody tr");
  await page.until(`document.querySelectorAll(".side .stack li").length > 0`);
  await page.key("4");
  await page.until(`document.querySelector("[aria-label=Locks] tbody tr, .empty")`);
  if (await page.count("[aria-label=Locks] tbody tr")) {
    await page.click("[aria-label=Locks] tbody tr");
    await page.until(`document.querySelectorAll(".side .stack li").length > 0`);
  }
  return page;
});

test("diff: a baseline range by Ctrl-drag, and two runs", async ({ browser, served }) => {
  const page = await browser.page(1600, 900);
  await page.open(served.url + "#metric=wall");
  await ready(page);
  await page.until(`document.querySelector(".load canvas")`);
  const chart = await page.box(".load canvas");
  await page.drag(chart.x + chart.w * 0.05, chart.y + 20, chart.x + chart.w * 0.4, chart.y + 20, 2);
  await page.until(`location.hash.includes("baseFrom=") && document.querySelector(".diff-key") && document.querySelector("canvas.flame-canvas")`);
  assert.match(await note(page), /→/);
  assert.ok(await page.count("[aria-label='Functions by difference'] tbody tr") > 0);
  await page.open(served.url + "#tab=diff&versus=1&metric=wall&norm=share");
  await page.until(`document.querySelector(".diff-key") && document.querySelector(".tools-note").innerText.includes("second.assay")`);
  await page.screenshot(join(out, "diff.png"));
  return page;
});

test("deep link: the whole state comes back", async ({ browser, served }) => {
  const page = await browser.page();
  await page.open(served.url);
  await ready(page);
  await page.key("o");
  await page.until(`location.hash.includes("metric=off")`);
  await page.key("v");
  await page.until(`location.hash.includes("inverted=true")`);
  await page.eval(`document.querySelector(".time-body").focus()`);
  await page.key("ArrowRight");
  await page.until(`location.hash.includes("from=")`);
  await page.until(`!document.querySelector(".busy.on")`);
  await new Promise((resolve) => setTimeout(resolve, 150));
  const [link, words] = [await page.eval("location.href"), await note(page)];
  const second = await browser.page();
  await second.open(link);
  await ready(second);
  await second.until(`document.querySelector(".tools-note").innerText === ${JSON.stringify(words)}`, words);
  assert.equal(await hash(second), await hash(page));
  await second.open(served.url + "#tab=nonsense&from=x&threads=a.b&metric=%zz&constructor=1");
  await ready(second);
  assert.deepEqual(second.errors, []);
  await second.close();
  return page;
});

test("keyboard: every tab, help and the tree, without a mouse", async ({ browser, served }) => {
  const page = await browser.page();
  await page.open(served.url);
  await ready(page);
  const tabs = ["flame", "order", "top", "locks", "waits", "categories", "findings", "source", "counters"];
  for (let i = 0; i < tabs.length; ++i) {
    await page.key(String(i + 1));
    await page.until(`document.querySelector("#tab-${tabs[i]}").getAttribute("aria-selected") === "true"`);
    await page.until(`!document.querySelector("#panel .loading") && document.querySelector("#panel").innerText.length + document.querySelectorAll("#panel canvas").length > 0`);
  }
  await page.key("?");
  await page.until(`document.querySelector("[role=dialog]")`);
  await page.key("Escape");
  await page.until(`!document.querySelector("[role=dialog]")`);
  await page.key("1");
  await page.key("a");
  await page.until(`document.querySelectorAll("[role=treegrid] [role=row]").length > 3`);
  await page.eval(`document.querySelector("[role=treegrid] [role=row]").focus()`);
  await page.key("ArrowDown");
  assert.equal(await page.eval(`document.activeElement.getAttribute("aria-level")`), "2");
  await page.key("a");
  await ready(page);
  await page.eval(`document.querySelector("canvas.flame-canvas").focus()`);
  await page.key("ArrowDown");
  await page.until(`document.querySelector(".details-name") && document.querySelector("#flame-path [aria-selected=true]")`);
  await page.key(" ");
  await page.until(`location.hash.includes("zoom=")`);
  return page;
});

test("dark: by the system's preference and by the toggle", async ({ browser, served }) => {
  const page = await browser.page(1280, 720, true);
  await page.open(served.url);
  await ready(page);
  assert.equal(await page.eval("document.documentElement.dataset.theme"), "dark");
  const back = await page.eval("getComputedStyle(document.body).backgroundColor");
  await page.screenshot(join(out, "dark.png"));
  await page.key("t");
  await page.until(`document.documentElement.dataset.theme === "light"`);
  assert.notEqual(await page.eval("getComputedStyle(document.body).backgroundColor"), back);
  await page.eval("localStorage.clear()");
  return page;
});

test("one file: the same page from file://, asking nobody", async ({ browser, real }) => {
  const file = join(scratch, "page.html");
  run(assay, "report", real, "--format", "html", "-o", file);
  assert.ok(statSync(file).size < 5e6, `${statSync(file).size} bytes`);
  const page = await browser.page();
  await page.open("file://" + file + "#metric=wall");
  await ready(page);
  assert.ok(await drawn(page, "canvas.flame-canvas"));
  const whole = await note(page);
  const map = await page.box(".heat canvas");
  await page.drag(map.x + map.w * 0.2, map.y + 3, map.x + map.w * 0.7, map.y + 3);
  await page.until(`location.hash.includes("from=") && document.querySelector(".tools-note").innerText !== ${JSON.stringify(whole)}`);
  for (const key of ["2", "3", "4", "5", "6", "7", "8", "9", "-", "1"]) {
    await page.key(key);
    await page.until(`!document.querySelector("#panel .loading")`);
  }
  for (const url of page.requests) assert.ok(url.startsWith("file://" + scratch) || url.startsWith("data:") || url === "about:blank", `asked ${url}`);
  await page.screenshot(join(out, "file.png"));
  return page;
});

test("hostile names are text", async ({ browser, hostile }) => {
  for (const from of ["server", "file"]) {
    const page = await browser.page();
    if (from === "server") {
      await page.open(hostile.url + "#metric=wall");
    } else {
      const file = join(scratch, "hostile.html");
      run(assay, "report", hostile.path, "--format", "html", "-o", file);
      await page.open("file://" + file + "#metric=wall");
    }
    await ready(page);
    for (let row = 8; row >= 1; --row) {
      const { x, y } = await frameBox(page, row);
      await page.mouse("mouseMoved", x, y, { buttons: 0 });
    }
    await page.until(`document.querySelector(".details-name")?.innerText === "<script>window.hacked=1</script>"`, "the first name in full");
    for (const key of ["2", "3", "5", "8", "1", "a"]) {
      await page.key(key);
      await page.until(`!document.querySelector("#panel .loading")`);
    }
    await page.until(`document.querySelector("[role=treegrid]")?.innerText.includes("window.hacked=1")`);
    assert.equal(await page.eval("window.hacked"), undefined);
    assert.equal(page.dialogs, 0);
    assert.equal(await page.count("#app img, #app script"), 0);
    assert.deepEqual(page.errors, []);
    await page.close();
  }
  return null;
});

test("empty, tiny and imported runs say what is missing", async ({ browser }) => {
  for (const [kind, says] of [["empty", /This run is empty|No thread time/], ["tiny", /main/], ["imported", /no waits/]]) {
    const path = join(scratch, `${kind}.assay`);
    run(makeRun, kind, path);
    const served = await serve(path);
    const page = await browser.page();
    await page.open(served.url);
    await page.until(`document.querySelector(".tabs")`);
    await page.key("a");
    await page.until(`${says}.test(document.body.innerText)`, `${kind}: ${says}`);
    for (const key of ["2", "3", "4", "5", "6", "7", "8", "9", "=", "-"]) {
      await page.key(key);
      await page.until(`!document.querySelector("#panel .loading") && document.querySelector("#panel").innerText.length > 10`);
    }
    await page.screenshot(join(out, `${kind}.png`));
    assert.deepEqual(page.errors, [], kind);
    await page.close();
    served.stop();
  }
  return null;
});

test("heap: another tool's profile opens on its heap, without a word of time", async ({ browser }) => {
  const path = join(scratch, "imported-heap.assay");
  run(assay, "import", join(import.meta.dirname, "../golden/go_heap_debug1.txt"), "-q", "-o", path);
  const served = await serve(path);
  const page = await browser.page(1280, 720);
  await page.open(served.url);
  await page.until(`document.querySelector("#tab-heap")?.getAttribute("aria-selected") === "true"`, "the heap tab");
  await page.until(`document.querySelector("#panel canvas.flame-canvas")?.width > 10`, "the flame graph of the heap");
  await settled(page);
  assert.ok(await drawn(page, "#panel canvas.flame-canvas"));
  const words = await page.eval("document.body.innerText");
  assert.match(words, /main\.keep/);
  assert.match(words, /5\.29 MB live when the profile was taken, 235 MB allocated/);
  assert.match(words, /lifetimes and leaks are unknown/);
  assert.doesNotMatch(words, /growth\/s|median life|peak \d/);
  await page.screenshot(join(out, "imported-heap.png"));
  assert.deepEqual(page.errors, []);
  await page.close();
  served.stop();
  return null;
});

test("heap: a run of allocations alone opens on them and says what it lacks", async ({ browser }) => {
  const path = join(scratch, "heap.assay");
  run(makeRun, "heap", path);
  const file = join(scratch, "heap.html");
  run(assay, "report", path, "--format", "html", "-o", file);
  const served = await serve(path);
  for (const address of [served.url, "file://" + file]) {
    const page = await browser.page(1280, 720);
    await page.open(address);
    await page.until(`document.querySelector("#tab-heap")?.getAttribute("aria-selected") === "true"`, "the heap tab");
    await page.until(`document.querySelector("#panel canvas.flame-canvas")?.width > 10`, "the flame graph of the heap");
    await settled(page);
    await page.until(`document.querySelector("#panel canvas.flame-canvas")`);
    assert.ok(await drawn(page, "#panel canvas.flame-canvas"));
    const words = await page.eval("document.body.innerText");
    assert.match(words, /server::Cache::insert/);
    assert.match(words, /live [\d.]+ MB/);
    assert.match(words, /only allocations/i, "says that there is no time in it");
    assert.doesNotMatch(words, /under-?loaded|0 samples at|no thread was/i);
    // Bytes, not time, under the mouse and in the tree that is read aloud.
    const box = await page.box("#panel canvas.flame-canvas");
    await page.mouse("mouseMoved", box.x + 40, box.y + 28, { buttons: 0 });
    await page.until(`/[\\d.]+ MB/.test(document.querySelector(".details-figures")?.innerText ?? "")`, "bytes in the details");
    const live = await note(page);
    await page.click("#panel .switch button:nth-child(2)");
    await page.until(`location.hash.includes("heapOf=allocated")`);
    assert.equal(await note(page), live, "the figures are of both");
    await page.eval(`document.querySelector("#export").open = true`);
    const offered = await page.eval(`document.querySelector("#export").innerText`);
    assert.match(offered, address === served.url ? /pprof[\s\S]*gperftools/ : /^((?!pprof)[\s\S])*$/, "exports of the heap, where a server can write them");
    await page.eval(`document.querySelector("#export").open = false`);
    for (const key of ["1", "2", "5", "="]) {
      await page.key(key);
      await page.until(`!document.querySelector("#panel .loading") && document.querySelector("#panel").innerText.length > 10`);
    }
    await page.screenshot(join(out, "heap.png"));
    assert.deepEqual(page.errors, []);
    await page.close();
  }
  served.stop();
  return null;
});

const browser = await Browser.start(chromium);
let failed = 0;
try {
  const real = join(scratch, "first.assay");
  const second = join(scratch, "second.assay");
  const captured = await capture(real);
  if (!captured) run(makeRun, "big", real, "3000", "30000");
  run(makeRun, "big", second, "3000", "30000");
  const hostilePath = join(scratch, "hostile.assay");
  run(makeRun, "hostile", hostilePath);
  const served = await serve(real, second);
  const hostile = { path: hostilePath, ...(await serve(hostilePath)) };
  const shared = { browser, served, real, hostile, known: captured ? "epoll" : "function_1" };
  for (const [name, body] of tests) {
    const begin = Date.now();
    try {
      const page = await body(shared);
      if (page) {
        assert.deepEqual(page.errors, []);
        await page.close();
      }
      console.log(`ok    ${name} (${Date.now() - begin} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAIL  ${name}: ${error.message}\n${error.stack}`);
    }
  }
} finally {
  await browser.stop();
  for (const child of started) child.kill();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(failed ? `${failed} of ${tests.length} failed` : `all ${tests.length} passed`);
process.exit(failed ? 1 : 0);
