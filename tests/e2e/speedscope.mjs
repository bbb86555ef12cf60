// Serves npm's build of speedscope and one profile to this machine, for the test and the bench beside it.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const kTypes = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

// The address opens `profile`; `release` is the package's folder dist/release.
export async function serveSpeedscope(release, profile) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const file = path === "/profile.json" ? profile : join(release, path === "/" ? "index.html" : path);
    if (path.includes("..") || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": kTypes[extname(file)] ?? "text/plain" });
    createReadStream(file).pipe(response);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.on("listening", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { url: `${origin}/#profileURL=${encodeURIComponent(`${origin}/profile.json`)}`, stop: () => server.close() };
}
