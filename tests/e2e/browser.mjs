// A small driver of Chromium over the DevTools protocol, through a pipe: no package is needed.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const kPatienceMs = 20_000;

export function findChromium() {
  const known = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  return known.find((path) => path && existsSync(path)) ?? null;
}

// Pages that draw with WebGL need one; without a GPU this is Chromium's own.
export const kSoftwareGl = ["--enable-unsafe-swiftshader"];

export class Browser {
  static async start(program, more = []) {
    const browser = new Browser();
    browser.home = mkdtempSync(join(tmpdir(), "assay-browser-"));
    browser.process = spawn(program, [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1",
      "--remote-debugging-pipe", `--user-data-dir=${browser.home}`, ...more, "about:blank",
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.next = 1;
    browser.waiting = new Map();
    browser.pages = new Map();
    let rest = "";
    browser.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      rest += text;
      for (let end; (end = rest.indexOf("\0")) >= 0;) {
        browser.receive(JSON.parse(rest.slice(0, end)));
        rest = rest.slice(end + 1);
      }
    });
    return browser;
  }

  receive(message) {
    if (message.id) {
      const asked = this.waiting.get(message.id);
      if (!asked) return; // an answer that is no longer needed
      const { resolve, reject } = asked;
      this.waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else {
      this.pages.get(message.sessionId)?.event(message.method, message.params);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      setTimeout(() => this.waiting.delete(id) && reject(new Error(`${method} took too long`)), kPatienceMs).unref();
    });
  }

  async page(width = 1280, height = 720, dark = false) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    await page.send("Page.enable");
    await page.send("Runtime.enable");
    await page.send("Network.enable");
    await page.send("Log.enable");
    await page.size(width, height);
    await page.scheme(dark);
    return page;
  }

  async stop() {
    await this.send("Browser.close").catch(() => {});
    await new Promise((resolve) => this.process.exitCode !== null ? resolve() : this.process.on("exit", resolve));
    rmSync(this.home, { recursive: true, force: true });
  }
}

class Page {
  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target, errors: [], requests: [], dialogs: 0 });
  }
  send(method, params) {
    return this.browser.send(method, params, this.session);
  }
  event(method, params) {
    if (method === "Runtime.exceptionThrown") this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Log.entryAdded" && params.entry.level === "error") this.errors.push(params.entry.text);
    if (method === "Runtime.consoleAPICalled" && params.type === "error") this.errors.push(params.args.map((a) => a.value ?? a.description).join(" "));
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    if (method === "Page.javascriptDialogOpening") {
      ++this.dialogs;
      void this.send("Page.handleJavaScriptDialog", { accept: false });
    }
  }
  size(width, height) {
    return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  }
  scheme(dark) {
    return this.send("Emulation.setEmulatedMedia", { features: [
      { name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }] });
  }
  async open(url) {
    // A page of the same document but another hash would not load again.
    await this.send("Page.navigate", { url: "about:blank" });
    await this.send("Page.navigate", { url });
  }
  async eval(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  // Waits until the expression is true; its value.
  async until(expression, what = expression, patienceMs = kPatienceMs) {
    const end = Date.now() + patienceMs;
    for (;;) {
      const value = await this.eval(`(() => { try { return ${expression}; } catch { return null; } })()`);
      if (value) return value;
      if (Date.now() > end) throw new Error(`waited in vain for: ${what}; page says: ${await this.eval("document.body.innerText.slice(0, 600)")}; errors: ${this.errors.join(" | ")}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
  text(selector) {
    return this.eval(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
  }
  count(selector) {
    return this.eval(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
  }
  box(selector) {
    return this.eval(`(() => { const b = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return { x: b.x, y: b.y, w: b.width, h: b.height }; })()`);
  }
  mouse(type, x, y, more = {}) {
    return this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1, ...more });
  }
  async click(selector) {
    const { x, y, w, h } = await this.box(selector);
    await this.clickAt(x + w / 2, y + h / 2);
  }
  async clickAt(x, y, clickCount = 1) {
    await this.mouse("mouseMoved", x, y, { buttons: 0 });
    await this.mouse("mousePressed", x, y, { clickCount });
    await this.mouse("mouseReleased", x, y, { clickCount });
  }
  async drag(x0, y0, x1, y1, modifiers = 0) {
    await this.mouse("mousePressed", x0, y0, { modifiers });
    await this.mouse("mouseMoved", (x0 + x1) / 2, (y0 + y1) / 2, { modifiers });
    await this.mouse("mouseMoved", x1, y1, { modifiers });
    await this.mouse("mouseReleased", x1, y1, { modifiers });
  }
  async key(key) {
    const codes = { Enter: 13, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Tab: 9 };
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    const event = { key, text, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }
  async type(text) {
    await this.send("Input.insertText", { text });
  }
  async screenshot(path) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }
  async close() {
    this.browser.pages.delete(this.session);
    await this.browser.send("Target.closeTarget", { targetId: this.target });
  }
}
